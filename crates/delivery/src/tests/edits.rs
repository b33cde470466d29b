//! Dead letters that get another payload, chosen by their reasons and by what is in them.

use dead_letters::{DeadAction, DeadFilter};

use super::harness::FENCED;
use super::harness::Harness;
use super::harness::KEYED;
use super::harness::id;
use super::harness::run;
use super::harness::seconds;
use super::replays::with_one_dead_letter;

const OLD: &[u8] = br#"{"n":2}"#;
const NEW: &[u8] = br#"{"n":"two"}"#;

fn all() -> DeadFilter {
    DeadFilter::default()
}

fn second() -> DeadFilter {
    DeadFilter { ids: Some(id(2).into()), ..all() }
}

fn edit() -> DeadAction {
    DeadAction::Edit(NEW.into())
}

#[test]
fn replay_sends_the_edited_payload() {
    run(async {
        let mut harness = with_one_dead_letter(70).await;
        assert_eq!(harness.act(edit(), &second()).await.edited, 1);
        assert_eq!((harness.stored_and_dead(FENCED), harness.held(FENCED)), ((2, 1), vec![2]));
        harness.kill(1).await;
        harness.start();
        seconds(1).await;
        let dead_letters = harness.list(&all()).letters;
        assert_eq!((dead_letters[0].payload.as_slice(), dead_letters.len()), (NEW, 1));
        assert_eq!(harness.act(DeadAction::Replay, &all()).await.refused, 1, "an edit alone does not fix the store");
        harness.fenced.heal();
        assert_eq!(harness.act(DeadAction::Replay, &all()).await.stored, 1);
        assert_eq!(&*harness.fenced.get(id(2)).unwrap().payload, NEW);
        assert_eq!(harness.act(edit(), &second()).await.edited, 0, "it is no longer a dead letter");
        assert_eq!(
            harness.act(edit(), &DeadFilter { ids: Some(id(1).into()), ..all() }).await.edited,
            0,
            "it never was"
        );
        harness.check_balance();
    });
}

#[test]
fn edit_changes_only_one_dead_letter() {
    run(async {
        let mut harness = Harness::new(71);
        harness.shards = 1;
        harness.fenced.refuse_type("both");
        harness.keyed.refuse_type("both");
        harness.start();
        harness.append(0, "both", 2).await;
        harness.wait_until_settled().await;
        let outcome = harness.act(edit(), &all()).await;
        assert!(outcome.edited == 0 && outcome.failure.unwrap().contains("several dead letters"));
        let of_sink = DeadFilter { sink: Some(KEYED.into()), ..second() };
        assert_eq!(harness.act(edit(), &of_sink).await.edited, 1);
        assert_eq!(harness.act(edit(), &second()).await.edited, 2, "one of each sink");
    });
}

/// Whether the power went before the edit was answered.
async fn crash_at(operation: u64) -> bool {
    let mut harness = with_one_dead_letter(operation).await;
    harness.disk.fail_power_at(operation);
    let was_answered = harness.act(edit(), &second()).await.edited == 1;
    seconds(2).await;
    harness.power_cut(operation).await;
    harness.start();
    seconds(1).await;
    let dead_letters = harness.list(&all()).letters;
    assert_eq!((dead_letters.len(), dead_letters[0].id), (1, id(2)));
    let payload = dead_letters[0].payload.clone();
    assert!(payload == NEW || payload == OLD && !was_answered, "{}", String::from_utf8_lossy(&payload));
    harness.check_balance();
    harness.fenced.heal();
    assert_eq!(harness.act(DeadAction::Replay, &all()).await.stored, 1);
    assert_eq!(*harness.fenced.get(id(2)).unwrap().payload, *payload);
    assert_eq!(harness.stored_and_dead(FENCED), (3, 0));
    !was_answered
}

#[test]
fn power_cut_leaves_the_old_or_new_payload() {
    let interrupted: Vec<bool> = (1..20).map(|operation| run(crash_at(operation))).collect();
    assert!(interrupted[0] && !interrupted[18], "from the first call to beyond the last: {interrupted:?}");
}

#[test]
fn dead_letters_are_filtered_by_reason_and_payload() {
    run(async {
        let mut harness = Harness::new(72);
        harness.shards = 1;
        harness.fenced.refuse_type("other");
        harness.start();
        harness.append(0, "other", 4).await;
        harness.wait_until_settled().await;
        let of = |text: &str| DeadFilter { condition: text.parse().ok(), ..all() };
        for (filter, wanted) in [
            (of("n > 2"), vec![3, 4]),
            (of("n == 1 || n == 4"), vec![1, 4]),
            (of("n.size() > 0"), vec![]),
            (DeadFilter { reason: Some("is set to reject".into()), ..all() }, vec![1, 2, 3, 4]),
            (DeadFilter { reason: Some("no reason".into()), ..all() }, vec![]),
        ] {
            assert_eq!(numbers(&harness, &filter), wanted, "{filter:?}");
        }
        let third = DeadFilter { reason: Some(id(3).to_string()), ..all() };
        assert_eq!(numbers(&harness, &third), [3], "the store says which event it is set to reject");
        harness.fenced.heal();
        assert_eq!(harness.act(DeadAction::Replay, &of("n > 2")).await.stored, 2);
        assert_eq!(harness.held(FENCED), [1, 2]);
        assert_eq!(harness.act(DeadAction::Drop, &of("n == 1")).await.dropped, 1);
        assert_eq!(harness.held(FENCED), [2]);
    });
}

fn numbers(harness: &Harness, filter: &DeadFilter) -> Vec<u128> {
    harness.list(filter).letters.iter().map(|dead_letter| u128::from_be_bytes(dead_letter.id.0)).collect()
}
