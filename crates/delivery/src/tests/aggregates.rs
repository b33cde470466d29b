//! Aggregates: after any crash at any time, the results are those of one reading of the journals.

use std::collections::BTreeMap;
use std::time::Duration;

use aggregate::{AggregateRules, Definition, Emit, Fold};
use aggregation::AggregateSetup;
use event::{EventId, Position};
use eventlog::Reader;
use ledger::Routes;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::Mutation;
use super::harness::FENCED;
use super::harness::Harness;
use super::harness::name;
use super::harness::run;
use super::harness::seconds;

const SECOND: i64 = 1_000_000;
/// A Saturday in November 2026, at noon.
const NOON: i64 = 1_795_262_400 * SECOND;

fn definition() -> Definition {
    Definition {
        window: "10s".into(),
        group_by: vec!["/g".into()],
        measures: vec![
            ("n".into(), "count".into()),
            ("sum".into(), "sum:/v".into()),
            ("first".into(), "first:/v".into()),
            ("ids".into(), "distinct:/v".into()),
        ],
        lateness: Some(Duration::from_secs(20)),
        quiet: Some(Duration::from_secs(3_600)),
        ..Definition::default()
    }
}

fn setup(of: &str, aggregate: &str, definition: &Definition) -> AggregateSetup {
    let rules = AggregateRules::new(name(&format!("{of}.{aggregate}")), definition).unwrap();
    AggregateSetup { of: name(of), rules }
}

/// Events of `hits` go nowhere, and their results to the transactional store.
fn harness(seed: u64, definition: &Definition) -> Harness {
    let mut harness = Harness::new(seed);
    // All of a process in one segment: the tests read it afterwards.
    harness.segment_bytes = 4 << 20;
    harness.aggregates = vec![setup("hits", "sums", definition)];
    harness.routes = routes().with(name("hits.sums"), [FENCED.into()]);
    harness
}

fn routes() -> Routes {
    Routes::new().with(name("hits"), [FENCED.into()]).with_others([FENCED.into()])
}

async fn hit(harness: &mut Harness, shard: u16, at: i64, group: u64, value: u64) -> bool {
    let payload = format!("{{\"g\":{group},\"v\":{value}}}");
    harness.append_at(shard, "hits", (NOON + at * SECOND, NOON + 3_600 * SECOND), &payload).await
}

/// What the store holds of an aggregate's results: their payloads, by id.
fn stored(harness: &Harness, aggregate: &str) -> BTreeMap<[u8; 16], String> {
    let events = harness.fenced.events();
    let results = events.into_iter().filter(|stored| stored.type_name == aggregate);
    results.map(|stored| (stored.id.0, String::from_utf8(stored.payload).unwrap())).collect()
}

/// A record of the journals.
struct ReplayFilter {
    id: EventId,
    type_name: String,
    source: String,
    times: (Option<i64>, i64),
    payload: String,
    revision: Option<u64>,
}

/// All that was ever durable in the journals: segments may be freed later.
#[derive(Default)]
struct Journals {
    records: BTreeMap<(u16, u64), ReplayFilter>,
    /// The process continued from a state older than these results: they may be there twice.
    may_repeat: bool,
}

impl Journals {
    /// Records the present results: after each start, and before anything can be freed.
    fn look(&mut self, harness: &Harness) {
        for shard in harness.process().log.shards() {
            let number = shard.number();
            let after =
                self.records.range((number, 0)..(number + 1, 0)).next_back().map_or(0, |((_, sequence), _)| *sequence);
            let mut reader = Reader::new(shard.segments().clone(), after + 1);
            while let Some(chunk) = reader.read(shard.durable()).unwrap() {
                chunk.for_each_record(|sequence, record| {
                    let journaled = ReplayFilter {
                        id: record.id,
                        type_name: record.type_name.to_owned(),
                        source: record.source.to_owned(),
                        times: (record.event_time, record.received_at),
                        payload: String::from_utf8(record.payload.to_vec()).unwrap(),
                        revision: record.revision,
                    };
                    self.records.entry((number, sequence)).or_insert(journaled);
                });
            }
        }
    }

    /// The results of one reading, one shard after the other.
    fn results(&self, harness: &Harness, definition: &Definition) -> BTreeMap<[u8; 16], String> {
        let shards: Vec<u16> = (0..harness.shards).collect();
        let mut fold = Fold::new(setup("hits", "sums", definition).rules, harness.origin(), &shards);
        let mut kept: BTreeMap<[u8; 16], (u64, String)> = BTreeMap::new();
        for ((shard, sequence), record) in &self.records {
            let position = Position { shard: *shard, sequence: *sequence };
            if record.type_name == "hits" {
                fold.take(position, record.times.0, record.times.1, &record.payload);
            } else if record.type_name == "+tick" && record.source == "hits.sums" {
                fold.tick(position, record.times.0.unwrap());
            } else {
                fold.pass(position);
            }
            for result in fold.results(usize::MAX) {
                let kept = kept.entry(result.id.0).or_default();
                if result.revision > kept.0 {
                    *kept = (result.revision, result.payload);
                }
            }
        }
        kept.into_iter().map(|(id, (_, payload))| (id, payload)).collect()
    }

    fn check(&mut self, harness: &Harness, definition: &Definition) {
        self.look(harness);
        harness.check_balance();
        assert_eq!(stored(harness, "hits.sums"), self.results(harness, definition), "{:?}", harness.messages());
        let mut given = BTreeMap::new();
        for (position, record) in &self.records {
            if let Some(revision) = record.revision {
                let before = given.insert((record.id.0, revision), position);
                assert!(
                    self.may_repeat || before.is_none(),
                    "revision {revision} of {} is journaled again at {position:?}",
                    record.id
                );
            }
        }
        let given = self.records.values().filter(|record| record.revision.is_some()).count();
        let rows = harness.rows();
        let row = rows.iter().find(|row| row.type_name.as_str() == "hits.sums").unwrap();
        assert_eq!((row.derived, row.accepted), (true, given as u64));
    }
}

/// Lets all windows end by the clock, and all results be stored.
async fn close(harness: &Harness) {
    harness.clock.store(NOON + 24 * 3_600 * SECOND, std::sync::atomic::Ordering::Relaxed);
    for _ in 0..100 {
        seconds(1).await;
        let aggregates = harness.process().aggregates.aggregates();
        if aggregates.iter().all(|aggregate| aggregate.figures().windows == 0 && aggregate.lag() == 0) {
            harness.wait_until_settled().await;
            return;
        }
    }
    panic!("windows stay open: {:?}", harness.messages());
}

#[test]
fn results_are_journaled_and_delivered_like_events() {
    run(async {
        let mut harness = harness(1, &definition());
        harness.shards = 1;
        harness.start();
        for (at, group, value) in [(1, 1, 5), (2, 2, 7), (9, 1, 6), (3, 1, 5), (10, 1, 1)] {
            assert!(hit(&mut harness, 0, at, group, value).await);
        }
        seconds(1).await;
        harness.wait_until_settled().await;
        let found: Vec<String> = stored(&harness, "hits.sums").into_values().collect();
        let ends: Vec<&str> = found
            .iter()
            .map(|payload| &payload[payload.find("\"group\"").unwrap()..payload.find(",\"origin").unwrap()])
            .collect();
        let mut ends: Vec<String> = ends.into_iter().map(str::to_owned).collect();
        ends.sort();
        assert_eq!(
            ends,
            [
                r#""group":{"/g":1},"n":3,"sum":16,"first":5,"ids":2"#,
                r#""group":{"/g":2},"n":1,"sum":7,"first":7,"ids":1"#
            ]
        );
        // Late within the lateness: the same id, a higher revision.
        hit(&mut harness, 0, 4, 2, 8).await;
        seconds(1).await;
        harness.wait_until_settled().await;
        let again = stored(&harness, "hits.sums");
        assert_eq!(again.len(), 2);
        assert!(again.values().any(|payload| payload.contains(r#""n":2,"sum":15"#)), "{again:?}");
        close(&harness).await;
        Journals::default().check(&harness, &definition());
        harness.stop().await;
    });
}

#[test]
fn drain_closes_windows_when_the_clock_stops() {
    run(async {
        let mut harness = harness(12, &definition());
        harness.start();
        for (shard, at, group) in [(0, 1, 1), (1, 5, 2), (1, 195, 1)] {
            assert!(hit(&mut harness, shard, at, group, 1).await);
        }
        let mut journals = Journals::default();
        assert!(harness.drain(Duration::from_secs(60)).await, "{:?}", harness.messages());
        assert_eq!(stored(&harness, "hits.sums").len(), 3);
        harness.kill(12).await;
        harness.start();
        journals.check(&harness, &definition());
        assert!(harness.drain(Duration::from_secs(60)).await, "there is nothing left to do");
        assert_eq!(stored(&harness, "hits.sums").len(), 3);
    });
}

#[derive(Clone, Debug)]
enum Step {
    Hit { shard: u16, at: i64, group: u64, value: u64 },
    Others { shard: u16, count: u64 },
    Milliseconds(u64),
    Kill,
    PowerFailure { operations: u64 },
    Stop,
    Drain { milliseconds: u64 },
    Reload,
    DamageCheckpoint,
    Fail { calls: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0_u16..2, 0_i64..200, 0_u64..4, 0_u64..9).prop_map(|(shard, at, group, value)| Step::Hit { shard, at, group, value }),
        1 => (0_u16..2, 1_u64..20).prop_map(|(shard, count)| Step::Others { shard, count }),
        4 => (1_u64..400).prop_map(Step::Milliseconds),
        1 => (5_000_u64..30_000).prop_map(Step::Milliseconds),
        3 => Just(Step::Kill),
        4 => (1_u64..40).prop_map(|operations| Step::PowerFailure { operations }),
        1 => Just(Step::Stop),
        2 => (1_u64..400).prop_map(|milliseconds| Step::Drain { milliseconds }),
        1 => (10_000_u64..60_000).prop_map(|milliseconds| Step::Drain { milliseconds }),
        1 => Just(Step::Reload),
        1 => Just(Step::DamageCheckpoint),
        1 => (1_usize..4).prop_map(|calls| Step::Fail { calls }),
    ]
}

async fn take(harness: &mut Harness, step: &Step, seed: u64) {
    match *step {
        Step::Hit { shard, at, group, value } => drop(hit(harness, shard, at, group, value).await),
        Step::Others { shard, count } => drop(harness.append(shard, "other", count).await),
        Step::Milliseconds(count) => tokio::time::sleep(Duration::from_millis(count)).await,
        Step::Kill => {
            harness.kill(seed).await;
            harness.start();
        }
        Step::PowerFailure { operations } => {
            harness.disk.fail_power_at(operations);
            hit(harness, 1, 5, 0, 1).await;
            hit(harness, 0, 195, 0, 1).await;
            hit(harness, 1, 195, 0, 1).await;
            seconds(12).await;
            harness.power_cut(seed).await;
            harness.start();
        }
        Step::Stop => {
            harness.stop().await;
            harness.kill(seed).await;
            harness.start();
        }
        Step::Drain { milliseconds } => {
            harness.drain(Duration::from_millis(milliseconds)).await;
            harness.kill(seed).await;
            harness.start();
        }
        Step::Reload => harness.change(harness.routes.clone()).await.unwrap(),
        Step::DamageCheckpoint => {
            harness.kill(seed).await;
            // Only the newer generation: the other one has its segments.
            harness.damage_newest("/data/aggregates");
            harness.start();
        }
        Step::Fail { calls } => harness.fenced.fail_next(calls),
    }
}

fn play(steps: &[Step], seed: u64, mutation: Option<Mutation>) {
    run(async {
        let mut harness = harness(seed, &definition());
        harness.mutation = mutation;
        harness.start();
        let mut journals = Journals::default();
        for (index, step) in steps.iter().enumerate() {
            journals.look(&harness);
            journals.may_repeat |= matches!(step, Step::DamageCheckpoint);
            take(&mut harness, step, seed.wrapping_add(index as u64)).await;
            journals.look(&harness);
            harness.check_balance();
        }
        harness.fenced.heal();
        close(&harness).await;
        journals.check(&harness, &definition());
        harness.stop().await;
    });
}

#[test]
fn any_sequence_gives_the_results_of_one_reading() {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(100);
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(cases) });
    let steps = (proptest::collection::vec(step(), 1..60), any::<u64>());
    runner
        .run(&steps, |(steps, seed)| {
            play(&steps, seed, None);
            Ok(())
        })
        .unwrap();
}

/// Windows of many groups end, and the power fails at each moment.
fn windows_that_end_in_a_crash(mutation: Option<Mutation>) -> bool {
    (1..40_u64).any(|operations| {
        let hit = |shard, at, group| Step::Hit { shard, at, group, value: 1 };
        let steps = [
            hit(0, 1, 1),
            hit(1, 2, 2),
            hit(0, 3, 3),
            hit(0, 190, 1),
            Step::PowerFailure { operations },
            hit(0, 4, 1),
            Step::Milliseconds(300),
            Step::Kill,
        ];
        std::panic::catch_unwind(|| play(&steps, operations, mutation)).is_err()
    })
}

#[test]
fn duplicate_results_are_detected() {
    assert!(windows_that_end_in_a_crash(Some(Mutation::ForgetJournaled)));
    assert!(!windows_that_end_in_a_crash(None), "and nothing else is");
}

#[test]
fn results_of_an_unsaved_state_are_detected() {
    assert!(windows_that_end_in_a_crash(Some(Mutation::UnsavedResults)));
}

/// Events by the thousand, of which all but the last hundreds are stored and saved, and then a crash. Says what the aggregate lost,
/// and how many segments were freed.
async fn pinned(mutation: Option<Mutation>) -> (u64, u64) {
    let mut harness = harness(3, &definition());
    harness.segment_bytes = 16 * 1024;
    harness.shards = 1;
    harness.mutation = mutation;
    harness.start();
    for at in 0..3 {
        for value in 0..200 {
            hit(&mut harness, 0, at, value % 3, value).await;
        }
        // Less than the state's pace, and more than the ledger's.
        seconds(3).await;
    }
    harness.wait_until_settled().await;
    let freed_early = harness.process().log.shards()[0].segments().oldest().unwrap();
    harness.kill(9).await;
    harness.start();
    seconds(30).await;
    let lost = harness.process().aggregates.aggregates()[0].lost.get();
    let taken = harness.process().aggregates.aggregates()[0].figures().counts.events;
    assert!(lost > 0 || taken == 600, "{taken}");
    let freed = harness.process().log.shards()[0].segments().oldest().unwrap();
    assert!(freed >= freed_early);
    harness.stop().await;
    (lost, freed)
}

#[test]
fn segments_are_kept_until_no_checkpoint_needs_them() {
    run(async {
        let (lost, freed) = pinned(None).await;
        assert_eq!(lost, 0);
        assert!(freed > 1, "and freed then");
        let (lost, _) = pinned(Some(Mutation::ForgetPins)).await;
        assert!(lost > 0, "a crash would find events missing");
    });
}

#[test]
fn lost_state_restarts_with_the_oldest_event() {
    run(async {
        for damage in ["gone", "damaged"] {
            let mut harness = harness(4, &definition());
            harness.start();
            for at in [1, 2, 30] {
                hit(&mut harness, 0, at, 1, 1).await;
                hit(&mut harness, 1, at, 1, 1).await;
            }
            seconds(30).await;
            let mut journals = Journals::default();
            journals.look(&harness);
            harness.kill(1).await;
            for path in harness.disk.paths() {
                if path.starts_with("/data/aggregates") {
                    if damage == "gone" {
                        harness.disk.erase(&path).unwrap()
                    } else {
                        harness.disk.flip_bit(&path, 300).unwrap()
                    }
                }
            }
            harness.start();
            assert_eq!(harness.reported("aggregate has lost its state"), 1, "{damage}: {:?}", harness.messages());
            close(&harness).await;
            journals.look(&harness);
            assert_eq!(stored(&harness, "hits.sums"), journals.results(&harness, &definition()), "{damage}");
            harness.check_balance();
            harness.stop().await;
        }
    });
}

#[test]
fn changed_aggregate_restarts_and_removed_one_leaves_nothing() {
    run(async {
        let mut harness = harness(5, &definition());
        harness.shards = 1;
        harness.start();
        hit(&mut harness, 0, 1, 1, 1).await;
        hit(&mut harness, 0, 2, 1, 1).await;
        seconds(1).await;
        let other = Definition { emit: Emit::Final, ..definition() };
        harness.aggregates = vec![setup("hits", "sums", &other), setup("hits", "more", &definition())];
        let routes = harness.routes.clone().with(name("hits.more"), [FENCED.into()]);
        harness.change(routes).await.unwrap();
        assert_eq!(harness.reported("the aggregate's definition has changed"), 1);
        assert_eq!(harness.messages().len(), 1, "{:?}", harness.messages());
        hit(&mut harness, 0, 3, 1, 1).await;
        hit(&mut harness, 0, 60, 1, 1).await;
        seconds(1).await;
        harness.wait_until_settled().await;
        for aggregate in ["hits.sums", "hits.more"] {
            let found = stored(&harness, aggregate);
            assert!(
                found.len() == 1 && found.values().all(|payload| payload.contains("\"n\":1,")),
                "{aggregate}: {found:?}"
            );
        }
        // An unchanged aggregate is not interrupted.
        harness.aggregates.remove(0);
        harness.change(routes_without_sums()).await.unwrap();
        assert_eq!(harness.process().aggregates.aggregates().len(), 1);
        let files: Vec<_> =
            harness.disk.paths().into_iter().filter(|path| path.starts_with("/data/aggregates")).collect();
        assert!(
            !files.is_empty() && files.iter().all(|path| path.to_str().unwrap().contains("hits.more@")),
            "{files:?}"
        );
        hit(&mut harness, 0, 61, 1, 1).await;
        hit(&mut harness, 0, 100, 1, 1).await;
        seconds(1).await;
        harness.wait_until_settled().await;
        assert!(stored(&harness, "hits.more").values().any(|payload| payload.contains("\"n\":2,")), "60 and 61");
        assert_eq!(stored(&harness, "hits.sums").len(), 1);
        harness.check_balance();
        harness.stop().await;
    });
}

fn routes_without_sums() -> Routes {
    routes().with(name("hits.more"), [FENCED.into()])
}

#[test]
fn failed_change_leaves_aggregates_unchanged() {
    run(async {
        let mut harness = harness(6, &definition());
        harness.shards = 1;
        harness.start();
        hit(&mut harness, 0, 1, 1, 1).await;
        seconds(1).await;
        let before = harness.aggregates.clone();
        harness.aggregates = vec![setup("hits", "sums", &Definition { emit: Emit::Final, ..definition() })];
        harness.disk.fail_from_call(
            journal::simulated_disk::Operation::Rename,
            1,
            journal::simulated_disk::SimulatedError::NoSpace,
        );
        assert!(harness.change(harness.routes.clone()).await.is_err());
        harness.disk.clear_faults();
        harness.aggregates = before;
        hit(&mut harness, 0, 2, 1, 1).await;
        hit(&mut harness, 0, 30, 1, 1).await;
        seconds(30).await;
        close(&harness).await;
        Journals::default().check(&harness, &definition());
        harness.stop().await;
    });
}

/// It saved its initial state.
#[test]
fn failed_change_does_not_affect_the_next() {
    use journal::simulated_disk::{Operation, SimulatedError};
    run(async {
        let mut harness = harness(66, &definition());
        harness.shards = 1;
        harness.start();
        hit(&mut harness, 0, 1, 1, 1).await;
        seconds(1).await;
        let before = harness.aggregates.clone();
        let other = vec![setup("hits", "sums", &Definition { emit: Emit::Final, ..definition() })];
        harness.aggregates = other.clone();
        // The first is that of the new aggregate's state, the second that of the ledger.
        harness.disk.fail_from_call(Operation::Rename, 2, SimulatedError::NoSpace);
        assert!(harness.change(harness.routes.clone()).await.is_err());
        harness.disk.clear_faults();
        harness.aggregates = before;
        hit(&mut harness, 0, 2, 1, 1).await;
        seconds(1).await;
        harness.aggregates = other;
        harness.change(harness.routes.clone()).await.unwrap();
        assert_eq!(harness.reported("the aggregate's definition has changed"), 1);
        hit(&mut harness, 0, 3, 1, 1).await;
        hit(&mut harness, 0, 60, 1, 1).await;
        seconds(1).await;
        harness.wait_until_settled().await;
        let found = stored(&harness, "hits.sums");
        assert!(found.len() == 1 && found.values().all(|payload| payload.contains("\"n\":1,")), "{found:?}");
        harness.stop().await;
    });
}

#[test]
fn clock_closes_idle_windows_even_after_stepping_back() {
    run(async {
        let quiet = Definition { quiet: Some(Duration::from_secs(30)), lateness: Some(Duration::ZERO), ..definition() };
        let mut harness = harness(7, &quiet);
        let clock =
            |harness: &Harness, at: i64| harness.clock.store(NOON + at * SECOND, std::sync::atomic::Ordering::Relaxed);
        clock(&harness, 0);
        harness.start();
        let at = |at: i64| (NOON + at * SECOND, NOON + at * SECOND);
        harness.append_at(0, "hits", at(1), "{\"g\":1,\"v\":1}").await;
        harness.append_at(1, "hits", at(2), "{\"g\":1,\"v\":1}").await;
        clock(&harness, 20);
        seconds(5).await;
        assert_eq!(stored(&harness, "hits.sums").len(), 0, "not quiet for long enough");
        clock(&harness, 33);
        seconds(5).await;
        harness.wait_until_settled().await;
        assert_eq!(stored(&harness, "hits.sums").len(), 1);
        // A step back ends nothing, and what is dated before the end of a window is late.
        clock(&harness, -3_600);
        harness.append_at(0, "hits", at(3), "{\"g\":1,\"v\":1}").await;
        harness.append_at(0, "hits", at(40), "{\"g\":1,\"v\":1}").await;
        seconds(5).await;
        harness.wait_until_settled().await;
        let figures = harness.process().aggregates.aggregates()[0].figures();
        assert_eq!((figures.counts.late, figures.windows), (1, 1));
        let mut journals = Journals::default();
        journals.look(&harness);
        harness.kill(1).await;
        harness.start();
        close(&harness).await;
        journals.check(&harness, &quiet);
        assert_eq!(stored(&harness, "hits.sums").len(), 2);
        harness.stop().await;
    });
}

#[test]
fn results_are_journaled_when_the_disk_rejects_events() {
    run(async {
        let mut harness = harness(8, &definition());
        harness.shards = 1;
        harness.start();
        hit(&mut harness, 0, 1, 1, 1).await;
        harness.disk.set_capacity(Some(1 << 30));
        harness.process().log.disk_guard().keep_free(Some(1 << 40));
        harness.process().log.disk_guard().look().unwrap();
        assert!(!hit(&mut harness, 0, 2, 1, 1).await);
        close(&harness).await;
        assert_eq!(stored(&harness, "hits.sums").len(), 1);
        harness.stop().await;
    });
}

#[test]
fn left_out_events_are_logged_immediately_then_summed() {
    run(async {
        let mut harness = harness(9, &definition());
        harness.shards = 1;
        harness.start();
        hit(&mut harness, 0, 1, 1, 1).await;
        hit(&mut harness, 0, 100, 1, 1).await;
        seconds(1).await;
        assert_eq!(harness.reported("aggregate=hits.sums"), 0, "{:?}", harness.messages());
        hit(&mut harness, 0, 2, 1, 1).await;
        seconds(1).await;
        let first = "1 event up to 98 s late";
        assert_eq!(harness.reported(first), 1, "{:?}", harness.messages());
        hit(&mut harness, 0, 3, 1, 1).await;
        hit(&mut harness, 0, 4, 1, 1).await;
        hit(&mut harness, 0, 3_600 + 301, 1, 1).await;
        seconds(1).await;
        assert_eq!(harness.reported("aggregate=hits.sums"), 1, "{:?}", harness.messages());
        seconds(10).await;
        assert_eq!(harness.reported("2 events up to 97 s late"), 1, "{:?}", harness.messages());
        assert_eq!(
            harness.reported("1 event with a time before 1970, or further in the future"),
            1,
            "{:?}",
            harness.messages()
        );
        seconds(30).await;
        assert_eq!(harness.reported("aggregate=hits.sums"), 3, "nothing more came: {:?}", harness.messages());
        harness.stop().await;
    });
}
