//! Duplicates on a simulated disk: concurrent ones, after a failure, after a restart, and after their segments are
//! freed.

mod damage;
mod power_cuts;
mod shards;

use std::error::Error;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use event::{EventId, Position, TypeName};
use eventlog::{
    Append, AppendBatch, AppendError, AppendOutcome, DataDirectory, DedupKey, EventLog, JournalRecord, LineRejection,
    LogOptions, Shard, SourceLine,
};
use journal::simulated_disk::{CutStyle, SimulatedDisk};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};

const INLINE: Duration = Duration::MAX;
const AWAY: Duration = Duration::ZERO;

struct Harness {
    disk: SimulatedDisk,
    inline_commit_max: Duration,
    _directory: DataDirectory,
    log: EventLog,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    New(Position),
    Again(Position),
    OtherBytes,
    Failed(AppendError),
}

impl Harness {
    fn open(disk: &SimulatedDisk, inline_commit_max: Duration) -> Self {
        Self::try_open(disk, inline_commit_max).unwrap()
    }

    fn try_open(disk: &SimulatedDisk, inline_commit_max: Duration) -> Result<Self, Box<dyn Error>> {
        let directory = DataDirectory::open(Arc::new(disk.clone()), Path::new("/data"))?;
        let options = LogOptions {
            shards: 2,
            first_segment_bytes: 64 * 1024,
            inline_commit_max,
            // The thread of an ended process would continue, and change the files of the next.
            segments_ahead: false,
            report: damage::note,
            ..LogOptions::default()
        };
        let log = EventLog::open(&directory, &options)?;
        Ok(Self { disk: disk.clone(), inline_commit_max, _directory: directory, log })
    }

    /// Kills the process, and opens the directory that it left.
    fn crash(self, power: bool) -> Self {
        let Self { disk, inline_commit_max, _directory, log } = self;
        drop((_directory, log));
        if power {
            disk.power_cut_in_style(CutStyle::LoseAll);
        }
        Self::open(&disk, inline_commit_max)
    }

    fn shard(&self, number: usize) -> &Arc<Shard> {
        &self.log.shards()[number]
    }

    /// A runtime whose ticks commit both shards, as if each had a thread.
    fn runtime(&self) -> LocalRuntime {
        let shards = self.log.shards().to_vec();
        let park = move || shards.iter().for_each(Shard::commit_pending);
        Builder::new_current_thread().on_thread_park(park).build_local(LocalOptions::default()).unwrap()
    }

    fn run<T>(&self, work: impl AsyncFnOnce(&Self) -> T) -> T {
        self.runtime().block_on(work(self))
    }

    async fn post(&self, shard: usize, key: u8, payload: &str) -> Outcome {
        self.post_with(shard, key, payload, true).await
    }

    /// A post, with or without the lookup of its id.
    async fn post_with(&self, shard: usize, key: u8, payload: &str, checks: bool) -> Outcome {
        let type_id = self.log.types().intern(&TypeName::new("event").unwrap());
        let content = checks.then(|| self.log.content_hash().of(payload.as_bytes()));
        let record = JournalRecord { id: EventId([key; 16]), content, ..record(payload) };
        match self.shard(shard).append_one(&record, type_id) {
            Ok(AppendOutcome::Appended(append)) => {
                let position = append.position();
                append.await.map_or_else(Outcome::Failed, |()| Outcome::New(position))
            }
            Ok(AppendOutcome::Duplicate(earlier)) => {
                earlier.durable().await.map_or_else(Outcome::Failed, Outcome::Again)
            }
            Ok(AppendOutcome::IdConflict) => Outcome::OtherBytes,
            Err(error) => Outcome::Failed(error),
        }
    }

    fn events(&self) -> usize {
        self.log.shards().iter().map(|shard| usize::try_from(shard.durable()).unwrap()).sum()
    }
}

/// Appends a batch; pending if it waits for an original in another block.
fn append<'s>(shard: &'s Arc<Shard>, batch: &mut AppendBatch) -> Poll<Option<AppendOutcome<'s>>> {
    let append = pin!(shard.append_batch(batch, || Ok::<_, AppendError>(())));
    append.poll(&mut Context::from_waker(Waker::noop())).map(Result::unwrap)
}

fn appended(outcome: Poll<Option<AppendOutcome<'_>>>) -> Option<Append<'_>> {
    match outcome {
        Poll::Ready(outcome) => outcome?.appended(),
        Poll::Pending => panic!("it waits for an original"),
    }
}

fn record(payload: &str) -> JournalRecord<'_> {
    JournalRecord::new(EventId([0; 16]), 1, "event", payload.as_bytes())
}

/// A batch of events, of which some have ids. Each is a separate line.
fn batch(harness: &Harness, key: Option<u8>, events: &[(Option<u8>, &str)]) -> AppendBatch {
    let lines: Vec<u32> = (0..).take(events.len()).collect();
    batch_of_lines(harness, key, &lines, events)
}

fn batch_of_lines(harness: &Harness, key: Option<u8>, lines: &[u32], events: &[(Option<u8>, &str)]) -> AppendBatch {
    let type_id = harness.log.types().intern(&TypeName::new("event").unwrap());
    let mut batch = AppendBatch::default();
    for (line, (own, payload)) in lines.iter().zip(events) {
        let content = own.map(|_| harness.log.content_hash().of(payload.as_bytes()));
        let number = batch.records().len();
        let id = EventId(own.map_or([200 + u8::try_from(number).unwrap(); 16], |own| [own; 16]));
        let record = JournalRecord { id, content, request_start: number == 0, request_end: false, ..record(payload) };
        batch.push(&record, SourceLine { number: *line, type_id });
    }
    batch.end_request();
    if let Some(key) = key {
        batch.set_key(DedupKey { id: EventId([key; 16]), content: events.len() as u64 });
    }
    batch
}

#[test]
fn concurrent_duplicates_have_one_effect() {
    for inline in [INLINE, AWAY] {
        let harness = Harness::open(&SimulatedDisk::new(1), inline);
        let outcomes = harness.run(async |harness| {
            let posts = (0..40).map(|number| harness.post(number % 2, u8::try_from(number % 4).unwrap(), "{}"));
            join_all(posts).await
        });
        let new: Vec<_> = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::New(_))).collect();
        assert_eq!((new.len(), harness.events()), (4, 4), "{outcomes:?}");
        for (number, outcome) in outcomes.iter().enumerate() {
            let Outcome::New(first) = outcomes[number % 4] else { panic!("the first of each is new") };
            assert!(number < 4 || *outcome == Outcome::Again(first), "{number}: {outcome:?}");
        }
    }
}

#[test]
fn other_bytes_with_a_known_id_are_rejected() {
    let harness = Harness::open(&SimulatedDisk::new(1), INLINE);
    let outcomes = harness.run(async |harness| [harness.post(0, 1, "1").await, harness.post(1, 1, "2").await]);
    assert!(matches!(outcomes, [Outcome::New(_), Outcome::OtherBytes]));
    assert_eq!(harness.events(), 1);
}

#[test]
fn unwritten_original_leaves_no_id() {
    for inline in [INLINE, AWAY] {
        let disk = SimulatedDisk::new(1);
        let harness = Harness::open(&disk, inline);
        let large = format!("\"{}\"", "x".repeat(60_000));
        assert!(matches!(harness.run(async |harness| harness.post(0, 1, &large).await), Outcome::New(_)));
        disk.set_capacity(Some(disk.bytes_used()));
        let mut key = 1;
        let failed = loop {
            key += 1;
            let posts =
                async |harness: &Harness| join_all((0..3).map(|shard| harness.post(shard % 2, key, &large))).await;
            let outcomes = harness.run(posts);
            if !matches!(outcomes[0], Outcome::New(_)) {
                break outcomes;
            }
        };
        assert_eq!(failed[0], Outcome::Failed(AppendError::NoSpace));
        assert!(failed[1..].iter().all(|outcome| matches!(outcome, Outcome::Failed(_))), "{failed:?}");
        disk.set_capacity(None);
        let again =
            harness.run(async |harness| [harness.post(0, key + 1, "0").await, harness.post(1, key, "other").await]);
        assert!(again.iter().all(|outcome| matches!(outcome, Outcome::New(_))), "{again:?}");
    }
}

#[test]
fn ids_outlive_restarts_and_their_segments() {
    for power in [false, true] {
        let mut harness = Harness::open(&SimulatedDisk::new(1), INLINE);
        let first = harness.run(async |harness| harness.post(0, 1, "1").await);
        let Outcome::New(position) = first else { panic!("{first:?}") };
        harness = harness.crash(power);
        assert_eq!(harness.run(async |harness| harness.post(1, 1, "1").await), Outcome::Again(position));
        let filler = "x".repeat(10_000);
        for key in 2..60 {
            let outcome = harness.run(async |harness| harness.post(0, key, &filler).await);
            assert!(matches!(outcome, Outcome::New(_)), "{outcome:?}");
        }
        let durable = harness.shard(0).durable();
        let safe = harness.log.save_ids(&[durable, 0]).unwrap();
        assert_eq!(safe[0], durable);
        assert!(harness.shard(0).segments().free_up_to(durable).unwrap() > 1);
        assert!(harness.shard(0).segments().oldest().unwrap() > 30);
        for _ in 0..2 {
            harness = harness.crash(power);
            for key in 1..60 {
                let payload = if key == 1 { "1" } else { &filler };
                let outcome = harness.run(async |harness| harness.post(0, key, payload).await);
                assert!(matches!(outcome, Outcome::Again(_)), "{key}: {outcome:?}");
                assert_eq!(harness.run(async |harness| harness.post(0, key, "other").await), Outcome::OtherBytes);
            }
            harness.log.save_ids(&[0, 0]).unwrap();
        }
        assert_eq!(harness.log.ids_remembered(), 59);
    }
}

/// Most events have no ids of clients. Their records in the files would grow with the time that a server runs, and each
/// start would read them.
#[test]
fn events_without_ids_leave_nothing_in_the_files() {
    let mut harness = Harness::open(&SimulatedDisk::new(1), INLINE);
    let bytes = |harness: &Harness| -> u64 {
        let paths = harness.disk.paths().into_iter().filter(|path| path.starts_with("/data/duplicates"));
        paths.map(|path| harness.disk.content(path).unwrap().len() as u64).sum()
    };
    assert!(matches!(harness.run(async |harness| harness.post(0, 1, "1").await), Outcome::New(_)));
    let filler = "x".repeat(60_000);
    let mut freed = 0;
    for _ in 0..40 {
        assert!(matches!(harness.run(async |harness| harness.post_with(0, 9, &filler, false).await), Outcome::New(_)));
        let durable = harness.shard(0).durable();
        let safe = harness.log.save_ids(&[durable, 0]).unwrap();
        freed += harness.shard(0).segments().free_up_to(safe[0]).unwrap();
    }
    assert!(freed > 3, "{freed}");
    let of_one = bytes(&harness);
    assert!((1..200).contains(&of_one), "{of_one}");
    assert!(matches!(harness.run(async |harness| harness.post(0, 2, "2").await), Outcome::New(_)));
    // The files cover the positions between the two, so a start reads only the log after them.
    for _ in 0..2 {
        harness = harness.crash(true);
        for (key, payload) in [(1, "1"), (2, "2")] {
            let outcome = harness.run(async |harness| harness.post(0, key, payload).await);
            assert!(matches!(outcome, Outcome::Again(_)), "{key}: {outcome:?}");
        }
        harness.log.save_ids(&[0, 0]).unwrap();
    }
}

#[test]
fn lost_event_is_no_duplicate_of_itself() {
    let disk = SimulatedDisk::new(1);
    let harness = Harness::open(&disk, INLINE);
    for key in 1..=3 {
        assert!(matches!(harness.run(async |harness| harness.post(0, key, "1").await), Outcome::New(_)));
    }
    assert_eq!(harness.log.save_ids(&[0, 0]).unwrap(), [3, 0]);
    drop(harness);
    // An older copy of the journal is restored, but not of the ids.
    for path in disk.paths().into_iter().filter(|path| path.starts_with("/data/journal")) {
        disk.put(path, b"").unwrap();
    }
    let harness = Harness::open(&disk, INLINE);
    let outcome = harness.run(async |harness| harness.post(0, 2, "1").await);
    assert!(matches!(outcome, Outcome::New(_)), "{outcome:?} {}", harness.shard(0).durable());
}

/// Recovery finds a loss only once: the start after it must not trust the earlier content of the id files.
#[test]
fn lost_event_is_no_duplicate_after_restarts() {
    for power in [false, true] {
        let disk = SimulatedDisk::new(1);
        let harness = Harness::open(&disk, INLINE);
        for key in 1..=3 {
            assert!(matches!(harness.run(async |harness| harness.post(0, key, "1").await), Outcome::New(_)));
        }
        assert!(matches!(harness.run(async |harness| harness.post(1, 4, "1").await), Outcome::New(_)));
        assert_eq!(harness.log.save_ids(&[0, 0]).unwrap(), [3, 1]);
        drop(harness);
        let segment = |path: &&std::path::PathBuf| {
            path.starts_with("/data/journal/0000") && path.extension().is_some_and(|end| end == "segment")
        };
        let paths = disk.paths();
        let lost = paths.iter().find(segment).unwrap_or_else(|| panic!("{paths:?}"));
        disk.put(lost.clone(), &[0; 8192]).unwrap();

        let mut harness = Harness::open(&disk, INLINE);
        assert!(!harness.log.findings().is_empty());
        assert!(matches!(harness.run(async |harness| harness.post(0, 5, "1").await), Outcome::New(_)));
        for _ in 0..2 {
            harness = harness.crash(power);
            let [kept, new] =
                harness.run(async |harness| [harness.post(0, 4, "1").await, harness.post(1, 5, "1").await]);
            assert!(matches!([kept, new], [Outcome::Again(_), Outcome::Again(_)]), "{kept:?} {new:?}");
        }
        for key in 1..=3 {
            let outcome = harness.run(async |harness| harness.post(0, key, "1").await);
            assert!(matches!(outcome, Outcome::New(_)), "{key}: {outcome:?}");
        }
    }
}

#[test]
fn a_batch_is_known_as_a_whole() {
    let mut harness = Harness::open(&SimulatedDisk::new(1), INLINE);
    let events = [(None, "1"), (None, "2")];
    for restart in 0..3 {
        let mut batch = batch(&harness, Some(9), &events);
        let again = harness.run(async |harness| match append(harness.shard(0), &mut batch) {
            Poll::Ready(Some(AppendOutcome::Appended(append))) => append.await.map(|()| false),
            Poll::Ready(Some(AppendOutcome::Duplicate(earlier))) => earlier.durable().await.map(|_| true),
            _ => panic!("it is the same"),
        });
        assert_eq!((again, harness.events()), (Ok(restart > 0), 2));
        harness = harness.crash(true);
    }
    let mut other = batch(&harness, Some(9), &[(None, "3")]);
    assert!(matches!(append(harness.shard(0), &mut other), Poll::Ready(Some(AppendOutcome::IdConflict))));
}

#[test]
fn partial_batch_is_deduplicated_record_by_record() {
    let mut harness = Harness::open(&SimulatedDisk::new(1), INLINE);
    // The key's bytes are the same each time; at first the third record isn't in the batch.
    let of = |harness: &Harness, payloads: &[&str]| {
        let events: Vec<_> = payloads.iter().map(|payload| (None, *payload)).collect();
        let mut batch = batch(harness, Some(9), &events);
        batch.set_key(DedupKey { id: EventId([9; 16]), content: 3 });
        if payloads.len() < 3 {
            batch.index_individually();
        }
        batch
    };
    for restart in 0..4 {
        let mut sent = of(&harness, if restart < 2 { &["1", "2"] } else { &["1", "2", "3"] });
        let taken = harness.run(async |harness| match append(harness.shard(0), &mut sent) {
            Poll::Ready(Some(AppendOutcome::Appended(append))) => append.await.map(|()| true),
            Poll::Ready(None) => Ok(false),
            _ => panic!("duplicates are reported record by record"),
        });
        let (appended, stored) = [(true, 2), (false, 2), (true, 3), (false, 3)][restart];
        assert_eq!((taken, harness.events()), (Ok(appended), stored), "{restart}");
        let repeated = [0, 2, 2, 3][restart];
        assert_eq!(sent.result.duplicates.len(), repeated, "{restart}");
        harness = harness.crash(restart % 2 == 0);
    }
    let mut other = batch(&harness, Some(9), &[(None, "1"), (None, "2")]);
    assert!(matches!(append(harness.shard(0), &mut other), Poll::Ready(Some(AppendOutcome::IdConflict))));
}

#[test]
fn line_is_accepted_with_its_dependents_or_rejected() {
    let harness = Harness::open(&SimulatedDisk::new(1), INLINE);
    let first = harness.run(async |harness| harness.post(0, 1, "1").await);
    assert!(matches!(first, Outcome::New(_)));
    let events = [(Some(2), "2"), (Some(1), "other"), (Some(2), "2"), (Some(3), "3"), (Some(4), "4")];
    let mut sent = batch_of_lines(&harness, None, &[1, 1, 2, 3, 4], &events);
    sent.add_dependent_line(3);
    let position = harness.run(async |harness| {
        let append = appended(append(harness.shard(0), &mut sent)).expect("two lines are taken");
        let position = append.position();
        append.await.map(|()| position)
    });
    assert!(position.is_ok());
    assert_eq!(sent.result.rejected, [(1, LineRejection::IdConflict), (3, LineRejection::DependsOnRejected)].into());
    assert!(sent.result.duplicates.is_empty(), "the second line isn't known by an id of the first, which isn't there");
    assert_eq!((harness.events(), sent.type_counts()[0].1), (3, 2));
    let again = harness.run(async |harness| {
        let mut outcomes = Vec::new();
        for (key, payload) in [(2, "2"), (4, "4"), (3, "3")] {
            outcomes.push(matches!(harness.post(0, key, payload).await, Outcome::Again(_)));
        }
        outcomes
    });
    assert_eq!(again, [true, true, false]);

    let events = [(Some(5), "5"), (Some(1), "other"), (Some(5), "5")];
    let mut without_dependent = batch_of_lines(&harness, None, &[1, 1, 2], &events);
    let appended = harness.run(async |harness| {
        appended(append(harness.shard(0), &mut without_dependent)).expect("one line is taken").await
    });
    assert!(appended.is_ok() && without_dependent.result.duplicates.is_empty(), "the rejected line's id isn't known");
    assert_eq!(without_dependent.result.rejected, [(1, LineRejection::IdConflict)].into());
}

#[test]
fn duplicate_events_are_dropped_from_a_batch() {
    let harness = Harness::open(&SimulatedDisk::new(1), INLINE);
    let post = async |harness: &Harness, mut batch: AppendBatch| {
        let append = appended(append(harness.shard(0), &mut batch));
        let appended = append.is_some();
        if let Some(append) = append {
            append.await.unwrap();
        }
        for (_, earlier) in std::mem::take(&mut batch.result.duplicates) {
            earlier.durable().await.unwrap();
        }
        (appended, batch)
    };
    let first = batch(&harness, None, &[(Some(1), "1"), (None, "2"), (Some(3), "3"), (Some(1), "1")]);
    let (appended, first) = harness.run(async |harness| post(harness, first).await);
    assert!(appended && first.result.rejected.is_empty());
    assert_eq!((harness.events(), first.type_counts()[0].1), (3, 3));
    let second = batch(&harness, None, &[(Some(3), "3"), (Some(1), "other"), (Some(4), "4"), (Some(3), "3")]);
    let (appended, second) = harness.run(async |harness| post(harness, second).await);
    assert!(appended);
    assert_eq!((&second.result.rejected, harness.events()), (&[(1, LineRejection::IdConflict)].into(), 4));
    let third = batch(&harness, Some(7), &[(Some(3), "3"), (Some(4), "4")]);
    let (appended, _) = harness.run(async |harness| post(harness, third).await);
    assert!(!appended);
    assert_eq!(harness.events(), 4);

    let mut lane = harness.shard(0).reader(0);
    let mut requests = Vec::new();
    while let Some(eventlog::LogChunk::Block(block)) = lane.read().unwrap() {
        requests.extend(
            block.records().map(|(_, record)| (record.payload.to_vec(), record.request_start, record.request_end)),
        );
    }
    let expected = [("1", true, false), ("2", false, false), ("3", false, true), ("4", true, true)];
    assert_eq!(requests, expected.map(|(payload, start, end)| (payload.as_bytes().to_vec(), start, end)));
}

/// All of them, side by side.
async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        let mut all = true;
        for (future, output) in &mut futures {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(done) => *output = Some(done),
                    Poll::Pending => all = false,
                }
            }
        }
        if all { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    futures.into_iter().filter_map(|(_, output)| output).collect()
}
