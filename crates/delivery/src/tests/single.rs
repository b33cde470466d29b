//! One behaviour each.

use std::time::Duration;

use event::{Lane, Origin};
use eventlog::{FilterStep, SequenceRange, WatchRequest};
use ledger::{Begin, Routes, SinkRow};
use limits::TAIL_CACHE_BYTES_MAX;
use sink_testing::MemoryHandle;

use super::harness::FENCED;
use super::harness::Harness;
use super::harness::KEYED;
use super::harness::id;
use super::harness::name;
use super::harness::run;
use super::harness::seconds;
use crate::status::LaneState;

fn row(harness: &Harness, type_name: &str, sink: &str) -> SinkRow {
    let rows = harness.rows();
    let row = rows.iter().find(|row| row.type_name == name(type_name)).unwrap();
    row.sinks.iter().find(|row| &*row.sink == sink).unwrap().clone()
}

fn counts(row: &SinkRow) -> (u64, u64, u64, u64) {
    (row.stored, row.dead, row.skipped, row.pending)
}

#[test]
fn configured_types_have_rows_of_zeros_from_the_start() {
    run(async {
        let mut harness = Harness::new(1);
        harness.start();
        assert_eq!(counts(&row(&harness, "both", FENCED)), (0, 0, 0, 0));
        assert_eq!(counts(&row(&harness, "named", KEYED)), (0, 0, 0, 0));
        let none = harness.rows().into_iter().find(|row| row.type_name == name("none")).unwrap();
        assert_eq!((none.accepted, none.sinks.len()), (0, 0));
    });
}

#[test]
fn a_busy_lane_writes_few_batches() {
    run(async {
        let mut harness = Harness::new(2);
        harness.start();
        seconds(1).await;
        for _ in 0..1000 {
            harness.append(0, "other", 1).await;
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        harness.wait_until_settled().await;
        let batches = harness.fenced.calls().iter().filter(|call| !call.ids.is_empty()).count();
        assert!((2..=120).contains(&batches), "{batches} batches in a second");
        harness.check_all().await;
    });
}

/// The batches that a lane writes for 1,000 events in a second.
async fn batches_of_a_second(harness: &mut Harness) -> usize {
    let batches = |harness: &Harness| harness.fenced.calls().iter().filter(|call| !call.ids.is_empty()).count();
    let before = batches(harness);
    for _ in 0..1000 {
        harness.append(0, "other", 1).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    harness.wait_until_settled().await;
    batches(harness) - before
}

#[test]
fn lane_sends_immediately_while_a_client_waits_for_it() {
    for (handle, most) in [(MemoryHandle::remote(), 45), (MemoryHandle::fenced(), 120)] {
        run(async {
            let mut harness = Harness::new(15);
            harness.fenced = handle;
            harness.start();
            seconds(1).await;
            let batches = batches_of_a_second(&mut harness).await;
            assert!((2..=most).contains(&batches), "{batches} batches in a second without a client that waits");

            let outcomes = harness.process().log.delivery_watch().clone();
            let later = WatchRequest {
                spans: vec![SequenceRange { shard: 0, first: 2001, last: 2001, only: None }],
                types: vec![name("other")],
            };
            let waiting = tokio::spawn(async move { outcomes.wait(&later).await });
            seconds(1).await;
            let batches = batches_of_a_second(&mut harness).await;
            assert!(batches > 500, "{batches} batches in a second with one");
            waiting.abort();
            seconds(1).await;
            let batches = batches_of_a_second(&mut harness).await;
            assert!((2..=most).contains(&batches), "{batches} batches in a second after the client has left");
            harness.check_all().await;
        });
    }
}

#[test]
fn oversized_block_gives_full_batches() {
    run(async {
        let mut harness = Harness::new(13);
        harness.start();
        let payload = format!("\"{}\"", "x".repeat(300));
        harness.append_request("other", 30_000, payload.as_bytes()).await;
        harness.wait_until_settled().await;
        let sizes: Vec<usize> = harness.fenced.calls().iter().map(|call| call.ids.len()).collect();
        assert_eq!(sizes.iter().filter(|size| **size > 0).count(), 3, "{sizes:?}");
        harness.check_all().await;
    });
}

#[test]
fn transactional_cursor_follows_events_of_other_sinks() {
    run(async {
        let mut harness = Harness::new(3);
        harness.start();
        harness.append(0, "named", 10).await;
        seconds(4).await;
        assert_eq!(harness.fenced.count(), 0);
        assert!(harness.fenced.calls().iter().any(|call| call.ids.is_empty() && call.last == 10));
        harness.check_all().await;
    });
}

#[test]
fn transactional_store_judges_events_with_later_ones() {
    run(async {
        let mut harness = Harness::new(14);
        harness.fenced.doubt_id(id(1));
        harness.fenced.doubt_id(id(2));
        harness.start();
        harness.append(0, "other", 1).await;
        seconds(1_000).await;
        assert_eq!(counts(&row(&harness, "other", FENCED)), (0, 0, 0, 1), "nothing shows what is at fault");
        harness.append(0, "other", 1).await;
        seconds(1_000).await;
        assert_eq!(counts(&row(&harness, "other", FENCED)), (0, 0, 0, 2));
        harness.append(0, "other", 1).await;
        seconds(1).await;
        assert_eq!(counts(&row(&harness, "other", FENCED)), (1, 2, 0, 0), "the third is asked for immediately");
        harness.append(0, "other", 3).await;
        harness.wait_until_settled().await;
        assert_eq!(counts(&row(&harness, "other", FENCED)), (4, 2, 0, 0));
        harness.check_all().await;
    });
}

#[test]
fn unavailable_store_is_retried_forever() {
    run(async {
        let mut harness = Harness::new(5);
        harness.fenced.fail_next(1_000_000);
        harness.start();
        harness.append(0, "both", 5).await;
        seconds(100_000).await;
        assert_eq!(counts(&row(&harness, "both", FENCED)), (0, 0, 0, 5));
        assert_eq!(counts(&row(&harness, "both", KEYED)), (5, 0, 0, 0), "the other sink isn't hurt");
        let waiting = |state: LaneState| matches!(state, LaneState::Waiting(_));
        assert!(harness.process().lanes.iter().any(|lane| waiting(lane.state())));
        harness.fenced.heal();
        seconds(61).await;
        harness.wait_until_settled().await;
        harness.check_all().await;
    });
}

#[test]
fn new_route_begins_at_end_or_oldest() {
    for (begin, expected) in [(Begin::End, (3, 0, 10, 0)), (Begin::Oldest, (13, 0, 0, 0))] {
        run(async move {
            let mut harness = Harness::new(6);
            harness.routes = Routes::new().with_others([FENCED.into()]);
            harness.begin = begin;
            harness.start();
            harness.append(0, "named", 10).await;
            harness.wait_until_settled().await;
            harness.stop().await;
            harness.kill(1).await;
            harness.routes = Routes::new().with_others([FENCED.into(), KEYED.into()]);
            harness.start();
            harness.append(0, "named", 3).await;
            harness.wait_until_settled().await;
            harness.check_balance();
            assert_eq!(counts(&row(&harness, "named", KEYED)), expected, "{begin:?}");
            assert_eq!(counts(&row(&harness, "named", FENCED)), (13, 0, 0, 0));
        });
    }
}

#[test]
fn removed_route_keeps_backlog_and_skips_later_events() {
    run(async {
        let mut harness = Harness::new(7);
        harness.keyed.fail_next(1_000_000);
        harness.start();
        harness.append(0, "both", 4).await;
        seconds(2).await;
        let with_both = harness.routes.clone();
        harness.stop().await;
        harness.kill(1).await;
        harness.routes = Routes::new().with_others([FENCED.into()]);
        harness.start();
        harness.append(0, "both", 2).await;
        for _ in 0..60 {
            harness.append(0, "other", 30).await;
        }
        seconds(5).await;
        harness.check_balance();
        assert_eq!(counts(&row(&harness, "both", KEYED)), (0, 0, 2, 4));
        assert_eq!(counts(&row(&harness, "both", FENCED)), (6, 0, 0, 0));
        harness.stop().await;
        harness.kill(2).await;
        harness.keyed.heal();
        harness.routes = with_both;
        harness.start();
        harness.wait_until_settled().await;
        assert_eq!(counts(&row(&harness, "both", KEYED)), (6, 0, 0, 0), "the backlog continues");
        harness.check_all().await;
    });
}

#[test]
fn empty_store_gets_retained_events_again() {
    run(async {
        let mut harness = Harness::new(8);
        harness.fenced.refuse_id(id(2));
        harness.start();
        harness.append(0, "other", 20).await;
        harness.wait_until_settled().await;
        seconds(3).await;
        harness.kill(1).await;
        harness.fenced = sink_testing::MemoryHandle::fenced();
        harness.start();
        seconds(1).await;
        harness.check_balance();
        harness.wait_until_settled().await;
        assert_eq!(counts(&row(&harness, "other", FENCED)), (19, 1, 0, 0));
        harness.check_all().await;
    });
}

#[test]
fn store_that_lost_freed_events_is_not_written() {
    run(async {
        let mut harness = Harness::new(9);
        harness.start();
        for _ in 0..60 {
            harness.append(0, "both", 30).await;
        }
        harness.wait_until_settled().await;
        seconds(5).await;
        assert!(harness.process().log.shards()[0].segments().oldest().unwrap() > 1, "segments were freed");
        harness.kill(1).await;
        harness.fenced = sink_testing::MemoryHandle::fenced();
        harness.start();
        harness.append(0, "both", 5).await;
        seconds(10).await;
        harness.check_balance();
        assert_eq!(harness.fenced.count(), 0);
        assert!(
            harness.messages().iter().any(|text| text.contains("the store's cursor went back")),
            "{:?}",
            harness.messages()
        );
        assert_eq!(row(&harness, "both", KEYED).pending, 0, "the other sink continues");
        assert_eq!(row(&harness, "both", FENCED).pending, 5);
    });
}

/// If the store does not answer at first, events accepted in between must not count as stored.
#[test]
fn late_answer_of_store_ahead_stops_its_lane() {
    run(async {
        for starts in 1..4 {
            let mut harness = ahead_of_its_journal(59).await;
            harness.fenced.block();
            for start in 0..starts {
                harness.kill(start).await;
                harness.start();
                harness.append(0, "other", 30).await;
            }
            seconds(5).await;
            harness.fenced.release();
            seconds(5).await;
            harness.check_balance();
            assert_eq!(harness.fenced.count(), 20, "nothing is written");
            assert_eq!(row(&harness, "other", FENCED).stored, 0);
            assert!(harness.process().lanes.iter().any(|lane| matches!(lane.state(), LaneState::Stopped(_))));
        }
    });
}

/// An outage of a store over a start is remembered; so is its first answer, before it gets anything.
#[test]
fn store_unavailable_over_starts_is_not_ahead() {
    run(async {
        let mut harness = Harness::new(64);
        harness.start();
        harness.append(0, "other", 7).await;
        harness.wait_until_settled().await;
        for round in 0..8 {
            harness.fenced.block();
            for start in 0..2 {
                harness.kill(start).await;
                harness.start();
                harness.append(0, "other", 20).await;
            }
            let before = harness.fenced.count();
            harness.fenced.release();
            while harness.fenced.count() == before {
                tokio::time::sleep(std::time::Duration::from_micros(100)).await;
            }
            harness.kill(round).await;
            harness.start();
            harness.wait_until_settled().await;
        }
        harness.check_all().await;
    });
}

/// A world whose data directory is in the state before the transactional store got 20 of its events.
async fn ahead_of_its_journal(seed: u64) -> Harness {
    use journal::disk::Disk;
    let mut harness = Harness::new(seed);
    harness.start();
    harness.append(0, "other", 20).await;
    harness.wait_until_settled().await;
    let origin = harness.process().lanes[0].lane().origin;
    assert_ne!(origin, Origin([0; 16]));
    assert_eq!(harness.fenced.position(&Lane { origin, shard: 0, sink: FENCED.into() }), 20);
    // Under the same name: only the origin differs.
    let origin = |copy| harness.disk.content(format!("/data/origin.{copy}")).unwrap();
    let (store, origins) = (harness.fenced.clone(), [origin(0), origin(1)]);
    harness.kill(1).await;
    let mut before = Harness::new(seed);
    before.fenced = store;
    before.disk.create_directory(std::path::Path::new("/data")).unwrap();
    for (copy, origin) in origins.iter().enumerate() {
        before.disk.put(format!("/data/origin.{copy}"), origin).unwrap();
    }
    before
}

#[test]
fn store_ahead_stops_its_lane_permanently() {
    run(async {
        let mut harness = ahead_of_its_journal(10).await;
        harness.start();
        seconds(1).await;
        for round in 0..2 {
            harness.append(0, "other", 30).await;
            seconds(5).await;
            harness.check_balance();
            assert_eq!(harness.fenced.count(), 20, "nothing is written");
            assert_eq!(row(&harness, "other", FENCED).stored, 0);
            assert!(harness.process().lanes.iter().any(|lane| matches!(lane.state(), LaneState::Stopped(_))));
            harness.kill(round).await;
            harness.start();
            seconds(1).await;
        }
    });
}

#[test]
fn memory_is_flat_while_a_store_is_down() {
    run(async {
        let mut harness = Harness::new(11);
        harness.shards = 1;
        harness.fenced.block();
        harness.start();
        for _ in 0..200 {
            harness.append(0, "other", 500).await;
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let held = harness.process().log.shards()[0].tail_cache_bytes();
        assert!(held <= TAIL_CACHE_BYTES_MAX, "{held}");
        assert_eq!(harness.pending(), 100_000);
        harness.fenced.release();
        harness.wait_until_settled().await;
        let largest = harness.fenced.calls().iter().map(|call| call.ids.len()).max();
        assert!(largest <= Some(limits::DELIVERY_RECORDS_MAX));
        harness.check_all().await;
    });
}

#[test]
fn unsaved_ledger_frees_and_loses_nothing() {
    run(async {
        let mut harness = Harness::new(12);
        harness.start();
        harness.fenced.block();
        for _ in 0..60 {
            harness.append(0, "both", 30).await;
        }
        seconds(3).await;
        // Too full even for the reserve.
        harness.disk.set_capacity(Some(harness.disk.bytes_used() - limits::RESERVE_BYTES));
        harness.fenced.release();
        harness.wait_until_settled().await;
        seconds(5).await;
        let oldest = |harness: &Harness| harness.process().log.shards()[0].segments().oldest();
        assert_eq!(oldest(&harness), Some(1));
        let failed = harness.messages().iter().filter(|text| text.contains("can't save the ledger")).count();
        assert_eq!(failed, 1, "reported once: {:?}", harness.messages());
        harness.power_cut(3).await;
        harness.disk.set_capacity(None);
        harness.start();
        harness.wait_until_settled().await;
        seconds(5).await;
        assert!(oldest(&harness) > Some(1), "freed after all");
        harness.check_all().await;
    });
}

#[test]
fn reserve_saves_the_ledger_on_a_full_disk() {
    run(async {
        let mut harness = Harness::new(13);
        harness.start();
        harness.fenced.block();
        for _ in 0..60 {
            harness.append(0, "both", 30).await;
        }
        seconds(3).await;
        harness.disk.set_capacity(Some(harness.disk.bytes_used()));
        harness.fenced.release();
        harness.wait_until_settled().await;
        seconds(5).await;
        assert!(harness.process().log.shards()[0].segments().oldest() > Some(1), "freed");
        harness.disk.set_capacity(None);
        seconds(1).await;
        assert!(!harness.process().log.disk_guard().is_short());
        let messages = harness.messages();
        assert!(messages.len() == 2 && messages[0].contains("new events are rejected"), "{messages:?}");
        assert!(messages[1].contains("accepted again"), "{messages:?}");
        harness.check_all().await;
    });
}

#[test]
fn full_backlog_closes_only_gates_of_its_types() {
    run(async {
        let mut harness = Harness::new(14);
        harness.max_backlog = Some(200_000);
        harness.start();
        harness.fenced.block();
        let closed = |harness: &Harness| {
            let gates = harness.process().log.types().gates();
            gates.into_iter().filter(|(_, gate)| gate.is_closed()).map(|(name, _)| name.to_string()).collect::<Vec<_>>()
        };
        harness.append(0, "first", 1).await;
        for _ in 0..60 {
            assert!(closed(&harness).is_empty());
            harness.append(0, "both", 30).await;
        }
        harness.append(1, "named", 30).await;
        seconds(1).await;
        assert_eq!(closed(&harness), ["both", "picky", "first"]);
        // A type that is new now goes there too.
        harness.append(0, "later", 1).await;
        seconds(1).await;
        assert_eq!(closed(&harness), ["both", "picky", "first", "later"]);
        harness.kill(1).await;
        harness.start();
        assert_eq!(
            closed(&harness),
            ["both", "picky", "first", "later"],
            "a start knows it before it accepts \
                                                                           anything"
        );
        harness.fenced.release();
        harness.wait_until_settled().await;
        seconds(1).await;
        assert!(closed(&harness).is_empty());
        let messages = harness.messages();
        assert!(messages.iter().any(|text| text.contains("reached max_backlog")), "{messages:?}");
        assert!(messages.last().is_some_and(|text| text.contains("accepted again")), "{messages:?}");
        harness.check_all().await;
    });
}

#[test]
fn missing_segment_is_skipped_and_delivery_continues() {
    run(async {
        let mut harness = Harness::new(15);
        harness.start();
        harness.fenced.block();
        harness.keyed.block();
        for _ in 0..60 {
            harness.append(0, "both", 30).await;
        }
        seconds(3).await;
        harness.kill(1).await;
        harness.disk.erase("/data/journal/0000/0000000000000001.segment").unwrap();
        harness.fenced.release();
        harness.keyed.release();
        harness.start();
        seconds(10).await;
        let lost = 60 * 30 - harness.fenced.count();
        assert!(lost > 0 && lost < 60 * 30, "{lost}");
        assert_eq!(harness.keyed.count(), harness.fenced.count());
        assert_eq!(harness.messages().iter().filter(|text| text.contains("are missing from the journal")).count(), 2);
        assert_eq!(row(&harness, "both", FENCED).pending, lost as u64, "what is lost stays to be seen");
    });
}

/// Damages the newer of the two generations of the ledger.
fn damage_newer_ledger(harness: &Harness) {
    let paths = ["/data/ledger.0", "/data/ledger.1"];
    let version =
        |path: &&str| harness.disk.content(path).map_or(0, |file| u64::from_le_bytes(file[8..16].try_into().unwrap()));
    let newer = paths.into_iter().max_by_key(version).unwrap();
    harness.disk.flip_bit(newer, 500).unwrap();
}

#[test]
fn the_older_generation_of_the_ledger_finds_its_events() {
    for milliseconds in (0..3000).step_by(100) {
        run(async move {
            let mut harness = Harness::new(14);
            harness.start();
            for _ in 0..3 {
                for _ in 0..40 {
                    harness.append(0, "both", 30).await;
                }
                tokio::time::sleep(std::time::Duration::from_millis(milliseconds)).await;
            }
            harness.kill(1).await;
            damage_newer_ledger(&harness);
            harness.start();
            harness.wait_until_settled().await;
            assert!(harness.messages().iter().any(|text| text.contains("damaged")));
            harness.check_all().await;
        });
    }
}

#[test]
fn filtered_events_are_counted_through_crashes() {
    run(async {
        let mut harness = Harness::new(90);
        harness.start();
        let step = FilterStep { type_name: name("x"), step: 2, operation: "filter".into() };
        let count = |harness: &Harness, events: u64| {
            *harness.process().log.accepted().hold().filtered.entry(step.clone()).or_default() += events;
        };
        let counted = |harness: &Harness| harness.process().ledger.snapshot_with_filtered().1;
        count(&harness, 3);
        seconds(1).await;
        for seed in 0..5 {
            if seed % 2 == 0 {
                harness.kill(seed).await
            } else {
                harness.power_cut(seed).await
            }
            harness.start();
            assert_eq!(counted(&harness), [(step.clone(), 3 + 4 * seed)]);
            count(&harness, 4);
            seconds(1).await;
        }
        harness.stop().await;
    });
}
