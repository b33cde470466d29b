//! The failures that a test plans, the capacity, the damage and the switches.

use std::io;
use std::path::Path;

use rustix::io::Errno;

use super::super::{CutStyle, Operation, SimulatedDisk, SimulatedError};
use super::{SEEDS, disk_with, files, make};
use crate::disk::{Disk, DiskFile};

fn errno(result: io::Result<impl Sized>) -> Option<i32> {
    result.err().and_then(|error| error.raw_os_error())
}

const EIO: Option<i32> = Some(Errno::IO.raw_os_error());
const ENOSPC: Option<i32> = Some(Errno::NOSPC.raw_os_error());

/// Calls each operation once, on separate names for each round.
fn call_all(disk: &SimulatedDisk, round: u32) -> Vec<io::Result<()>> {
    let path = |name: &str| format!("/d/{name}{round}");
    let file = disk.open(Path::new("/f")).ok();
    let on_file = |act: &dyn Fn(&dyn DiskFile) -> io::Result<()>| file.as_deref().map_or(Ok(()), act);
    vec![
        disk.create(Path::new(&path("c"))).map(drop),
        file.as_ref().map(drop).ok_or_else(|| Errno::IO.into()),
        disk.rename(Path::new(&path("from")), Path::new(&path("to"))),
        disk.remove(Path::new(&path("gone"))),
        disk.create_directory(Path::new("/d")),
        // There is none: that is an answer too, and no failure of the plan.
        disk.remove_directory(Path::new(&path("none"))),
        disk.list(Path::new("/d")).map(drop),
        disk.sync_directory(Path::new("/d")),
        disk.lock(Path::new("/d/lock")).map(drop),
        on_file(&|file| file.read_at(&mut [0], 0).map(drop)),
        on_file(&|file| file.write_at(b"x", 0).map(drop)),
        on_file(&|file| file.sync()),
        on_file(&|file| file.length().map(drop)),
        on_file(&|file| file.set_length(9)),
        on_file(&|file| file.allocate(9)),
    ]
}

fn disk_for_calls() -> SimulatedDisk {
    let disk = SimulatedDisk::new(1);
    disk.put("/f", b"").unwrap();
    for round in 0..4 {
        disk.put(format!("/d/from{round}"), b"").unwrap();
        disk.put(format!("/d/gone{round}"), b"").unwrap();
    }
    disk
}

#[test]
fn the_planned_call_fails_and_no_other() {
    for (number, operation) in Operation::ALL.into_iter().enumerate() {
        let disk = disk_for_calls();
        disk.fail_call(operation, 2, SimulatedError::Io);
        for round in 0..4 {
            for (called, result) in call_all(&disk, round).into_iter().enumerate() {
                let planned = round == 1 && called == number;
                assert_eq!(errno(result), if planned { EIO } else { None }, "{operation:?}, round {round}, {called}");
            }
            assert_eq!(disk.calls(operation), u64::from(round) + 1);
        }
        let not_made = if operation == Operation::Open { 6 } else { 0 };
        assert_eq!(disk.operations(), 4 * Operation::ALL.len() as u64 - not_made, "each call counts");
    }
}

#[test]
fn calls_fail_from_the_planned_one_until_cleared() {
    let disk = disk_for_calls();
    disk.fail_from_call(Operation::Create, 2, SimulatedError::NoSpace);
    let create = |name: &str| errno(disk.create(Path::new(name)));
    assert_eq!([create("/1"), create("/2"), create("/3")], [None, ENOSPC, ENOSPC]);
    disk.clear_faults();
    assert_eq!(create("/2"), None);
}

#[test]
fn short_write_returns_the_written_length() {
    for seed in 0..SEEDS {
        let (disk, file) = disk_with(seed, b"");
        disk.shorten_write(1);
        let written = file.write_at(&[1; 100], 0).unwrap();
        assert!((1..100).contains(&written), "{written}");
        assert_eq!(disk.content("/f").unwrap(), vec![1; written]);
        assert_eq!(file.write_at(&[1; 100], 0).unwrap(), 100);
    }
}

#[test]
fn power_fails_in_the_planned_operation() {
    let (mut done, mut part) = (0, 0);
    for seed in 0..SEEDS {
        let (disk, file) = disk_with(seed, b"");
        disk.fail_power_at(3);
        file.write_all_at(&[1; 10], 0).unwrap();
        file.sync().unwrap();
        assert!(!disk.power_is_off());
        assert!(file.write_at(&[2; 10], 10).is_err());
        assert!(disk.power_is_off() && disk.operations() == 4);
        assert!(file.length().is_err() && disk.list(Path::new("/")).is_err() && disk.operations() == 4);
        disk.power_cut_in_style(CutStyle::LoseNothing);
        let content = disk.content("/f").unwrap();
        assert_eq!(content, [vec![1; 10], vec![2; content.len() - 10]].concat());
        done += u32::from(content.len() == 20);
        part += u32::from((11..20).contains(&content.len()));
        assert!(disk.open(Path::new("/f")).is_ok(), "the power is back");
    }
    assert!(done > 5 && part > 100, "{done} {part}");
}

#[test]
fn operation_may_be_done_when_power_fails() {
    let done = |seed: &u64| {
        let (disk, _file) = disk_with(*seed, b"");
        disk.fail_power_at(1);
        assert!(disk.rename(Path::new("/f"), Path::new("/g")).is_err());
        disk.power_cut_in_style(CutStyle::LoseNothing);
        files(&disk) == ["/g="]
    };
    assert!((100..400).contains(&(0..SEEDS).filter(done).count()));
}

#[test]
fn after_a_failed_sync_a_later_one_lies() {
    let mut lost = 0;
    for seed in 0..SEEDS {
        let (disk, file) = disk_with(seed, &[0; 1536]);
        disk.fail_call(Operation::Sync, 1, SimulatedError::Io);
        file.write_all_at(&[1; 512], 0).unwrap();
        assert_eq!(errno(file.sync()), EIO);
        assert_eq!(disk.content("/f").unwrap()[0], 1, "the write stays visible");
        file.write_all_at(&[2; 512], 1024).unwrap();
        file.sync().unwrap();
        file.sync().unwrap();
        disk.power_cut();
        let content = disk.content("/f").unwrap();
        assert_eq!(content[1024..], [2; 512], "what was written after it is synced");
        lost += u32::from(content[511] == 0);
    }
    assert!(lost > 100, "{lost}");
}

#[test]
fn directory_sync_lies_after_a_failed_one() {
    let lost = |seed: &u64| {
        let (disk, _file) = disk_with(*seed, b"");
        make(&disk, "/a", b"");
        disk.fail_call(Operation::SyncDirectory, 1, SimulatedError::Io);
        assert_eq!(errno(disk.sync_directory(Path::new("/"))), EIO);
        make(&disk, "/b", b"");
        disk.sync_directory(Path::new("/")).unwrap();
        disk.power_cut();
        assert!(disk.content("/b").is_ok(), "a file created after it is synced");
        disk.content("/a").is_err()
    };
    assert!((0..SEEDS).filter(lost).count() > 100);
}

#[test]
fn full_disk_writes_a_part_until_freed() {
    let (disk, file) = disk_with(1, &[1; 4096]);
    disk.put("/other", &[1; 100]).unwrap();
    disk.set_capacity(Some(3 * 4096));
    assert_eq!(disk.bytes_used(), 2 * 4096);
    assert_eq!(file.write_at(&[2; 9000], 4000).unwrap(), 4192, "up to the first page without space");
    assert_eq!(errno(file.write_at(&[2], 8192)), ENOSPC);
    assert_eq!(file.write_at(&[3; 8192], 0).unwrap(), 8192, "what has space is written again");
    file.set_length(1 << 20).unwrap();
    assert_eq!(disk.bytes_used(), 3 * 4096, "unallocated pages occupy no space");
    disk.remove(Path::new("/other")).unwrap();
    assert_eq!(file.write_at(&[0; 4096], 8192).unwrap(), 4096, "zeros take space");
    assert_eq!(errno(file.write_at(&[2], 16384)), ENOSPC);
    file.set_length(0).unwrap();
    assert_eq!(file.write_at(&[2; 20000], 0).unwrap(), 3 * 4096);
    disk.set_capacity(None);
    assert_eq!(file.write_at(&[2; 20000], 0).unwrap(), 20000);
}

#[test]
fn a_flipped_bit_is_read_and_outlives_cuts() {
    let (disk, file) = disk_with(1, &[0; 600]);
    file.write_all_at(&[0; 512], 0).unwrap();
    disk.flip_bit("/f", 8 * 599 + 7).unwrap();
    for _ in 0..3 {
        let content = disk.content("/f").unwrap();
        assert_eq!(content.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
        assert_eq!(content[599], 0x80);
        disk.power_cut();
    }
    assert!(disk.flip_bit("/f", 8 * 600).is_err());
}

#[test]
fn stale_sectors_read_as_before_their_last_write() {
    let (disk, file) = disk_with(1, &[1; 2048]);
    file.write_all_at(&[2; 2048], 0).unwrap();
    file.write_all_at(&[3; 100], 600).unwrap();
    file.sync().unwrap();
    disk.serve_stale("/f", 1..3).unwrap();
    file.write_all_at(&[2; 512], 1536).unwrap();
    disk.power_cut();
    let file = disk.open(Path::new("/f")).unwrap();
    let mut bytes = [0; 2048];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), 2048);
    let expected = [vec![2; 1024], vec![1; 512], vec![2; 512]].concat();
    assert_eq!(bytes.to_vec(), expected, "sector 1 without its last write, sector 2 without its only one");
    let mut part = [0; 20];
    assert_eq!(file.read_at(&mut part, 1530).unwrap(), 20);
    assert_eq!(part.to_vec(), expected[1530..1550]);
    disk.serve_fresh("/f").unwrap();
    assert_eq!(file.read_at(&mut part, 600).unwrap(), 20);
    assert_eq!(part, [3; 20]);
}

#[test]
fn ignored_syncs_keep_nothing() {
    let (disk, file) = disk_with(1, b"old");
    disk.ignore_sync(true);
    file.write_all_at(b"new", 0).unwrap();
    file.sync().unwrap();
    disk.power_cut_in_style(CutStyle::LoseAll);
    assert_eq!(disk.content("/f").unwrap(), b"old");
    disk.ignore_sync_directory(true);
    make(&disk, "/g", b"");
    disk.sync_directory(Path::new("/")).unwrap();
    disk.power_cut_in_style(CutStyle::LoseAll);
    assert_eq!(files(&disk), ["/f=old"]);
}

#[test]
fn damage_is_durable_immediately() {
    let (disk, _file) = disk_with(1, b"text");
    disk.put("/d/a", b"1").unwrap();
    disk.put("/d/a", b"2").unwrap();
    disk.truncate("/f", 2).unwrap();
    disk.put("/gone", b"").unwrap();
    disk.erase("/gone").unwrap();
    disk.power_cut_in_style(CutStyle::LoseAll);
    assert_eq!(files(&disk), ["/d/a=2", "/f=te"]);
    assert_eq!(disk.operations(), 1, "only the opening of f was one");
}
