//! A shard under many requests, on a simulated disk, with inline and offloaded commits: each request gets the result of
//! its events, and acknowledged events can be read.

use std::future::Future;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use event::{EventId, TypeName};
use eventlog::{
    AppendBatch, AppendError, DataDirectory, EventLog, JournalRecord, LogChunk, LogOptions, Shard, SourceLine,
};
use journal::simulated_disk::{Operation, SimulatedDisk, SimulatedError};
use limits::COMMIT_GROUP_BYTES_MAX;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};

struct Harness {
    disk: SimulatedDisk,
    directory: DataDirectory,
    log: Rc<EventLog>,
}

const INLINE: Duration = Duration::MAX;
const AWAY: Duration = Duration::ZERO;

impl Harness {
    fn new(disk: SimulatedDisk, inline_commit_max: Duration) -> Self {
        let directory = DataDirectory::open(Arc::new(disk.clone()), Path::new("/data")).unwrap();
        let options = LogOptions { first_segment_bytes: 64 * 1024, inline_commit_max, ..LogOptions::default() };
        let log = EventLog::open(&directory, &options).unwrap();
        Self { disk, directory, log: Rc::new(log) }
    }

    fn shard(&self) -> &Arc<Shard> {
        &self.log.shards()[0]
    }

    /// A runtime as a gateway's shard has it.
    fn runtime(&self) -> LocalRuntime {
        let shard = self.shard().clone();
        let mut builder = Builder::new_current_thread();
        builder.on_thread_park(move || shard.commit_pending()).build_local(LocalOptions::default()).unwrap()
    }

    /// Runs `requests` tasks side by side, each of which appends `each` events one after the other.
    fn run(&self, requests: u64, each: u64) -> Vec<Result<u64, AppendError>> {
        let returned = self.shard().clone();
        self.runtime().block_on(async {
            let waking = tokio::task::spawn_local(async move { returned.wake_completed().await });
            let tasks = (0..requests).map(|_| {
                let log = self.log.clone();
                tokio::task::spawn_local(async move {
                    let mut results = Vec::new();
                    for _ in 0..each {
                        results.push(append(&log).await);
                    }
                    results
                })
            });
            let tasks: Vec<_> = tasks.collect();
            let mut results = Vec::new();
            for task in tasks {
                results.extend(task.await.unwrap());
            }
            waking.abort();
            results
        })
    }

    /// All sequences that can be read.
    fn read(&self) -> Vec<u64> {
        let mut lane = self.shard().reader(0);
        let mut found = Vec::new();
        while let Some(chunk) = lane.read().unwrap() {
            let LogChunk::Block(block) = chunk else { panic!("undamaged") };
            found.extend(block.records().map(|(sequence, _)| sequence));
        }
        found
    }
}

async fn append(log: &EventLog) -> Result<u64, AppendError> {
    let id = log.types().intern(&TypeName::new("event").unwrap());
    let append = log.shards()[0].append_one(&record(), id)?.appended().unwrap();
    let sequence = append.position().sequence;
    append.await.map(|()| sequence)
}

fn record() -> JournalRecord<'static> {
    JournalRecord::new(EventId([1; 16]), 1, "event", b"{\"a\":1}")
}

fn sorted(results: Vec<Result<u64, AppendError>>) -> Vec<u64> {
    let mut sequences: Vec<u64> = results.into_iter().map(Result::unwrap).collect();
    sequences.sort_unstable();
    sequences
}

#[test]
fn every_request_is_answered_inline_and_offloaded() {
    for mode in [INLINE, AWAY] {
        let harness = Harness::new(SimulatedDisk::new(1), mode);
        let expected: Vec<u64> = (1..=64 * 200).collect();
        assert_eq!(sorted(harness.run(64, 200)), expected);
        assert_eq!(harness.read(), expected);
        let counters = harness.shard().counters();
        assert_eq!(counters.records.get(), 64 * 200);
        assert!(counters.commits.get() < 64 * 200, "requests share commits");
        assert_eq!(counters.commits_offloaded.get() > 0, mode == AWAY);
        assert_eq!(harness.log.accepted().hold().by_type, [64 * 200]);
        harness.shard().close().unwrap();
        assert_eq!(harness.run(1, 1), [Err(AppendError::Failed)], "nothing is accepted");
    }
}

/// A batch of records of which 190 take some 200 KB in a block.
fn batch(log: &EventLog, records: u32) -> AppendBatch {
    let type_id = log.types().intern(&TypeName::new("event").unwrap());
    let mut batch = AppendBatch::default();
    let payload = vec![b'1'; 1000];
    let line = |number| SourceLine { number, type_id };
    (0..records).for_each(|number| batch.push(&JournalRecord { payload: &payload, ..record() }, line(number)));
    batch
}

#[test]
fn batches_wait_in_small_blocks_while_disk_syncs() {
    const BATCHES: usize = 200;
    let harness = Harness::new(SimulatedDisk::new(12), AWAY);
    let returned = harness.shard().clone();
    harness.runtime().block_on(async {
        let waking = tokio::task::spawn_local(async move { returned.wake_completed().await });
        let tasks: Vec<_> = (0..BATCHES)
            .map(|_| {
                let (log, shard) = (harness.log.clone(), harness.shard().clone());
                tokio::task::spawn_local(async move {
                    let mut batch = batch(&log, 190);
                    let outcome = shard.append_batch(&mut batch, || Ok::<_, AppendError>(())).await;
                    outcome.unwrap().unwrap().appended().unwrap().await.unwrap();
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        waking.abort();
    });
    let mut lane = harness.shard().reader(0);
    let mut records = 0;
    while let Some(chunk) = lane.read().unwrap() {
        let LogChunk::Block(block) = chunk else { panic!("undamaged") };
        assert!(
            block.bytes().len() <= COMMIT_GROUP_BYTES_MAX + batch(&harness.log, 190).records().bytes(),
            "{}",
            block.bytes().len()
        );
        records += block.records().count();
    }
    assert_eq!(records, BATCHES * 190);
}

#[test]
fn large_block_is_offloaded_on_a_quick_disk() {
    let harness = Harness::new(SimulatedDisk::new(13), INLINE);
    let (returned, shard) = (harness.shard().clone(), harness.shard().clone());
    harness.runtime().block_on(async {
        let waking = tokio::task::spawn_local(async move { returned.wake_completed().await });
        let batch = batch(&harness.log, 1200);
        shard.append_derived(batch.records(), batch.type_counts()).unwrap().await.unwrap();
        assert_eq!((shard.counters().commits.get(), shard.counters().commits_offloaded.get()), (1, 1));
        append(&harness.log).await.unwrap();
        assert_eq!((shard.counters().commits.get(), shard.counters().commits_offloaded.get()), (2, 1));
        waking.abort();
    });
}

#[test]
fn failed_sync_fails_all_appends() {
    for mode in [INLINE, AWAY] {
        let harness = Harness::new(SimulatedDisk::new(2), mode);
        let before = harness.disk.calls(Operation::Sync);
        harness.disk.fail_call(Operation::Sync, before + 3, SimulatedError::Io);
        let results = harness.run(32, 50);
        let acknowledged = results.iter().filter(|result| result.is_ok()).count() as u64;
        assert!(results.iter().all(|result| matches!(result, Ok(_) | Err(AppendError::Failed))));
        assert!(acknowledged < 32 * 50 && harness.shard().durable() == acknowledged);
        let reason = Builder::new_current_thread().build().unwrap().block_on(harness.log.failed());
        assert!(reason.contains("fdatasync of"), "the first reason counts: {reason}");
    }
}

#[test]
fn full_disk_rejects_and_resumes_when_freed() {
    for mode in [INLINE, AWAY] {
        let harness = Harness::new(SimulatedDisk::new(3), mode);
        harness.disk.set_capacity(Some(harness.disk.bytes_used()));
        let results = harness.run(16, 400);
        let acknowledged = results.iter().filter(|result| result.is_ok()).count() as u64;
        assert!(results.contains(&Err(AppendError::NoSpace)), "it was full");
        assert_eq!(harness.read(), (1..=acknowledged).collect::<Vec<u64>>());
        harness.disk.set_capacity(None);
        let expected: Vec<u64> = (acknowledged + 1..=acknowledged + 160).collect();
        assert_eq!(sorted(harness.run(16, 10)), expected);
    }
}

#[test]
fn event_of_a_dropped_request_is_committed() {
    let harness = Harness::new(SimulatedDisk::new(4), INLINE);
    let id = harness.log.types().intern(&TypeName::new("event").unwrap());
    drop(harness.shard().append_one(&record(), id).unwrap());
    assert_eq!(sorted(harness.run(1, 1)), [2]);
    assert_eq!(harness.read(), [1, 2]);
}

#[test]
fn lagging_lane_reads_from_disk_within_memory_budget() {
    let harness = Harness::new(SimulatedDisk::new(5), INLINE);
    let mut lane = harness.shard().reader(0);
    harness.run(1, 3_000);
    assert!(harness.shard().tail_cache_bytes() <= limits::TAIL_CACHE_BYTES_MAX);
    let mut next = 1;
    while let Some(LogChunk::Block(block)) = lane.read().unwrap() {
        for (sequence, _) in block.records() {
            assert_eq!(sequence, next);
            next += 1;
        }
    }
    assert_eq!(next, 3_001);
    assert!(harness.shard().tail_cache_bytes() < 3_000 * 4096, "not all of it was in memory");
    drop(lane);
    harness.run(1, 10);
    assert_eq!(harness.shard().tail_cache_bytes(), 0, "nothing is kept for a lane that has ended");
    assert_eq!(harness.directory.shards_on_disk().unwrap(), 1);
}

/// Whether everything that is appended by now has its fate.
fn is_settled(harness: &Harness) -> bool {
    let mut settled = std::pin::pin!(harness.shard().flush());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    settled.as_mut().poll(&mut context).is_ready()
}

#[test]
fn settling_waits_for_pending_commits() {
    let harness = Harness::new(SimulatedDisk::new(6), INLINE);
    let id = harness.log.types().intern(&TypeName::new("event").unwrap());
    assert!(is_settled(&harness));
    drop(harness.shard().append_one(&record(), id).unwrap());
    assert!(!is_settled(&harness));
    harness.shard().commit_pending();
    assert!(is_settled(&harness));
    harness.disk.set_capacity(Some(harness.disk.bytes_used()));
    let mut durable = 0;
    while durable < harness.shard().durable() {
        durable = harness.shard().durable();
        drop(harness.shard().append_one(&record(), id).unwrap());
        assert!(!is_settled(&harness));
        harness.shard().commit_pending();
        assert!(is_settled(&harness));
    }
    drop(harness.shard().append_one(&record(), id).unwrap());
    harness.shard().commit_pending();
    assert!(
        is_settled(&harness) && harness.shard().durable() == durable,
        "what will never be durable isn't waited for"
    );
}

#[test]
fn slot_of_a_dropped_reader_is_reused() {
    let harness = Harness::new(SimulatedDisk::new(7), INLINE);
    let (first, second) = (harness.shard().reader(0), harness.shard().reader(0));
    drop(first);
    let mut again = harness.shard().reader(0);
    harness.run(1, 10);
    let mut sequences = 0;
    while let Some(LogChunk::Block(block)) = again.read().unwrap() {
        sequences += block.records().count();
    }
    assert_eq!(sequences, 10);
    assert!(harness.shard().tail_cache_bytes() > 0, "it is kept for the other lane");
    drop(second);
    assert_eq!(harness.shard().tail_cache_bytes(), 0);
}
