//! The changes of a repair, and the files that repair and inspection leave alone.

use std::path::Path;
use std::sync::Arc;

use event::{EventId, Origin};

use super::*;
use crate::committer::Seeds;
use crate::inspect::inspect_shard;
use crate::record::JournalRecord;
use crate::simulated_disk::SimulatedDisk;

const SHARD: &str = "/s";

fn options(disk: &SimulatedDisk, starts: u64) -> ShardOptions {
    ShardOptions {
        first_segment_bytes: 16 * 1024,
        segment_bytes_max: 16 * 1024,
        segments_ahead: false,
        seeds: Seeds::Counted(starts << 16),
        ..ShardOptions::new(Arc::new(disk.clone()), SHARD.into(), Origin([7; 16]), 0)
    }
}

/// Six events in blocks of two, and bits of the second and of the third that are wrong.
fn damaged() -> SimulatedDisk {
    let disk = SimulatedDisk::new(1);
    let mut shard = open_shard(&options(&disk, 1)).unwrap();
    for number in 1..=6_u64 {
        shard.appender.push(&JournalRecord::new(EventId(u128::from(number).to_be_bytes()), 5, "t", &[b'1'; 1000]));
        if number % 2 == 0 {
            shard.committer.commit(shard.appender.take(), 1).unwrap();
        }
    }
    drop(shard);
    disk.flip_bit(segment::path(Path::new(SHARD), 1), (4096 + 80 + 1500) * 8).unwrap();
    disk.flip_bit(segment::path(Path::new(SHARD), 1), (8192 + 80 + 500) * 8).unwrap();
    disk.settle();
    disk
}

/// The sequences that are readable, and the codes of the findings.
fn seen(disk: &SimulatedDisk) -> (Vec<u64>, String) {
    let (mut sequences, mut cases) = (Vec::new(), String::new());
    let shared = Arc::new(disk.clone()) as crate::disk::SharedDisk;
    inspect_shard(&shared, Path::new(SHARD), &mut |item| match item {
        Inspected::Segment(_) => {}
        Inspected::Block { block, .. } => sequences.extend(block.records().map(|(sequence, _)| sequence)),
        Inspected::Damaged(damaged) | Inspected::Torn(damaged) => {
            sequences.extend(damaged.survivors().iter().map(|(sequence, _)| *sequence));
            cases.push(damaged.finding().case);
        }
        Inspected::Finding(finding) => cases.push(finding.case),
    })
    .unwrap();
    (sequences, cases)
}

fn contents(disk: &SimulatedDisk) -> Vec<(PathBuf, Vec<u8>)> {
    disk.paths().into_iter().map(|path| (path.clone(), disk.content(path).unwrap())).collect()
}

#[test]
fn inspection_changes_nothing() {
    let disk = damaged();
    let before = contents(&disk);
    assert_eq!(seen(&disk), (vec![1, 4, 5, 6], "BB".into()));
    assert_eq!(contents(&disk), before);
}

#[test]
fn repair_drops_unreadable_records_and_keeps_the_original() {
    let disk = damaged();
    let original = disk.content(segment::path(Path::new(SHARD), 1)).unwrap();
    let repair = repair_shard(&options(&disk, 2)).unwrap();
    assert_eq!(repair.rewritten, [1]);
    let mut lost: Vec<u64> =
        repair.findings.iter().flat_map(|finding| finding.lost.iter().cloned().flatten()).collect();
    lost.sort_unstable();
    lost.dedup();
    assert_eq!(lost, [2, 3]);
    let aside = repair.findings.iter().find_map(|finding| finding.saved.clone()).unwrap();
    assert_eq!(disk.content(aside).unwrap(), original);
    assert_eq!(seen(&disk), (vec![1, 4, 5, 6], String::new()));
    assert_eq!(repair_shard(&options(&disk, 3)).unwrap(), Repair::default(), "there is nothing left to repair");
}

#[test]
fn a_second_repair_leaves_the_first_original_alone() {
    let disk = damaged();
    let path = segment::path(Path::new(SHARD), 1);
    let mut asides = Vec::new();
    // Each time the one event that is left of another block.
    for (starts, block) in [(2, 4096), (3, 8192), (4, 0)] {
        let original = disk.content(&path).unwrap();
        let repair = repair_shard(&options(&disk, starts)).unwrap();
        asides.push((repair.findings.iter().find_map(|finding| finding.saved.clone()).unwrap(), original));
        disk.settle();
        disk.flip_bit(&path, (block + 80 + 500) * 8).unwrap();
    }
    for (aside, original) in &asides {
        assert!(disk.content(aside).unwrap() == *original, "{}", aside.display());
    }
    let mut names: Vec<&PathBuf> = asides.iter().map(|(aside, _)| aside).collect();
    names.dedup();
    assert_eq!(names.len(), 3, "{names:?}");
}

#[test]
fn repair_can_be_repeated_after_a_power_cut() {
    for operations in 1..100 {
        let disk = damaged();
        disk.fail_power_at(operations);
        let repaired = repair_shard(&options(&disk, 2));
        if repaired.is_ok() {
            return assert!(operations > 20);
        }
        disk.power_cut();
        repair_shard(&options(&disk, 3)).unwrap();
        assert_eq!(seen(&disk), (vec![1, 4, 5, 6], String::new()), "after {operations} operations");
    }
    panic!("a repair has more operations than expected");
}
