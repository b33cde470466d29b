//! Two processes on copies of one data directory, restored backups, and stores that a lane accepts.

use std::time::Duration;

use dead_letters::{DeadAction, DeadFilter};
use sink_testing::MemoryHandle;

use super::harness::FENCED;
use super::harness::Harness;
use super::harness::id;
use super::harness::run;
use super::harness::seconds;
use crate::command::ChangeError;
use crate::status::LaneState;

fn harness(seed: u64) -> Harness {
    let mut harness = Harness::new(seed);
    harness.shards = 1;
    harness
}

/// Why the lane to the transactional store has stopped, if it has.
fn stopped(harness: &Harness) -> Option<String> {
    let lanes = harness.process().lanes.iter();
    let states = lanes.filter(|lane| &*lane.lane().sink == FENCED).map(|lane| lane.state());
    states.into_iter().find_map(|state| match state {
        LaneState::Stopped(reason) => Some(reason),
        _ => None,
    })
}

/// Stored and pending in the transactional store, as the ledger has it.
fn counts(harness: &Harness) -> (u64, u64) {
    let rows = harness.rows();
    let of_sink = rows.iter().flat_map(|row| &row.sinks).filter(|row| &*row.sink == FENCED);
    of_sink.fold((0, 0), |(stored, pending), row| (stored + row.stored, pending + row.pending))
}

/// Of the events with these numbers, those that the transactional store lacks.
fn lacking(harness: &Harness, numbers: std::ops::Range<u64>) -> Vec<u64> {
    numbers.filter(|number| harness.fenced.get(id(*number)).is_none()).collect()
}

async fn accept(harness: &Harness, resend: bool) -> Result<u64, ChangeError> {
    harness.control().accept(FENCED.into(), resend, None).await
}

/// Appends events and gives their numbers.
async fn append(harness: &mut Harness, count: u64) -> std::ops::Range<u64> {
    let first = harness.next_number();
    assert_eq!(harness.append(0, "other", count).await as u64, count);
    first..harness.next_number()
}

#[test]
fn second_copy_stops_and_counts_nothing_as_stored() {
    run(async {
        let mut one = harness(200);
        one.start();
        append(&mut one, 10).await;
        one.wait_until_settled().await;
        one.stop().await;
        let mut two = one.copy(1);
        one.kill(1).await;
        one.start();
        seconds(1).await;
        two.start();
        let of_one = append(&mut one, 50).await;
        let of_two = append(&mut two, 20).await;
        one.wait_until_settled().await;
        seconds(30).await;
        let reason = stopped(&two).unwrap();
        assert!(
            reason.contains("another server has claimed this lane") && reason.contains("forebay route accept fenced")
        );
        assert_eq!((counts(&one), counts(&two)), ((60, 0), (10, 20)));
        assert_eq!((lacking(&one, of_one), lacking(&one, of_two.clone()).len()), (vec![], 20));
        // The same after a restart and a change of the configuration.
        two.kill(2).await;
        two.start();
        seconds(5).await;
        two.change(two.routes.clone()).await.unwrap();
        seconds(5).await;
        assert_eq!((stopped(&two), counts(&two)), (Some(reason), (10, 20)));
        assert_eq!(stopped(&one), None);
        // The operator chooses the other one.
        assert_eq!(accept(&two, false).await.unwrap(), 1);
        two.wait_until_settled().await;
        let late = append(&mut one, 5).await;
        seconds(30).await;
        assert!(stopped(&one).is_some() && stopped(&two).is_none());
        assert_eq!((lacking(&one, of_two), lacking(&one, late).len()), (vec![], 5));
        assert_eq!((counts(&one), counts(&two)), ((60, 5), (30, 0)));
        one.check_balance();
        two.check_balance();
    });
}

#[test]
fn original_stops_writing_after_a_copy_takes_over() {
    run(async {
        let mut one = harness(201);
        one.start();
        append(&mut one, 10).await;
        one.wait_until_settled().await;
        seconds(2).await;
        let mut two = one.copy(1);
        two.start();
        seconds(1).await;
        let (of_one, of_two) = (append(&mut one, 20).await, append(&mut two, 30).await);
        two.wait_until_settled().await;
        seconds(30).await;
        assert_eq!((stopped(&two), lacking(&one, of_two)), (None, vec![]));
        assert!(stopped(&one).unwrap().contains("forebay route accept"), "{:?}", one.messages());
        assert_eq!((counts(&one), counts(&two)), ((10, 20), (40, 0)));
        // Its events are at positions that the other process has used since: they do not count as stored.
        assert_eq!(accept(&one, false).await.unwrap(), 1);
        one.wait_until_settled().await;
        assert_eq!((lacking(&one, of_one), counts(&one)), (vec![], (30, 0)));
        one.check_balance();
    });
}

#[test]
fn outdated_copy_does_not_take_over_the_lane() {
    run(async {
        let mut one = harness(202);
        one.start();
        append(&mut one, 10).await;
        one.wait_until_settled().await;
        seconds(2).await;
        let mut two = one.copy(1);
        append(&mut one, 20).await;
        one.wait_until_settled().await;
        two.start();
        append(&mut two, 5).await;
        seconds(5).await;
        assert!(stopped(&two).unwrap().contains("the journal of shard 0 ended at 10"), "{:?}", two.messages());
        append(&mut one, 20).await;
        one.wait_until_settled().await;
        assert_eq!((stopped(&one), counts(&one), counts(&two)), (None, (50, 0), (10, 5)));
    });
}

#[test]
fn idle_process_detects_another_claim_by_probes() {
    run(async {
        let mut one = harness(203);
        one.fenced = MemoryHandle::replicated(Duration::from_mins(1));
        one.start();
        append(&mut one, 10).await;
        one.wait_until_settled().await;
        seconds(1).await;
        let mut two = one.copy(1);
        two.start();
        seconds(20).await;
        assert!(stopped(&one).is_some() && stopped(&two).is_none(), "{:?}", one.messages());
    });
}

#[test]
fn restored_backup_continues_when_the_operator_accepts() {
    for resend in [false, true] {
        run(async move {
            let mut harness = harness(204);
            harness.start();
            append(&mut harness, 30).await;
            harness.wait_until_settled().await;
            harness.stop().await;
            let mut restored = harness.copy(1);
            harness.kill(1).await;
            harness.start();
            append(&mut harness, 40).await;
            harness.wait_until_settled().await;
            harness.kill(2).await;
            restored.start();
            let early = append(&mut restored, 20).await;
            seconds(5).await;
            assert!(stopped(&restored).is_some());
            restored.kill(3).await;
            restored.start();
            let late = append(&mut restored, 20).await;
            seconds(5).await;
            let calls = restored.fenced.calls().len();
            assert!(stopped(&restored).unwrap().contains("restored backup"), "{:?}", restored.messages());
            assert_eq!(accept(&restored, resend).await.unwrap(), 1);
            restored.wait_until_settled().await;
            assert_eq!(
                (stopped(&restored), lacking(&restored, early), lacking(&restored, late)),
                (None, vec![], vec![])
            );
            assert_eq!(counts(&restored), (70, 0));
            let first = restored.fenced.calls()[calls..].iter().map(|call| call.first).min();
            assert_eq!(first, Some(31), "what it had is in the store");
            assert!(matches!(accept(&restored, resend).await, Err(ChangeError::NothingToDo(_))));
            restored.check_balance();
            // And permanently.
            restored.kill(4).await;
            restored.start();
            append(&mut restored, 5).await;
            restored.wait_until_settled().await;
            restored.check_balance();
        });
    }
}

#[test]
fn unsaved_events_are_resent_only_on_request() {
    for (resend, sent) in [(false, 3), (true, 23)] {
        run(async move {
            let mut harness = harness(205);
            harness.start();
            append(&mut harness, 10).await;
            harness.wait_until_settled().await;
            seconds(2).await;
            harness.fenced.fail_next(usize::MAX);
            append(&mut harness, 20).await;
            seconds(2).await;
            let mut backup = harness.copy(1);
            harness.fenced.heal();
            harness.wait_until_settled().await;
            harness.kill(1).await;
            harness.start();
            seconds(2).await;
            harness.kill(2).await;
            backup.start();
            append(&mut backup, 3).await;
            seconds(5).await;
            assert!(stopped(&backup).is_some());
            let calls = backup.fenced.calls().len();
            assert_eq!(accept(&backup, resend).await.unwrap(), 1);
            backup.wait_until_settled().await;
            let records: usize = backup.fenced.calls()[calls..].iter().map(|call| call.ids.len()).sum();
            assert_eq!((records, counts(&backup), backup.fenced.count()), (sent, (33, 0), 33));
            backup.check_balance();
        });
    }
}

#[test]
fn accept_permission_survives_crashes_and_outages() {
    run(async {
        let mut harness = harness(206);
        harness.start();
        append(&mut harness, 30).await;
        harness.wait_until_settled().await;
        harness.stop().await;
        let mut restored = harness.copy(1);
        harness.kill(1).await;
        harness.start();
        append(&mut harness, 40).await;
        harness.wait_until_settled().await;
        harness.kill(2).await;
        restored.start();
        seconds(2).await;
        restored.fenced.fail_next(usize::MAX);
        assert_eq!(accept(&restored, false).await.unwrap(), 1);
        let events = append(&mut restored, 20).await;
        for seed in 0..3 {
            restored.power_cut(seed).await;
            restored.start();
            seconds(1).await;
        }
        restored.fenced.heal();
        restored.fenced.lose_claims(2);
        seconds(100).await;
        restored.wait_until_settled().await;
        assert_eq!((stopped(&restored), lacking(&restored, events), counts(&restored)), (None, vec![], (50, 0)));
        restored.check_balance();
    });
}

#[test]
fn crash_during_a_claim_recovers_at_next_start() {
    for lost in 0..3 {
        run(async move {
            let mut harness = harness(207 + lost as u64);
            harness.fenced.lose_claims(lost);
            for round in 0..20 {
                harness.start();
                append(&mut harness, 1).await;
                tokio::time::sleep(Duration::from_micros(150 * round)).await;
                if round % 3 == 0 {
                    harness.power_cut(round).await;
                } else {
                    harness.kill(round).await;
                }
                if round % 7 == 0 {
                    harness.damage_newest("/data/ledger");
                }
                harness.fenced.lose_claims(lost * usize::from(round % 2 == 0));
            }
            harness.start();
            seconds(5).await;
            harness.wait_until_settled().await;
            assert_eq!(stopped(&harness), None);
            harness.check_all().await;
        });
    }
}

#[test]
fn store_with_an_earlier_claim_is_accepted() {
    run(async {
        let mut harness = harness(212);
        harness.fenced = MemoryHandle::replicated(Duration::from_mins(1));
        let empty = harness.fenced.standby();
        harness.start();
        append(&mut harness, 10).await;
        harness.wait_until_settled().await;
        for round in 0..3 {
            let standby = harness.fenced.standby();
            harness.kill(round).await;
            harness.start();
            append(&mut harness, 10).await;
            harness.wait_until_settled().await;
            harness.fenced.fail_over(standby);
            seconds(15).await;
            harness.wait_until_settled().await;
            assert_eq!(stopped(&harness), None, "{:?}", harness.messages());
            assert_eq!(harness.fenced.count() as u64, 10 + 10 * (round + 1));
        }
        // A store from the time before claims.
        harness.fenced.fail_over(empty);
        seconds(15).await;
        harness.check_all().await;
    });
}

#[test]
fn stopped_running_lane_can_be_dropped_or_accepted() {
    for restarts in [false, true] {
        for accepts in [false, true] {
            run(async move {
                let mut harness = harness(213);
                harness.start();
                let empty = harness.fenced.standby();
                for _ in 0..50 {
                    append(&mut harness, 30).await;
                }
                harness.wait_until_settled().await;
                seconds(10).await;
                let oldest = harness.process().log.shards()[0].segments().oldest().unwrap();
                assert!(oldest > 1, "the first segments are freed");
                harness.fenced.fail_over(empty);
                // The store in memory accepts a batch after a gap: only another probe shows that it is another store.
                harness.fenced.fail_next(1);
                let late = append(&mut harness, 10).await;
                seconds(5).await;
                if restarts {
                    harness.kill(1).await;
                    harness.start();
                    seconds(5).await;
                }
                let reason = stopped(&harness).unwrap();
                assert!(reason.contains("forebay route accept fenced") && reason.contains("forebay route drop fenced"));
                assert_eq!(counts(&harness), (1500, 10));
                if accepts {
                    assert_eq!(accept(&harness, false).await.unwrap(), 1);
                } else {
                    let discarded = harness.control().discard(FENCED.into(), None, None).await.unwrap();
                    assert_eq!(discarded.lanes, 1);
                }
                harness.wait_until_settled().await;
                seconds(5).await;
                assert_eq!((stopped(&harness), lacking(&harness, late), counts(&harness)), (None, vec![], (1510, 0)));
                let sent_again = if accepts { 1500 - (oldest - 1) } else { 0 };
                assert_eq!(harness.fenced.count() as u64, 10 + sent_again, "restarts: {restarts}");
                harness.check_balance();
            });
        }
    }
}

#[test]
fn replay_does_not_override_another_claim() {
    run(async {
        let mut one = harness(220);
        one.start();
        one.fenced.refuse_type("other");
        let dead_letters = append(&mut one, 4).await;
        one.wait_until_settled().await;
        one.stop().await;
        let mut two = one.copy(1);
        one.fenced.heal();
        one.kill(1).await;
        one.start();
        seconds(1).await;
        two.start();
        seconds(1).await;
        let filter = DeadFilter::default();
        let refused = two.act(DeadAction::Replay, &filter).await;
        assert!(refused.stored == 0 && refused.failure.unwrap().contains("another server"));
        assert_eq!(one.act(DeadAction::Replay, &filter).await.stored, 4);
        assert!(lacking(&one, dead_letters).is_empty());
        // The operator chooses the other one, and its replays are sent though the cursor is beyond their numbers.
        assert_eq!(accept(&two, false).await.unwrap(), 1);
        seconds(1).await;
        assert_eq!(two.act(DeadAction::Replay, &filter).await.stored, 4);
        assert_eq!(one.act(DeadAction::Replay, &filter).await.stored, 0);
    });
}
