//! Damage of whole files: segments that are missing, reappear, or belong to another directory.

use std::path::Path;

use event::Origin;
use journal::simulated_disk::SimulatedDisk;
use journal::{OpenError, OpenShard, open_shard};

use super::judge::reported;
use super::log::{SHARD, observe, options, segment_path};
use crate::events::{Event, request};

/// Commits events of such a size that few of them fill a segment.
fn fill(shard: &mut OpenShard, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers {
        shard.appender.append(&request(&[Event::new(number, 9_000)]));
        shard.committer.commit(shard.appender.take(), 1).unwrap();
    }
}

/// A journal with the events 1 to 30 in six segments or so.
fn several_segments() -> SimulatedDisk {
    let disk = SimulatedDisk::new(1);
    let mut shard = open_shard(&options(&disk, 1)).unwrap();
    fill(&mut shard, 1..=30);
    assert!(shard.segments.count() > 4);
    drop(shard);
    disk.settle();
    disk
}

#[test]
fn missing_segment_is_reported_by_its_sequences() {
    let disk = several_segments();
    disk.erase(segment_path(3)).unwrap();
    let observed = observe(&disk, 2);
    let lost = reported(&observed);
    assert!(!lost.is_empty());
    for number in 1..=30 {
        let event = (!lost.contains(&number)).then(|| Event::new(number, 9_000));
        assert_eq!(observed.events.get(&number), event.as_ref(), "{number}");
    }
    assert!(observed.findings.iter().all(|finding| finding.case == 'F'), "{:?}", observed.findings);
}

#[test]
fn reappearing_freed_segment_does_no_harm() {
    let disk = several_segments();
    let stale = disk.content(segment_path(1)).unwrap();
    let mut shard = open_shard(&options(&disk, 2)).unwrap();
    shard.segments.free_up_to(20).unwrap();
    let oldest = shard.segments.oldest().unwrap();
    fill(&mut shard, 31..=60);
    drop(shard);
    // Under its own name it is an old part of the log again.
    disk.put(segment_path(1), &stale).unwrap();
    let observed = observe(&disk, 3);
    assert!((oldest..=60).all(|number| observed.events[&number] == Event::new(number, 9_000)));
    assert!(observed.events.iter().all(|(number, event)| *event == Event::new(*number, 9_000)));
    assert!(reported(&observed).iter().all(|sequence| *sequence < oldest));
    // Under the name of the newest it is none.
    drop(observed);
    disk.put(segment_path(0x77), &stale).unwrap();
    let observed = observe(&disk, 4);
    assert!((oldest..=60).all(|number| observed.events[&number] == Event::new(number, 9_000)));
    assert!(observed.findings.iter().any(|finding| finding.case == 'H' && finding.generation == 0x77));
}

#[test]
fn foreign_segment_is_named_and_left_alone() {
    let disk = several_segments();
    let foreign = SimulatedDisk::new(2);
    let mut other = options(&foreign, 1);
    other.origin = Origin([8; 16]);
    drop(open_shard(&other).unwrap());
    let content = foreign.content(segment_path(1)).unwrap();
    disk.put(segment_path(0x50), &content).unwrap();
    // With another generation in its name it can't be read as a segment at all.
    assert!(observe(&disk, 2).findings.iter().any(|finding| finding.case == 'H'));
    disk.put(segment_path(1), &content).unwrap();
    match open_shard(&options(&disk, 3)) {
        Err(OpenError::Foreign { path, found, .. }) => {
            assert_eq!((path, found), (segment_path(1), Origin([8; 16])));
        }
        other => panic!("{:?}", other.map(|shard| shard.findings)),
    }
    assert_eq!(disk.content(segment_path(1)).unwrap(), content);
}

#[test]
fn files_with_any_name_do_no_harm() {
    let disk = several_segments();
    let names = [
        "ffffffffffffffff.segment",
        "fffffffffffffffe.segment",
        "7fffffffffffffff.segment",
        "000000000000000A.segment",
        "1.segment",
        ".segment",
        "spare-x",
        "spare-18446744073709551616",
        "notes.txt",
        "0000000000000001.segment.bak",
        "0000000000000001-1000.torn",
    ];
    for name in names {
        disk.put(Path::new(SHARD).join(name), b"not a segment").unwrap();
    }
    let mut next = 31;
    for start in 2..6 {
        let observed = observe(&disk, start);
        assert!((1..next).all(|number| observed.events.values().any(|event| *event == Event::new(number, 9_000))));
        let mut shard = observed.shard.0;
        fill(&mut shard, next..=next + 9);
        next += 10;
    }
    assert_eq!(observe(&disk, 7).events.len() as u64, next - 1);
    assert!(disk.paths().iter().any(|path| path.ends_with("notes.txt")));
}

#[test]
fn quarantined_newest_segment_is_remembered_after_failures() {
    let disk = several_segments();
    let newest = disk.paths().into_iter().rfind(|path| path.extension().is_some_and(|e| e == "segment")).unwrap();
    disk.put(&newest, &[1; 9000]).unwrap();
    for operations in 1..120 {
        let disk = disk.fork(operations);
        disk.fail_power_at(operations);
        let broken = open_shard(&options(&disk, 2)).map(drop);
        if broken.is_ok() {
            return assert!(operations > 20, "the start was broken nowhere");
        }
        disk.power_cut();
        let observed = observe(&disk, 3);
        let durable = observed.shard.0.durable;
        assert!(durable > 30, "broken in operation {operations}: sequences up to {durable}, though 30 was used");
    }
    panic!("a start has more operations than expected");
}
