//! Objects on a disk that fails: whatever happens, each acknowledged event is in exactly one object, each object has its
//! manifest, and the ledger says the same.

use std::time::Duration;

use journal::simulated_disk::{Failure, Operation};
use objects::Line;
use objects::{Codec, ObjectRules, Prefix};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::Mutation;
use super::archive;
use super::world::FENCED;
use super::world::KEYED;
use super::world::World;
use super::world::id;
use super::world::name;
use super::world::picky;
use super::world::run;
use super::world::seconds;
use crate::routes::Routes;
use crate::status::LaneState;

const RULES: ObjectRules = ObjectRules {
    line: Line::Envelope,
    codec: Codec::None,
    bytes_max: 4096,
    records_max: 7,
    age_max: Duration::from_secs(5),
    prefix: Prefix::NONE,
    apart: None,
};

fn world(seed: u64) -> World {
    let mut world = World::new(seed);
    world.objects = Some(RULES);
    world
}

/// An object for each type.
fn by_type() -> ObjectRules {
    ObjectRules { prefix: "{type}-".parse().unwrap(), ..RULES }
}

/// Holds the objects against what was acknowledged, and against the ledger. Ends the process.
async fn check(world: &mut World) {
    world.check_balance();
    let (stored, dead) = world.stored_and_dead(KEYED);
    world.stop().await;
    let found = archive::read(&world.disk);
    let letters = world.dead_letters(KEYED);
    for (number, type_name) in &world.acknowledged {
        let payload = found.get(&id(*number).to_string());
        let expected = format!("{{\"n\":{number}}}");
        let is_undecided = world.judged.get(&(KEYED.to_owned(), *number)) == Some(&None);
        let wanted = world.is_meant(*number, type_name, KEYED) && !is_undecided;
        assert_eq!(payload, wanted.then_some(&expected), "event {number} of {type_name}");
        assert_eq!(letters.contains(&id(*number)), is_undecided, "event {number} of {type_name}");
    }
    assert_eq!((stored, dead), (found.len() as u64, letters.len() as u64), "{:?}", world.messages());
}

#[test]
fn objects_end_by_count_bytes_and_age() {
    run(async {
        let mut world = world(50);
        world.shards = 1;
        world.start();
        world.append(0, "both", 17).await;
        seconds(1).await;
        assert_eq!(archive::read(&world.disk).len(), 14, "two are full, the rest waits for more");
        assert_eq!(world.stored_and_dead(KEYED).0, 14);
        seconds(5).await;
        assert_eq!(archive::read(&world.disk).len(), 17);
        world.append_request("named", 9, format!("\"{}\"", "x".repeat(1500)).as_bytes()).await;
        seconds(1).await;
        assert_eq!(archive::read(&world.disk).len(), 17 + 8, "two of these are too much for an object");
        world.append(0, "other", 5).await;
        world.append(0, "none", 5).await;
        seconds(10).await;
        assert_eq!(archive::read(&world.disk).len(), 17 + 9);
        world.check_balance();
        assert_eq!(world.pending(), 0);
    });
}

#[test]
fn types_are_told_apart_and_end_together() {
    run(async {
        let mut world = world(57);
        world.objects = Some(by_type());
        world.shards = 1;
        world.start();
        world.append(0, "both", 6).await;
        world.append(0, "named", 7).await;
        world.append(0, "none", 2).await;
        seconds(1).await;
        assert_eq!(archive::read(&world.disk).len(), 0, "each has room for one more");
        world.append(0, "both", 1).await;
        world.append(0, "named", 1).await;
        seconds(1).await;
        assert_eq!(archive::read(&world.disk).len(), 14, "one was full");
        seconds(6).await;
        assert_eq!(archive::read(&world.disk).len(), 15);
        let paths = world.disk.paths();
        let count = |start: &str| {
            let names = paths.iter().map(|path| path.file_name().unwrap().to_string_lossy());
            names.filter(|name| name.starts_with(start) && name.ends_with(".ndjson")).count()
        };
        assert_eq!((count("both-"), count("named-")), (1, 2));
        check(&mut world).await;
    });
}

#[test]
fn so_many_types_are_gathered_at_once() {
    run(async {
        let mut world = world(58);
        world.objects = Some(by_type());
        world.shards = 1;
        world.routes = Routes::new().with_others([KEYED.into()]);
        world.start();
        for number in 0..=event::limits::OBJECT_TYPES_MAX {
            world.append(0, &format!("t{number}"), 1).await;
        }
        seconds(1).await;
        assert_eq!(archive::read(&world.disk).len(), event::limits::OBJECT_TYPES_MAX);
        seconds(6).await;
        check(&mut world).await;
    });
}

#[test]
fn events_that_waited_in_a_backlog_do_not_wait_for_their_object_again() {
    run(async {
        let mut world = world(56);
        world.shards = 1;
        // The events were received a minute ago.
        world.clock.store(60_000_000, std::sync::atomic::Ordering::Relaxed);
        world.start();
        world.append(0, "both", 17).await;
        seconds(1).await;
        assert_eq!(archive::read(&world.disk).len(), 17);
        let objects = world.disk.paths().iter().filter(|path| path.to_string_lossy().ends_with(".ndjson")).count();
        assert_eq!(objects, 3, "those that have enough events are full");
        // A clock that was put back makes nobody wait longer, nor shorter.
        world.clock.store(-60_000_000, std::sync::atomic::Ordering::Relaxed);
        world.append(0, "both", 1).await;
        seconds(4).await;
        assert_eq!(archive::read(&world.disk).len(), 17);
        seconds(2).await;
        assert_eq!(archive::read(&world.disk).len(), 18);
        check(&mut world).await;
    });
}

/// Real clocks go on between two looks at them.
#[test]
fn by_a_clock_that_runs_they_do_not_wait_again_either() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut world = world(60);
        world.objects = Some(ObjectRules { age_max: Duration::from_mins(10), ..RULES });
        world.shards = 1;
        world.clock.store(3_600_000_000, std::sync::atomic::Ordering::Relaxed);
        world.start();
        world.append(0, "both", 3).await;
        let stored = async {
            while archive::read(&world.disk).len() < 3 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), stored).await.expect("they wait for more, or for ten minutes");
        check(&mut world).await;
    });
}

#[test]
fn a_stop_writes_what_was_gathered() {
    run(async {
        let mut world = world(51);
        world.start();
        world.append(0, "both", 3).await;
        seconds(1).await;
        assert_eq!(world.stored_and_dead(KEYED).0, 0);
        world.stop().await;
        assert_eq!(archive::read(&world.disk).len(), 3);
        world.kill(1).await;
        world.start();
        seconds(10).await;
        check(&mut world).await;
    });
}

#[test]
fn what_is_there_with_other_bytes_is_left_alone_and_told() {
    run(async {
        let mut world = world(52);
        world.shards = 1;
        world.start();
        world.append(0, "named", 3).await;
        seconds(10).await;
        let paths = world.disk.paths();
        let object = paths.iter().find(|path| path.to_string_lossy().ends_with(".ndjson")).unwrap();
        let bytes = world.disk.content(object).unwrap();
        // As if the process had been killed before the ledger was saved, and before the object was described.
        let described = format!("{}.manifest.json", object.display());
        world.kill(1).await;
        for path in ["/data/ledger.0", "/data/ledger.1", &described] {
            world.disk.erase(path).unwrap();
        }
        world.disk.put(object, b"{}\n").unwrap();
        world.start();
        seconds(10).await;
        let LaneState::Waiting(reason) = world.process().lanes[1].state() else { panic!("{:?}", world.messages()) };
        assert!(reason.contains("is there already"), "{reason}");
        assert_eq!(world.disk.content(object).unwrap(), b"{}\n");
        world.disk.erase(object).unwrap();
        seconds(100).await;
        assert_eq!(world.disk.content(object).unwrap(), bytes, "it was moved away, and is written anew");
        check(&mut world).await;
    });
}

#[test]
fn a_manifest_of_which_no_copy_is_sound_stops_its_lane() {
    run(async {
        let mut world = world(53);
        world.shards = 1;
        world.start();
        world.append(0, "named", 20).await;
        seconds(10).await;
        world.kill(1).await;
        world.disk.flip_bit("/data/objects/keyed.0000.0", 300).unwrap();
        world.start();
        world.append(0, "named", 5).await;
        seconds(10).await;
        assert_eq!(archive::read(&world.disk).len(), 25, "one sound copy is enough");
        world.kill(2).await;
        for copy in 0..2 {
            world.disk.flip_bit(format!("/data/objects/keyed.0000.{copy}"), 300).unwrap();
        }
        world.start();
        seconds(10).await;
        let stopped = |state| matches!(state, LaneState::Stopped(reason) if reason.contains("both copies"));
        assert!(world.process().lanes.iter().any(|lane| stopped(lane.state())), "{:?}", world.messages());
    });
}

#[test]
fn a_full_disk_is_waited_out() {
    run(async {
        let mut world = world(54);
        world.shards = 1;
        world.start();
        world.append(0, "named", 3).await;
        seconds(10).await;
        world.append(0, "named", 7).await;
        world.disk.fail_from_call(Operation::WriteAt, 1, Failure::NoSpace);
        seconds(60).await;
        let LaneState::Waiting(_) = world.process().lanes[1].state() else { panic!("{:?}", world.messages()) };
        world.disk.clear_faults();
        world.settle().await;
        check(&mut world).await;
    });
}

#[test]
fn dead_letters_of_another_store_are_not_sent_to_one_of_objects() {
    run(async {
        let mut world = World::new(55);
        world.shards = 1;
        world.keyed.refuse_id(id(2));
        world.start();
        world.append(0, "named", 3).await;
        world.settle().await;
        world.stop().await;
        world.kill(1).await;
        world.objects = Some(RULES);
        world.start();
        seconds(5).await;
        let outcome = world.act(crate::DeadAction::Replay, &crate::DeadFilter::default()).await;
        assert!(
            outcome
                .failure
                .is_some_and(|reason| reason.contains("store of objects") && reason.contains("post the payload anew"))
        );
        assert_eq!(world.held(KEYED), [2]);
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
    /// A route to the objects is taken out, and comes back.
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

async fn take(world: &mut World, step: &Step, seed: u64) {
    match *step {
        Step::Append { shard, type_index, count } => {
            world.append(shard, TYPES[type_index], count).await;
        }
        Step::Milliseconds(count) => tokio::time::sleep(Duration::from_millis(count)).await,
        Step::Kill => restart(world, seed).await,
        Step::PowerFailure { operations } => {
            world.disk.fail_power_at(operations);
            world.append(0, "both", 9).await;
            seconds(7).await;
            world.power_cut(seed).await;
            world.start();
        }
        Step::Fail { operation, call } => {
            world.disk.fail_call(OPERATIONS[operation], call, Failure::Io);
            world.append(1, "named", 10).await;
            seconds(7).await;
            world.kill(seed).await;
            world.disk.clear_faults();
            world.disk.power_cut();
            world.start();
        }
        Step::Stop => {
            world.stop().await;
            restart(world, seed).await;
        }
        Step::Reload => world.change(world.routes.clone()).await.unwrap(),
        Step::Conditions { number } => world.change(picky(world.routes.clone(), number)).await.unwrap(),
        Step::OutAndIn { milliseconds } => {
            let routes = world.routes.clone();
            let without = routes.clone().with(name("both"), [FENCED.into()]).with(name("picky"), [FENCED.into()]);
            world.change(without).await.unwrap();
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            world.change(routes).await.unwrap();
        }
    }
}

async fn restart(world: &mut World, seed: u64) {
    world.kill(seed).await;
    world.start();
}

fn play(steps: &[Step], seed: u64, mutation: Option<Mutation>) {
    run(async {
        let mut world = world(seed);
        world.mutation = mutation;
        if seed % 2 == 1 {
            world.objects = Some(by_type());
        }
        world.start();
        for (index, step) in steps.iter().enumerate() {
            take(&mut world, step, seed.wrapping_add(index as u64)).await;
            world.check_balance();
        }
        seconds(100).await;
        world.settle().await;
        check(&mut world).await;
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

/// The power fails in this operation of a run that writes some objects; whether it came to it.
fn cut_at(operations: u64, rules: ObjectRules, mutation: Option<Mutation>) -> bool {
    run(async move {
        let mut world = world(operations);
        let codec = rules.codec;
        world.objects = Some(rules);
        world.mutation = mutation;
        world.shards = 1;
        world.routes = Routes::new().with_others([KEYED.into()]);
        world.start();
        world.disk.fail_power_at(operations);
        for count in [9, 3, 20] {
            world.append(0, "any", count).await;
            world.append(0, "named", 2).await;
            seconds(6).await;
        }
        let came = world.disk.power_is_off();
        world.power_cut(operations).await;
        world.start();
        world.append(0, "any", 4).await;
        seconds(100).await;
        world.settle().await;
        if codec == Codec::None {
            check(&mut world).await;
        }
        came
    })
}

#[test]
fn a_power_cut_at_each_operation_leaves_every_event_in_one_object() {
    for rules in [RULES, by_type()] {
        let count = (1..).take_while(|operation| cut_at(*operation, rules.clone(), None)).count();
        assert!(count > 100, "the run has only {count} operations");
        for codec in [Codec::Gzip, Codec::Zstd, Codec::Parquet] {
            let rules = || ObjectRules { codec, ..rules.clone() };
            assert!((1..count as u64).step_by(7).all(|operation| cut_at(operation, rules(), None)));
        }
    }
}

#[test]
fn a_manifest_that_is_saved_after_the_write_is_noticed() {
    let fails =
        |operation| std::panic::catch_unwind(|| cut_at(operation, RULES, Some(Mutation::LateManifest))).is_err();
    assert!((1..200).any(fails));
}

/// The first sync behind a directory that was made fails; the directory was there for the next attempt, whose sync had
/// nothing to make durable, and the power cut took it with all that had been written into it.
#[test]
fn a_directory_whose_name_was_not_made_durable_is_made_anew() {
    let append = |shard| Step::Append { shard, type_index: 0, count: 1 };
    for (call, seed) in (1..6).flat_map(|call| (0..20).map(move |seed| (call, seed))) {
        let fail = Step::Fail { operation: 2, call };
        play(&[append(0), append(1), fail, append(0), append(1)], seed, None);
    }
    let steps =
        [append(0), append(1), append(1), append(0), append(0), Step::Fail { operation: 2, call: 2 }, append(0)];
    play(&steps, 1_533_583_853_065_572_035, None);
}
