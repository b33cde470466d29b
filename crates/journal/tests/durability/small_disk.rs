//! A nearly full disk: a start uses the space that it gets, and segments leave the space that others need.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use crate::events::{Event, request};
use event::Origin;
use journal::disk::Disk;
use journal::simulated_disk::SimulatedDisk;
use journal::{CommitError, DataDirectory, DiskQuota, LogChunk, OpenShard, Reader, Seeds, ShardOptions, open_shard};
use limits::SEGMENT_BYTES_MIN;

const DATA: &str = "/data";
const SHARD: &str = "/data/journal/0000";
const KIB: u64 = 1024;
const MIB: u64 = KIB * KIB;

/// A shard with segments of the usual length, as a server opens it.
fn open(disk: &SimulatedDisk, starts: u64, quota: Option<Arc<DiskQuota>>) -> Result<OpenShard, String> {
    let options = ShardOptions {
        segments_ahead: false,
        seeds: Seeds::Counted(starts << 16),
        quota,
        ..ShardOptions::new(Arc::new(disk.clone()), SHARD.into(), Origin([7; 16]), 0)
    };
    open_shard(&options).map_err(|error| error.to_string())
}

/// Commits a block of one request with events of these numbers, which are their sequences too.
fn commit(shard: &mut OpenShard, numbers: RangeInclusive<u64>, bytes: usize) -> Result<(), CommitError> {
    let first = *numbers.start();
    let events: Vec<Event> = numbers.map(|number| Event::new(number, bytes)).collect();
    shard.appender.append(&request(&events));
    match shard.committer.commit(shard.appender.take(), 1) {
        Ok(block) => shard.durable = block.header().end() - 1,
        Err(error) => {
            shard.appender.rewind(first);
            return Err(error);
        }
    }
    Ok(())
}

fn sequences(shard: &OpenShard) -> Vec<u64> {
    let mut reader = Reader::new(shard.segments.clone(), 1);
    let mut sequences = Vec::new();
    while let Some(chunk) = reader.read(shard.durable).unwrap() {
        let LogChunk::Block(block) = chunk else { panic!("nothing was damaged") };
        sequences.extend(block.records().map(|(sequence, record)| {
            assert_eq!(Event::of(&record).id, Event::new(sequence, 0).id);
            sequence
        }));
    }
    sequences
}

fn free(disk: &SimulatedDisk, capacity: u64) -> u64 {
    capacity - disk.bytes_used()
}

#[test]
fn start_uses_a_small_segment_without_space() {
    let disk = SimulatedDisk::new(1);
    let mut shard = open(&disk, 1, None).unwrap();
    commit(&mut shard, 1..=5, 700).unwrap();
    drop(shard);
    disk.settle();
    // The last block is carried over: a header, it, and a page for the seal.
    let capacity = disk.bytes_used() + 16 * KIB;
    disk.set_capacity(Some(capacity));
    let mut shard = open(&disk, 2, None).unwrap();
    assert!(free(&disk, capacity) <= 8 * KIB && shard.segments.bytes() <= SEGMENT_BYTES_MIN + 16 * KIB);
    assert_eq!(sequences(&shard), [1, 2, 3, 4, 5], "what is there can be delivered");
    assert!(matches!(commit(&mut shard, 6..=9, 700), Err(CommitError::NoSpace { .. })), "and nothing more is accepted");
    disk.set_capacity(None);
    commit(&mut shard, 6..=9, 700).unwrap();
    assert_eq!(sequences(&shard), (1..=9).collect::<Vec<_>>());
    assert!(shard.segments.bytes() >= 2 * SEGMENT_BYTES_MIN, "segments have their usual length again");
    shard.committer.seal(10, 1).unwrap();
}

#[test]
fn start_without_any_space_changes_nothing() {
    let disk = SimulatedDisk::new(1);
    let mut shard = open(&disk, 1, None).unwrap();
    commit(&mut shard, 1..=5, 700).unwrap();
    drop(shard);
    disk.settle();
    let (used, names) = (disk.bytes_used(), disk.list(Path::new(SHARD)).unwrap());
    disk.set_capacity(Some(used + 4 * KIB));
    let refused = open(&disk, 2, None).map(drop).unwrap_err();
    assert!(refused.contains("free space on it"), "{refused}");
    assert_eq!((disk.bytes_used(), disk.list(Path::new(SHARD)).unwrap()), (used, names));
    disk.set_capacity(None);
    assert_eq!(sequences(&open(&disk, 3, None).unwrap()), [1, 2, 3, 4, 5]);
}

#[test]
fn segments_leave_space_for_stores() {
    let (disk, capacity, keep) = (SimulatedDisk::new(1), 64 * MIB, 8 * MIB);
    disk.set_capacity(Some(capacity));
    let quota = Arc::new(DiskQuota::new(Arc::new(disk.clone()), DATA.into(), Some(keep)));
    let mut shard = open(&disk, 1, Some(quota.clone())).unwrap();
    let mut next = 1;
    let refused = loop {
        match commit(&mut shard, next..=next, 200_000) {
            Ok(()) => next += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, CommitError::NoSpace { .. }), "{refused}");
    assert!(quota.has_rejected());
    let appended = 200_000 * (next - 1);
    assert!(appended >= 8 * MIB, "{appended}: it isn't rejected too early");
    assert!(free(&disk, capacity) >= keep + 2 * appended, "{} of {appended}", free(&disk, capacity));
    // Needed records are still written, and so are others after stores have had their share.
    shard.appender.append_needed(&request(&[Event::new(next, 5 * 1000 * 1000)]));
    shard.durable = shard.committer.commit(shard.appender.take(), 1).unwrap().header().end() - 1;
    shard.segments.free_up_to(next).unwrap();
    shard.segments.be_thrifty(true).unwrap();
    quota.reserve(0, 2, quota.bytes_begun());
    commit(&mut shard, next + 1..=next + 1, 200_000).unwrap();
}

/// Each start begins a segment before any other is freed: starts that follow each other quickly would take all that stores need.
#[test]
fn interrupted_starts_use_little_of_the_disk() {
    let (disk, capacity, keep) = (SimulatedDisk::new(1), 64 * MIB, 8 * MIB);
    disk.set_capacity(Some(capacity));
    let quota = || {
        let quota = DiskQuota::new(Arc::new(disk.clone()), DATA.into(), Some(keep));
        let directory = DataDirectory::open(Arc::new(disk.clone()), Path::new(DATA)).unwrap();
        quota.reserve(2 * directory.segment_bytes().unwrap(), 2, 0);
        Some(Arc::new(quota))
    };
    let mut shard = open(&disk, 1, quota()).unwrap();
    let appended = (1..).take_while(|number| commit(&mut shard, *number..=*number, 200_000).is_ok()).count() as u64;
    drop(shard);
    disk.settle();
    for starts in 2..=20 {
        let shard = open(&disk, starts, quota()).unwrap();
        assert_eq!(shard.durable, appended);
    }
    assert!(free(&disk, capacity) >= 2 * 200_000 * appended + keep / 2, "{} of {appended}", free(&disk, capacity));
}
