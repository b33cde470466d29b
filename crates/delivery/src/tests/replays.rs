//! Dead letters that are listed, sent again and dropped, and crashes between all steps of it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dead_letters::{DeadAction, DeadFilter, DeadProgress, PageRequest, read_dead_letters};
use eventlog::DataDirectory;
use sink::{Batch, Record, Write};
use sink_testing::MemoryHandle;

use super::harness::FENCED;
use super::harness::Harness;
use super::harness::KEYED;
use super::harness::id;
use super::harness::name;
use super::harness::run;
use super::harness::seconds;

fn all() -> DeadFilter {
    DeadFilter::default()
}

fn only(number: u64) -> DeadFilter {
    DeadFilter { ids: Some(id(number).into()), ..all() }
}

/// Events 1, 2 and 3, of which the transactional store has rejected the second.
pub(super) async fn with_one_dead_letter(seed: u64) -> Harness {
    let mut harness = Harness::new(seed);
    harness.shards = 1;
    harness.fenced.refuse_id(id(2));
    harness.start();
    harness.append(0, "other", 3).await;
    harness.wait_until_settled().await;
    assert_eq!(harness.stored_and_dead(FENCED), (2, 1));
    harness
}

#[test]
fn dead_letters_are_listed_by_filter() {
    run(async {
        let mut harness = Harness::new(50);
        harness.shards = 1;
        harness.fenced.refuse_type("other");
        harness.fenced.refuse_type("both");
        harness.keyed.refuse_type("both");
        harness.start();
        harness.append(0, "other", 2).await;
        harness.append(0, "both", 1).await;
        harness.wait_until_settled().await;
        let numbers = |filter: DeadFilter| harness.list(&filter).letters.len();
        assert_eq!((harness.held(FENCED), harness.held(KEYED)), (vec![1, 2, 3], vec![3]));
        assert_eq!(numbers(DeadFilter { type_name: Some("other".into()), ..all() }), 2);
        assert_eq!(numbers(DeadFilter { sink: Some("another".into()), ..all() }), 0);
        assert_eq!(numbers(only(3)), 2);
        assert_eq!(numbers(DeadFilter { since: Some(1), until: Some(2), ..all() }), 4);
        assert_eq!(numbers(DeadFilter { since: Some(2), ..all() }), 0);
        assert_eq!(numbers(DeadFilter { until: Some(1), ..all() }), 0);
        let dead_letter = harness.list(&only(1)).letters.remove(0);
        assert_eq!((&*dead_letter.type_name, &*dead_letter.payload), ("other", &b"{\"n\":1}"[..]));
        assert!(dead_letter.reason.contains("is set to reject"), "{dead_letter:?}");
        let listed = harness.process().office.list(&all(), &PageRequest::first(2, false)).unwrap();
        assert!(listed.letters.len() == 2 && listed.more && listed.letters[0].payload.is_empty());
        assert!(!harness.process().office.list(&all(), &PageRequest::first(4, false)).unwrap().more);
        let held = |sink, of| harness.process().office.held(sink, &name(of));
        assert_eq!((held(FENCED, "other"), held(FENCED, "both"), held(KEYED, "other")), (2, 1, 0));
    });
}

#[test]
fn replayed_event_counts_as_stored() {
    run(async {
        let mut harness = with_one_dead_letter(51).await;
        harness.fenced.heal();
        let outcome = harness.act(DeadAction::Replay, &all()).await;
        assert_eq!((outcome.stored, outcome.refused, outcome.left, outcome.failure), (1, 0, 0, None));
        assert_eq!((harness.stored_and_dead(FENCED), harness.held(FENCED)), ((3, 0), vec![]));
        let again = harness.act(DeadAction::Replay, &all()).await;
        assert_eq!((again.stored, harness.fenced.count()), (0, 3), "there is nothing to replay twice");
        for seed in 1..4 {
            harness.kill(seed).await;
            harness.start();
            seconds(1).await;
            assert_eq!((harness.stored_and_dead(FENCED), harness.held(FENCED)), ((3, 0), vec![]), "start {seed}");
        }
        harness.check_all().await;
    });
}

#[test]
fn replay_sends_only_matching_dead_letters() {
    run(async {
        let mut harness = Harness::new(52);
        for number in [2, 5] {
            harness.fenced.refuse_id(id(number));
            harness.keyed.refuse_id(id(number));
        }
        harness.start();
        // One after the other: dead letters are in the order in which they were rejected.
        harness.append(0, "both", 3).await;
        harness.wait_until_settled().await;
        harness.append(1, "both", 3).await;
        harness.wait_until_settled().await;
        harness.fenced.heal();
        harness.keyed.heal();
        let filter = DeadFilter { sink: Some(KEYED.into()), ..only(5) };
        assert_eq!(harness.act(DeadAction::Replay, &filter).await.stored, 1);
        assert_eq!((harness.held(FENCED), harness.held(KEYED)), (vec![2, 5], vec![2]));
        let outcomes = harness.process().office.act(&DeadAction::Replay, &all(), 1).await;
        assert_eq!(outcomes.iter().map(|outcome| outcome.stored).collect::<Vec<_>>(), [1, 1]);
        assert_eq!((harness.held(FENCED), harness.held(KEYED)), (vec![5], vec![]));
        harness.check_all().await;
    });
}

/// Writes `payload` under the id of event 2, as another program would.
async fn take_the_id(harness: &Harness, payload: &'static [u8]) {
    let block = Bytes::from_static(payload);
    let lane = event::Lane { origin: event::Origin([9; 16]), shard: 0, sink: FENCED.into() };
    let mut batch = Batch::new(lane, 1);
    let write = Write::Insert;
    let record = Record {
        sequence: 1,
        id: id(2),
        type_name: "",
        source: "",
        received_at: 1,
        event_time: None,
        write,
        payload: &block,
    };
    batch.push(&block, &record);
    harness.process().sinks[0].write(&batch).await.unwrap();
}

#[test]
fn rejected_replay_keeps_the_newer_reason() {
    run(async {
        let mut harness = with_one_dead_letter(53).await;
        let length = |harness: &Harness| harness.process().ledger.dead_up_to(FENCED);
        let before = length(&harness);
        let outcome = harness.act(DeadAction::Replay, &all()).await;
        assert_eq!((outcome.stored, outcome.refused, outcome.failure), (0, 1, None));
        assert_eq!(length(&harness), before, "the same reason isn't written again");
        harness.fenced.heal();
        take_the_id(&harness, b"{}").await;
        assert_eq!(harness.act(DeadAction::Replay, &all()).await.refused, 1);
        assert_eq!((harness.stored_and_dead(FENCED), harness.held(FENCED)), ((2, 1), vec![2]));
        harness.kill(1).await;
        harness.start();
        let list = harness.list(&all()).letters;
        assert!(list.len() == 1 && list[0].reason.contains("is in use"), "{list:?}");
        assert_eq!(list[0].payload, b"{\"n\":2}");
        harness.check_balance();
        assert_eq!(harness.stored_and_dead(FENCED), (2, 1));
    });
}

#[test]
fn rejected_replay_does_not_block_others() {
    run(async {
        let mut harness = Harness::new(54);
        harness.fenced.refuse_type("both");
        harness.keyed.refuse_type("both");
        harness.start();
        harness.append(0, "both", 5).await;
        harness.wait_until_settled().await;
        for store in [&harness.fenced, &harness.keyed] {
            store.heal();
            store.refuse_id(id(2));
        }
        harness.keyed.retry_id(id(4));
        let outcome = harness.act(DeadAction::Replay, &all()).await;
        assert_eq!((outcome.stored, outcome.refused, outcome.left), (4 + 3, 2, 1));
        assert_eq!((harness.held(FENCED), harness.held(KEYED)), (vec![2], vec![2, 4]));
        harness.check_all().await;
    });
}

#[test]
fn dropped_event_stays_dead_and_is_never_resent() {
    run(async {
        let mut harness = with_one_dead_letter(55).await;
        harness.fenced.heal();
        assert_eq!(harness.act(DeadAction::Drop, &only(3)).await.dropped, 0, "3 is no dead letter");
        assert_eq!(harness.act(DeadAction::Drop, &only(2)).await.dropped, 1);
        assert_eq!((harness.stored_and_dead(FENCED), harness.held(FENCED)), ((2, 1), vec![]));
        assert_eq!(harness.act(DeadAction::Replay, &all()).await.stored, 0);
        harness.kill(1).await;
        // The store has lost everything: the lane sends again what it has, and not what was dropped.
        harness.fenced = MemoryHandle::fenced();
        harness.start();
        seconds(1).await;
        harness.wait_until_settled().await;
        assert_eq!((harness.stored_and_dead(FENCED), harness.held(FENCED)), ((2, 1), vec![]));
        assert_eq!(harness.fenced.count(), 2);
        harness.check_all().await;
    });
}

#[test]
fn replayed_event_is_resent_after_store_loss() {
    run(async {
        let mut harness = with_one_dead_letter(56).await;
        harness.fenced.heal();
        assert_eq!(harness.act(DeadAction::Replay, &all()).await.stored, 1);
        seconds(1).await;
        harness.kill(1).await;
        harness.fenced = MemoryHandle::fenced();
        harness.fenced.refuse_id(id(2));
        harness.start();
        seconds(1).await;
        harness.wait_until_settled().await;
        assert_eq!((harness.stored_and_dead(FENCED), harness.held(FENCED)), ((2, 1), vec![2]));
        harness.kill(2).await;
        harness.start();
        seconds(1).await;
        assert_eq!((harness.stored_and_dead(FENCED), harness.held(FENCED)), ((2, 1), vec![2]));
        harness.check_all().await;
    });
}

#[test]
fn dead_letter_waits_until_its_lane_passes() {
    run(async {
        let mut harness = with_one_dead_letter(57).await;
        harness.kill(1).await;
        harness.fenced = MemoryHandle::fenced();
        harness.fenced.block();
        harness.start();
        seconds(1).await;
        let outcome = harness.act(DeadAction::Replay, &all()).await;
        assert_eq!((outcome.stored, outcome.left, harness.held(FENCED)), (0, 1, vec![2]));
        harness.fenced.release();
        harness.wait_until_settled().await;
        assert_eq!(harness.act(DeadAction::Replay, &all()).await.stored, 1);
        harness.check_all().await;
    });
}

#[test]
fn lost_answer_is_resolved_by_the_next_replay() {
    run(async {
        let mut harness = with_one_dead_letter(58).await;
        harness.fenced.heal();
        harness.fenced.lose_answers(1);
        let outcome = harness.act(DeadAction::Replay, &all()).await;
        assert!(outcome.stored == 0 && outcome.failure.unwrap().contains("lose this answer"));
        assert_eq!((harness.fenced.count(), harness.held(FENCED)), (3, vec![2]));
        assert_eq!(harness.act(DeadAction::Replay, &all()).await.stored, 1);
        assert_eq!((harness.fenced.count(), harness.stored_and_dead(FENCED)), (3, (3, 0)));
        harness.check_all().await;
    });
}

/// Events 1 to `count`, all of which the transactional store has rejected and would accept now.
async fn with_dead_letters(seed: u64, count: u64) -> Harness {
    let mut harness = Harness::new(seed);
    harness.shards = 1;
    harness.fenced.refuse_type("other");
    harness.start();
    harness.append(0, "other", count).await;
    harness.wait_until_settled().await;
    harness.fenced.heal();
    harness
}

/// The numbers of the events that replays have sent, a write at a time.
fn sent_by_replays(harness: &Harness) -> Vec<Vec<u64>> {
    let calls = harness.fenced.calls().into_iter().filter(|call| call.lane.sink.ends_with("/replay"));
    let number = |id: &event::EventId| u64::try_from(u128::from_be_bytes(id.0)).unwrap();
    calls.map(|call| call.ids.iter().map(number).collect()).collect()
}

#[test]
fn event_stored_without_answer_is_not_resent() {
    for is_killed in [false, true] {
        run(async {
            let mut harness = with_dead_letters(63, 4).await;
            harness.fenced.refuse_id(id(2));
            // The answer to the second write is lost: the first is rejected because of 2.
            harness.fenced.lose_answers_after(1, 1);
            let outcomes = harness.process().office.act(&DeadAction::Replay, &all(), 3).await;
            let outcome = outcomes.into_iter().find(|outcome| &*outcome.sink == FENCED).unwrap();
            assert!(outcome.failure.is_some(), "{outcome:?}");
            // The number of 2 is below the cursor too.
            assert_eq!((harness.fenced.count(), harness.held(FENCED)), (2, vec![1, 2, 3, 4]));
            if is_killed {
                harness.power_cut(1).await;
                harness.start();
                seconds(1).await;
            }
            harness.fenced.heal();
            let outcome = harness.act(DeadAction::Replay, &all()).await;
            assert_eq!((outcome.stored, outcome.failure), (4, None));
            assert_eq!(sent_by_replays(&harness), [vec![1, 2, 3], vec![1, 3], vec![2, 4]]);
            assert_eq!((harness.stored_and_dead(FENCED), harness.held(FENCED)), ((4, 0), vec![]));
            harness.check_all().await;
        });
    }
}

#[test]
fn unstored_event_is_resent_under_the_same_number() {
    for is_killed in [false, true] {
        run(async {
            let mut harness = with_dead_letters(64, 4).await;
            // Of a batch with this event nothing takes effect.
            harness.fenced.retry_id(id(3));
            let outcomes = harness.process().office.act(&DeadAction::Replay, &all(), 3).await;
            assert!(outcomes.iter().any(|outcome| outcome.failure.is_some()), "{outcomes:?}");
            if is_killed {
                harness.power_cut(1).await;
                harness.start();
                seconds(1).await;
            }
            harness.fenced.heal();
            // In any case, the first attempt is sent first, unchanged.
            assert_eq!(harness.act(DeadAction::Replay, &only(4)).await.stored, 4);
            let calls = harness.fenced.calls().into_iter().filter(|call| call.lane.sink.ends_with("/replay"));
            let lasts: Vec<u64> = calls.map(|call| call.last).collect();
            assert_eq!((lasts.len(), lasts[1]), (3, lasts[0]), "the same numbers");
            assert_eq!(sent_by_replays(&harness)[1..], [vec![1, 2, 3], vec![4]]);
            harness.check_all().await;
        });
    }
}

#[test]
fn used_store_does_not_count_replays_of_another() {
    run(async {
        let mut harness = with_dead_letters(65, 6).await;
        let unused = harness.fenced.standby();
        for number in [1, 2, 3] {
            assert_eq!(harness.act(DeadAction::Replay, &only(number)).await.stored, 1);
        }
        let before = harness.fenced.standby();
        let other = MemoryHandle::fenced();
        other.fail_over(before);
        harness.fenced.fail_over(unused);
        harness.fenced.lose_answers(1);
        assert!(harness.act(DeadAction::Replay, &all()).await.failure.is_some());
        assert_eq!((other.count(), harness.held(FENCED)), (3, vec![4, 5, 6]));
        harness.kill(1).await;
        harness.fenced = other;
        harness.start();
        seconds(1).await;
        assert_eq!(harness.act(DeadAction::Replay, &all()).await.stored, 3);
        assert_eq!((harness.fenced.count(), harness.held(FENCED)), (6, vec![]));
        harness.check_all().await;
    });
}

#[test]
fn edited_dead_letter_is_sent() {
    run(async {
        let harness = with_dead_letters(66, 2).await;
        harness.fenced.lose_answers(1);
        assert!(harness.act(DeadAction::Replay, &all()).await.failure.is_some());
        let edit = DeadAction::Edit(br#"{"n": 20}"#[..].into());
        assert_eq!(harness.act(edit, &only(2)).await.edited, 1);
        // The store knows its id, with what it had before.
        let outcome = harness.act(DeadAction::Replay, &all()).await;
        assert_eq!((outcome.stored, outcome.refused, harness.held(FENCED)), (1, 1, vec![2]), "{outcome:?}");
        assert_eq!(sent_by_replays(&harness)[1..], [vec![2]]);
    });
}

/// The outcome of a replay that a crash interrupts at the disk's `operation`, if it does.
async fn crash_at(operation: u64, action: DeadAction, then: DeadAction) -> bool {
    let mut harness = with_one_dead_letter(operation).await;
    harness.fenced.heal();
    harness.disk.fail_power_at(operation);
    let outcome = harness.act(action.clone(), &all()).await;
    let interrupted = outcome.failure.is_some();
    // Some of the calls are the checkpointer's.
    seconds(2).await;
    harness.power_cut(operation).await;
    harness.start();
    seconds(1).await;
    harness.check_balance();
    let was_dropped = action == DeadAction::Drop && harness.held(FENCED).is_empty();
    if was_dropped {
        harness.dropped.insert((FENCED.into(), id(2)));
    }
    let stored = harness.fenced.get(id(2)).is_some();
    harness.act(if stored { DeadAction::Replay } else { then.clone() }, &all()).await;
    if then == DeadAction::Drop && !stored {
        harness.dropped.insert((FENCED.into(), id(2)));
    }
    assert_eq!(harness.held(FENCED), Vec::<u64>::new());
    harness.check_all().await;
    interrupted
}

#[test]
fn crash_during_replay_stores_each_event_once() {
    for action in [DeadAction::Replay, DeadAction::Drop] {
        for then in [DeadAction::Replay, DeadAction::Drop] {
            let interrupted = |operation| run(crash_at(operation, action.clone(), then.clone()));
            let outcomes: Vec<bool> = (1..30).map(interrupted).collect();
            assert!(outcomes[0] && !outcomes[28], "from the first call to beyond the last: {outcomes:?}");
        }
    }
}

#[test]
fn kill_before_save_counts_a_replay_once() {
    for pause in [0, 100, 250, 450, 700, 1000] {
        for damaged in [None, Some(0), Some(1)] {
            run(async {
                let mut harness = with_one_dead_letter(59).await;
                seconds(2).await;
                harness.fenced.heal();
                assert_eq!(harness.act(DeadAction::Replay, &all()).await.stored, 1);
                tokio::time::sleep(Duration::from_millis(pause)).await;
                harness.kill(pause).await;
                if let Some(generation) = damaged {
                    harness.disk.flip_bit(format!("/data/ledger.{generation}"), 500).unwrap();
                }
                harness.start();
                seconds(1).await;
                assert_eq!(harness.stored_and_dead(FENCED), (3, 0), "{pause} ms, damaged: {damaged:?}");
                harness.check_all().await;
            });
        }
    }
}

#[test]
fn segments_of_ended_dead_letters_are_freed() {
    run(async {
        let mut harness = Harness::new(60);
        harness.shards = 1;
        harness.fenced.refuse_type("other");
        harness.start();
        let payload = format!("\"{}\"", "x".repeat(3000));
        harness.append_request("other", 600, payload.as_bytes()).await;
        harness.wait_until_settled().await;
        let files = |harness: &Harness| {
            let paths = harness.disk.paths().into_iter();
            let of_segments =
                |path: &std::path::PathBuf| path.extension().is_some_and(|extension| extension == "segment");
            paths.filter(|path| path.starts_with("/data/dead/fenced") && of_segments(path)).count()
        };
        assert!(files(&harness) > 3);
        harness.fenced.heal();
        assert_eq!(harness.act(DeadAction::Drop, &only(1)).await.dropped, 1);
        harness.dropped.insert((FENCED.into(), id(1)));
        assert_eq!(harness.act(DeadAction::Replay, &all()).await.stored, 599);
        seconds(2).await;
        assert!(files(&harness) <= 2, "the dead letters are freed, their ends are still needed");
        harness.kill(1).await;
        harness.fenced = MemoryHandle::fenced();
        harness.start();
        seconds(1).await;
        harness.wait_until_settled().await;
        assert_eq!((harness.fenced.count(), harness.stored_and_dead(FENCED)), (599, (599, 1)));
        for _ in 0..3 {
            harness.append_request("another", 600, payload.as_bytes()).await;
        }
        harness.wait_until_settled().await;
        seconds(3).await;
        assert_eq!(files(&harness), 1);
        harness.kill(2).await;
        harness.start();
        harness.append(0, "other", 1).await;
        harness.wait_until_settled().await;
        harness.check_all().await;
    });
}

#[test]
fn dead_letters_of_removed_sink_can_be_dropped() {
    run(async {
        let mut harness = with_one_dead_letter(61).await;
        harness.stop().await;
        harness.kill(1).await;
        harness.routes = ledger::Routes::new().with_others([KEYED.into()]);
        harness.start();
        assert_eq!(harness.held(FENCED), [2]);
        let outcome = harness.act(DeadAction::Replay, &all()).await;
        assert!(outcome.stored == 0 && outcome.failure.unwrap().contains("no longer configured"));
        assert_eq!(harness.act(DeadAction::Drop, &all()).await.dropped, 1);
        assert_eq!(harness.held(FENCED), Vec::<u64>::new());
        harness.check_balance();
    });
}

#[test]
fn dead_letters_can_be_read_offline() {
    run(async {
        let mut harness = Harness::new(62);
        harness.fenced.refuse_type("other");
        harness.start();
        harness.append(0, "other", 4).await;
        harness.wait_until_settled().await;
        harness.act(DeadAction::Drop, &only(1)).await;
        harness.fenced.heal();
        harness.act(DeadAction::Replay, &only(3)).await;
        let online = harness.list(&all());
        harness.kill(1).await;
        let directory = DataDirectory::open(Arc::new(harness.disk.clone()), "/data".as_ref()).unwrap();
        assert_eq!(read_dead_letters(&directory, &all(), 10, true).unwrap(), online);
        assert_eq!(online.letters.iter().map(|dead_letter| dead_letter.id).collect::<Vec<_>>(), [id(2), id(4)]);
        let one = read_dead_letters(&directory, &all(), 1, false).unwrap();
        assert!(one.letters.len() == 1 && one.more);
    });
}

#[test]
fn selection_ignores_later_dead_letters() {
    run(async {
        let mut harness = Harness::new(52);
        harness.shards = 1;
        harness.fenced.refuse_type("other");
        harness.start();
        harness.append(0, "other", 3).await;
        harness.wait_until_settled().await;
        let office = harness.process().office.clone();
        let selection = office.select(&all(), u64::MAX).unwrap();
        let by_reading = office.select(&DeadFilter { since: Some(0), ..all() }, 2).unwrap();
        assert_eq!((selection.letters(), by_reading.letters()), (3, 2));
        harness.append(0, "other", 2).await;
        harness.wait_until_settled().await;
        let progress = Arc::default();
        let outcomes = office.act_on(&DeadAction::Replay, &selection, &progress).await;
        assert_eq!((outcomes.len(), outcomes[0].refused), (1, 3), "not those that were rejected later");
        let stopped = Arc::<DeadProgress>::default();
        stopped.stop();
        let selection = office.select(&all(), u64::MAX).unwrap();
        let outcomes = office.act_on(&DeadAction::Drop, &selection, &stopped).await;
        assert_eq!((outcomes[0].dropped, harness.held(FENCED).len()), (0, 5), "{outcomes:?}");
        assert_eq!(office.act_on(&DeadAction::Drop, &selection, &progress).await[0].dropped, 5);
    });
}
