//! Appends of one shard that depend on events that another shard may still lose.

use std::cell::Cell;
use std::sync::Barrier;
use std::task::Poll;
use std::time::Duration;

use event::EventId;
use eventlog::{AppendBatch, AppendError, AppendOutcome, DedupKey, JournalRecord, SourceLine};
use journal::simulated_disk::SimulatedDisk;

use super::{Harness, INLINE, Outcome, append, appended, batch, record};

/// Long enough for the slowest machine; no test waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn batch_with_originals_elsewhere_has_no_key() {
    let mut harness = Harness::open(&SimulatedDisk::new(1), INLINE);
    let events = [(Some(1), "1"), (None, "2")];
    for crashes in [true, false] {
        let type_id = harness.log.types().intern(&event::TypeName::new("event").unwrap());
        let content = Some(harness.log.content_hash().of(b"1"));
        let first = JournalRecord { id: EventId([1; 16]), content, ..record("1") };
        if crashes {
            assert!(matches!(harness.shard(0).append_one(&first, type_id), Ok(AppendOutcome::Appended(_))));
        }
        let mut sent = batch(&harness, Some(9), &events);
        assert!(appended(append(harness.shard(1), &mut sent)).is_some());
        // The other shard's block is never written.
        harness.shard(1).commit_pending();
        assert_eq!((harness.shard(0).durable(), harness.shard(1).durable()), (0, if crashes { 1 } else { 2 }));
        harness = harness.crash(crashes);
    }
    let mut again = batch(&harness, Some(9), &events);
    assert!(matches!(append(harness.shard(1), &mut again), Poll::Ready(None)), "all of it is there by now");
}

/// The caller can find out later which part of it is durable, and needn't reject a batch whose half is.
#[test]
fn batch_may_wait_for_its_originals() {
    for crashes in [false, true] {
        let mut harness = Harness::open(&SimulatedDisk::new(1), INLINE);
        let type_id = harness.log.types().intern(&event::TypeName::new("event").unwrap());
        let content = Some(harness.log.content_hash().of(b"1"));
        let first = JournalRecord { id: EventId([1; 16]), content, ..record("1") };
        assert!(matches!(harness.shard(0).append_one(&first, type_id), Ok(AppendOutcome::Appended(_))));
        // The second line is the first once more: that is as durable as the batch.
        let sent = |harness: &Harness| {
            let mut sent = batch(harness, None, &[(Some(1), "1"), (Some(2), "2"), (Some(2), "2"), (None, "3")]);
            sent.options.wait_for_originals = true;
            sent
        };
        let mut early = sent(&harness);
        assert!(append(harness.shard(1), &mut early).is_pending());
        harness.shard(1).commit_pending();
        assert_eq!(harness.events(), 0, "nothing of it is appended");
        if crashes {
            harness = harness.crash(true);
        } else {
            harness.shard(0).commit_pending();
        }
        let mut sent = sent(&harness);
        assert!(appended(append(harness.shard(1), &mut sent)).is_some());
        harness.shard(1).commit_pending();
        assert_eq!((harness.events(), sent.result.duplicates.len()), (3, if crashes { 1 } else { 2 }));
    }
}

#[test]
fn batch_waits_for_original_and_is_checked_again() {
    let harness = Harness::open(&SimulatedDisk::new(1), INLINE);
    let type_id = harness.log.types().intern(&event::TypeName::new("event").unwrap());
    let content = Some(harness.log.content_hash().of(b"1"));
    let first = JournalRecord { id: EventId([1; 16]), content, ..record("1") };
    let mut sent = batch(&harness, Some(9), &[(Some(1), "1"), (None, "2")]);
    sent.options.wait_for_originals = true;
    let checks = Cell::new(0);
    let appended = harness.run(async |harness| {
        drop(harness.shard(0).append_one(&first, type_id).unwrap());
        let check = || {
            checks.set(checks.get() + 1);
            Ok::<_, AppendError>(())
        };
        let outcome = harness.shard(1).append_batch(&mut sent, check).await.unwrap();
        outcome.unwrap().appended().unwrap().await
    });
    // The second attempt finds the original durable, the third one has an entry for each record.
    assert_eq!((appended, checks.get()), (Ok(()), 3));
    assert_eq!((harness.events(), sent.result.duplicates.len()), (2, 1));

    let rejected = harness.run(async |harness| {
        let mut again = batch(harness, None, &[(None, "3")]);
        harness.shard(1).append_batch(&mut again, || Err(AppendError::Busy)).await.map(drop)
    });
    assert_eq!((rejected, harness.events()), (Err(AppendError::Busy), 2));
}

#[test]
fn batch_waits_for_an_undecided_key() {
    let harness = Harness::open(&SimulatedDisk::new(1), INLINE);
    let sent = || {
        let mut sent = batch(&harness, Some(9), &[(None, "1"), (None, "2")]);
        sent.index_individually();
        sent
    };
    assert!(appended(append(harness.shard(1), &mut sent())).is_some());
    let mut fuller = sent();
    let type_id = harness.log.types().intern(&event::TypeName::new("event").unwrap());
    fuller.push(
        &JournalRecord { id: EventId([8; 16]), content: Some(1), request_start: false, ..record("3") },
        SourceLine { number: 2, type_id },
    );
    assert!(append(harness.shard(0), &mut fuller).is_pending());
    harness.shard(1).commit_pending();
    assert!(appended(append(harness.shard(0), &mut fuller)).is_some());
    harness.shard(0).commit_pending();
    assert_eq!(harness.events(), 3);
}

/// Many events with ids, and a few that only the key covers.
fn large(harness: &Harness, key: Option<u8>, round: u32) -> AppendBatch {
    const OWN: u32 = 5_000;
    let type_id = harness.log.types().intern(&event::TypeName::new("event").unwrap());
    let mut batch = AppendBatch::default();
    for number in 0..OWN + 5 {
        let content = (number < OWN).then_some(7);
        let record = JournalRecord {
            id: id(round, number),
            content,
            request_start: number == 0,
            request_end: false,
            ..record("1")
        };
        batch.push(&record, SourceLine { number, type_id });
    }
    batch.end_request();
    if let Some(key) = key {
        batch.set_key(DedupKey { id: EventId([key; 16]), content: 1 });
    }
    batch
}

fn id(round: u32, number: u32) -> EventId {
    let mut bytes = [7; 16];
    bytes[..4].copy_from_slice(&round.to_le_bytes());
    bytes[4..8].copy_from_slice(&number.to_le_bytes());
    EventId(bytes)
}

#[test]
fn concurrent_batch_on_two_shards_has_one_effect() {
    const ROUNDS: u8 = 20;
    let harness = Harness::open(&SimulatedDisk::new(1), INLINE);
    for round in 0..ROUNDS {
        let start = Barrier::new(2);
        let send = |shard: usize| {
            let (shard, mut batch) = (harness.shard(shard), large(&harness, Some(round), round.into()));
            start.wait();
            let outcome = append(shard, &mut batch);
            assert!(!matches!(outcome, Poll::Ready(Some(AppendOutcome::IdConflict))));
            shard.commit_pending();
        };
        std::thread::scope(|scope| {
            scope.spawn(|| send(0));
            scope.spawn(|| send(1));
        });
        // Records that depended on a batch that wasn't accepted in the end are sent again.
        let mut again = large(&harness, Some(round), round.into());
        assert!(append(harness.shard(0), &mut again).is_ready());
        harness.shard(0).commit_pending();
        assert_eq!(harness.events(), usize::from(round + 1) * 5_005, "round {round}");
    }
}

#[test]
fn append_ends_if_its_original_was_forgotten() {
    let harness = Harness::open(&SimulatedDisk::new(1), INLINE);
    assert!(matches!(harness.run(async |harness| harness.post(0, 1, "1").await), Outcome::New(_)));
    let type_id = harness.log.types().intern(&event::TypeName::new("event").unwrap());
    let has_waited = |round: u32| {
        let mut rejected = large(&harness, None, round);
        rejected.options.atomic = true;
        let number = rejected.records().len();
        let conflicting = JournalRecord { id: EventId([1; 16]), content: Some(9), request_start: false, ..record("2") };
        rejected.push(&conflicting, SourceLine { number, type_id });
        let before = harness.log.ids_remembered();
        std::thread::scope(|scope| {
            let rejects = scope.spawn(|| matches!(append(harness.shard(0), &mut rejected), Poll::Ready(None)));
            while harness.log.ids_remembered() == before && !rejects.is_finished() {
                std::hint::spin_loop();
            }
            let dependent = JournalRecord { id: id(round, 0), content: Some(7), ..record("1") };
            let outcome = harness.shard(1).append_one(&dependent, type_id).unwrap();
            let waited = if let AppendOutcome::Duplicate(earlier) = outcome {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                let ended = runtime.block_on(async { tokio::time::timeout(PATIENCE, earlier.durable()).await });
                assert_eq!(
                    ended.expect("the shard gets nothing more, and the append still ends"),
                    Err(AppendError::Busy)
                );
                true
            } else {
                false
            };
            harness.shard(1).commit_pending();
            assert!(rejects.join().unwrap());
            waited
        })
    };
    assert!((0..10_000).any(has_waited), "the thread is never quick enough");
}
