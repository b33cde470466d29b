//! A journal whose bytes are known: which of them are whose.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use event::Origin;
use journal::simulated_disk::SimulatedDisk;
use journal::{Finding, Inspected, LogChunk, OpenShard, Reader, Seeds, ShardOptions, inspect_shard, open_shard};

use crate::events::{Event, request};

pub(crate) const SHARD: &str = "/data/journal/0000";
const SEGMENT_BYTES: u64 = 64 * 1024;
/// The segment that is damaged.
const SUBJECT: u64 = 1;

/// The content after the damaged segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentEnd {
    /// A later segment.
    Followed,
    /// A clean stop.
    Sealed,
    /// Nothing: it is the newest, and its last block is its end.
    Unsealed,
}

pub(crate) const SETTINGS: [SegmentEnd; 3] = [SegmentEnd::Followed, SegmentEnd::Sealed, SegmentEnd::Unsealed];

/// A record's place in the segment's file, without padding.
#[derive(Clone, Debug)]
pub(crate) struct RecordPlace {
    pub(crate) sequence: u64,
    pub(crate) bytes: Range<u64>,
    /// The sequences of its request.
    pub(crate) request: Range<u64>,
}

/// A block's place in the segment's file.
#[derive(Clone, Debug)]
pub(crate) struct BlockPlace {
    pub(crate) header: Range<u64>,
    /// With padding.
    pub(crate) end: u64,
    pub(crate) records: Vec<RecordPlace>,
}

/// The journal before it is damaged.
pub(crate) struct Log {
    pub(crate) setting: SegmentEnd,
    pub(crate) disk: SimulatedDisk,
    pub(crate) blocks: Vec<BlockPlace>,
    pub(crate) events: BTreeMap<u64, Event>,
}

/// The rest of a journal.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) events: BTreeMap<u64, Event>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) shard: OpenShardLeft,
}

/// The open journal, which has nothing to show alone.
pub(crate) struct OpenShardLeft(pub(crate) OpenShard);

impl std::fmt::Debug for OpenShardLeft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "durable up to {}", self.0.durable)
    }
}

pub(crate) fn options(disk: &SimulatedDisk, starts: u64) -> ShardOptions {
    ShardOptions {
        first_segment_bytes: SEGMENT_BYTES,
        segment_bytes_max: SEGMENT_BYTES,
        segments_ahead: false,
        seeds: Seeds::Counted(starts << 16),
        ..ShardOptions::new(Arc::new(disk.clone()), SHARD.into(), Origin([7; 16]), 0)
    }
}

pub(crate) fn segment_path(generation: u64) -> PathBuf {
    Path::new(SHARD).join(format!("{generation:016x}.segment"))
}

/// The shapes of the blocks: the sizes of the payloads of each request.
fn shapes() -> Vec<Vec<Vec<usize>>> {
    vec![
        vec![vec![10]],
        vec![vec![100; 12]],
        vec![vec![3000], vec![700, 1, 0, 2500], vec![5]],
        vec![vec![9000]],
        vec![vec![4096 - 200]],
        vec![vec![40; 30], vec![80], vec![80]],
        vec![vec![20, 600, 20], vec![300], vec![1500, 1500]],
    ]
}

impl Log {
    pub(crate) fn new(setting: SegmentEnd) -> Self {
        let disk = SimulatedDisk::new(1);
        let mut log = Self { setting, disk: disk.clone(), blocks: Vec::new(), events: BTreeMap::new() };
        let mut shard = open_shard(&options(&disk, 1)).unwrap();
        for shape in shapes() {
            let requests = shape.iter().map(|sizes| log.append(&mut shard, sizes)).collect::<Vec<_>>();
            shard.committer.commit(shard.appender.take(), 1).unwrap();
            log.blocks.push(BlockPlace { header: 0..0, end: 0, records: Vec::new() });
            log.place_last(&requests);
        }
        match setting {
            SegmentEnd::Followed => {
                while shard.segments.count() == 1 {
                    log.append(&mut shard, &[30_000]);
                    shard.committer.commit(shard.appender.take(), 1).unwrap();
                }
            }
            SegmentEnd::Sealed => {
                let next = shard.appender.open_block().end();
                shard.committer.seal(next, 1).unwrap();
            }
            SegmentEnd::Unsealed => {}
        }
        disk.settle();
        log
    }

    pub(crate) fn path(&self) -> PathBuf {
        segment_path(SUBJECT)
    }

    pub(crate) fn length(&self) -> u64 {
        SEGMENT_BYTES
    }

    fn append(&mut self, shard: &mut OpenShard, sizes: &[usize]) -> Range<u64> {
        let next = self.events.len() as u64 + 1;
        let events: Vec<Event> = (next..).zip(sizes).map(|(number, bytes)| Event::new(number, *bytes)).collect();
        let first = shard.appender.append(&request(&events));
        assert_eq!(first, next);
        self.events.extend((first..).zip(events));
        first..first + sizes.len() as u64
    }

    /// Finds the places of the last block's records by the format's page: each record begins with its length.
    fn place_last(&mut self, requests: &[Range<u64>]) {
        let content = self.disk.content(self.path()).unwrap();
        let number = |at: u64| {
            let at = usize::try_from(at).unwrap();
            u64::from(u32::from_le_bytes(content[at..at + 4].try_into().unwrap()))
        };
        let start = self.blocks.iter().rev().nth(1).map_or(4096, |block| block.end);
        let end = start + 80 + number(start + 36);
        let mut at = start + 80;
        let mut records = Vec::new();
        for request in requests {
            for sequence in request.clone() {
                let length = number(at);
                records.push(RecordPlace { sequence, bytes: at..at + length, request: request.clone() });
                at += length.next_multiple_of(8);
            }
        }
        assert_eq!(at, end, "the records fill the block");
        let block = self.blocks.last_mut().unwrap();
        *block = BlockPlace { header: start..start + 80, end: end.next_multiple_of(4096), records };
    }
}

/// Inspects, opens and reads everything on the disk.
pub(crate) fn observe(disk: &SimulatedDisk, starts: u64) -> Observed {
    let options = options(disk, starts);
    let mut findings = Vec::new();
    inspect_shard(&options.disk, Path::new(SHARD), &mut |item| match item {
        Inspected::Finding(finding) => findings.push(finding.clone()),
        Inspected::Damaged(damaged) | Inspected::Torn(damaged) => findings.push(damaged.finding().clone()),
        Inspected::Segment(_) | Inspected::Block { .. } => {}
    })
    .unwrap();
    let shard = open_shard(&options).unwrap_or_else(|error| panic!("a start must be possible: {error}"));
    findings.extend(shard.findings.iter().cloned());
    let mut events = BTreeMap::new();
    let mut reader = Reader::new(shard.segments.clone(), 1);
    while let Some(chunk) = reader.read(shard.durable).unwrap() {
        let mut add = |sequence, event| assert_eq!(events.insert(sequence, event), None, "{sequence} twice");
        match chunk {
            LogChunk::Block(block) => block.records().for_each(|(s, record)| add(s, Event::of(&record))),
            LogChunk::Damaged(damaged) => {
                damaged.survivors().iter().for_each(|(s, record)| add(*s, Event::of(record)));
                findings.push(damaged.finding().clone());
            }
        }
    }
    Observed { events, findings, shard: OpenShardLeft(shard) }
}
