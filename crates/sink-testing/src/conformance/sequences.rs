//! Random sequences of batches, duplicates and reconnections, compared with a model of the expected store.

use std::collections::BTreeMap;

use event::EventId;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::events::{Event, lane, sparse};
use super::fixture::Fixture;
use super::suite::Suite;
use super::{SinkHarness, block_on};
use sink::{Batch, Write};

const LANES: u16 = 2;
const STEPS_MAX: usize = 12;

/// A step of delivery or of its environment.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Sends the run of `length` positions that begins `back` before the lane's next one.
    Write { lane: u16, back: u64, length: u64 },
    /// The same over a second connection, concurrently.
    SecondSink { lane: u16, back: u64, length: u64 },
    /// Closes the sink and continues to use it.
    Close,
    /// Abandons the sink and makes another.
    Abandon,
}

fn step() -> impl Strategy<Value = Step> {
    let run = || (0..LANES, prop_oneof![3 => Just(0), 1 => 0..25_u64], 0..15_u64);
    prop_oneof![
        8 => run().prop_map(|(lane, back, length)| Step::Write { lane, back, length }),
        3 => run().prop_map(|(lane, back, length)| Step::SecondSink { lane, back, length }),
        1 => Just(Step::Close),
        1 => Just(Step::Abandon),
    ]
}

/// Runs `cases` random sequences, each on a fresh store.
///
/// # Panics
/// If the store differs from the model; the message has the shortest failing sequence.
pub fn sequences<S: SinkHarness>(cases: u32) {
    sequences_of(Suite::of::<S>(), cases);
}

fn sequences_of(suite: Suite, cases: u32) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let tried = TestRunner::new(config).run(&vec(step(), 1..STEPS_MAX), |steps| {
        block_on(play(suite, &steps));
        Ok(())
    });
    assert!(tried.is_ok(), "{}", tried.err().map(|error| error.to_string()).unwrap_or_default());
}

async fn play(suite: Suite, steps: &[Step]) {
    let mut fixture = Fixture::new(suite).await;
    let mut second = fixture.subject.sink();
    let mut model = Model::default();
    for step in steps {
        match *step {
            Step::Write { lane, back, length } => write(&fixture, &mut model, lane, back, length).await,
            Step::SecondSink { lane, back, length } => {
                std::mem::swap(&mut fixture.sink, &mut second);
                write(&fixture, &mut model, lane, back, length).await;
                std::mem::swap(&mut fixture.sink, &mut second);
            }
            Step::Close => assert_eq!(fixture.sink.close().await, Ok(())),
            Step::Abandon => fixture.sink = fixture.subject.sink(),
        }
        let rows: Vec<_> = model.rows.iter().map(|(id, row)| (*id, (suite.as_kept)(&row.payload))).collect();
        assert!(fixture.rows().await == rows, "the store differs from the model after {step:?}");
        for shard in 0..LANES {
            fixture.expect_cursor(&lane(shard), model.cursor(shard)).await;
        }
    }
}

async fn write(fixture: &Fixture, model: &mut Model, shard: u16, back: u64, length: u64) {
    let batch = if fixture.recognises_records() {
        // In a log only the cursor handles an overlap.
        let event = |at| if fixture.suite.recognises_ids { event_at(shard, at) } else { own_event_at(shard, at) };
        let first = (model.cursor(shard) + 1).saturating_sub(back).max(1);
        sparse(&lane(shard), first, (first..first + length).map(|at| (at, event(at))))
    } else {
        model.new_or_again(shard, back, length)
    };
    let refused = model.write(shard, &batch, fixture.is_fenced(), fixture.suite.compares);
    fixture.store_without(&batch, &refused).await;
}

/// The event at a position: most have a unique id, some share an id with others, some positions have no
/// event. Always the same for the same position, as in a journal.
fn event_at(shard: u16, sequence: u64) -> Option<Event> {
    let place = u32::try_from(sequence).expect("short runs");
    let (kind, choice) = (place * 7 % 11, place % 3);
    match kind {
        0 => None,
        1 => Some(Event::new(1_000 + choice)),
        2 => Some(Event::new(1_000 + choice).with_payload(&format!("\"{shard}:{sequence}\""))),
        3..=5 => {
            let revision = u64::from(place * 5 % 8);
            let payload = format!("[{shard}, {sequence}, {revision}]");
            Some(Event::new(2_000 + choice).with_payload(&payload).with_revision(revision))
        }
        _ => Some(Event::new(u32::from(shard) * 100_000 + 10_000 + place)),
    }
}

/// The event at a position, if it has a unique id.
fn own_event_at(shard: u16, sequence: u64) -> Option<Event> {
    event_at(shard, sequence).filter(|event| event.id >= Event::new(10_000).id)
}

#[derive(Clone)]
struct Row {
    payload: Vec<u8>,
    revision: Option<u64>,
}

/// The expected content of the store.
#[derive(Default)]
struct Model {
    rows: BTreeMap<EventId, Row>,
    cursors: BTreeMap<u16, u64>,
    /// Batches sent to a store that doesn't recognise single records.
    sent: BTreeMap<u16, Vec<Batch>>,
}

impl Model {
    fn cursor(&self, shard: u16) -> u64 {
        self.cursors.get(&shard).copied().unwrap_or(0)
    }

    /// The next batch, or the one sent `back` batches ago; each event has a unique id.
    fn new_or_again(&mut self, shard: u16, back: u64, length: u64) -> Batch {
        let first = self.cursor(shard) + 1;
        let sent = self.sent.entry(shard).or_default();
        let again = usize::try_from(back).ok().and_then(|back| sent.len().checked_sub(back));
        if let Some(batch) = again.and_then(|index| sent.get(index)) {
            return batch.clone();
        }
        let batch = sparse(&lane(shard), first, (first..first + length).map(|at| (at, own_event_at(shard, at))));
        sent.push(batch.clone());
        batch
    }

    /// Stores the valid records. Returns the indices of the others.
    fn write(&mut self, shard: u16, batch: &Batch, fenced: bool, compares: bool) -> Vec<usize> {
        let cursor = self.cursor(shard);
        let mut refused = Vec::new();
        for (index, record) in batch.records().enumerate() {
            if fenced && record.sequence <= cursor {
                continue;
            }
            let revision = match record.write {
                Write::Insert => None,
                Write::Upsert(revision) => Some(revision),
            };
            let row = Row { payload: record.payload.to_vec(), revision };
            match self.rows.get(&record.id) {
                None => drop(self.rows.insert(record.id, row)),
                Some(stored) if revision.is_some() => {
                    if revision > stored.revision {
                        self.rows.insert(record.id, row);
                    }
                }
                Some(stored) if compares && stored.payload != row.payload => refused.push(index),
                Some(_) => {}
            }
        }
        self.cursors.insert(shard, cursor.max(batch.last()));
        refused
    }
}
