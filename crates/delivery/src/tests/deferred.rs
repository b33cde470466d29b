//! Events that an idempotent store rejects for now while it accepts others.

use std::time::Duration;

use journal::simulated_disk::SimulatedDisk;
use ledger::{Routes, SinkRow};

use super::harness::FENCED;
use super::harness::Harness;
use super::harness::KEYED;
use super::harness::id;
use super::harness::name;
use super::harness::run;
use super::harness::seconds;

fn row(harness: &Harness) -> SinkRow {
    let rows = harness.rows();
    let row = rows.iter().find(|row| row.type_name == name("named")).unwrap();
    row.sinks.iter().find(|row| &*row.sink == KEYED).unwrap().clone()
}

/// Stored, dead and pending.
fn counts(harness: &Harness) -> (u64, u64, u64) {
    let row = row(harness);
    assert_eq!(row.skipped, 0);
    (row.stored, row.dead, row.pending)
}

fn deferred(harness: &Harness) -> (u64, String) {
    let (count, last) = harness.process().office.deferred(KEYED, &name("named"));
    (count, last.map(|last| last.reason).unwrap_or_default())
}

/// A server with five events of one shard, of which the store rejects the third for now.
async fn with_one_deferred(seed: u64) -> Harness {
    let mut harness = Harness::new(seed);
    harness.shards = 1;
    harness.keyed.retry_id(id(3));
    harness.start();
    harness.append(0, "named", 5).await;
    seconds(2).await;
    harness
}

#[test]
fn deferred_event_delays_no_other_and_is_named() {
    run(async {
        let mut harness = with_one_deferred(101).await;
        assert_eq!(counts(&harness), (4, 0, 1));
        let (count, reason) = deferred(&harness);
        assert_eq!(count, 1);
        assert!(reason.contains(&id(3).to_string()) && reason.contains("set to accept event"), "{reason}");
        assert_eq!(harness.reported("1 event deferred"), 1);
        assert_eq!(harness.reported("sink=keyed type=named"), 1);
        assert!(harness.messages().iter().any(|message| message.contains(&id(3).to_string())));
        harness.append(0, "named", 10_000).await;
        seconds(10).await;
        assert_eq!(counts(&harness), (10_004, 0, 1));
        harness.keyed.heal();
        harness.wait_until_settled().await;
        assert_eq!((counts(&harness), deferred(&harness).0), ((10_005, 0, 0), 0));
        harness.check_all().await;
    });
}

#[test]
fn drain_waits_for_deferred_events() {
    run(async {
        let mut harness = with_one_deferred(109).await;
        assert!(!harness.drain(Duration::from_secs(300)).await);
        assert_eq!(counts(&harness), (4, 0, 1));
        harness.keyed.heal();
        assert!(harness.drain(Duration::from_secs(300)).await);
        harness.kill(109).await;
        harness.start();
        assert_eq!((counts(&harness), deferred(&harness).0), ((5, 0, 0), 0));
        harness.wait_until_settled().await;
        harness.check_all().await;
    });
}

#[test]
fn drain_waits_for_events_deferred_by_earlier_processes() {
    run(async {
        let mut harness = with_one_deferred(110).await;
        harness.stop().await;
        harness.start();
        assert!(!harness.drain(Duration::from_secs(300)).await, "the lane connects first");
        harness.keyed.heal();
        assert!(harness.drain(Duration::from_secs(300)).await);
        harness.start();
        assert_eq!((counts(&harness), deferred(&harness).0), ((5, 0, 0), 0));
        harness.wait_until_settled().await;
        harness.check_all().await;
    });
}

#[test]
fn single_event_waits_for_later_ones() {
    run(async {
        let mut harness = Harness::new(102);
        harness.shards = 1;
        harness.keyed.retry_id(id(1));
        harness.start();
        harness.append(0, "named", 1).await;
        seconds(1000).await;
        assert_eq!((counts(&harness), deferred(&harness).0), ((0, 0, 1), 0), "the store may be broken");
        harness.append(0, "named", 3).await;
        seconds(3).await;
        assert_eq!((counts(&harness), deferred(&harness).0), ((3, 0, 1), 1));
        harness.keyed.heal();
        harness.wait_until_settled().await;
        harness.check_all().await;
    });
}

#[test]
fn store_that_rejects_everything_defers_nothing() {
    run(async {
        let mut harness = Harness::new(103);
        harness.shards = 1;
        (1..=300).for_each(|number| harness.keyed.retry_id(id(number)));
        harness.start();
        for _ in 0..100 {
            harness.append(0, "named", 3).await;
            seconds(60).await;
        }
        assert_eq!((counts(&harness), deferred(&harness).0), ((0, 0, 300), 0));
        assert!(harness.keyed.calls().iter().all(|call| call.ids.len() <= 64), "it isn't sent all of it each time");
        harness.keyed.heal();
        harness.wait_until_settled().await;
        harness.check_all().await;
    });
}

#[test]
fn deferred_event_is_dead_after_an_hour() {
    run(async {
        let mut harness = with_one_deferred(104).await;
        seconds(3500).await;
        assert_eq!(counts(&harness), (4, 0, 1));
        seconds(250).await;
        assert_eq!((counts(&harness), deferred(&harness).0), ((4, 1, 0), 0));
        assert_eq!(harness.held(KEYED), [3]);
        harness.check_all().await;
    });
}

#[test]
fn outage_time_does_not_count_for_deferred_events() {
    run(async {
        let mut harness = with_one_deferred(105).await;
        seconds(1800).await;
        harness.keyed.fail_next(1_000_000);
        seconds(7200).await;
        harness.keyed.fail_next(0);
        seconds(1800).await;
        assert_eq!(counts(&harness), (4, 0, 1));
        seconds(2000).await;
        assert_eq!(counts(&harness), (4, 1, 0));
        harness.check_all().await;
    });
}

#[test]
fn restart_counts_a_deferred_event_once() {
    for pause in 0..40_u64 {
        run(async move {
            let mut harness = Harness::new(200 + pause);
            harness.shards = 1;
            harness.keyed.retry_id(id(3));
            harness.start();
            harness.append(0, "named", 5).await;
            tokio::time::sleep(std::time::Duration::from_millis(pause * 15)).await;
            if pause % 2 == 0 {
                harness.power_cut(pause).await
            } else {
                harness.kill(pause).await
            }
            harness.start();
            seconds(3).await;
            harness.check_balance();
            assert_eq!((counts(&harness), deferred(&harness).0), ((4, 0, 1), 1), "{pause}");
            harness.keyed.heal();
            tokio::time::sleep(std::time::Duration::from_millis(pause * 5)).await;
            harness.power_cut(pause + 1).await;
            harness.start();
            harness.wait_until_settled().await;
            assert_eq!(counts(&harness), (5, 0, 0), "{pause}");
            harness.check_all().await;
        });
    }
}

#[test]
fn reload_retries_deferred_events_immediately() {
    run(async {
        let mut harness = with_one_deferred(106).await;
        seconds(600).await;
        harness.keyed.heal();
        harness.change(harness.routes.clone()).await.unwrap();
        seconds(1).await;
        assert_eq!(counts(&harness), (5, 0, 0));
        harness.check_all().await;
    });
}

#[test]
fn segments_of_deferred_events_are_freed() {
    run(async {
        let mut harness = with_one_deferred(107).await;
        let payload = format!("\"{}\"", "x".repeat(3000));
        for _ in 0..8 {
            harness.append_request("named", 20, payload.as_bytes()).await;
            seconds(2).await;
        }
        assert!(harness.process().log.shards()[0].segments().oldest() > Some(5), "its own segment is freed");
        assert_eq!(counts(&harness), (164, 0, 1));
        harness.stop().await;
        let copy: SimulatedDisk = harness.disk.fork(3);
        harness.process = None;
        harness.disk = copy;
        harness.start();
        seconds(1).await;
        assert_eq!((counts(&harness), deferred(&harness).0), ((164, 0, 1), 1));
        harness.keyed.heal();
        harness.wait_until_settled().await;
        assert_eq!(counts(&harness), (165, 0, 0));
        assert_eq!(harness.keyed.get(id(3)).unwrap().payload, b"{\"n\":3}");
        assert_eq!(harness.keyed.count(), 165);
    });
}

#[test]
fn discarded_route_discards_its_deferred_events() {
    run(async {
        let mut harness = with_one_deferred(108).await;
        let routes = harness.routes.clone();
        harness.change(Routes::new().with_others([FENCED.into()])).await.unwrap();
        assert_eq!(counts(&harness), (4, 0, 1));
        let discarded = harness.control().discard(KEYED.into(), None, None).await.unwrap();
        assert_eq!(discarded.routes, [(name("named"), 1)]);
        assert_eq!(deferred(&harness).0, 0);
        harness.keyed.heal();
        harness.change(routes).await.unwrap();
        harness.append(0, "named", 1).await;
        seconds(100).await;
        harness.check_balance();
        let row = row(&harness);
        assert_eq!((row.stored, row.skipped, row.pending), (5, 1, 0));
        assert_eq!(harness.keyed.get(id(3)), None);
    });
}

#[test]
fn returning_route_keeps_its_deferred_events() {
    run(async {
        let mut harness = with_one_deferred(109).await;
        let routes = harness.routes.clone();
        harness.change(Routes::new().with_others([FENCED.into()])).await.unwrap();
        harness.append(0, "other", 2).await;
        harness.power_cut(2).await;
        harness.routes = routes;
        harness.start();
        seconds(5).await;
        assert_eq!((counts(&harness), deferred(&harness).0), ((4, 0, 1), 1));
        harness.keyed.heal();
        harness.wait_until_settled().await;
        assert_eq!(counts(&harness), (5, 0, 0));
        harness.check_all().await;
    });
}

#[test]
fn lane_waits_at_the_limit_of_deferred_events() {
    run(async {
        let mut harness = Harness::new(110);
        harness.shards = 1;
        let payload = format!("\"{}\"", "x".repeat(900_000));
        // Of two events one is rejected for now.
        (1..=60).filter(|number| number % 2 == 0).for_each(|number| harness.keyed.retry_id(id(number)));
        harness.start();
        for _ in 0..30 {
            harness.append_request("named", 2, payload.as_bytes()).await;
        }
        seconds(100).await;
        let (count, _) = deferred(&harness);
        assert!((17..=18).contains(&count), "{count} of 16 MiB");
        assert!(row(&harness).pending > count);
        assert!(harness.reported("the limit of deferred events is reached") >= 1, "{:?}", harness.messages());
        harness.keyed.heal();
        harness.wait_until_settled().await;
        assert_eq!(counts(&harness), (60, 0, 0));
        harness.check_all().await;
    });
}

#[test]
fn client_is_notified_when_deferred_event_is_stored() {
    run(async {
        let mut harness = with_one_deferred(111).await;
        let outcomes = harness.process().log.delivery_watch().clone();
        let asked = |first, last| eventlog::WatchRequest {
            spans: vec![eventlog::SequenceRange { shard: 0, first, last, only: None }],
            types: vec![name("named")],
        };
        let pending = |first, last| outcomes.status_source().unwrap().pending(&asked(first, last)).len();
        assert_eq!((pending(1, 2), pending(3, 3), pending(1, 5), pending(4, 5)), (0, 1, 1, 0));
        harness.keyed.heal();
        let all = asked(1, 5);
        tokio::time::timeout(std::time::Duration::from_secs(120), outcomes.wait(&all)).await.unwrap();
        assert_eq!(pending(1, 5), 0);
        harness.check_all().await;
    });
}

#[test]
fn lower_revision_is_not_sent_after_higher_one() {
    run(async {
        let mut harness = Harness::new(112);
        harness.shards = 1;
        harness.keyed.retry_id(id(900));
        harness.start();
        harness.append_revision(900, 1).await;
        harness.append(0, "named", 3).await;
        seconds(900).await;
        assert_eq!((counts(&harness), deferred(&harness).0), ((3, 0, 1), 1));
        harness.keyed.heal();
        harness.append_revision(900, 2).await;
        seconds(200).await;
        assert_eq!(counts(&harness), (5, 0, 0));
        let calls = harness.keyed.calls();
        let last = calls.iter().rfind(|call| call.ids.contains(&id(900))).unwrap();
        assert_eq!(last.last, 5, "the higher revision was sent last");
        assert_eq!(harness.keyed.get(id(900)).unwrap().revision, Some(2));
    });
}

#[test]
fn full_batch_of_bad_records_is_no_outage() {
    run(async {
        let mut harness = Harness::new(113);
        harness.shards = 1;
        let payload = format!("\"{}\"", "x".repeat(900_000));
        (1..=10).for_each(|number| harness.keyed.retry_id(id(number)));
        harness.start();
        harness.append_request("named", 10, payload.as_bytes()).await;
        seconds(100).await;
        assert_eq!((counts(&harness), deferred(&harness).0), ((0, 0, 10), 0));
        harness.append(0, "named", 5).await;
        seconds(200).await;
        assert_eq!((counts(&harness), deferred(&harness).0), ((5, 0, 10), 10));
        harness.keyed.heal();
        harness.wait_until_settled().await;
        harness.check_all().await;
    });
}

#[test]
fn deferred_events_end_at_the_dead_letter_limit() {
    run(async {
        let mut harness = Harness::new(116);
        harness.shards = 1;
        harness.max_dead_letters = Some(1);
        harness.keyed.refuse_id(id(1));
        harness.keyed.retry_id(id(3));
        harness.start();
        harness.append(0, "named", 5).await;
        seconds(2).await;
        assert_eq!((counts(&harness), deferred(&harness).0), ((3, 1, 1), 1));
        harness.keyed.heal();
        seconds(120).await;
        assert_eq!((counts(&harness), deferred(&harness).0), ((4, 1, 0), 0));
    });
}

#[test]
fn outage_keeps_deferred_events_when_others_wait() {
    run(async {
        let mut harness = with_one_deferred(117).await;
        harness.append(0, "named", 1).await;
        harness.keyed.fail_next(usize::MAX);
        harness.append(0, "named", 1).await;
        for _ in 0..70 {
            seconds(60).await;
        }
        assert_eq!((counts(&harness), deferred(&harness).0), ((4, 0, 3), 1));
        // The store answers again, and still rejects the one.
        harness.keyed.fail_next(0);
        seconds(200).await;
        assert_eq!((counts(&harness), deferred(&harness).0), ((6, 0, 1), 1));
    });
}

#[test]
fn store_that_rejects_everything_causes_no_dead_letters() {
    run(async {
        let mut harness = Harness::new(118);
        harness.shards = 1;
        (1..=300).for_each(|number| harness.keyed.doubt_id(id(number)));
        harness.start();
        for _ in 0..100 {
            harness.append(0, "named", 3).await;
            seconds(60).await;
        }
        assert_eq!((counts(&harness), deferred(&harness).0), ((0, 0, 300), 0));
        assert!(harness.keyed.calls().iter().all(|call| call.ids.len() <= 64), "it isn't sent all of it each time");
        harness.keyed.heal();
        harness.wait_until_settled().await;
        assert_eq!(counts(&harness), (300, 0, 0));
        harness.check_all().await;
    });
}

#[test]
fn rejected_event_is_dead_after_neighbour_is_stored() {
    run(async {
        let mut harness = Harness::new(119);
        harness.shards = 1;
        harness.keyed.doubt_id(id(1));
        harness.start();
        harness.append(0, "named", 1).await;
        // Longer than the longest time that an event is deferred.
        seconds(10_000).await;
        assert_eq!(counts(&harness), (0, 0, 1), "the store may be at fault");
        harness.append(0, "named", 3).await;
        seconds(2).await;
        assert_eq!(counts(&harness), (0, 0, 4), "it may have ceased to fail just now");
        seconds(60).await;
        assert_eq!((counts(&harness), deferred(&harness).0, harness.held(KEYED)), ((3, 1, 0), 0, vec![1]));
        harness.check_all().await;
    });
}

#[test]
fn full_rejected_batch_is_dead_after_newer_store() {
    run(async {
        let mut harness = Harness::new(120);
        harness.shards = 1;
        let payload = format!("\"{}\"", "x".repeat(900_000));
        (1..=10).for_each(|number| harness.keyed.doubt_id(id(number)));
        harness.start();
        harness.append_request("named", 10, payload.as_bytes()).await;
        seconds(100).await;
        assert_eq!(counts(&harness), (0, 0, 10));
        harness.append(0, "named", 5).await;
        seconds(200).await;
        assert_eq!((counts(&harness), deferred(&harness).0), ((5, 10, 0), 0));
        harness.check_all().await;
    });
}

#[test]
fn store_failing_between_probes_causes_no_dead_letters() {
    run(async {
        let mut harness = Harness::new(124);
        harness.shards = 1;
        let payload = format!("\"{}\"", "x".repeat(900_000));
        (1..=10).for_each(|number| harness.keyed.doubt_id(id(number)));
        harness.start();
        harness.append_request("named", 10, payload.as_bytes()).await;
        seconds(100).await;
        harness.append(0, "named", 5).await;
        // A batch has four of the large events, and the newest four show that the store works.
        harness.keyed.until(|store| store.count() == 4).await;
        // From now on it accepts nothing, and says so of each event.
        (11..=15).for_each(|number| harness.keyed.doubt_id(id(number)));
        seconds(1000).await;
        assert_eq!(counts(&harness), (0, 0, 15), "it may be the store");
        harness.keyed.heal();
        harness.wait_until_settled().await;
        harness.check_all().await;
    });
}

#[test]
fn outage_time_does_not_count() {
    run(async {
        let mut harness = with_one_deferred(121).await;
        // From now on it accepts nothing, and says so of each event.
        (6..=100).for_each(|number| harness.keyed.doubt_id(id(number)));
        for _ in 0..90 {
            harness.append(0, "named", 1).await;
            seconds(60).await;
        }
        assert_eq!((counts(&harness), deferred(&harness).0), ((4, 0, 91), 1));
        harness.keyed.heal();
        harness.wait_until_settled().await;
        harness.check_all().await;
    });
}

#[test]
fn rejected_event_is_dead_immediately_among_accepted_ones() {
    run(async {
        let mut harness = Harness::new(122);
        harness.shards = 1;
        harness.keyed.doubt_id(id(3));
        harness.start();
        harness.append(0, "named", 5).await;
        harness.append(0, "named", 5).await;
        seconds(1).await;
        for _ in 0..4 {
            harness.append(0, "named", 1).await;
            seconds(1).await;
        }
        assert_eq!((counts(&harness), harness.held(KEYED)), ((13, 1, 0), vec![3]));
        harness.check_all().await;
    });
}

#[test]
fn store_failing_within_batch_causes_no_dead_letters() {
    run(async {
        let mut harness = Harness::new(123);
        harness.shards = 1;
        // It has accepted two events of the batch, and fails for an hour.
        (3..=500).for_each(|number| harness.keyed.doubt_id(id(number)));
        harness.start();
        harness.append(0, "named", 5).await;
        for _ in 0..60 {
            seconds(5).await;
            harness.append(0, "named", 5).await;
        }
        assert_eq!(counts(&harness), (0, 0, 305));
        harness.keyed.heal();
        harness.wait_until_settled().await;
        assert_eq!(counts(&harness), (305, 0, 0));
        harness.check_all().await;
    });
}
