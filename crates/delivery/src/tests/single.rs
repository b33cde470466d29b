//! One behaviour each.

use std::time::Duration;

use event::limits::HANDOVER_BYTES_MAX;
use event::{Lane, Origin};
use eventlog::{FilterStep, SequenceRange, WatchRequest};
use sink_testing::MemoryHandle;

use super::world::FENCED;
use super::world::KEYED;
use super::world::World;
use super::world::id;
use super::world::name;
use super::world::run;
use super::world::seconds;
use crate::ledger::SinkRow;
use crate::routes::Routes;
use crate::setup::Begin;
use crate::status::LaneState;

fn row(world: &World, type_name: &str, sink: &str) -> SinkRow {
    let rows = world.rows();
    let row = rows.iter().find(|row| row.type_name == name(type_name)).unwrap();
    row.sinks.iter().find(|row| &*row.sink == sink).unwrap().clone()
}

fn counts(row: &SinkRow) -> (u64, u64, u64, u64) {
    (row.stored, row.dead, row.skipped, row.pending)
}

#[test]
fn configured_types_have_rows_of_zeros_from_the_start() {
    run(async {
        let mut world = World::new(1);
        world.start();
        assert_eq!(counts(&row(&world, "both", FENCED)), (0, 0, 0, 0));
        assert_eq!(counts(&row(&world, "named", KEYED)), (0, 0, 0, 0));
        let none = world.rows().into_iter().find(|row| row.type_name == name("none")).unwrap();
        assert_eq!((none.accepted, none.sinks.len()), (0, 0));
    });
}

#[test]
fn a_busy_lane_writes_few_batches() {
    run(async {
        let mut world = World::new(2);
        world.start();
        seconds(1).await;
        for _ in 0..1000 {
            world.append(0, "other", 1).await;
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        world.settle().await;
        let batches = world.fenced.calls().iter().filter(|call| !call.ids.is_empty()).count();
        assert!((2..=120).contains(&batches), "{batches} batches in a second");
        world.check_all().await;
    });
}

/// Batches that a lane to a writer makes of 1,000 events in a second.
async fn batches_to_a_writer(world: &mut World) -> usize {
    let batches = |world: &World| world.fenced.calls().iter().filter(|call| !call.ids.is_empty()).count();
    let before = batches(world);
    for _ in 0..1000 {
        world.append(0, "other", 1).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    world.settle().await;
    batches(world) - before
}

#[test]
fn a_lane_to_a_writer_gathers_longer_while_no_client_waits_for_the_store() {
    run(async {
        let mut world = World::new(15);
        world.fenced = MemoryHandle::remote();
        world.start();
        seconds(1).await;
        let batches = batches_to_a_writer(&mut world).await;
        assert!((2..=45).contains(&batches), "{batches} batches in a second without a client that waits");

        let outcomes = world.process().log.delivery_watch().clone();
        let later = WatchRequest {
            spans: vec![SequenceRange { shard: 0, first: 2001, last: 2001, only: None }],
            types: vec![name("other")],
        };
        let waiting = tokio::spawn(async move { outcomes.wait(&later).await });
        seconds(1).await;
        let batches = batches_to_a_writer(&mut world).await;
        assert!((60..=120).contains(&batches), "{batches} batches in a second with one");
        waiting.abort();
        world.check_all().await;
    });
}

#[test]
fn a_block_that_is_larger_than_what_a_batch_may_hold_gives_full_batches() {
    run(async {
        let mut world = World::new(13);
        world.start();
        let payload = format!("\"{}\"", "x".repeat(300));
        world.append_request("other", 30_000, payload.as_bytes()).await;
        world.settle().await;
        let sizes: Vec<usize> = world.fenced.calls().iter().map(|call| call.ids.len()).collect();
        assert_eq!(sizes.iter().filter(|size| **size > 0).count(), 3, "{sizes:?}");
        world.check_all().await;
    });
}

#[test]
fn a_fenced_cursor_follows_what_passes_by() {
    run(async {
        let mut world = World::new(3);
        world.start();
        world.append(0, "named", 10).await;
        seconds(4).await;
        assert_eq!(world.fenced.count(), 0);
        assert!(world.fenced.calls().iter().any(|call| call.ids.is_empty() && call.last == 10));
        world.check_all().await;
    });
}

#[test]
fn events_that_a_fenced_store_does_not_take_alone_are_judged_with_later_ones() {
    run(async {
        let mut world = World::new(14);
        world.fenced.doubt_id(id(1));
        world.fenced.doubt_id(id(2));
        world.start();
        world.append(0, "other", 1).await;
        seconds(1_000).await;
        assert_eq!(counts(&row(&world, "other", FENCED)), (0, 0, 0, 1), "nothing tells whose fault it is");
        world.append(0, "other", 1).await;
        seconds(1_000).await;
        assert_eq!(counts(&row(&world, "other", FENCED)), (0, 0, 0, 2));
        world.append(0, "other", 1).await;
        seconds(1).await;
        assert_eq!(counts(&row(&world, "other", FENCED)), (1, 2, 0, 0), "the third is asked for at once");
        world.append(0, "other", 3).await;
        world.settle().await;
        assert_eq!(counts(&row(&world, "other", FENCED)), (4, 2, 0, 0));
        world.check_all().await;
    });
}

#[test]
fn a_store_that_is_down_for_long_is_tried_for_ever() {
    run(async {
        let mut world = World::new(5);
        world.fenced.fail_next(1_000_000);
        world.start();
        world.append(0, "both", 5).await;
        seconds(100_000).await;
        assert_eq!(counts(&row(&world, "both", FENCED)), (0, 0, 0, 5));
        assert_eq!(counts(&row(&world, "both", KEYED)), (5, 0, 0, 0), "the other sink isn't hurt");
        let waiting = |state: LaneState| matches!(state, LaneState::Waiting(_));
        assert!(world.process().lanes.iter().any(|lane| waiting(lane.state())));
        world.fenced.heal();
        seconds(61).await;
        world.settle().await;
        world.check_all().await;
    });
}

#[test]
fn a_route_that_is_new_begins_at_the_end_or_with_the_oldest() {
    for (begin, expected) in [(Begin::End, (3, 0, 10, 0)), (Begin::Oldest, (13, 0, 0, 0))] {
        run(async move {
            let mut world = World::new(6);
            world.routes = Routes::new().with_others([FENCED.into()]);
            world.begin = begin;
            world.start();
            world.append(0, "named", 10).await;
            world.settle().await;
            world.stop().await;
            world.kill(1).await;
            world.routes = Routes::new().with_others([FENCED.into(), KEYED.into()]);
            world.start();
            world.append(0, "named", 3).await;
            world.settle().await;
            world.check_balance();
            assert_eq!(counts(&row(&world, "named", KEYED)), expected, "{begin:?}");
            assert_eq!(counts(&row(&world, "named", FENCED)), (13, 0, 0, 0));
        });
    }
}

#[test]
fn a_route_that_is_gone_holds_its_events_and_skips_later_ones() {
    run(async {
        let mut world = World::new(7);
        world.keyed.fail_next(1_000_000);
        world.start();
        world.append(0, "both", 4).await;
        seconds(2).await;
        let with_both = world.routes.clone();
        world.stop().await;
        world.kill(1).await;
        world.routes = Routes::new().with_others([FENCED.into()]);
        world.start();
        world.append(0, "both", 2).await;
        for _ in 0..60 {
            world.append(0, "other", 30).await;
        }
        seconds(5).await;
        world.check_balance();
        assert_eq!(counts(&row(&world, "both", KEYED)), (0, 0, 2, 4));
        assert_eq!(counts(&row(&world, "both", FENCED)), (6, 0, 0, 0));
        world.stop().await;
        world.kill(2).await;
        world.keyed.heal();
        world.routes = with_both;
        world.start();
        world.settle().await;
        assert_eq!(counts(&row(&world, "both", KEYED)), (6, 0, 0, 0), "what was held goes on");
        world.check_all().await;
    });
}

#[test]
fn a_store_that_lost_everything_gets_it_again_while_it_is_retained() {
    run(async {
        let mut world = World::new(8);
        world.fenced.refuse_id(id(2));
        world.start();
        world.append(0, "other", 20).await;
        world.settle().await;
        seconds(3).await;
        world.kill(1).await;
        world.fenced = sink_testing::MemoryHandle::fenced();
        world.start();
        seconds(1).await;
        world.check_balance();
        world.settle().await;
        assert_eq!(counts(&row(&world, "other", FENCED)), (19, 1, 0, 0));
        world.check_all().await;
    });
}

#[test]
fn a_store_that_lost_what_was_freed_is_not_written_to() {
    run(async {
        let mut world = World::new(9);
        world.start();
        for _ in 0..60 {
            world.append(0, "both", 30).await;
        }
        world.settle().await;
        seconds(5).await;
        assert!(world.process().log.shards()[0].segments().oldest().unwrap() > 1, "segments were freed");
        world.kill(1).await;
        world.fenced = sink_testing::MemoryHandle::fenced();
        world.start();
        world.append(0, "both", 5).await;
        seconds(10).await;
        world.check_balance();
        assert_eq!(world.fenced.count(), 0);
        assert!(
            world.messages().iter().any(|text| text.contains("those between were stored before")),
            "{:?}",
            world.messages()
        );
        assert_eq!(row(&world, "both", KEYED).pending, 0, "the other sink goes on");
        assert_eq!(row(&world, "both", FENCED).pending, 5);
    });
}

/// Where the store can't be asked before it is caught up with, what was accepted meanwhile mustn't be taken for what it has.
#[test]
fn a_store_ahead_of_the_journal_stops_its_lane_however_late_it_answers() {
    run(async {
        for starts in 1..4 {
            let mut world = ahead_of_its_journal(59).await;
            world.fenced.block();
            for start in 0..starts {
                world.kill(start).await;
                world.start();
                world.append(0, "other", 30).await;
            }
            seconds(5).await;
            world.fenced.release();
            seconds(5).await;
            world.check_balance();
            assert_eq!(world.fenced.count(), 20, "nothing is written");
            assert_eq!(row(&world, "other", FENCED).stored, 0);
            assert!(world.process().lanes.iter().any(|lane| matches!(lane.state(), LaneState::Stopped(_))));
        }
    });
}

/// That a store was away over a start is remembered; that it has answered is too, before it gets anything.
#[test]
fn a_store_that_was_away_over_starts_is_not_taken_for_one_that_is_ahead() {
    run(async {
        let mut world = World::new(64);
        world.start();
        world.append(0, "other", 7).await;
        world.settle().await;
        for round in 0..8 {
            world.fenced.block();
            for start in 0..2 {
                world.kill(start).await;
                world.start();
                world.append(0, "other", 20).await;
            }
            let before = world.fenced.count();
            world.fenced.release();
            while world.fenced.count() == before {
                tokio::time::sleep(std::time::Duration::from_micros(100)).await;
            }
            world.kill(round).await;
            world.start();
            world.settle().await;
        }
        world.check_all().await;
    });
}

/// A world whose data directory is as it was before the fenced store got 20 events of it.
async fn ahead_of_its_journal(seed: u64) -> World {
    use journal::disk::Disk;
    let mut world = World::new(seed);
    world.start();
    world.append(0, "other", 20).await;
    world.settle().await;
    let origin = world.process().lanes[0].lane().origin;
    assert_ne!(origin, Origin([0; 16]));
    assert_eq!(world.fenced.position(&Lane { origin, shard: 0, sink: FENCED.into() }), 20);
    // Under the same name: only the origin is left.
    let origin = |copy| world.disk.content(format!("/data/origin.{copy}")).unwrap();
    let (store, origins) = (world.fenced.clone(), [origin(0), origin(1)]);
    world.kill(1).await;
    let mut before = World::new(seed);
    before.fenced = store;
    before.disk.create_directory(std::path::Path::new("/data")).unwrap();
    for (copy, origin) in origins.iter().enumerate() {
        before.disk.put(format!("/data/origin.{copy}"), origin).unwrap();
    }
    before
}

#[test]
fn a_store_ahead_of_the_journal_stops_its_lane_for_good() {
    run(async {
        let mut world = ahead_of_its_journal(10).await;
        world.start();
        seconds(1).await;
        for round in 0..2 {
            world.append(0, "other", 30).await;
            seconds(5).await;
            world.check_balance();
            assert_eq!(world.fenced.count(), 20, "nothing is written");
            assert_eq!(row(&world, "other", FENCED).stored, 0);
            assert!(world.process().lanes.iter().any(|lane| matches!(lane.state(), LaneState::Stopped(_))));
            world.kill(round).await;
            world.start();
            seconds(1).await;
        }
    });
}

#[test]
fn memory_is_flat_while_a_store_is_down() {
    run(async {
        let mut world = World::new(11);
        world.shards = 1;
        world.fenced.block();
        world.start();
        for _ in 0..200 {
            world.append(0, "other", 500).await;
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let held = world.process().log.shards()[0].tail_cache_bytes();
        assert!(held <= HANDOVER_BYTES_MAX, "{held}");
        assert_eq!(world.pending(), 100_000);
        world.fenced.release();
        world.settle().await;
        let largest = world.fenced.calls().iter().map(|call| call.ids.len()).max();
        assert!(largest <= Some(event::limits::DELIVERY_RECORDS_MAX));
        world.check_all().await;
    });
}

#[test]
fn a_ledger_that_cannot_be_saved_frees_nothing_and_loses_nothing() {
    run(async {
        let mut world = World::new(12);
        world.start();
        world.fenced.block();
        for _ in 0..60 {
            world.append(0, "both", 30).await;
        }
        seconds(3).await;
        // So full that the reserve makes no room either.
        world.disk.set_capacity(Some(world.disk.bytes_used() - event::limits::RESERVE_BYTES));
        world.fenced.release();
        world.settle().await;
        seconds(5).await;
        let oldest = |world: &World| world.process().log.shards()[0].segments().oldest();
        assert_eq!(oldest(&world), Some(1));
        let failed = world.messages().iter().filter(|text| text.contains("can't save the ledger")).count();
        assert_eq!(failed, 1, "reported once: {:?}", world.messages());
        world.power_cut(3).await;
        world.disk.set_capacity(None);
        world.start();
        world.settle().await;
        seconds(5).await;
        assert!(oldest(&world) > Some(1), "freed after all");
        world.check_all().await;
    });
}

#[test]
fn on_a_full_disk_the_reserve_lets_the_ledger_be_saved_and_segments_be_freed() {
    run(async {
        let mut world = World::new(13);
        world.start();
        world.fenced.block();
        for _ in 0..60 {
            world.append(0, "both", 30).await;
        }
        seconds(3).await;
        world.disk.set_capacity(Some(world.disk.bytes_used()));
        world.fenced.release();
        world.settle().await;
        seconds(5).await;
        assert!(world.process().log.shards()[0].segments().oldest() > Some(1), "freed");
        world.disk.set_capacity(None);
        seconds(1).await;
        assert!(!world.process().log.disk_guard().is_short());
        let messages = world.messages();
        assert!(messages.len() == 2 && messages[0].contains("no events are taken"), "{messages:?}");
        assert!(messages[1].contains("taken again"), "{messages:?}");
        world.check_all().await;
    });
}

#[test]
fn a_sink_that_takes_nothing_closes_the_gates_of_its_types_and_of_no_others() {
    run(async {
        let mut world = World::new(14);
        world.max_backlog = Some(200_000);
        world.start();
        world.fenced.block();
        let closed = |world: &World| {
            let gates = world.process().log.types().gates();
            gates.into_iter().filter(|(_, gate)| gate.is_closed()).map(|(name, _)| name.to_string()).collect::<Vec<_>>()
        };
        world.append(0, "first", 1).await;
        for _ in 0..60 {
            assert!(closed(&world).is_empty());
            world.append(0, "both", 30).await;
        }
        world.append(1, "named", 30).await;
        seconds(1).await;
        assert_eq!(closed(&world), ["both", "picky", "first"]);
        // A type that is first met now goes there too.
        world.append(0, "later", 1).await;
        seconds(1).await;
        assert_eq!(closed(&world), ["both", "picky", "first", "later"]);
        world.kill(1).await;
        world.start();
        assert_eq!(closed(&world), ["both", "picky", "first", "later"], "a start knows it before anything is taken");
        world.fenced.release();
        world.settle().await;
        seconds(1).await;
        assert!(closed(&world).is_empty());
        let messages = world.messages();
        assert!(messages.iter().any(|text| text.contains("as much waits for sink fenced as may")), "{messages:?}");
        assert!(messages.last().is_some_and(|text| text.contains("taken again")), "{messages:?}");
        world.check_all().await;
    });
}

#[test]
fn events_whose_segment_is_gone_are_passed_over_and_those_behind_are_delivered() {
    run(async {
        let mut world = World::new(15);
        world.start();
        world.fenced.block();
        world.keyed.block();
        for _ in 0..60 {
            world.append(0, "both", 30).await;
        }
        seconds(3).await;
        world.kill(1).await;
        world.disk.erase("/data/journal/0000/0000000000000001.segment").unwrap();
        world.fenced.release();
        world.keyed.release();
        world.start();
        seconds(10).await;
        let lost = 60 * 30 - world.fenced.count();
        assert!(lost > 0 && lost < 60 * 30, "{lost}");
        assert_eq!(world.keyed.count(), world.fenced.count());
        assert_eq!(world.messages().iter().filter(|text| text.contains("are missing in the journal")).count(), 2);
        assert_eq!(row(&world, "both", FENCED).pending, lost as u64, "what is lost stays to be seen");
    });
}

/// Damages the newer of the two generations of the ledger.
fn damage_newer_ledger(world: &World) {
    let paths = ["/data/ledger.0", "/data/ledger.1"];
    let version =
        |path: &&str| world.disk.content(path).map_or(0, |file| u64::from_le_bytes(file[8..16].try_into().unwrap()));
    let newer = paths.into_iter().max_by_key(version).unwrap();
    world.disk.flip_bit(newer, 500).unwrap();
}

#[test]
fn the_older_generation_of_the_ledger_finds_its_events() {
    for milliseconds in (0..3000).step_by(100) {
        run(async move {
            let mut world = World::new(14);
            world.start();
            for _ in 0..3 {
                for _ in 0..40 {
                    world.append(0, "both", 30).await;
                }
                tokio::time::sleep(std::time::Duration::from_millis(milliseconds)).await;
            }
            world.kill(1).await;
            damage_newer_ledger(&world);
            world.start();
            world.settle().await;
            assert!(world.messages().iter().any(|text| text.contains("damaged")));
            world.check_all().await;
        });
    }
}

#[test]
fn what_steps_took_out_is_counted_through_crashes() {
    run(async {
        let mut world = World::new(90);
        world.start();
        let step = FilterStep { type_name: name("x"), step: 2, operation: "filter".into() };
        let count = |world: &World, events: u64| {
            *world.process().log.accepted().hold().filtered.entry(step.clone()).or_default() += events;
        };
        let counted = |world: &World| world.process().ledger.snapshot_with_filtered().1;
        count(&world, 3);
        seconds(1).await;
        for seed in 0..5 {
            if seed % 2 == 0 {
                world.kill(seed).await
            } else {
                world.power_cut(seed).await
            }
            world.start();
            assert_eq!(counted(&world), [(step.clone(), 3 + 4 * seed)]);
            count(&world, 4);
            seconds(1).await;
        }
        world.stop().await;
    });
}
