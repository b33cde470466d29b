//! Routes with conditions: each event is held against the condition that held where it stands in the journal, whatever
//! happens to the process, the store or the configuration afterwards.

use objects::Line;
use objects::{Codec, ObjectRules, Prefix};
use std::time::Duration;

use super::world::FENCED;
use super::world::KEYED;
use super::world::World;
use super::world::id;
use super::world::name;
use super::world::run;
use super::world::seconds;
use crate::dead_letters::{DeadAction, DeadFilter};
use crate::ledger::SinkRow;
use crate::routes::Routes;

fn counts(world: &World, sink: &str) -> [u64; 4] {
    let rows = world.rows();
    let row = rows.iter().find(|row| row.type_name.as_str() == "x").unwrap();
    let SinkRow { stored, dead, skipped, pending, .. } =
        row.sinks.iter().find(|row| &*row.sink == sink).cloned().unwrap();
    [stored, dead, skipped, pending]
}

/// All types go to both sinks, to the keyed one by a condition.
fn routes(condition: &str) -> Routes {
    Routes::new().with_others([FENCED.into(), KEYED.into()]).when(None, KEYED.into(), condition.parse().unwrap())
}

fn world(seed: u64, condition: &str) -> World {
    let mut world = World::new(seed);
    world.shards = 1;
    world.routes = routes(condition);
    world.start();
    world
}

#[test]
fn events_are_chosen_by_their_payloads() {
    run(async {
        let mut world = world(80, "n % 5 == 0");
        world.append(0, "x", 50).await;
        world.settle().await;
        world.check_balance();
        assert_eq!((counts(&world, FENCED), counts(&world, KEYED)), ([50, 0, 0, 0], [10, 0, 40, 0]));
        assert!(world.keyed.get(id(5)).is_some() && world.keyed.get(id(6)).is_none());
        world.check_all().await;
    });
}

#[test]
fn another_condition_holds_for_what_comes_behind_it() {
    run(async {
        let mut world = world(81, "n % 2 == 0");
        world.keyed.fail_next(1_000_000);
        world.append(0, "x", 10).await;
        world.change(routes("n % 10 == 0")).await.unwrap();
        world.append(0, "x", 10).await;
        world.kill(1).await;
        // A start with another file is a change like any other.
        world.routes = routes("n > 1000");
        world.start();
        world.append(0, "x", 10).await;
        seconds(2).await;
        world.kill(2).await;
        world.routes = Routes::new().with_others([FENCED.into(), KEYED.into()]);
        world.start();
        world.append(0, "x", 10).await;
        world.keyed.heal();
        world.settle().await;
        world.check_balance();
        assert_eq!(counts(&world, KEYED), [5 + 1 + 10, 0, 5 + 9 + 10, 0]);
        world.check_all().await;
    });
}

#[test]
fn a_route_that_returns_holds_what_waits_to_the_condition_that_it_had() {
    run(async {
        let mut world = world(82, "n % 2 == 0");
        world.keyed.fail_next(1_000_000);
        world.append(0, "x", 10).await;
        world.change(Routes::new().with_others([FENCED.into()])).await.unwrap();
        world.kill(1).await;
        world.routes = routes("n % 3 == 0");
        world.start();
        world.append(0, "x", 3).await;
        world.keyed.heal();
        world.settle().await;
        world.check_balance();
        assert_eq!(counts(&world, KEYED), [5 + 1, 0, 5 + 2, 0]);
    });
}

#[test]
fn a_store_that_is_set_back_gets_the_same_events_again() {
    run(async {
        let mut world = World::new(83);
        world.shards = 1;
        world.routes = Routes::new().with_others([FENCED.into()]).when(None, FENCED.into(), "n <= 4".parse().unwrap());
        world.start();
        world.append(0, "x", 10).await;
        world.settle().await;
        world.change(Routes::new().with_others([FENCED.into()])).await.unwrap();
        world.append(0, "x", 10).await;
        world.settle().await;
        world.kill(1).await;
        world.fenced = sink_testing::MemoryHandle::fenced();
        world.start();
        world.settle().await;
        seconds(2).await;
        world.check_balance();
        assert_eq!((counts(&world, FENCED), world.fenced.count()), ([14, 0, 6, 0], 14));
    });
}

/// Each event whose number can be divided by three is undecided. At the end nobody has lost one.
fn undecided(world: &mut World, objects: bool) {
    if objects {
        let age_max = Duration::from_secs(5);
        world.objects = Some(ObjectRules {
            line: Line::Envelope,
            codec: Codec::None,
            bytes_max: 4096,
            records_max: 7,
            age_max,
            prefix: Prefix::NONE,
            apart: None,
        });
    }
    world.shards = 1;
    world.routes = routes("60 / (n % 3) > 30");
}

#[test]
fn what_cannot_be_decided_is_a_dead_letter() {
    for objects in [false, true] {
        run(async {
            let mut world = World::new(84);
            undecided(&mut world, objects);
            world.start();
            world.append(0, "x", 30).await;
            world.settle().await;
            world.check_balance();
            assert_eq!(counts(&world, KEYED), [10, 10, 10, 0], "{objects}");
            assert_eq!(counts(&world, FENCED), [30, 0, 0, 0]);
            let letters = world.list(&DeadFilter::default()).letters;
            assert!(letters[0].reason.contains("neither true nor false") && letters[0].reason.contains("zero"));
            assert_eq!(world.held(KEYED), (1..=10).map(|number| number * 3).collect::<Vec<_>>());
        });
    }
}

#[test]
fn no_crash_passes_over_what_cannot_be_decided() {
    for (objects, operations) in [false, true].into_iter().flat_map(|objects| (1..60).map(move |at| (objects, at))) {
        run(async {
            let mut world = World::new(operations);
            undecided(&mut world, objects);
            world.start();
            world.append(0, "x", 9).await;
            world.disk.fail_power_at(operations);
            world.append(0, "x", 3).await;
            seconds(8).await;
            world.power_cut(operations).await;
            world.start();
            seconds(100).await;
            world.settle().await;
            world.check_balance();
            for (number, _) in world.acknowledged.clone() {
                let is_dead = world.held(KEYED).contains(&number);
                assert_eq!(is_dead, number % 3 == 0, "event {number}, cut at {operations}, {objects}");
            }
            assert_eq!(counts(&world, KEYED)[1], world.held(KEYED).len() as u64);
        });
    }
}

#[test]
fn who_replays_such_a_letter_decides() {
    run(async {
        let mut world = World::new(85);
        undecided(&mut world, false);
        world.start();
        world.append(0, "x", 9).await;
        world.settle().await;
        let outcome = world.act(DeadAction::Replay, &DeadFilter::default()).await;
        assert_eq!((outcome.stored, outcome.left), (3, 0), "{outcome:?}");
        world.kill(1).await;
        // As if it had been killed before the ledger was saved: the lane reads them again.
        for path in ["/data/ledger.0", "/data/ledger.1"] {
            world.disk.erase(path).unwrap();
        }
        world.start();
        seconds(2).await;
        // The claim on the other store was in the ledger too.
        world.control().accept(FENCED.into(), false).await.unwrap();
        world.settle().await;
        world.check_balance();
        assert_eq!((counts(&world, KEYED), world.keyed.count()), ([6, 0, 3, 0], 6));
        assert_eq!(world.held(KEYED), Vec::<u64>::new());
        world.check_all().await;
    });
}

#[test]
fn a_type_without_routes_of_its_own_has_the_condition_of_all_others() {
    run(async {
        let mut world = world(86, "n % 2 == 0");
        world.append(0, "x", 4).await;
        world.kill(1).await;
        world.routes = routes("n > 1000").with(name("y"), [KEYED.into()]);
        world.start();
        world.append(0, "x", 4).await;
        world.append(0, "y", 4).await;
        world.settle().await;
        world.check_balance();
        assert_eq!(counts(&world, KEYED), [2, 0, 6, 0]);
        assert_eq!(world.keyed.count(), 6);
    });
}

/// Elements that are held against each other: some 5,000 steps for an event, and a third of them has more than there are.
fn costly() -> String {
    let list = (0..70).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    let costly = |elements: &str| format!("[{elements}].all(a, [{elements}].all(b, a + b + n > 0))");
    format!("n % 3 == 0 ? {} : {}", costly(&list), costly(&list[..60]))
}

#[test]
fn what_takes_long_to_judge_holds_up_no_other_lane() {
    for objects in [false, true] {
        run(async {
            let mut world = World::new(87);
            if objects {
                let age_max = Duration::from_secs(5);
                world.objects = Some(ObjectRules {
                    line: Line::Envelope,
                    codec: Codec::None,
                    bytes_max: 4096,
                    records_max: 7,
                    age_max,
                    prefix: Prefix::NONE,
                    apart: None,
                });
            }
            world.shards = 1;
            world.routes = Routes::new().with(name("x"), [KEYED.into()]).with(name("y"), [FENCED.into()]).when(
                Some(name("x")),
                KEYED.into(),
                costly().parse().unwrap(),
            );
            world.start();
            seconds(1).await;
            world.append_request("x", 600, br#"{"n":3}"#).await;
            tokio::time::advance(Duration::from_millis(1)).await;
            assert_eq!(counts(&world, KEYED)[3], 600, "its lane has begun");
            world.append(0, "y", 1).await;
            for _ in 0..20 {
                tokio::time::advance(Duration::from_millis(1)).await;
            }
            assert_eq!((world.fenced.count(), counts(&world, KEYED)[3]), (1, 600), "{objects}");
            world.settle().await;
            world.check_balance();
            assert_eq!(counts(&world, KEYED), [0, 600, 0, 0]);
            assert_eq!(world.held(KEYED).len(), 600);
        });
    }
}

#[test]
fn an_event_that_took_several_turns_is_delivered_once() {
    for objects in [false, true] {
        run(async {
            let mut world = World::new(88);
            undecided(&mut world, objects);
            world.routes = routes(&costly());
            world.start();
            world.append(0, "x", 300).await;
            world.settle().await;
            world.check_balance();
            assert_eq!(counts(&world, KEYED), [200, 100, 0, 0], "{objects}");
            assert_eq!(world.held(KEYED), (1..=100).map(|number| number * 3).collect::<Vec<_>>());
            if !objects {
                world.check_all().await;
            }
        });
    }
}
