//! Events that a keyed store refuses for now while it takes others.

use std::time::Duration;

use journal::simulated_disk::SimulatedDisk;

use super::world::FENCED;
use super::world::KEYED;
use super::world::World;
use super::world::id;
use super::world::name;
use super::world::run;
use super::world::seconds;
use crate::ledger::SinkRow;
use crate::routes::Routes;

fn row(world: &World) -> SinkRow {
    let rows = world.rows();
    let row = rows.iter().find(|row| row.type_name == name("named")).unwrap();
    row.sinks.iter().find(|row| &*row.sink == KEYED).unwrap().clone()
}

/// Stored, dead and pending.
fn counts(world: &World) -> (u64, u64, u64) {
    let row = row(world);
    assert_eq!(row.skipped, 0);
    (row.stored, row.dead, row.pending)
}

fn set_aside(world: &World) -> (u64, String) {
    let (count, last) = world.process().office.set_aside(KEYED, &name("named"));
    (count, last.map(|last| last.reason).unwrap_or_default())
}

/// A server with five events of one shard, of which the store refuses the third for now.
async fn with_one_aside(seed: u64) -> World {
    let mut world = World::new(seed);
    world.shards = 1;
    world.keyed.retry_id(id(3));
    world.start();
    world.append(0, "named", 5).await;
    seconds(2).await;
    world
}

#[test]
fn an_event_that_is_refused_for_now_holds_up_no_other_and_is_named() {
    run(async {
        let mut world = with_one_aside(101).await;
        assert_eq!(counts(&world), (4, 0, 1));
        let (count, reason) = set_aside(&world);
        assert_eq!(count, 1);
        assert!(reason.contains(&id(3).to_string()) && reason.contains("told to take event"), "{reason}");
        assert_eq!(world.reported("1 event(s) of type named set aside"), 1);
        assert!(world.messages().iter().any(|message| message.contains(&id(3).to_string())));
        world.append(0, "named", 10_000).await;
        seconds(10).await;
        assert_eq!(counts(&world), (10_004, 0, 1));
        world.keyed.heal();
        world.settle().await;
        assert_eq!((counts(&world), set_aside(&world).0), ((10_005, 0, 0), 0));
        world.check_all().await;
    });
}

#[test]
fn a_drain_waits_for_what_is_set_aside() {
    run(async {
        let mut world = with_one_aside(109).await;
        assert!(!world.drain(Duration::from_secs(300)).await);
        assert_eq!(counts(&world), (4, 0, 1));
        world.keyed.heal();
        assert!(world.drain(Duration::from_secs(300)).await);
        world.kill(109).await;
        world.start();
        assert_eq!((counts(&world), set_aside(&world).0), ((5, 0, 0), 0));
        world.settle().await;
        world.check_all().await;
    });
}

#[test]
fn a_drain_waits_for_what_an_earlier_process_has_set_aside() {
    run(async {
        let mut world = with_one_aside(110).await;
        world.stop().await;
        world.start();
        assert!(!world.drain(Duration::from_secs(300)).await, "the lane connects first");
        world.keyed.heal();
        assert!(world.drain(Duration::from_secs(300)).await);
        world.start();
        assert_eq!((counts(&world), set_aside(&world).0), ((5, 0, 0), 0));
        world.settle().await;
        world.check_all().await;
    });
}

#[test]
fn an_event_that_comes_alone_waits_for_those_that_come_later() {
    run(async {
        let mut world = World::new(102);
        world.shards = 1;
        world.keyed.retry_id(id(1));
        world.start();
        world.append(0, "named", 1).await;
        seconds(1000).await;
        assert_eq!((counts(&world), set_aside(&world).0), ((0, 0, 1), 0), "the store may be broken");
        world.append(0, "named", 3).await;
        seconds(3).await;
        assert_eq!((counts(&world), set_aside(&world).0), ((3, 0, 1), 1));
        world.keyed.heal();
        world.settle().await;
        world.check_all().await;
    });
}

#[test]
fn a_store_that_refuses_everything_has_nothing_set_aside() {
    run(async {
        let mut world = World::new(103);
        world.shards = 1;
        (1..=300).for_each(|number| world.keyed.retry_id(id(number)));
        world.start();
        for _ in 0..100 {
            world.append(0, "named", 3).await;
            seconds(60).await;
        }
        assert_eq!((counts(&world), set_aside(&world).0), ((0, 0, 300), 0));
        assert!(world.keyed.calls().iter().all(|call| call.ids.len() <= 64), "it isn't sent all of it each time");
        world.keyed.heal();
        world.settle().await;
        world.check_all().await;
    });
}

#[test]
fn what_is_set_aside_is_a_dead_letter_after_an_hour_of_refusals() {
    run(async {
        let mut world = with_one_aside(104).await;
        seconds(3500).await;
        assert_eq!(counts(&world), (4, 0, 1));
        seconds(250).await;
        assert_eq!((counts(&world), set_aside(&world).0), ((4, 1, 0), 0));
        assert_eq!(world.held(KEYED), [3]);
        world.check_all().await;
    });
}

#[test]
fn an_outage_isn_t_held_against_what_is_set_aside() {
    run(async {
        let mut world = with_one_aside(105).await;
        seconds(1800).await;
        world.keyed.fail_next(1_000_000);
        seconds(7200).await;
        world.keyed.fail_next(0);
        seconds(1800).await;
        assert_eq!(counts(&world), (4, 0, 1));
        seconds(2000).await;
        assert_eq!(counts(&world), (4, 1, 0));
        world.check_all().await;
    });
}

#[test]
fn a_restart_at_any_moment_counts_it_once() {
    for pause in 0..40_u64 {
        run(async move {
            let mut world = World::new(200 + pause);
            world.shards = 1;
            world.keyed.retry_id(id(3));
            world.start();
            world.append(0, "named", 5).await;
            tokio::time::sleep(std::time::Duration::from_millis(pause * 15)).await;
            if pause % 2 == 0 {
                world.power_cut(pause).await
            } else {
                world.kill(pause).await
            }
            world.start();
            seconds(3).await;
            world.check_balance();
            assert_eq!((counts(&world), set_aside(&world).0), ((4, 0, 1), 1), "{pause}");
            world.keyed.heal();
            tokio::time::sleep(std::time::Duration::from_millis(pause * 5)).await;
            world.power_cut(pause + 1).await;
            world.start();
            world.settle().await;
            assert_eq!(counts(&world), (5, 0, 0), "{pause}");
            world.check_all().await;
        });
    }
}

#[test]
fn a_reload_keeps_what_is_set_aside_and_tries_it_at_once() {
    run(async {
        let mut world = with_one_aside(106).await;
        seconds(600).await;
        world.keyed.heal();
        world.change(world.routes.clone()).await.unwrap();
        seconds(1).await;
        assert_eq!(counts(&world), (5, 0, 0));
        world.check_all().await;
    });
}

#[test]
fn segments_behind_it_are_freed_and_a_copy_of_the_files_has_it() {
    run(async {
        let mut world = with_one_aside(107).await;
        let payload = format!("\"{}\"", "x".repeat(3000));
        for _ in 0..8 {
            world.append_request("named", 20, payload.as_bytes()).await;
            seconds(2).await;
        }
        assert!(world.process().log.shards()[0].segments().oldest() > Some(5), "its own segment is freed");
        assert_eq!(counts(&world), (164, 0, 1));
        world.stop().await;
        let copy: SimulatedDisk = world.disk.fork(3);
        world.process = None;
        world.disk = copy;
        world.start();
        seconds(1).await;
        assert_eq!((counts(&world), set_aside(&world).0), ((164, 0, 1), 1));
        world.keyed.heal();
        world.settle().await;
        assert_eq!(counts(&world), (165, 0, 0));
        assert_eq!(world.keyed.get(id(3)).unwrap().payload, b"{\"n\":3}");
        assert_eq!(world.keyed.count(), 165);
    });
}

#[test]
fn a_route_that_is_given_up_takes_what_is_set_aside_with_it() {
    run(async {
        let mut world = with_one_aside(108).await;
        let routes = world.routes.clone();
        world.change(Routes::new().with_others([FENCED.into()])).await.unwrap();
        assert_eq!(counts(&world), (4, 0, 1));
        let given_up = world.control().give_up(KEYED.into(), None).await.unwrap();
        assert_eq!(given_up.routes, [(name("named"), 1)]);
        assert_eq!(set_aside(&world).0, 0);
        world.keyed.heal();
        world.change(routes).await.unwrap();
        world.append(0, "named", 1).await;
        seconds(100).await;
        world.check_balance();
        let row = row(&world);
        assert_eq!((row.stored, row.skipped, row.pending), (5, 1, 0));
        assert_eq!(world.keyed.get(id(3)), None);
    });
}

#[test]
fn a_route_that_is_out_for_a_while_keeps_it() {
    run(async {
        let mut world = with_one_aside(109).await;
        let routes = world.routes.clone();
        world.change(Routes::new().with_others([FENCED.into()])).await.unwrap();
        world.append(0, "other", 2).await;
        world.power_cut(2).await;
        world.routes = routes;
        world.start();
        seconds(5).await;
        assert_eq!((counts(&world), set_aside(&world).0), ((4, 0, 1), 1));
        world.keyed.heal();
        world.settle().await;
        assert_eq!(counts(&world), (5, 0, 0));
        world.check_all().await;
    });
}

#[test]
fn with_as_much_set_aside_as_may_be_the_lane_waits_and_says_so() {
    run(async {
        let mut world = World::new(110);
        world.shards = 1;
        let payload = format!("\"{}\"", "x".repeat(900_000));
        // Of two events one is refused for now.
        (1..=60).filter(|number| number % 2 == 0).for_each(|number| world.keyed.retry_id(id(number)));
        world.start();
        for _ in 0..30 {
            world.append_request("named", 2, payload.as_bytes()).await;
        }
        seconds(100).await;
        let (count, _) = set_aside(&world);
        assert!((17..=18).contains(&count), "{count} of 16 MiB");
        assert!(row(&world).pending > count);
        assert!(world.reported("as many events are set aside as may be") >= 1, "{:?}", world.messages());
        world.keyed.heal();
        world.settle().await;
        assert_eq!(counts(&world), (60, 0, 0));
        world.check_all().await;
    });
}

#[test]
fn who_waits_for_it_to_be_stored_is_told_when_it_is() {
    run(async {
        let mut world = with_one_aside(111).await;
        let outcomes = world.process().log.delivery_watch().clone();
        let asked = |first, last| eventlog::WatchRequest {
            spans: vec![eventlog::SequenceRange { shard: 0, first, last, only: None }],
            types: vec![name("named")],
        };
        let pending = |first, last| outcomes.status_source().unwrap().pending(&asked(first, last)).len();
        assert_eq!((pending(1, 2), pending(3, 3), pending(1, 5), pending(4, 5)), (0, 1, 1, 0));
        world.keyed.heal();
        let all = asked(1, 5);
        tokio::time::timeout(std::time::Duration::from_secs(120), outcomes.wait(&all)).await.unwrap();
        assert_eq!(pending(1, 5), 0);
        world.check_all().await;
    });
}

#[test]
fn a_lower_revision_isn_t_sent_behind_a_higher_one() {
    run(async {
        let mut world = World::new(112);
        world.shards = 1;
        world.keyed.retry_id(id(900));
        world.start();
        world.append_revision(900, 1).await;
        world.append(0, "named", 3).await;
        seconds(900).await;
        assert_eq!((counts(&world), set_aside(&world).0), ((3, 0, 1), 1));
        world.keyed.heal();
        world.append_revision(900, 2).await;
        seconds(200).await;
        assert_eq!(counts(&world), (5, 0, 0));
        let calls = world.keyed.calls();
        let last = calls.iter().rfind(|call| call.ids.contains(&id(900))).unwrap();
        assert_eq!(last.last, 5, "the higher revision was sent last");
        assert_eq!(world.keyed.get(id(900)).unwrap().revision, Some(2));
    });
}

#[test]
fn a_full_batch_that_is_all_to_blame_is_told_from_a_store_that_takes_nothing() {
    run(async {
        let mut world = World::new(113);
        world.shards = 1;
        let payload = format!("\"{}\"", "x".repeat(900_000));
        (1..=10).for_each(|number| world.keyed.retry_id(id(number)));
        world.start();
        world.append_request("named", 10, payload.as_bytes()).await;
        seconds(100).await;
        assert_eq!((counts(&world), set_aside(&world).0), ((0, 0, 10), 0));
        world.append(0, "named", 5).await;
        seconds(200).await;
        assert_eq!((counts(&world), set_aside(&world).0), ((5, 0, 10), 10));
        world.keyed.heal();
        world.settle().await;
        world.check_all().await;
    });
}

#[test]
fn what_is_set_aside_ends_although_there_are_as_many_dead_letters_as_there_may_be() {
    run(async {
        let mut world = World::new(116);
        world.shards = 1;
        world.max_dead_letters = Some(1);
        world.keyed.refuse_id(id(1));
        world.keyed.retry_id(id(3));
        world.start();
        world.append(0, "named", 5).await;
        seconds(2).await;
        assert_eq!((counts(&world), set_aside(&world).0), ((3, 1, 1), 1));
        world.keyed.heal();
        seconds(120).await;
        assert_eq!((counts(&world), set_aside(&world).0), ((4, 1, 0), 0));
    });
}

#[test]
fn an_outage_is_not_held_against_what_is_set_aside() {
    run(async {
        let mut world = with_one_aside(117).await;
        world.append(0, "named", 1).await;
        world.keyed.fail_next(usize::MAX);
        world.append(0, "named", 1).await;
        for _ in 0..70 {
            seconds(60).await;
        }
        assert_eq!((counts(&world), set_aside(&world).0), ((4, 0, 3), 1));
        // The store answers again, and still refuses the one.
        world.keyed.fail_next(0);
        seconds(200).await;
        assert_eq!((counts(&world), set_aside(&world).0), ((6, 0, 1), 1));
    });
}
