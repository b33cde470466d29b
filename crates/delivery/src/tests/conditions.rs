//! Routes with conditions: each event is evaluated with the condition at its position in the journal, regardless of
//! later changes of the process, the store or the configuration.

use dead_letters::{DeadAction, DeadFilter};
use ledger::{Routes, SinkRow};
use objects::Line;
use objects::{Codec, ObjectFormat, Prefix, SideFolder};
use std::time::Duration;

use super::harness::FENCED;
use super::harness::Harness;
use super::harness::KEYED;
use super::harness::id;
use super::harness::name;
use super::harness::run;
use super::harness::seconds;

fn counts(harness: &Harness, sink: &str) -> [u64; 4] {
    let rows = harness.rows();
    let row = rows.iter().find(|row| row.type_name.as_str() == "x").unwrap();
    let SinkRow { stored, dead, skipped, pending, .. } =
        row.sinks.iter().find(|row| &*row.sink == sink).cloned().unwrap();
    [stored, dead, skipped, pending]
}

/// All types go to both sinks, to the keyed one by a condition.
fn routes(condition: &str) -> Routes {
    Routes::new().with_others([FENCED.into(), KEYED.into()]).when(None, KEYED.into(), condition.parse().unwrap())
}

fn harness(seed: u64, condition: &str) -> Harness {
    let mut harness = Harness::new(seed);
    harness.shards = 1;
    harness.routes = routes(condition);
    harness.start();
    harness
}

#[test]
fn events_are_chosen_by_their_payloads() {
    run(async {
        let mut harness = harness(80, "n % 5 == 0");
        harness.append(0, "x", 50).await;
        harness.wait_until_settled().await;
        harness.check_balance();
        assert_eq!((counts(&harness, FENCED), counts(&harness, KEYED)), ([50, 0, 0, 0], [10, 0, 40, 0]));
        assert!(harness.keyed.get(id(5)).is_some() && harness.keyed.get(id(6)).is_none());
        harness.check_all().await;
    });
}

#[test]
fn changed_condition_applies_to_later_events() {
    run(async {
        let mut harness = harness(81, "n % 2 == 0");
        harness.keyed.fail_next(1_000_000);
        harness.append(0, "x", 10).await;
        harness.change(routes("n % 10 == 0")).await.unwrap();
        harness.append(0, "x", 10).await;
        harness.kill(1).await;
        // A start with another file is a change like any other.
        harness.routes = routes("n > 1000");
        harness.start();
        harness.append(0, "x", 10).await;
        seconds(2).await;
        harness.kill(2).await;
        harness.routes = Routes::new().with_others([FENCED.into(), KEYED.into()]);
        harness.start();
        harness.append(0, "x", 10).await;
        harness.keyed.heal();
        harness.wait_until_settled().await;
        harness.check_balance();
        assert_eq!(counts(&harness, KEYED), [5 + 1 + 10, 0, 5 + 9 + 10, 0]);
        harness.check_all().await;
    });
}

#[test]
fn returning_route_applies_its_old_condition_to_backlog() {
    run(async {
        let mut harness = harness(82, "n % 2 == 0");
        harness.keyed.fail_next(1_000_000);
        harness.append(0, "x", 10).await;
        harness.change(Routes::new().with_others([FENCED.into()])).await.unwrap();
        harness.kill(1).await;
        harness.routes = routes("n % 3 == 0");
        harness.start();
        harness.append(0, "x", 3).await;
        harness.keyed.heal();
        harness.wait_until_settled().await;
        harness.check_balance();
        assert_eq!(counts(&harness, KEYED), [5 + 1, 0, 5 + 2, 0]);
    });
}

#[test]
fn a_store_that_is_set_back_gets_the_same_events_again() {
    run(async {
        let mut harness = Harness::new(83);
        harness.shards = 1;
        harness.routes =
            Routes::new().with_others([FENCED.into()]).when(None, FENCED.into(), "n <= 4".parse().unwrap());
        harness.start();
        harness.append(0, "x", 10).await;
        harness.wait_until_settled().await;
        harness.change(Routes::new().with_others([FENCED.into()])).await.unwrap();
        harness.append(0, "x", 10).await;
        harness.wait_until_settled().await;
        harness.kill(1).await;
        harness.fenced = sink_testing::MemoryHandle::fenced();
        harness.start();
        harness.wait_until_settled().await;
        seconds(2).await;
        harness.check_balance();
        assert_eq!((counts(&harness, FENCED), harness.fenced.count()), ([14, 0, 6, 0], 14));
    });
}

/// Each event whose number is divisible by three is undecided. No event is lost in the end.
fn undecided(harness: &mut Harness, objects: bool) {
    if objects {
        let age_max = Duration::from_secs(5);
        harness.objects = Some(ObjectFormat {
            line: Line::Envelope,
            codec: Codec::None,
            bytes_max: 4096,
            records_max: 7,
            age_max,
            prefix: Prefix::NONE,
            apart: None,
            manifests: SideFolder::manifests(),
        });
    }
    harness.shards = 1;
    harness.routes = routes("60 / (n % 3) > 30");
}

#[test]
fn undecided_event_becomes_a_dead_letter() {
    for objects in [false, true] {
        run(async {
            let mut harness = Harness::new(84);
            undecided(&mut harness, objects);
            harness.start();
            harness.append(0, "x", 30).await;
            harness.wait_until_settled().await;
            harness.check_balance();
            assert_eq!(counts(&harness, KEYED), [10, 10, 10, 0], "{objects}");
            assert_eq!(counts(&harness, FENCED), [30, 0, 0, 0]);
            let dead_letters = harness.list(&DeadFilter::default()).letters;
            assert!(
                dead_letters[0].reason.contains("neither true nor false") && dead_letters[0].reason.contains("zero")
            );
            assert_eq!(harness.held(KEYED), (1..=10).map(|number| number * 3).collect::<Vec<_>>());
        });
    }
}

#[test]
fn crash_does_not_skip_undecided_events() {
    for (objects, operations) in [false, true].into_iter().flat_map(|objects| (1..60).map(move |at| (objects, at))) {
        run(async {
            let mut harness = Harness::new(operations);
            undecided(&mut harness, objects);
            harness.start();
            harness.append(0, "x", 9).await;
            harness.disk.fail_power_at(operations);
            harness.append(0, "x", 3).await;
            seconds(8).await;
            harness.power_cut(operations).await;
            harness.start();
            seconds(100).await;
            harness.wait_until_settled().await;
            harness.check_balance();
            for (number, _) in harness.acknowledged.clone() {
                let is_dead = harness.held(KEYED).contains(&number);
                assert_eq!(is_dead, number % 3 == 0, "event {number}, cut at {operations}, {objects}");
            }
            assert_eq!(counts(&harness, KEYED)[1], harness.held(KEYED).len() as u64);
        });
    }
}

#[test]
fn replay_sends_an_undecided_event() {
    run(async {
        let mut harness = Harness::new(85);
        undecided(&mut harness, false);
        harness.start();
        harness.append(0, "x", 9).await;
        harness.wait_until_settled().await;
        let outcome = harness.act(DeadAction::Replay, &DeadFilter::default()).await;
        assert_eq!((outcome.stored, outcome.left), (3, 0), "{outcome:?}");
        harness.kill(1).await;
        // As if it had been killed before the ledger was saved: the lane reads them again.
        for path in ["/data/ledger.0", "/data/ledger.1"] {
            harness.disk.erase(path).unwrap();
        }
        harness.start();
        seconds(2).await;
        // The claim on the other store was in the ledger too.
        harness.control().accept(FENCED.into(), false, None).await.unwrap();
        harness.wait_until_settled().await;
        harness.check_balance();
        assert_eq!((counts(&harness, KEYED), harness.keyed.count()), ([6, 0, 3, 0], 6));
        assert_eq!(harness.held(KEYED), Vec::<u64>::new());
        harness.check_all().await;
    });
}

#[test]
fn type_without_routes_gets_the_default_condition() {
    run(async {
        let mut harness = harness(86, "n % 2 == 0");
        harness.append(0, "x", 4).await;
        harness.kill(1).await;
        harness.routes = routes("n > 1000").with(name("y"), [KEYED.into()]);
        harness.start();
        harness.append(0, "x", 4).await;
        harness.append(0, "y", 4).await;
        harness.wait_until_settled().await;
        harness.check_balance();
        assert_eq!(counts(&harness, KEYED), [2, 0, 6, 0]);
        assert_eq!(harness.keyed.count(), 6);
    });
}

/// Elements that are compared with each other: some 5,000 steps for an event, and a third of them has more than there
/// are.
fn costly() -> String {
    let list = (0..70).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    let costly = |elements: &str| format!("[{elements}].all(a, [{elements}].all(b, a + b + n > 0))");
    format!("n % 3 == 0 ? {} : {}", costly(&list), costly(&list[..60]))
}

#[test]
fn slow_condition_does_not_delay_other_lanes() {
    for objects in [false, true] {
        run(async {
            let mut harness = Harness::new(87);
            if objects {
                let age_max = Duration::from_secs(5);
                harness.objects = Some(ObjectFormat {
                    line: Line::Envelope,
                    codec: Codec::None,
                    bytes_max: 4096,
                    records_max: 7,
                    age_max,
                    prefix: Prefix::NONE,
                    apart: None,
                    manifests: SideFolder::manifests(),
                });
            }
            harness.shards = 1;
            harness.routes = Routes::new().with(name("x"), [KEYED.into()]).with(name("y"), [FENCED.into()]).when(
                Some(name("x")),
                KEYED.into(),
                costly().parse().unwrap(),
            );
            harness.start();
            seconds(1).await;
            harness.append_request("x", 600, br#"{"n":3}"#).await;
            tokio::time::advance(Duration::from_millis(1)).await;
            assert_eq!(counts(&harness, KEYED)[3], 600, "its lane has begun");
            harness.append(0, "y", 1).await;
            for _ in 0..20 {
                tokio::time::advance(Duration::from_millis(1)).await;
            }
            assert_eq!((harness.fenced.count(), counts(&harness, KEYED)[3]), (1, 600), "{objects}");
            harness.wait_until_settled().await;
            harness.check_balance();
            assert_eq!(counts(&harness, KEYED), [0, 600, 0, 0]);
            assert_eq!(harness.held(KEYED).len(), 600);
        });
    }
}

#[test]
fn event_judged_over_several_slices_is_delivered_once() {
    for objects in [false, true] {
        run(async {
            let mut harness = Harness::new(88);
            undecided(&mut harness, objects);
            harness.routes = routes(&costly());
            harness.start();
            harness.append(0, "x", 300).await;
            harness.wait_until_settled().await;
            harness.check_balance();
            assert_eq!(counts(&harness, KEYED), [200, 100, 0, 0], "{objects}");
            assert_eq!(harness.held(KEYED), (1..=100).map(|number| number * 3).collect::<Vec<_>>());
            if !objects {
                harness.check_all().await;
            }
        });
    }
}
