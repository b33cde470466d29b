//! Dead letters whose replay a store has lost, since it failed over to a copy of itself that is after.

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

/// So many events, all of which the store has rejected, and would take now.
async fn with_letters(seed: u64, count: u64) -> Harness {
    let mut harness = Harness::new(seed);
    harness.fenced = MemoryHandle::replicated(Duration::from_mins(1));
    harness.shards = 1;
    harness.fenced.refuse_type("other");
    harness.start();
    harness.append(0, "other", count).await;
    harness.wait_until_settled().await;
    harness.fenced.heal();
    // The lane has settled: only the replays can be lost.
    seconds(200).await;
    assert_eq!(harness.stored_and_dead(FENCED), (0, count));
    harness
}

#[test]
fn a_replay_that_the_store_has_lost_is_sent_again_by_itself() {
    run(async {
        let mut harness = with_letters(80, 3).await;
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
fn what_is_sent_again_has_the_numbers_that_it_had() {
    run(async {
        let mut harness = with_letters(87, 3).await;
        let only = |number| DeadFilter { id: Some(id(number)), ..all() };
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
fn a_further_replay_does_not_hide_what_was_lost_before_it() {
    run(async {
        let mut harness = with_letters(81, 2).await;
        let only = |number| DeadFilter { id: Some(id(number)), ..all() };
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
fn what_cannot_be_sent_again_is_a_dead_letter_again() {
    run(async {
        let mut harness = with_letters(82, 3).await;
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
fn an_outage_is_waited_for_and_its_time_does_not_count() {
    run(async {
        let mut harness = with_letters(83, 3).await;
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
fn a_store_that_goes_down_while_its_letters_come_back_leaves_them_as_letters() {
    run(async {
        let mut harness = with_letters(84, 3).await;
        let standby = harness.fenced.standby();
        assert_eq!(harness.act(DeadAction::Replay, &all()).await.stored, 3);
        harness.fenced.fail_over(standby);
        // It says where it is, and then nothing more.
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
fn nobody_asks_a_store_that_has_had_its_time() {
    run(async {
        let mut harness = with_letters(85, 3).await;
        assert_eq!(harness.act(DeadAction::Replay, &all()).await.stored, 3);
        seconds(90).await;
        let calls = harness.fenced.calls().len();
        seconds(600).await;
        assert_eq!(harness.fenced.calls().len(), calls);
        harness.check_all().await;
    });
}

#[test]
fn letters_of_many_segments_stay_until_their_store_has_had_its_time() {
    run(async {
        let mut harness = with_letters(86, 3_000).await;
        let standby = harness.fenced.standby();
        assert_eq!(harness.act(DeadAction::Replay, &all()).await.stored, 3_000);
        // Whatever can be freed is.
        seconds(45).await;
        harness.fenced.fail_over(standby);
        seconds(15).await;
        assert_eq!((harness.fenced.count(), harness.held(FENCED)), (3_000, vec![]), "{:?}", harness.messages());
        harness.check_all().await;
    });
}
