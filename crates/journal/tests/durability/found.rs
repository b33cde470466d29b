//! Bugs that the campaigns found, each by name, so none returns unnoticed. Those of damaged files are in `damage`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::events::{Event, request};
use event::Origin;
use journal::disk::{Disk, SharedDisk};
use journal::simulated_disk::{CutStyle, Operation, SimulatedDisk, SimulatedError};
use journal::{
    DataDirectory, Inspected, LogChunk, OpenShard, Reader, Seeds, ShardOptions, StateFile, inspect_shard, open_shard,
};

const DATA: &str = "/data";
const SHARD: &str = "/data/journal/0000";

fn open(disk: &SimulatedDisk, starts: u64) -> OpenShard {
    let options = ShardOptions {
        first_segment_bytes: 32 * 1024,
        segment_bytes_max: 32 * 1024,
        segments_ahead: false,
        seeds: Seeds::Counted(starts << 16),
        ..ShardOptions::new(Arc::new(disk.clone()), SHARD.into(), Origin([7; 16]), 0)
    };
    open_shard(&options).unwrap()
}

/// Commits a block of one request with events of these numbers, which are their sequences too.
fn commit(shard: &mut OpenShard, numbers: std::ops::RangeInclusive<u64>) {
    let events: Vec<Event> = numbers.map(|number| Event::new(number, 700)).collect();
    shard.appender.append(&request(&events));
    let block = shard.committer.commit(shard.appender.take(), 1).unwrap();
    shard.durable = block.header().end() - 1;
}

/// Everything from `next` on: the sequences that are delivered, and those that are reported as lost.
fn read(reader: &mut Reader, durable: u64) -> (Vec<u64>, Vec<u64>) {
    let (mut delivered, mut lost) = (Vec::new(), Vec::new());
    while let Some(chunk) = reader.read(durable).unwrap() {
        match chunk {
            LogChunk::Block(block) => delivered.extend(block.records().map(|(sequence, record)| {
                assert_eq!(Event::of(&record), Event::new(sequence, 700));
                sequence
            })),
            LogChunk::Damaged(damaged) => {
                delivered.extend(damaged.survivors().iter().map(|(sequence, _)| *sequence));
                lost.extend(damaged.finding().lost.iter().cloned().flatten());
            }
        }
    }
    (delivered, lost)
}

fn segment(generation: u64) -> PathBuf {
    Path::new(SHARD).join(format!("{generation:016x}.segment"))
}

fn flip(disk: &SimulatedDisk, generation: u64, byte: u64) {
    disk.flip_bit(segment(generation), byte * 8).unwrap();
}

#[test]
fn parent_directories_survive_a_power_cut() {
    let disk = SimulatedDisk::new(1);
    disk.put("/data/other", b"").unwrap();
    commit(&mut open(&disk, 1), 1..=3);
    disk.power_cut_in_style(CutStyle::LoseAll);
    assert_eq!(open(&disk, 2).durable, 3);
}

#[test]
fn power_cut_during_frees_leaves_no_gap() {
    for seed in 0..100 {
        let disk = SimulatedDisk::new(seed);
        let mut shard = open(&disk, 1);
        (1..=60).for_each(|number| commit(&mut shard, number..=number));
        disk.fail_power_at(1 + seed % 10);
        drop(shard.segments.free_up_to(59));
        disk.power_cut();
        let shared: SharedDisk = Arc::new(disk);
        inspect_shard(&shared, Path::new(SHARD), &mut |item| {
            assert!(!matches!(item, Inspected::Damaged(_)), "seed {seed}: {item:?}");
        })
        .unwrap();
    }
}

#[test]
fn segment_is_freed_later_after_a_failure() {
    for operation in [Operation::Remove, Operation::Rename, Operation::SyncDirectory] {
        let disk = SimulatedDisk::new(1);
        let mut shard = open(&disk, 1);
        (1..=60).for_each(|number| commit(&mut shard, number..=number));
        disk.fail_from_call(operation, 1, SimulatedError::Io);
        assert!(shard.segments.free_up_to(59).is_err());
        disk.clear_faults();
        shard.segments.free_up_to(59).unwrap();
        assert!(shard.segments.oldest().unwrap() > 50, "{operation:?}");
        let is_segment = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "segment");
        assert_eq!(disk.paths().iter().filter(is_segment).count(), shard.segments.count(), "{operation:?}");
    }
}

#[test]
fn content_of_a_state_file_is_durable() {
    let disk = SimulatedDisk::new(1);
    disk.put("/data/other", b"").unwrap();
    let shared: SharedDisk = Arc::new(disk.clone());
    let opened = || StateFile::open(shared.clone(), Path::new(DATA), "ledger").unwrap();
    opened().0.write(b"one").unwrap();
    opened().0.write(b"two").unwrap();
    // As a process that is killed before it syncs the directory leaves it.
    disk.rename(Path::new("/data/ledger.0"), Path::new("/data/x")).unwrap();
    disk.sync_directory(Path::new(DATA)).unwrap();
    disk.rename(Path::new("/data/x"), Path::new("/data/ledger.0")).unwrap();
    assert_eq!(opened().1.content.as_deref(), Some(&b"two"[..]));
    disk.power_cut_in_style(CutStyle::LoseAll);
    assert_eq!(opened().1.content.as_deref(), Some(&b"two"[..]));
}

#[test]
fn half_written_origin_is_completed() {
    let disk = SimulatedDisk::new(1);
    disk.put("/data/other", b"").unwrap();
    let shared: SharedDisk = Arc::new(disk.clone());
    // The name of its first copy is never durable, regardless of a later sync's result.
    disk.fail_call(Operation::SyncDirectory, 3, SimulatedError::Io);
    assert!(DataDirectory::open(shared.clone(), Path::new(DATA)).is_err());
    disk.clear_faults();
    let origin = DataDirectory::open(shared.clone(), Path::new(DATA)).unwrap().origin();
    disk.power_cut_in_style(CutStyle::LoseAll);
    assert_eq!(DataDirectory::open(shared.clone(), Path::new(DATA)).unwrap().origin(), origin);
    // And a damaged copy is replaced.
    disk.put("/data/origin.0", b"rot").unwrap();
    assert_eq!(DataDirectory::open(shared.clone(), Path::new(DATA)).unwrap().origin(), origin);
    disk.put("/data/origin.1", b"rot").unwrap();
    assert_eq!(DataDirectory::open(shared, Path::new(DATA)).unwrap().origin(), origin);
}

#[test]
fn cut_request_is_reported_with_all_events() {
    let disk = SimulatedDisk::new(1);
    let mut shard = open(&disk, 1);
    commit(&mut shard, 1..=1);
    commit(&mut shard, 2..=4);
    drop(shard);
    flip(&disk, 1, 8192 + 80 + 100);
    let shard = open(&disk, 2);
    assert_eq!(shard.findings.len(), 1);
    assert_eq!((shard.findings[0].case, shard.findings[0].lost.first()), ('C', Some(&(2..5))));
    assert_eq!(read(&mut Reader::new(shard.segments, 1), shard.durable).0, [1]);
}

#[test]
fn rotten_generation_in_first_block_is_noticed() {
    let disk = SimulatedDisk::new(1);
    commit(&mut open(&disk, 1), 1..=3);
    flip(&disk, 1, 4096 + 8);
    let shard = open(&disk, 2);
    assert_eq!(shard.findings.iter().map(|finding| finding.case).collect::<String>(), "E");
    assert_eq!(read(&mut Reader::new(shard.segments, 1), shard.durable).0, [1, 2, 3]);
}

#[test]
fn reader_reports_no_damage_before_its_position() {
    let disk = SimulatedDisk::new(1);
    let mut shard = open(&disk, 1);
    (1..=3).for_each(|number| commit(&mut shard, number..=number));
    flip(&disk, 1, 4096 + 30);
    let (delivered, lost) = read(&mut Reader::new(shard.segments.clone(), 3), shard.durable);
    assert_eq!((delivered, lost), (vec![3], vec![]));
}

#[test]
fn running_reader_continues_after_a_rotten_block() {
    let disk = SimulatedDisk::new(1);
    let mut shard = open(&disk, 1);
    commit(&mut shard, 1..=1);
    flip(&disk, 1, 4096 + 30);
    let mut reader = Reader::new(shard.segments.clone(), 1);
    assert_eq!(read(&mut reader, shard.durable), (vec![1], vec![]));
    commit(&mut shard, 2..=2);
    assert_eq!(read(&mut reader, shard.durable), (vec![2], vec![]));
    commit(&mut shard, 3..=3);
    assert_eq!(read(&mut reader, shard.durable), (vec![3], vec![]));
}

#[test]
fn start_reads_a_segment_once() {
    let disk = SimulatedDisk::new(1);
    let mut shard = open(&disk, 1);
    (1..=6).for_each(|number| commit(&mut shard, number..=number));
    assert_eq!(shard.segments.count(), 1);
    drop(shard);
    let before = disk.calls(Operation::ReadAt);
    assert_eq!(open(&disk, 2).durable, 6);
    let reads = disk.calls(Operation::ReadAt) - before;
    assert!(reads < 10, "{reads} reads for 6 blocks");
}

/// The read-ahead holds the bytes after the last block when it was read.
#[test]
fn running_reader_ignores_stale_bytes() {
    let disk = SimulatedDisk::new(1);
    let mut shard = open(&disk, 1);
    let mut reader = Reader::new(shard.segments.clone(), 1);
    for number in 1..=30 {
        commit(&mut shard, number..=number);
        let chunk = reader.read(shard.durable).unwrap().unwrap();
        assert!(matches!(chunk, LogChunk::Block(_)), "{chunk:?}");
        assert_eq!(chunk.end(), number + 1);
    }
}
