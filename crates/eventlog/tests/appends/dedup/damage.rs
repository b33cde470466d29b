//! Lost events may be sent again, whichever start found the loss and at any point it failed. Events that are left
//! are duplicates.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Poll;

use event::{EventId, KeyedIds, TypeName};
use eventlog::{
    AppendBatch, AppendOutcome, DataDirectory, DedupKey, Finding, Inspected, JournalRecord, LogChunk, ShardOptions,
    SourceLine, forget_lost_ids, inspect_shard,
};
use journal::repair_shard;
use journal::simulated_disk::{CutStyle, Operation, SimulatedDisk, SimulatedError};

use super::{Harness, INLINE, Outcome, append, appended, record};

thread_local! {
    static REPORTED: RefCell<Vec<(u16, char)>> = const { RefCell::new(Vec::new()) };
}

/// Remembers the reports of a start of this thread.
pub(crate) fn note(shard: u16, finding: &Finding) {
    REPORTED.with_borrow_mut(|reported| reported.push((shard, finding.case)));
}

fn reported() -> Vec<(u16, char)> {
    REPORTED.take()
}

const SEGMENT: &str = "/data/journal/0000/0000000000000001.segment";
/// The first shard has the events 1, 2 and 3, each in a block of a page.
const KEYS: std::ops::RangeInclusive<u8> = 1..=3;
const BLOCKS: [u64; 3] = [4096, 8192, 12288];

/// A damage of the first shard's log.
#[derive(Clone, Copy, Debug)]
struct Damage {
    case: char,
    /// Bytes of which a bit is inverted.
    bytes: &'static [u64],
    lost: &'static [u8],
}

const HEADER: u64 = 30;
const RECORD: u64 = 80 + 30;
const DAMAGES: [Damage; 5] = [
    Damage { case: 'B', bytes: &[BLOCKS[1] + RECORD], lost: &[2] },
    Damage { case: 'C', bytes: &[BLOCKS[2] + RECORD], lost: &[3] },
    Damage { case: 'D', bytes: &[BLOCKS[1] + HEADER, BLOCKS[1] + RECORD], lost: &[2] },
    Damage { case: 'E', bytes: &[BLOCKS[2] + HEADER], lost: &[] },
    Damage { case: 'E', bytes: &[BLOCKS[2] + HEADER, BLOCKS[2] + RECORD], lost: &[3] },
];

impl Damage {
    /// The disk of a process that was killed when all ids were saved.
    fn disk(self) -> SimulatedDisk {
        let disk = SimulatedDisk::new(1);
        let harness = Harness::open(&disk, INLINE);
        for key in KEYS {
            assert!(matches!(harness.run(async |harness| harness.post(0, key, "1").await), Outcome::New(_)));
        }
        assert_eq!(harness.log.save_ids(&[0, 0]).unwrap(), [3, 0]);
        drop(harness);
        disk.settle();
        self.bytes.iter().for_each(|byte| disk.flip_bit(SEGMENT, byte * 8).unwrap());
        assert_eq!(reported(), []);
        disk
    }

    /// Lost events may be sent again, once, and no others, also after a further start.
    fn check(self, mut harness: Harness, what: &str) {
        for again in [false, true] {
            for key in KEYS {
                let outcome = harness.run(async |harness| harness.post(0, key, "1").await);
                let is_new = matches!(outcome, Outcome::New(_));
                assert_eq!(is_new, self.lost.contains(&key) && !again, "{self:?}, {what}: {key}: {outcome:?}");
                assert!(is_new || matches!(outcome, Outcome::Again(_)), "{self:?}, {what}: {key}: {outcome:?}");
            }
            harness = harness.crash(true);
        }
        assert!(reported().contains(&(0, self.case)), "{self:?}, {what}: no finding was reported");
    }
}

#[test]
fn only_lost_events_are_accepted_again() {
    for damage in DAMAGES {
        damage.check(Harness::open(&damage.disk(), INLINE), "a start");
    }
}

#[test]
fn finding_is_reported_despite_a_power_cut() {
    for damage in DAMAGES {
        let left = damage.disk();
        for style in [CutStyle::LoseNothing, CutStyle::LoseAll, CutStyle::InOrder] {
            let mut operations = 0;
            loop {
                operations += 1;
                let disk = left.fork(operations);
                disk.fail_power_at(operations);
                let is_done = Harness::try_open(&disk, INLINE).is_ok() && !disk.power_is_off();
                disk.power_cut_in_style(style);
                damage.check(Harness::open(&disk, INLINE), &format!("{style:?} at operation {operations}"));
                if is_done {
                    break;
                }
            }
            assert!(operations > 50, "{operations}");
        }
    }
}

#[test]
fn finding_is_reported_despite_a_failed_start() {
    for damage in DAMAGES {
        let left = damage.disk();
        for operation in Operation::ALL {
            for call in 1.. {
                let disk = left.fork(call);
                let before = disk.calls(operation);
                disk.fail_call(operation, call, SimulatedError::Io);
                drop(Harness::try_open(&disk, INLINE));
                if disk.calls(operation) < before + call {
                    reported();
                    break;
                }
                disk.clear_faults();
                damage.check(Harness::open(&disk, INLINE), &format!("{operation:?} {call}"));
            }
        }
    }
}

/// As if a segment of another directory was copied among ours.
#[test]
fn unreadable_shard_leaves_other_shards_unchanged() {
    let foreign = SimulatedDisk::new(2);
    drop(Harness::open(&foreign, INLINE));
    let other = "/data/journal/0001/0000000000000001.segment";
    for damage in DAMAGES {
        let disk = damage.disk();
        let own = disk.content(other).unwrap();
        disk.put(other, &foreign.content(other).unwrap()).unwrap();
        assert!(Harness::try_open(&disk, INLINE).is_err());
        assert_eq!(reported(), [(0, damage.case)], "it was looked at before the other one");
        disk.put(other, &own).unwrap();
        damage.check(Harness::open(&disk, INLINE), "a start after one that broke off");
    }
}

fn findings(directory: &DataDirectory) -> Vec<Finding> {
    let mut found = Vec::new();
    inspect_shard(directory.disk(), &directory.shard(0), &mut |item| match item {
        Inspected::Damaged(chunk) | Inspected::Torn(chunk) => found.push(chunk.finding().clone()),
        Inspected::Finding(finding) => found.push(finding.clone()),
        Inspected::Segment(_) | Inspected::Block { .. } => {}
    })
    .unwrap();
    found
}

#[test]
fn events_removed_by_a_repair_are_accepted_again() {
    for damage in DAMAGES {
        let disk = damage.disk();
        let directory = DataDirectory::open(Arc::new(disk.clone()), Path::new("/data")).unwrap();
        let found = findings(&directory);
        found.iter().for_each(|finding| note(0, finding));
        forget_lost_ids(&directory, &[found, Vec::new()]).unwrap();
        let options = ShardOptions {
            segments_ahead: false,
            ..ShardOptions::new(directory.disk().clone(), directory.shard(0), directory.origin(), 0)
        };
        repair_shard(&options).unwrap();
        drop(directory);
        damage.check(Harness::open(&disk, INLINE), "a repair");
    }
}

/// A batch like the gateway's: one type, a key, and an event with a separate id.
fn keyed(harness: &Harness, key: &[u8], payloads: &[&str]) -> AppendBatch {
    let name = TypeName::new("event").unwrap();
    let type_id = harness.log.types().intern(&name);
    let ids = KeyedIds::new("", &name, key);
    let mut batch = AppendBatch::default();
    for (number, payload) in (0..).zip(payloads) {
        let own = (*payload == OWN).then(|| harness.log.content_hash().of(payload.as_bytes()));
        let id = if own.is_some() { EventId([7; 16]) } else { ids.id(number + 1) };
        let record =
            JournalRecord { id, content: own, request_start: number == 0, request_end: false, ..record(payload) };
        batch.push(&record, SourceLine { number, type_id });
    }
    batch.end_request();
    batch.set_key(DedupKey { id: KeyedIds::of_batch("", Some(&name), key), content: 99 });
    batch
}

const OWN: &str = "\"own\"";
const BATCH: [&str; 6] = ["\"one\"", "\"two\"", "\"three\"", OWN, "\"four\"", "\"last\""];

/// Sends the batch until its outcome is known: the numbers of duplicate records, and whether others were appended.
fn send(harness: &Harness) -> (Vec<u32>, bool) {
    let mut batch = keyed(harness, b"key", &BATCH);
    harness.run(async |harness| {
        let appended = match append(harness.shard(0), &mut batch) {
            Poll::Ready(Some(AppendOutcome::Appended(append))) => append.await.is_ok(),
            Poll::Ready(Some(AppendOutcome::Duplicate(_))) => return ((0..6).collect(), false),
            Poll::Ready(None) => false,
            _ => panic!("duplicates are reported record by record"),
        };
        (batch.result.duplicates.iter().map(|(number, _)| *number).collect(), appended)
    })
}

/// All payloads of the first shard, in order.
fn payloads(harness: &Harness) -> Vec<String> {
    let mut lane = harness.shard(0).reader(0);
    let mut found = Vec::new();
    while let Some(chunk) = lane.read().unwrap() {
        let text = |record: &JournalRecord<'_>| String::from_utf8(record.payload.to_vec()).unwrap();
        match chunk {
            LogChunk::Block(block) => found.extend(block.records().map(|(_, record)| text(&record))),
            LogChunk::Damaged(damaged) => found.extend(damaged.survivors().iter().map(|(_, record)| text(record))),
        }
    }
    found.sort();
    found
}

fn rot(disk: &SimulatedDisk, payload: &str) {
    let path = PathBuf::from(SEGMENT);
    let content = disk.content(&path).unwrap();
    let at = content.windows(payload.len()).position(|bytes| bytes == payload.as_bytes()).unwrap();
    disk.flip_bit(path, (at as u64 + 1) * 8).unwrap();
}

#[test]
fn only_lost_records_of_a_batch_are_accepted() {
    let cases: [&[usize]; 6] = [&[1], &[0], &[1, 2], &[0, 1, 2, 3], &[3], &[2, 4]];
    for lost in cases {
        let disk = SimulatedDisk::new(1);
        let harness = Harness::open(&disk, INLINE);
        let before = harness.run(async |harness| harness.post(0, 1, "0").await);
        assert!(matches!(before, Outcome::New(_)));
        assert_eq!(send(&harness), (vec![], true));
        let behind = harness.run(async |harness| harness.post(0, 2, "2").await);
        assert!(matches!(behind, Outcome::New(_)));
        assert_eq!(harness.log.save_ids(&[0, 0]).unwrap(), [8, 0]);
        drop(harness);
        disk.settle();
        lost.iter().for_each(|number| rot(&disk, BATCH[*number]));

        let mut harness = Harness::open(&disk, INLINE);
        assert_eq!(reported(), [(0, 'B')]);
        let left: Vec<u32> = (0..6).filter(|number| !lost.contains(&(*number as usize))).collect();
        assert_eq!(send(&harness), (left, true), "{lost:?}");
        for _ in 0..2 {
            let mut all: Vec<_> = [&BATCH[..], &["0", "2"]].concat();
            all.sort_unstable();
            assert_eq!(payloads(&harness), all, "{lost:?}");
            assert_eq!(send(&harness), ((0..6).collect(), false), "{lost:?}");
            harness = harness.crash(true);
        }
    }
}

/// If the end of one batch and the beginning of the next are lost, no event of the one is a duplicate of the other's.
#[test]
fn partial_batch_has_no_key_of_another() {
    let disk = SimulatedDisk::new(1);
    let harness = Harness::open(&disk, INLINE);
    let [one, other] = [(b"one", [r#""1a""#, r#""1b""#]), (b"two", [r#""2a""#, r#""2b""#])].map(|(key, payloads)| {
        let mut batch = keyed(&harness, key, &payloads);
        let ids: Vec<EventId> = batch.records().ids().collect();
        assert!(appended(append(harness.shard(0), &mut batch)).is_some());
        ids
    });
    harness.shard(0).commit_pending();
    let behind = harness.run(async |harness| harness.post(0, 2, "2").await);
    assert!(matches!(behind, Outcome::New(_)));
    drop(harness);
    disk.settle();
    [r#""1b""#, r#""2a""#].into_iter().for_each(|payload| rot(&disk, payload));
    let harness = Harness::open(&disk, INLINE);
    assert_eq!(reported(), [(0, 'B')]);
    let known = [one[0], other[1]].map(|id| harness.shard(0).position_of(id).map(|position| position.sequence));
    assert_eq!(known, [None, Some(4)]);
}
