//! Objects on a failing disk: after any fault, each acknowledged event is in exactly one object, each object has its
//! manifest, and the ledger agrees.

use std::time::Duration;

use journal::simulated_disk::{Operation, SimulatedError};
use ledger::Routes;
use objects::Line;
use objects::{Codec, ObjectFormat, Prefix, SideFolder};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::Mutation;
use super::archive;
use super::harness::FENCED;
use super::harness::Harness;
use super::harness::KEYED;
use super::harness::id;
use super::harness::name;
use super::harness::picky;
use super::harness::run;
use super::harness::seconds;
use crate::status::LaneState;

const RULES: ObjectFormat = ObjectFormat {
    line: Line::Envelope,
    codec: Codec::None,
    bytes_max: 4096,
    records_max: 7,
    age_max: Duration::from_secs(5),
    prefix: Prefix::NONE,
    apart: None,
    manifests: SideFolder::NONE,
};

fn harness(seed: u64) -> Harness {
    let mut harness = Harness::new(seed);
    harness.objects = Some(RULES);
    harness
}

/// An object for each type.
fn by_type() -> ObjectFormat {
    ObjectFormat { prefix: "{type}-".parse().unwrap(), manifests: SideFolder::manifests(), ..RULES }
}

/// An object for each type and hour of events.
fn by_hour() -> ObjectFormat {
    let prefix: Prefix = "{type}-{day}-{hour}-".parse().unwrap();
    ObjectFormat { prefix: prefix.by_event_time(), ..by_type() }
}

/// Rules by a number.
fn any_rules(number: u64) -> ObjectFormat {
    match number % 3 {
        0 => RULES,
        1 => by_type(),
        _ => by_hour(),
    }
}

/// Compares the objects with the acknowledged events and with the ledger. Ends the process.
async fn check(harness: &mut Harness) {
    harness.check_balance();
    let (stored, dead) = harness.stored_and_dead(KEYED);
    harness.stop().await;
    let found = archive::read(&harness.disk);
    let dead_letters = harness.dead_letters(KEYED);
    for (number, type_name) in &harness.acknowledged {
        let payload = found.get(&id(*number).to_string());
        let expected = format!("{{\"n\":{number}}}");
        let is_undecided = harness.judged.get(&(KEYED.to_owned(), *number)) == Some(&None);
        let wanted = harness.is_routed(*number, type_name, KEYED) && !is_undecided;
        assert_eq!(payload, wanted.then_some(&expected), "event {number} of {type_name}");
        assert_eq!(dead_letters.contains(&id(*number)), is_undecided, "event {number} of {type_name}");
    }
    assert_eq!((stored, dead), (found.len() as u64, dead_letters.len() as u64), "{:?}", harness.messages());
}

#[test]
fn objects_end_by_count_bytes_and_age() {
    run(async {
        let mut harness = harness(50);
        harness.shards = 1;
        harness.start();
        harness.append(0, "both", 17).await;
        seconds(1).await;
        assert_eq!(archive::read(&harness.disk).len(), 14, "two are full, the rest waits for more");
        assert_eq!(harness.stored_and_dead(KEYED).0, 14);
        seconds(5).await;
        assert_eq!(archive::read(&harness.disk).len(), 17);
        harness.append_request("named", 9, format!("\"{}\"", "x".repeat(1500)).as_bytes()).await;
        seconds(1).await;
        assert_eq!(archive::read(&harness.disk).len(), 17 + 8, "two of these are too much for an object");
        harness.append(0, "other", 5).await;
        harness.append(0, "none", 5).await;
        seconds(10).await;
        assert_eq!(archive::read(&harness.disk).len(), 17 + 9);
        harness.check_balance();
        assert_eq!(harness.pending(), 0);
    });
}

#[test]
fn objects_of_types_end_together() {
    run(async {
        let mut harness = harness(57);
        harness.objects = Some(by_type());
        harness.shards = 1;
        harness.start();
        harness.append(0, "both", 6).await;
        harness.append(0, "named", 7).await;
        harness.append(0, "none", 2).await;
        seconds(1).await;
        assert_eq!(archive::read(&harness.disk).len(), 0, "each has room for one more");
        harness.append(0, "both", 1).await;
        harness.append(0, "named", 1).await;
        seconds(1).await;
        assert_eq!(archive::read(&harness.disk).len(), 14, "one was full");
        seconds(6).await;
        assert_eq!(archive::read(&harness.disk).len(), 15);
        let paths = harness.disk.paths();
        let count = |start: &str| {
            let names = paths.iter().map(|path| path.file_name().unwrap().to_string_lossy());
            names.filter(|name| name.starts_with(start) && name.ends_with(".ndjson")).count()
        };
        assert_eq!((count("both-"), count("named-")), (1, 2));
        check(&mut harness).await;
    });
}

/// Late events have separate objects, and an event is at most a day ahead.
#[test]
fn objects_follow_the_time_of_the_events() {
    const HOUR: i64 = 3_600_000_000;
    run(async {
        let mut harness = harness(59);
        harness.objects = Some(by_hour());
        harness.shards = 1;
        harness.start();
        let received_at = 10_000 * 24 * HOUR;
        for (number, time) in [0, HOUR, 1, 900 * 24 * HOUR, -HOUR, 2 * HOUR - 1].into_iter().enumerate() {
            let payload = format!("{{\"n\":{}}}", number + 1);
            assert!(harness.append_at(0, "both", (received_at + time, received_at), &payload).await);
        }
        seconds(6).await;
        let paths = harness.disk.paths();
        let names = paths.iter().filter_map(|path| path.to_str()?.strip_suffix(".ndjson"));
        let count = |name: &str| {
            let object =
                std::str::from_utf8(&harness.disk.content(format!("{name}.ndjson")).unwrap()).unwrap().to_owned();
            let hour = name.strip_prefix("/archive/both-").unwrap().split("-keyed").next().unwrap().to_owned();
            (hour, object.lines().count())
        };
        let counts: std::collections::BTreeMap<String, usize> = names.map(count).collect();
        let expected = [("1997-05-18-23", 1), ("1997-05-19-00", 2), ("1997-05-19-01", 2), ("1997-05-20-00", 1)];
        assert!(counts.iter().map(|(hour, count)| (&**hour, *count)).eq(expected), "{counts:?}");
        assert_eq!(archive::read(&harness.disk).len(), 6);
        harness.check_balance();
        assert_eq!(harness.stored_and_dead(KEYED), (6, 0));
    });
}

/// One event for each of many hours: a run has at most the permitted number of objects.
#[test]
fn hours_are_gathered_concurrently_up_to_the_limit() {
    run(async {
        let mut harness = harness(60);
        harness.objects = Some(by_hour());
        harness.shards = 1;
        harness.start();
        for hour in 0..=limits::OBJECTS_GATHERED_MAX as i64 {
            let time = (hour - 100) * 3_600_000_000 + 1;
            assert!(harness.append_at(0, "both", (time, 1), "{\"n\":1}").await);
        }
        seconds(1).await;
        assert_eq!(archive::read(&harness.disk).len(), limits::OBJECTS_GATHERED_MAX);
        seconds(6).await;
        assert_eq!(archive::read(&harness.disk).len(), limits::OBJECTS_GATHERED_MAX + 1);
        harness.check_balance();
    });
}

/// A directory of an older version has manifests next to its objects. One that is committed keeps its name.
#[test]
fn committed_manifests_keep_their_names() {
    run(async {
        let mut harness = harness(61);
        harness.shards = 1;
        harness.start();
        harness.append(0, "named", 9).await;
        seconds(10).await;
        let before = archive::read(&harness.disk).len();
        // The newest object is committed, and neither it nor its manifest is known to be there.
        let manifest = |path: &std::path::PathBuf| path.to_string_lossy().ends_with(".manifest.json");
        let newest = harness.disk.paths().into_iter().filter(manifest).max().unwrap();
        harness.kill(1).await;
        for path in ["/data/ledger.0", "/data/ledger.1", newest.to_str().unwrap()] {
            harness.disk.erase(path).unwrap();
        }
        harness.objects = Some(ObjectFormat { manifests: SideFolder::manifests(), ..RULES });
        harness.start();
        seconds(10).await;
        assert!(harness.disk.content(&newest).is_ok(), "it has its name again");
        assert_eq!(archive::read(&harness.disk).len(), before);
        harness.append(0, "named", 3).await;
        seconds(10).await;
        let in_folder = |path: &std::path::PathBuf| path.starts_with("/archive/_manifests");
        assert_eq!(harness.disk.paths().iter().filter(|path| in_folder(path)).count(), 1);
        check(&mut harness).await;
    });
}

#[test]
fn types_are_gathered_concurrently_up_to_the_limit() {
    run(async {
        let mut harness = harness(58);
        harness.objects = Some(by_type());
        harness.shards = 1;
        harness.routes = Routes::new().with_others([KEYED.into()]);
        harness.start();
        for number in 0..=limits::OBJECTS_GATHERED_MAX {
            harness.append(0, &format!("t{number}"), 1).await;
        }
        seconds(1).await;
        assert_eq!(archive::read(&harness.disk).len(), limits::OBJECTS_GATHERED_MAX);
        seconds(6).await;
        check(&mut harness).await;
    });
}

#[test]
fn backlog_time_counts_for_the_object_age() {
    run(async {
        let mut harness = harness(56);
        harness.shards = 1;
        // The events were received a minute ago.
        harness.clock.store(60_000_000, std::sync::atomic::Ordering::Relaxed);
        harness.start();
        harness.append(0, "both", 17).await;
        seconds(1).await;
        assert_eq!(archive::read(&harness.disk).len(), 17);
        let objects = harness.disk.paths().iter().filter(|path| path.to_string_lossy().ends_with(".ndjson")).count();
        assert_eq!(objects, 3, "those that have enough events are full");
        // A clock that was set back makes the wait neither longer nor shorter.
        harness.clock.store(-60_000_000, std::sync::atomic::Ordering::Relaxed);
        harness.append(0, "both", 1).await;
        seconds(4).await;
        assert_eq!(archive::read(&harness.disk).len(), 17);
        seconds(2).await;
        assert_eq!(archive::read(&harness.disk).len(), 18);
        check(&mut harness).await;
    });
}

/// Real clocks continue between two reads.
#[test]
fn backlog_time_counts_with_a_running_clock() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut harness = harness(60);
        harness.objects = Some(ObjectFormat { age_max: Duration::from_mins(10), ..RULES });
        harness.shards = 1;
        harness.clock.store(3_600_000_000, std::sync::atomic::Ordering::Relaxed);
        harness.start();
        harness.append(0, "both", 3).await;
        let stored = async {
            while archive::read(&harness.disk).len() < 3 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), stored).await.expect("they wait for more, or for ten minutes");
        check(&mut harness).await;
    });
}

#[test]
fn stop_writes_the_gathered_events() {
    run(async {
        let mut harness = harness(51);
        harness.start();
        harness.append(0, "both", 3).await;
        seconds(1).await;
        assert_eq!(harness.stored_and_dead(KEYED).0, 0);
        harness.stop().await;
        assert_eq!(archive::read(&harness.disk).len(), 3);
        harness.kill(1).await;
        harness.start();
        seconds(10).await;
        check(&mut harness).await;
    });
}

#[test]
fn existing_object_with_other_bytes_is_reported() {
    run(async {
        let mut harness = harness(52);
        harness.shards = 1;
        harness.start();
        harness.append(0, "named", 3).await;
        seconds(10).await;
        let paths = harness.disk.paths();
        let object = paths.iter().find(|path| path.to_string_lossy().ends_with(".ndjson")).unwrap();
        let bytes = harness.disk.content(object).unwrap();
        // As if the process had been killed before the ledger was saved, and before the object was described.
        let described = format!("{}.manifest.json", object.display());
        harness.kill(1).await;
        for path in ["/data/ledger.0", "/data/ledger.1", &described] {
            harness.disk.erase(path).unwrap();
        }
        harness.disk.put(object, b"{}\n").unwrap();
        harness.start();
        seconds(10).await;
        let LaneState::Waiting(reason) = harness.process().lanes[1].state() else { panic!("{:?}", harness.messages()) };
        assert!(reason.contains("exists, but differs"), "{reason}");
        assert_eq!(harness.disk.content(object).unwrap(), b"{}\n");
        harness.disk.erase(object).unwrap();
        seconds(100).await;
        assert_eq!(harness.disk.content(object).unwrap(), bytes, "it was moved away, and is written again");
        check(&mut harness).await;
    });
}

#[test]
fn damaged_manifest_stops_its_lane() {
    run(async {
        let mut harness = harness(53);
        harness.shards = 1;
        harness.start();
        harness.append(0, "named", 20).await;
        seconds(10).await;
        harness.kill(1).await;
        harness.disk.flip_bit("/data/objects/keyed.0000.0", 300).unwrap();
        harness.start();
        harness.append(0, "named", 5).await;
        seconds(10).await;
        assert_eq!(archive::read(&harness.disk).len(), 25, "one intact copy is enough");
        harness.kill(2).await;
        for copy in 0..2 {
            harness.disk.flip_bit(format!("/data/objects/keyed.0000.{copy}"), 300).unwrap();
        }
        harness.start();
        seconds(10).await;
        let stopped = |state| matches!(state, LaneState::Stopped(reason) if reason.contains("both copies"));
        assert!(harness.process().lanes.iter().any(|lane| stopped(lane.state())), "{:?}", harness.messages());
    });
}

#[test]
fn lane_waits_for_space_on_a_full_disk() {
    run(async {
        let mut harness = harness(54);
        harness.shards = 1;
        harness.start();
        harness.append(0, "named", 3).await;
        seconds(10).await;
        harness.append(0, "named", 7).await;
        harness.disk.fail_from_call(Operation::WriteAt, 1, SimulatedError::NoSpace);
        seconds(60).await;
        let LaneState::Waiting(_) = harness.process().lanes[1].state() else { panic!("{:?}", harness.messages()) };
        harness.disk.clear_faults();
        harness.wait_until_settled().await;
        check(&mut harness).await;
    });
}

#[test]
fn dead_letters_are_not_replayed_to_object_stores() {
    run(async {
        let mut harness = Harness::new(55);
        harness.shards = 1;
        harness.keyed.refuse_id(id(2));
        harness.start();
        harness.append(0, "named", 3).await;
        harness.wait_until_settled().await;
        harness.stop().await;
        harness.kill(1).await;
        harness.objects = Some(RULES);
        harness.start();
        seconds(5).await;
        let outcome = harness.act(dead_letters::DeadAction::Replay, &dead_letters::DeadFilter::default()).await;
        assert!(
            outcome
                .failure
                .is_some_and(|reason| reason.contains("stores objects") && reason.contains("as a new event"))
        );
        assert_eq!(harness.held(KEYED), [2]);
    });
}

#[derive(Clone, Debug)]
enum Step {
    Append {
        shard: u16,
        type_index: usize,
        count: u64,
    },
    Milliseconds(u64),
    Kill,
    PowerFailure {
        operations: u64,
    },
    /// A call of the disk fails, which may be the journal's: then the process is killed.
    Fail {
        operation: usize,
        call: u64,
    },
    Stop,
    Reload,
    /// The same configuration with other conditions.
    Conditions {
        number: usize,
    },
    /// A route to the objects is removed and returns.
    OutAndIn {
        milliseconds: u64,
    },
}

const TYPES: [&str; 5] = ["both", "named", "none", "other", "picky"];
const OPERATIONS: [Operation; 6] = [
    Operation::Create,
    Operation::Rename,
    Operation::SyncDirectory,
    Operation::WriteAt,
    Operation::Sync,
    Operation::ReadAt,
];

fn step() -> impl Strategy<Value = Step> {
    let append = (0_u16..2, 0..TYPES.len(), 1_u64..30);
    prop_oneof![
        8 => append.prop_map(|(shard, type_index, count)| Step::Append { shard, type_index, count }),
        6 => (1_u64..8000).prop_map(Step::Milliseconds),
        2 => Just(Step::Kill),
        5 => (1_u64..90).prop_map(|operations| Step::PowerFailure { operations }),
        3 => (0..OPERATIONS.len(), 1_u64..12).prop_map(|(operation, call)| Step::Fail { operation, call }),
        1 => Just(Step::Stop),
        2 => Just(Step::Reload),
        3 => (0_usize..5).prop_map(|number| Step::Conditions { number }),
        2 => (0_u64..3000).prop_map(|milliseconds| Step::OutAndIn { milliseconds }),
    ]
}

async fn take(harness: &mut Harness, step: &Step, seed: u64) {
    match *step {
        Step::Append { shard, type_index, count } => {
            harness.append(shard, TYPES[type_index], count).await;
        }
        Step::Milliseconds(count) => tokio::time::sleep(Duration::from_millis(count)).await,
        Step::Kill => restart(harness, seed).await,
        Step::PowerFailure { operations } => {
            harness.disk.fail_power_at(operations);
            harness.append(0, "both", 9).await;
            seconds(7).await;
            harness.power_cut(seed).await;
            harness.start();
        }
        Step::Fail { operation, call } => {
            harness.disk.fail_call(OPERATIONS[operation], call, SimulatedError::Io);
            harness.append(1, "named", 10).await;
            seconds(7).await;
            harness.kill(seed).await;
            harness.disk.clear_faults();
            harness.disk.power_cut();
            harness.start();
        }
        Step::Stop => {
            harness.stop().await;
            restart(harness, seed).await;
        }
        Step::Reload => harness.change(harness.routes.clone()).await.unwrap(),
        Step::Conditions { number } => harness.change(picky(harness.routes.clone(), number)).await.unwrap(),
        Step::OutAndIn { milliseconds } => {
            let routes = harness.routes.clone();
            let without = routes.clone().with(name("both"), [FENCED.into()]).with(name("picky"), [FENCED.into()]);
            harness.change(without).await.unwrap();
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            harness.change(routes).await.unwrap();
        }
    }
}

async fn restart(harness: &mut Harness, seed: u64) {
    harness.kill(seed).await;
    harness.start();
}

fn play(steps: &[Step], seed: u64, mutation: Option<Mutation>) {
    run(async {
        let mut harness = harness(seed);
        harness.mutation = mutation;
        harness.objects = Some(any_rules(seed));
        harness.start();
        for (index, step) in steps.iter().enumerate() {
            take(&mut harness, step, seed.wrapping_add(index as u64)).await;
            harness.check_balance();
        }
        seconds(100).await;
        harness.wait_until_settled().await;
        check(&mut harness).await;
    });
}

#[test]
fn any_sequence_keeps_every_event_in_one_object() {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(150);
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(cases) });
    let steps = (proptest::collection::vec(step(), 1..20), any::<u64>());
    runner
        .run(&steps, |(steps, seed)| {
            play(&steps, seed, None);
            Ok(())
        })
        .unwrap();
}

/// The power fails in this operation of a run that writes some objects. Returns whether the run reached it.
fn cut_at(operations: u64, rules: ObjectFormat, mutation: Option<Mutation>) -> bool {
    run(async move {
        let mut harness = harness(operations);
        let codec = rules.codec;
        harness.objects = Some(rules);
        harness.mutation = mutation;
        harness.shards = 1;
        harness.routes = Routes::new().with_others([KEYED.into()]);
        harness.start();
        harness.disk.fail_power_at(operations);
        for count in [9, 3, 20] {
            harness.append(0, "any", count).await;
            harness.append(0, "named", 2).await;
            seconds(6).await;
        }
        let is_reached = harness.disk.power_is_off();
        harness.power_cut(operations).await;
        harness.start();
        harness.append(0, "any", 4).await;
        seconds(100).await;
        harness.wait_until_settled().await;
        if codec == Codec::None {
            check(&mut harness).await;
        }
        is_reached
    })
}

#[test]
fn power_cut_leaves_every_event_in_one_object() {
    for rules in [RULES, by_type()] {
        let count = (1..).take_while(|operation| cut_at(*operation, rules.clone(), None)).count();
        assert!(count > 100, "the run has only {count} operations");
        for codec in [Codec::Gzip, Codec::Zstd, Codec::Parquet] {
            let rules = || ObjectFormat { codec, ..rules.clone() };
            assert!((1..count as u64).step_by(7).all(|operation| cut_at(operation, rules(), None)));
        }
    }
}

#[test]
fn power_cut_keeps_events_in_objects_by_hour() {
    let count = (1..).step_by(5).take_while(|operation| cut_at(*operation, by_hour(), None)).count();
    assert!(count > 20, "the run has only {count} operations of five");
}

#[test]
fn manifest_saved_after_the_write_is_detected() {
    let fails =
        |operation| std::panic::catch_unwind(|| cut_at(operation, RULES, Some(Mutation::LateManifest))).is_err();
    assert!((1..200).any(fails));
}

/// The first sync after the creation of a directory fails. For the next attempt the directory existed, so its sync had
/// no effect, and a power cut removed it with everything in it.
#[test]
fn undurable_directory_is_created_again() {
    let append = |shard| Step::Append { shard, type_index: 0, count: 1 };
    for (call, seed) in (1..6).flat_map(|call| (0..20).map(move |seed| (call, seed))) {
        let fail = Step::Fail { operation: 2, call };
        play(&[append(0), append(1), fail, append(0), append(1)], seed, None);
    }
    let steps =
        [append(0), append(1), append(1), append(0), append(0), Step::Fail { operation: 2, call: 2 }, append(0)];
    play(&steps, 1_533_583_853_065_572_035, None);
}
