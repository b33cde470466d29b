//! Stores that fail over to an older copy of themselves: the lost events are still in the journal.

use std::time::Duration;

use sink_testing::MemoryHandle;

use super::harness::Harness;
use super::harness::run;
use super::harness::seconds;
use crate::status::LaneState;

/// Events of several segments.
const MANY: u64 = 1_500;

/// A process with one shard, whose store may lose what it has stored within the last minute.
fn harness(seed: u64) -> Harness {
    let mut harness = Harness::new(seed);
    harness.fenced = MemoryHandle::replicated(Duration::from_mins(1));
    harness.shards = 1;
    harness
}

/// Appends and delivers events of several segments.
async fn store_many(harness: &mut Harness) {
    for _ in 0..MANY / 30 {
        harness.append(0, "other", 30).await;
    }
    harness.wait_until_settled().await;
}

fn oldest(harness: &Harness) -> u64 {
    harness.process().log.shards()[0].segments().oldest().unwrap()
}

fn waits(harness: &Harness) -> bool {
    matches!(harness.process().lanes[0].state(), LaneState::Waiting(_))
}

#[test]
fn segments_stay_for_the_failover_window() {
    run(async {
        let mut harness = harness(70);
        harness.start();
        store_many(&mut harness).await;
        seconds(50).await;
        assert_eq!(oldest(&harness), 1);
        seconds(60).await;
        assert!(oldest(&harness) > 1, "they are no longer needed");
        let calls = harness.fenced.calls().len();
        seconds(600).await;
        assert_eq!(harness.fenced.calls().len(), calls);
        harness.check_all().await;
    });
}

#[test]
fn outage_does_not_count_for_the_failover_window() {
    run(async {
        let mut harness = harness(71);
        harness.start();
        harness.append(0, "other", 20).await;
        harness.wait_until_settled().await;
        let standby = harness.fenced.standby();
        store_many(&mut harness).await;
        seconds(5).await;
        harness.fenced.fail_next(usize::MAX);
        seconds(600).await;
        assert!(waits(&harness), "it noticed though it had nothing to write");
        harness.fenced.fail_next(0);
        while waits(&harness) {
            seconds(1).await;
        }
        seconds(40).await;
        assert_eq!(oldest(&harness), 1, "the same server is back, and its standby has as little as before");
        harness.fenced.fail_next(usize::MAX);
        seconds(600).await;
        harness.fenced.fail_over(standby);
        harness.fenced.fail_next(0);
        seconds(90).await;
        assert_eq!(harness.fenced.count() as u64, MANY + 20, "{:?}", harness.messages());
        harness.check_all().await;
    });
}

#[test]
fn failover_is_detected_without_a_new_event() {
    run(async {
        let mut harness = harness(72);
        harness.start();
        harness.append(0, "other", 20).await;
        harness.wait_until_settled().await;
        for _ in 0..3 {
            // Each takes over within the minute after the one before.
            let standby = harness.fenced.standby();
            store_many(&mut harness).await;
            let all = harness.fenced.count();
            seconds(40).await;
            harness.fenced.fail_over(standby);
            assert!(harness.fenced.count() < all);
            seconds(15).await;
            assert_eq!(harness.fenced.count(), all, "{:?}", harness.messages());
        }
        harness.check_all().await;
    });
}

#[test]
fn resent_events_start_a_new_failover_window() {
    run(async {
        let mut harness = harness(73);
        harness.start();
        harness.append(0, "other", 20).await;
        harness.wait_until_settled().await;
        let (standby, other) = (harness.fenced.standby(), harness.fenced.standby());
        store_many(&mut harness).await;
        seconds(50).await;
        harness.fenced.fail_over(standby);
        seconds(30).await;
        assert_eq!(harness.fenced.count() as u64, MANY + 20);
        harness.fenced.fail_over(other);
        seconds(15).await;
        assert_eq!(harness.fenced.count() as u64, MANY + 20, "{:?}", harness.messages());
        harness.check_all().await;
    });
}
