//! Dead letters that are listed, sent again and dropped, and crashes between all steps of it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use eventlog::DataDirectory;
use sink::{Batch, Record, Write};
use sink_testing::MemoryHandle;

use super::world::FENCED;
use super::world::KEYED;
use super::world::World;
use super::world::id;
use super::world::name;
use super::world::run;
use super::world::seconds;
use crate::dead_letters::{DeadAction, DeadFilter, read_dead_letters};

fn all() -> DeadFilter {
    DeadFilter::default()
}

fn only(number: u64) -> DeadFilter {
    DeadFilter { id: Some(id(number)), ..all() }
}

/// Events 1, 2 and 3, of which the fenced store has refused the second.
pub(super) async fn with_one_letter(seed: u64) -> World {
    let mut world = World::new(seed);
    world.shards = 1;
    world.fenced.refuse_id(id(2));
    world.start();
    world.append(0, "other", 3).await;
    world.settle().await;
    assert_eq!(world.stored_and_dead(FENCED), (2, 1));
    world
}

#[test]
fn letters_are_listed_by_sink_type_id_and_time() {
    run(async {
        let mut world = World::new(50);
        world.shards = 1;
        world.fenced.refuse_type("other");
        world.fenced.refuse_type("both");
        world.keyed.refuse_type("both");
        world.start();
        world.append(0, "other", 2).await;
        world.append(0, "both", 1).await;
        world.settle().await;
        let numbers = |filter: DeadFilter| world.list(&filter).letters.len();
        assert_eq!((world.held(FENCED), world.held(KEYED)), (vec![1, 2, 3], vec![3]));
        assert_eq!(numbers(DeadFilter { type_name: Some("other".into()), ..all() }), 2);
        assert_eq!(numbers(DeadFilter { sink: Some("another".into()), ..all() }), 0);
        assert_eq!(numbers(only(3)), 2);
        assert_eq!(numbers(DeadFilter { since: Some(1), until: Some(2), ..all() }), 4);
        assert_eq!(numbers(DeadFilter { since: Some(2), ..all() }), 0);
        assert_eq!(numbers(DeadFilter { until: Some(1), ..all() }), 0);
        let letter = world.list(&only(1)).letters.remove(0);
        assert_eq!((&*letter.type_name, &*letter.payload), ("other", &b"{\"n\":1}"[..]));
        assert!(letter.reason.contains("told to refuse"), "{letter:?}");
        let listed = world.process().office.list(&all(), 2, false).unwrap();
        assert!(listed.letters.len() == 2 && listed.more && listed.letters[0].payload.is_empty());
        assert!(!world.process().office.list(&all(), 4, false).unwrap().more);
        let held = |sink, of| world.process().office.held(sink, &name(of));
        assert_eq!((held(FENCED, "other"), held(FENCED, "both"), held(KEYED, "other")), (2, 1, 0));
    });
}

#[test]
fn what_the_store_takes_at_last_is_counted_as_stored() {
    run(async {
        let mut world = with_one_letter(51).await;
        world.fenced.heal();
        let outcome = world.act(DeadAction::Replay, &all()).await;
        assert_eq!((outcome.stored, outcome.refused, outcome.left, outcome.failure), (1, 0, 0, None));
        assert_eq!((world.stored_and_dead(FENCED), world.held(FENCED)), ((3, 0), vec![]));
        let again = world.act(DeadAction::Replay, &all()).await;
        assert_eq!((again.stored, world.fenced.count()), (0, 3), "there is nothing to replay twice");
        for seed in 1..4 {
            world.kill(seed).await;
            world.start();
            seconds(1).await;
            assert_eq!((world.stored_and_dead(FENCED), world.held(FENCED)), ((3, 0), vec![]), "start {seed}");
        }
        world.check_all().await;
    });
}

#[test]
fn only_what_fits_the_filter_is_replayed() {
    run(async {
        let mut world = World::new(52);
        for number in [2, 5] {
            world.fenced.refuse_id(id(number));
            world.keyed.refuse_id(id(number));
        }
        world.start();
        // One after the other: letters stand in the order in which they were refused.
        world.append(0, "both", 3).await;
        world.settle().await;
        world.append(1, "both", 3).await;
        world.settle().await;
        world.fenced.heal();
        world.keyed.heal();
        let filter = DeadFilter { sink: Some(KEYED.into()), ..only(5) };
        assert_eq!(world.act(DeadAction::Replay, &filter).await.stored, 1);
        assert_eq!((world.held(FENCED), world.held(KEYED)), (vec![2, 5], vec![2]));
        let outcomes = world.process().office.act(&DeadAction::Replay, &all(), 1).await;
        assert_eq!(outcomes.iter().map(|outcome| outcome.stored).collect::<Vec<_>>(), [1, 1]);
        assert_eq!((world.held(FENCED), world.held(KEYED)), (vec![5], vec![]));
        world.check_all().await;
    });
}

/// Writes `payload` under the id of event 2, as another program would.
async fn take_the_id(world: &World, payload: &'static [u8]) {
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
    world.process().sinks[0].write(&batch).await.unwrap();
}

#[test]
fn what_is_refused_again_stays_with_the_newer_reason() {
    run(async {
        let mut world = with_one_letter(53).await;
        let length = |world: &World| world.process().dead[0].position();
        let before = length(&world);
        let outcome = world.act(DeadAction::Replay, &all()).await;
        assert_eq!((outcome.stored, outcome.refused, outcome.failure), (0, 1, None));
        assert_eq!(length(&world), before, "the same reason isn't written again");
        world.fenced.heal();
        take_the_id(&world, b"{}").await;
        assert_eq!(world.act(DeadAction::Replay, &all()).await.refused, 1);
        assert_eq!((world.stored_and_dead(FENCED), world.held(FENCED)), ((2, 1), vec![2]));
        world.kill(1).await;
        world.start();
        let list = world.list(&all()).letters;
        assert!(list.len() == 1 && list[0].reason.contains("is taken"), "{list:?}");
        assert_eq!(list[0].payload, b"{\"n\":2}");
        world.check_balance();
        assert_eq!(world.stored_and_dead(FENCED), (2, 1));
    });
}

#[test]
fn one_refused_letter_does_not_hold_up_its_neighbours() {
    run(async {
        let mut world = World::new(54);
        world.fenced.refuse_type("both");
        world.keyed.refuse_type("both");
        world.start();
        world.append(0, "both", 5).await;
        world.settle().await;
        for store in [&world.fenced, &world.keyed] {
            store.heal();
            store.refuse_id(id(2));
        }
        world.keyed.retry_id(id(4));
        let outcome = world.act(DeadAction::Replay, &all()).await;
        assert_eq!((outcome.stored, outcome.refused, outcome.left), (4 + 3, 2, 1));
        assert_eq!((world.held(FENCED), world.held(KEYED)), (vec![2], vec![2, 4]));
        world.check_all().await;
    });
}

#[test]
fn what_is_dropped_stays_counted_as_dead_and_is_never_sent_again() {
    run(async {
        let mut world = with_one_letter(55).await;
        world.fenced.heal();
        assert_eq!(world.act(DeadAction::Drop, &only(3)).await.dropped, 0, "3 is no letter");
        assert_eq!(world.act(DeadAction::Drop, &only(2)).await.dropped, 1);
        assert_eq!((world.stored_and_dead(FENCED), world.held(FENCED)), ((2, 1), vec![]));
        assert_eq!(world.act(DeadAction::Replay, &all()).await.stored, 0);
        world.kill(1).await;
        // The store has lost everything: the lane sends again what it has, and not what was dropped.
        world.fenced = MemoryHandle::fenced();
        world.start();
        seconds(1).await;
        world.settle().await;
        assert_eq!((world.stored_and_dead(FENCED), world.held(FENCED)), ((2, 1), vec![]));
        assert_eq!(world.fenced.count(), 2);
        world.check_all().await;
    });
}

#[test]
fn what_was_replayed_is_sent_again_where_the_store_has_lost_it() {
    run(async {
        let mut world = with_one_letter(56).await;
        world.fenced.heal();
        assert_eq!(world.act(DeadAction::Replay, &all()).await.stored, 1);
        seconds(1).await;
        world.kill(1).await;
        world.fenced = MemoryHandle::fenced();
        world.fenced.refuse_id(id(2));
        world.start();
        seconds(1).await;
        world.settle().await;
        assert_eq!((world.stored_and_dead(FENCED), world.held(FENCED)), ((2, 1), vec![2]));
        world.kill(2).await;
        world.start();
        seconds(1).await;
        assert_eq!((world.stored_and_dead(FENCED), world.held(FENCED)), ((2, 1), vec![2]));
        world.check_all().await;
    });
}

#[test]
fn a_letter_that_its_lane_has_not_passed_waits() {
    run(async {
        let mut world = with_one_letter(57).await;
        world.kill(1).await;
        world.fenced = MemoryHandle::fenced();
        world.fenced.block();
        world.start();
        seconds(1).await;
        let outcome = world.act(DeadAction::Replay, &all()).await;
        assert_eq!((outcome.stored, outcome.left, world.held(FENCED)), (0, 1, vec![2]));
        world.fenced.release();
        world.settle().await;
        assert_eq!(world.act(DeadAction::Replay, &all()).await.stored, 1);
        world.check_all().await;
    });
}

#[test]
fn a_lost_answer_leaves_the_letter_and_the_next_replay_finds_it_stored() {
    run(async {
        let mut world = with_one_letter(58).await;
        world.fenced.heal();
        world.fenced.lose_answers(1);
        let outcome = world.act(DeadAction::Replay, &all()).await;
        assert!(outcome.stored == 0 && outcome.failure.unwrap().contains("lose this answer"));
        assert_eq!((world.fenced.count(), world.held(FENCED)), (3, vec![2]));
        assert_eq!(world.act(DeadAction::Replay, &all()).await.stored, 1);
        assert_eq!((world.fenced.count(), world.stored_and_dead(FENCED)), (3, (3, 0)));
        world.check_all().await;
    });
}

/// Events 1 to `count`, all of which the fenced store has refused and would take now.
async fn with_letters(seed: u64, count: u64) -> World {
    let mut world = World::new(seed);
    world.shards = 1;
    world.fenced.refuse_type("other");
    world.start();
    world.append(0, "other", count).await;
    world.settle().await;
    world.fenced.heal();
    world
}

/// The numbers of the events that replays have sent, a write at a time.
fn sent_by_replays(world: &World) -> Vec<Vec<u64>> {
    let calls = world.fenced.calls().into_iter().filter(|call| call.lane.sink.ends_with("/replay"));
    let number = |id: &event::EventId| u64::try_from(u128::from_be_bytes(id.0)).unwrap();
    calls.map(|call| call.ids.iter().map(number).collect()).collect()
}

#[test]
fn what_was_stored_without_an_answer_is_never_sent_again() {
    for is_killed in [false, true] {
        run(async {
            let mut world = with_letters(63, 4).await;
            world.fenced.refuse_id(id(2));
            // That of the second write: the first is refused for the sake of 2.
            world.fenced.lose_answers_behind(1, 1);
            let outcomes = world.process().office.act(&DeadAction::Replay, &all(), 3).await;
            let outcome = outcomes.into_iter().find(|outcome| &*outcome.sink == FENCED).unwrap();
            assert!(outcome.failure.is_some(), "{outcome:?}");
            // The number of 2 lies below the cursor too.
            assert_eq!((world.fenced.count(), world.held(FENCED)), (2, vec![1, 2, 3, 4]));
            if is_killed {
                world.power_cut(1).await;
                world.start();
                seconds(1).await;
            }
            world.fenced.heal();
            let outcome = world.act(DeadAction::Replay, &all()).await;
            assert_eq!((outcome.stored, outcome.failure), (4, None));
            assert_eq!(sent_by_replays(&world), [vec![1, 2, 3], vec![1, 3], vec![2, 4]]);
            assert_eq!((world.stored_and_dead(FENCED), world.held(FENCED)), ((4, 0), vec![]));
            world.check_all().await;
        });
    }
}

#[test]
fn what_was_not_stored_is_sent_under_the_same_numbers() {
    for is_killed in [false, true] {
        run(async {
            let mut world = with_letters(64, 4).await;
            // Of a batch with this one nothing takes effect.
            world.fenced.retry_id(id(3));
            let outcomes = world.process().office.act(&DeadAction::Replay, &all(), 3).await;
            assert!(outcomes.iter().any(|outcome| outcome.failure.is_some()), "{outcomes:?}");
            if is_killed {
                world.power_cut(1).await;
                world.start();
                seconds(1).await;
            }
            world.fenced.heal();
            // Whatever is asked for, the first attempt comes first, as it was.
            assert_eq!(world.act(DeadAction::Replay, &only(4)).await.stored, 4);
            let calls = world.fenced.calls().into_iter().filter(|call| call.lane.sink.ends_with("/replay"));
            let lasts: Vec<u64> = calls.map(|call| call.last).collect();
            assert_eq!((lasts.len(), lasts[1]), (3, lasts[0]), "the same numbers");
            assert_eq!(sent_by_replays(&world)[1..], [vec![1, 2, 3], vec![4]]);
            world.check_all().await;
        });
    }
}

#[test]
fn a_store_that_was_used_before_is_not_thought_to_have_what_another_got() {
    run(async {
        let mut world = with_letters(65, 6).await;
        let unused = world.fenced.standby();
        for number in [1, 2, 3] {
            assert_eq!(world.act(DeadAction::Replay, &only(number)).await.stored, 1);
        }
        let before = world.fenced.standby();
        let other = MemoryHandle::fenced();
        other.fail_over(before);
        world.fenced.fail_over(unused);
        world.fenced.lose_answers(1);
        assert!(world.act(DeadAction::Replay, &all()).await.failure.is_some());
        assert_eq!((other.count(), world.held(FENCED)), (3, vec![4, 5, 6]));
        world.kill(1).await;
        world.fenced = other;
        world.start();
        seconds(1).await;
        assert_eq!(world.act(DeadAction::Replay, &all()).await.stored, 3);
        assert_eq!((world.fenced.count(), world.held(FENCED)), (6, vec![]));
        world.check_all().await;
    });
}

#[test]
fn a_letter_that_was_edited_since_is_sent() {
    run(async {
        let world = with_letters(66, 2).await;
        world.fenced.lose_answers(1);
        assert!(world.act(DeadAction::Replay, &all()).await.failure.is_some());
        let edit = DeadAction::Edit(br#"{"n": 20}"#[..].into());
        assert_eq!(world.act(edit, &only(2)).await.edited, 1);
        // The store knows its id, with what it had before.
        let outcome = world.act(DeadAction::Replay, &all()).await;
        assert_eq!((outcome.stored, outcome.refused, world.held(FENCED)), (1, 1, vec![2]), "{outcome:?}");
        assert_eq!(sent_by_replays(&world)[1..], [vec![2]]);
    });
}

/// What a replay ends with that a crash interrupts at the disk's `operation`, if it is interrupted.
async fn crash_at(operation: u64, action: DeadAction, then: DeadAction) -> bool {
    let mut world = with_one_letter(operation).await;
    world.fenced.heal();
    world.disk.fail_power_at(operation);
    let outcome = world.act(action.clone(), &all()).await;
    let interrupted = outcome.failure.is_some();
    // Some of the calls are the keeper's.
    seconds(2).await;
    world.power_cut(operation).await;
    world.start();
    seconds(1).await;
    world.check_balance();
    let was_dropped = action == DeadAction::Drop && world.held(FENCED).is_empty();
    if was_dropped {
        world.dropped.insert((FENCED.into(), id(2)));
    }
    let stored = world.fenced.get(id(2)).is_some();
    world.act(if stored { DeadAction::Replay } else { then.clone() }, &all()).await;
    if then == DeadAction::Drop && !stored {
        world.dropped.insert((FENCED.into(), id(2)));
    }
    assert_eq!(world.held(FENCED), Vec::<u64>::new());
    world.check_all().await;
    interrupted
}

#[test]
fn a_crash_at_any_step_leaves_each_event_once_and_the_ledger_right() {
    for action in [DeadAction::Replay, DeadAction::Drop] {
        for then in [DeadAction::Replay, DeadAction::Drop] {
            let interrupted = |operation| run(crash_at(operation, action.clone(), then.clone()));
            let outcomes: Vec<bool> = (1..30).map(interrupted).collect();
            assert!(outcomes[0] && !outcomes[28], "from the first call to beyond the last: {outcomes:?}");
        }
    }
}

#[test]
fn a_kill_before_the_ledger_is_saved_counts_a_replay_once() {
    for pause in [0, 100, 250, 450, 700, 1000] {
        for damaged in [None, Some(0), Some(1)] {
            run(async {
                let mut world = with_one_letter(59).await;
                seconds(2).await;
                world.fenced.heal();
                assert_eq!(world.act(DeadAction::Replay, &all()).await.stored, 1);
                tokio::time::sleep(Duration::from_millis(pause)).await;
                world.kill(pause).await;
                if let Some(generation) = damaged {
                    world.disk.flip_bit(format!("/data/ledger.{generation}"), 500).unwrap();
                }
                world.start();
                seconds(1).await;
                assert_eq!(world.stored_and_dead(FENCED), (3, 0), "{pause} ms, damaged: {damaged:?}");
                world.check_all().await;
            });
        }
    }
}

#[test]
fn segments_of_settled_letters_are_freed_when_no_lane_can_read_their_events() {
    run(async {
        let mut world = World::new(60);
        world.shards = 1;
        world.fenced.refuse_type("other");
        world.start();
        let payload = format!("\"{}\"", "x".repeat(3000));
        world.append_request("other", 600, payload.as_bytes()).await;
        world.settle().await;
        let files = |world: &World| {
            let paths = world.disk.paths().into_iter();
            let of_segments =
                |path: &std::path::PathBuf| path.extension().is_some_and(|extension| extension == "segment");
            paths.filter(|path| path.starts_with("/data/dead/fenced") && of_segments(path)).count()
        };
        assert!(files(&world) > 3);
        world.fenced.heal();
        assert_eq!(world.act(DeadAction::Drop, &only(1)).await.dropped, 1);
        world.dropped.insert((FENCED.into(), id(1)));
        assert_eq!(world.act(DeadAction::Replay, &all()).await.stored, 599);
        seconds(2).await;
        assert!(files(&world) <= 2, "the letters are freed, their ends are still needed");
        world.kill(1).await;
        world.fenced = MemoryHandle::fenced();
        world.start();
        seconds(1).await;
        world.settle().await;
        assert_eq!((world.fenced.count(), world.stored_and_dead(FENCED)), (599, (599, 1)));
        for _ in 0..3 {
            world.append_request("another", 600, payload.as_bytes()).await;
        }
        world.settle().await;
        seconds(3).await;
        assert_eq!(files(&world), 1);
        world.kill(2).await;
        world.start();
        world.append(0, "other", 1).await;
        world.settle().await;
        world.check_all().await;
    });
}

#[test]
fn letters_of_a_sink_that_is_gone_are_shown_and_can_be_dropped() {
    run(async {
        let mut world = with_one_letter(61).await;
        world.stop().await;
        world.kill(1).await;
        world.routes = crate::Routes::new().with_others([KEYED.into()]);
        world.start();
        assert_eq!(world.held(FENCED), [2]);
        let outcome = world.act(DeadAction::Replay, &all()).await;
        assert!(outcome.stored == 0 && outcome.failure.unwrap().contains("isn't configured"));
        assert_eq!(world.act(DeadAction::Drop, &all()).await.dropped, 1);
        assert_eq!(world.held(FENCED), Vec::<u64>::new());
        world.check_balance();
    });
}

#[test]
fn letters_can_be_read_while_nothing_runs() {
    run(async {
        let mut world = World::new(62);
        world.fenced.refuse_type("other");
        world.start();
        world.append(0, "other", 4).await;
        world.settle().await;
        world.act(DeadAction::Drop, &only(1)).await;
        world.fenced.heal();
        world.act(DeadAction::Replay, &only(3)).await;
        let online = world.list(&all());
        world.kill(1).await;
        let directory = DataDirectory::open(Arc::new(world.disk.clone()), "/data".as_ref()).unwrap();
        assert_eq!(read_dead_letters(&directory, &all(), 10, true).unwrap(), online);
        assert_eq!(online.letters.iter().map(|letter| letter.id).collect::<Vec<_>>(), [id(2), id(4)]);
        let one = read_dead_letters(&directory, &all(), 1, false).unwrap();
        assert!(one.letters.len() == 1 && one.more);
    });
}
