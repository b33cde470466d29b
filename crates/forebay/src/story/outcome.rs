//! The outcome of an event in one sink, from what the dead letters, the store, the route and the lane say. No I/O.

use admin_api::story::SinkOutcomeJson;
use dead_letters::TracedOutcome;
use ledger::EventDecision;

/// What is known of an event in one sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SinkFacts {
    pub(super) decision: EventDecision,
    /// The newest record of its dead letter, with the reason.
    pub(super) dead: Option<(TracedOutcome, String)>,
    /// Why the store rejects it for now, if it does.
    pub(super) deferred: Option<String>,
    pub(super) store: StoreSays,
    /// Whether the journal or the lane has lost it.
    pub(super) is_lost: bool,
    pub(super) lane: LaneSays,
    pub(super) is_configured: bool,
}

/// What the store says. It was asked after the lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StoreSays {
    Has,
    HasNot,
    /// It can't be read, or didn't answer.
    Nothing,
}

/// Whether the lane has passed the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaneSays {
    Passed,
    /// It has this many events to pass first, if the position is known.
    Pending(Option<u64>),
    /// The position isn't known, and the lane may have passed it.
    Unknown,
}

/// The outcome, and what else there is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) outcome: SinkOutcomeJson,
    pub(super) reason: Option<String>,
    pub(super) condition: Option<String>,
    pub(super) before_it: Option<u64>,
}

impl Outcome {
    const fn plain(outcome: SinkOutcomeJson) -> Self {
        Self { outcome, reason: None, condition: None, before_it: None }
    }

    fn with(outcome: SinkOutcomeJson, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()).filter(|reason: &String| !reason.is_empty()), ..Self::plain(outcome) }
    }
}

const DELETED: &str = "the store no longer has it: it was deleted, or the retention of the sink has ended";
const OUTSIDE: &str = "the route began after this event, was removed before it, or its backlog was discarded";
const REMOVED: &str = "the sink was removed from the configuration; the journal keeps the event";
const REPLAYED: &str = "it was a dead letter, and a replay stored it";
const NO_PAYLOAD: &str =
    "the lane has passed it, and the condition of the route can't be evaluated without the payload";

/// The outcome of an event with these facts.
pub(super) fn of(facts: &SinkFacts) -> Outcome {
    match &facts.dead {
        Some((TracedOutcome::Held, reason)) => return Outcome::with(SinkOutcomeJson::Dead, reason),
        Some((TracedOutcome::Dropped, _)) => return Outcome::plain(SinkOutcomeJson::Dropped),
        Some((TracedOutcome::Replayed, _)) => return Outcome::with(SinkOutcomeJson::Stored, REPLAYED),
        None => {}
    }
    if facts.store == StoreSays::Has {
        return Outcome::plain(SinkOutcomeJson::Stored);
    }
    if let Some(reason) = &facts.deferred {
        return Outcome::with(SinkOutcomeJson::Deferred, reason);
    }
    match &facts.decision {
        EventDecision::Outside => return Outcome::with(SinkOutcomeJson::Skipped, OUTSIDE),
        EventDecision::Skipped(condition) => {
            return Outcome { condition: Some(condition.clone()), ..Outcome::plain(SinkOutcomeJson::Skipped) };
        }
        EventDecision::Taken | EventDecision::Undecided(_) | EventDecision::Unknown => {}
    }
    if facts.is_lost {
        return Outcome::plain(SinkOutcomeJson::Lost);
    }
    match facts.lane {
        LaneSays::Pending(before_it) => {
            let pending = Outcome { before_it, ..Outcome::plain(SinkOutcomeJson::Pending) };
            if facts.is_configured { pending } else { Outcome { reason: Some(REMOVED.into()), ..pending } }
        }
        LaneSays::Passed => passed(facts),
        LaneSays::Unknown => Outcome::with(SinkOutcomeJson::Unknown, "its position isn't known"),
    }
}

/// The lane has passed the event, and it is no dead letter.
fn passed(facts: &SinkFacts) -> Outcome {
    match (&facts.decision, &facts.store) {
        (EventDecision::Unknown, _) => Outcome::with(SinkOutcomeJson::Unknown, NO_PAYLOAD),
        (EventDecision::Undecided(reason), _) => Outcome::with(SinkOutcomeJson::Unknown, reason.as_str()),
        (_, StoreSays::HasNot) => Outcome::with(SinkOutcomeJson::Stored, DELETED),
        _ => Outcome::plain(SinkOutcomeJson::Stored),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: SinkFacts = SinkFacts {
        decision: EventDecision::Taken,
        dead: None,
        deferred: None,
        store: StoreSays::Nothing,
        is_lost: false,
        lane: LaneSays::Passed,
        is_configured: true,
    };

    fn outcome(facts: SinkFacts) -> SinkOutcomeJson {
        of(&facts).outcome
    }

    #[test]
    fn passed_event_is_stored_unless_skipped() {
        assert_eq!(outcome(FACTS), SinkOutcomeJson::Stored);
        let skipped = of(&SinkFacts { decision: EventDecision::Skipped("paid".into()), ..FACTS });
        assert_eq!((skipped.outcome, skipped.condition.as_deref()), (SinkOutcomeJson::Skipped, Some("paid")));
        assert_eq!(outcome(SinkFacts { decision: EventDecision::Outside, ..FACTS }), SinkOutcomeJson::Skipped);
        let unknown = SinkFacts { decision: EventDecision::Unknown, ..FACTS };
        assert_eq!(outcome(unknown.clone()), SinkOutcomeJson::Unknown);
        assert_eq!(outcome(SinkFacts { store: StoreSays::Has, ..unknown }), SinkOutcomeJson::Stored);
        let deleted = of(&SinkFacts { store: StoreSays::HasNot, ..FACTS });
        assert_eq!((deleted.outcome, deleted.reason.as_deref()), (SinkOutcomeJson::Stored, Some(DELETED)));
        assert_eq!(outcome(SinkFacts { is_lost: true, ..FACTS }), SinkOutcomeJson::Lost);
    }

    #[test]
    fn event_after_the_cursor_is_pending() {
        let pending = SinkFacts { lane: LaneSays::Pending(Some(7)), ..FACTS };
        assert_eq!((outcome(pending.clone()), of(&pending).before_it), (SinkOutcomeJson::Pending, Some(7)));
        let removed = of(&SinkFacts { is_configured: false, ..pending.clone() });
        assert_eq!((removed.outcome, removed.reason.as_deref()), (SinkOutcomeJson::Pending, Some(REMOVED)));
        assert_eq!(outcome(SinkFacts { store: StoreSays::Has, ..pending.clone() }), SinkOutcomeJson::Stored);
        let deferred = of(&SinkFacts { deferred: Some("429".into()), ..FACTS });
        assert_eq!((deferred.outcome, deferred.reason.as_deref()), (SinkOutcomeJson::Deferred, Some("429")));
        assert_eq!(outcome(SinkFacts { lane: LaneSays::Unknown, ..FACTS }), SinkOutcomeJson::Unknown);
    }

    #[test]
    fn newest_record_of_dead_letter_decides() {
        let dead = |outcome| SinkFacts { dead: Some((outcome, "410 Gone".into())), ..FACTS };
        let held = of(&dead(TracedOutcome::Held));
        assert_eq!((held.outcome, held.reason.as_deref()), (SinkOutcomeJson::Dead, Some("410 Gone")));
        assert_eq!(outcome(dead(TracedOutcome::Dropped)), SinkOutcomeJson::Dropped);
        assert_eq!(outcome(dead(TracedOutcome::Replayed)), SinkOutcomeJson::Stored);
    }
}
