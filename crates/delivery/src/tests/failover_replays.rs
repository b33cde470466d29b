//! Dead letters whose replay a store has lost, because it failed over to an older copy of itself.

use std::time::Duration;

use dead_letters::{DeadAction, DeadFilter};
use sink_testing::MemoryHandle;

use super::harness::FENCED;
use super::harness::Harness;
use super::harness::id;
use super::harness::run;
use super::harness::seconds;

fn all() -> DeadFilter {
    DeadFilter::default()
}

/// This many events, all of which the store has rejected, and would accept now.
async fn with_dead_letters(seed: u64, count: u64) -> Harness {
    let mut harness = Harness::new(seed);
    harness.fenced = MemoryHandle::replicated(Duration::from_mins(1));
    harness.shards = 1;
    harness.fenced.refuse_type("other");
    harness.start();
    harness.append(0, "other", count).await;
    harness.wait_until_settled().await;
    harness.fenced.heal();
    // The lane's failover window is over: only the replays can be lost.
    seconds(200).await;
    assert_eq!(harness.stored_and_dead(FENCED), (0, count));
    harness
}

#[test]
fn lost_replay_is_resent_automatically() {
    run(async {
        let mut harness = with_dead_letters(80, 3).await;
        let standby = harness.fenced.standby();
        assert_eq!(harness.act(DeadAction::Replay, &all()).await.stored, 3);
        assert_eq!((harness.stored_and_dead(FENCED), harness.fenced.count()), ((3, 0), 3));
        seconds(45).await;
        harness.fenced.fail_over(standby);
        assert_eq!(harness.fenced.count(), 0);
        seconds(15).await;
        assert_eq!((harness.fenced.count(), harness.held(FENCED)), (3, vec![]), "{:?}", harness.messages());
        assert_eq!(harness.stored_and_dead(FENCED), (3, 0));
        assert_eq!(harness.reported("lost=3 stored="), 1);
        harness.kill(1).await;
        harness.start();
        seconds(1).await;
        assert_eq!(harness.stored_and_dead(FENCED), (3, 0));
        harness.check_all().await;
    });
}

#[test]
fn resend_keeps_the_numbers() {
    run(async {
        let mut harness = with_dead_letters(87, 3).await;
        let only = |number| DeadFilter { ids: Some(id(number).into()), ..all() };
        assert_eq!(harness.act(DeadAction::Replay, &only(2)).await.stored, 1);
        let standby = harness.fenced.standby();
        assert_eq!(harness.act(DeadAction::Replay, &all()).await.stored, 2);
        harness.fenced.fail_over(standby);
        seconds(15).await;
        assert_eq!((harness.fenced.count(), harness.held(FENCED)), (3, vec![]), "{:?}", harness.messages());
        let calls = harness.fenced.calls().into_iter().filter(|call| call.lane.sink.ends_with("/replay"));
        let sent: Vec<_> = calls.map(|call| (call.ids, call.last)).collect();
        assert_eq!((sent.len(), &sent[2]), (3, &sent[1]), "a part of the store may have them still");
        harness.check_all().await;
    });
}

#[test]
fn later_replay_does_not_hide_earlier_losses() {
    run(async {
        let mut harness = with_dead_letters(81, 2).await;
        let only = |number| DeadFilter { ids: Some(id(number).into()), ..all() };
        let standby = harness.fenced.standby();
        assert_eq!(harness.act(DeadAction::Replay, &only(1)).await.stored, 1);
        harness.fenced.fail_over(standby);
        assert_eq!(harness.act(DeadAction::Replay, &only(2)).await.stored, 1);
        seconds(1).await;
        assert_eq!((harness.fenced.count(), harness.stored_and_dead(FENCED)), (2, (2, 0)), "{:?}", harness.messages());
        harness.check_all().await;
    });
}

#[test]
fn failed_resend_becomes_a_dead_letter_again() {
    run(async {
        let mut harness = with_dead_letters(82, 3).await;
        let standby = harness.fenced.standby();
        assert_eq!(harness.act(DeadAction::Replay, &all()).await.stored, 3);
        harness.fenced.fail_over(standby);
        harness.fenced.refuse_id(id(2));
        seconds(15).await;
        assert_eq!((harness.fenced.count(), harness.held(FENCED)), (2, vec![2]), "{:?}", harness.messages());
        assert_eq!(harness.stored_and_dead(FENCED), (2, 1));
        harness.kill(1).await;
        harness.start();
        seconds(1).await;
        assert_eq!((harness.stored_and_dead(FENCED), harness.held(FENCED)), ((2, 1), vec![2]));
        harness.check_all().await;
    });
}

#[test]
fn outage_time_does_not_count_for_replays() {
    run(async {
        let mut harness = with_dead_letters(83, 3).await;
        let standby = harness.fenced.standby();
        assert_eq!(harness.act(DeadAction::Replay, &all()).await.stored, 3);
        harness.fenced.fail_next(usize::MAX);
        seconds(600).await;
        harness.fenced.fail_over(standby);
        harness.fenced.fail_next(0);
        seconds(15).await;
        assert_eq!((harness.fenced.count(), harness.held(FENCED)), (3, vec![]), "{:?}", harness.messages());
        harness.check_all().await;
    });
}

#[test]
fn outage_during_recovery_keeps_dead_letters() {
    run(async {
        let mut harness = with_dead_letters(84, 3).await;
        let standby = harness.fenced.standby();
        assert_eq!(harness.act(DeadAction::Replay, &all()).await.stored, 3);
        harness.fenced.fail_over(standby);
        // It reports its cursor, and then does not answer.
        harness.fenced.lose_answers(usize::MAX);
        seconds(15).await;
        assert_eq!(harness.held(FENCED), [1, 2, 3], "{:?}", harness.messages());
        harness.fenced.lose_answers(0);
        assert_eq!(harness.act(DeadAction::Replay, &all()).await.stored, 3);
        assert_eq!((harness.fenced.count(), harness.stored_and_dead(FENCED)), (3, (3, 0)));
        harness.check_all().await;
    });
}

#[test]
fn store_is_not_probed_after_the_failover_window() {
    run(async {
        let mut harness = with_dead_letters(85, 3).await;
        assert_eq!(harness.act(DeadAction::Replay, &all()).await.stored, 3);
        seconds(90).await;
        let calls = harness.fenced.calls().len();
        seconds(600).await;
        assert_eq!(harness.fenced.calls().len(), calls);
        harness.check_all().await;
    });
}

#[test]
fn replayed_segments_stay_for_the_failover_window() {
    run(async {
        let mut harness = with_dead_letters(86, 3_000).await;
        let standby = harness.fenced.standby();
        assert_eq!(harness.act(DeadAction::Replay, &all()).await.stored, 3_000);
        // Everything that can be freed is freed.
        seconds(45).await;
        harness.fenced.fail_over(standby);
        seconds(15).await;
        assert_eq!((harness.fenced.count(), harness.held(FENCED)), (3_000, vec![]), "{:?}", harness.messages());
        harness.check_all().await;
    });
}
