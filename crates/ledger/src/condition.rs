//! Conditions of routes: which events of a type go to a sink, by their content.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use expression::{Expression, InvalidExpression};
use limits::{CONDITION_STEPS_A_BYTE, CONDITION_STEPS_LEAST, EXPRESSION_STEPS_MAX};
use serde::{Deserialize, Serialize};

/// The reason of a dead letter whose condition failed begins with this.
pub const CONDITION_FAILED: &str = "the condition of its route is neither true nor false: ";

/// A condition on an event's payload, compiled. Cheap to clone; two are the same if their texts are.
#[derive(Clone, Debug)]
pub struct Condition(Arc<Expression>);

impl FromStr for Condition {
    type Err = InvalidExpression;

    fn from_str(text: &str) -> Result<Self, InvalidExpression> {
        text.parse().map(|expression| Self(Arc::new(expression)))
    }
}

impl Condition {
    /// The text of the condition.
    #[must_use]
    pub fn expression(&self) -> &Expression {
        &self.0
    }

    /// Whether it is true on an event with this payload.
    ///
    /// # Errors
    /// Why it is neither true nor false. It is also undecided if it needs more steps than a condition has on such a
    /// payload.
    pub fn holds(&self, payload: &[u8]) -> Result<bool, String> {
        self.holds_counting(payload, &mut 0)
    }

    /// The same; adds the steps to `spent`.
    fn holds_counting(&self, payload: &[u8], spent: &mut usize) -> Result<bool, String> {
        let payload =
            std::str::from_utf8(payload).map_err(|error| format!("the payload is not UTF-8 text: {error}"))?;
        let most = steps_max(payload.len());
        let mut left = most;
        let verdict = self.0.holds_within(payload, &mut left);
        *spent += most - left;
        verdict.map_err(|error| format!("{CONDITION_FAILED}{error}"))
    }
}

/// The steps that a condition has on a payload of this size. They depend on nothing else, so a condition always gives
/// the same result for an event.
fn steps_max(bytes: usize) -> usize {
    CONDITION_STEPS_A_BYTE.saturating_mul(bytes).saturating_add(CONDITION_STEPS_LEAST).min(EXPRESSION_STEPS_MAX)
}

event::serde_as_text!(Condition);

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Condition {}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// From some position on, a route has this condition, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Term {
    /// For each shard the last sequence before it; missing ones are 0.
    pub(crate) after: Vec<u64>,
    pub(crate) when: Option<Condition>,
}

/// The conditions of a route over time, up to the present one. Empty if it never had a condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Terms(pub(crate) Vec<Term>);

impl Terms {
    /// The terms of a route that begins with this condition.
    pub(crate) fn beginning(when: Option<&Condition>) -> Self {
        Self(when.map(|when| Term { after: Vec::new(), when: Some(when.clone()) }).into_iter().collect())
    }

    /// Changes the condition from here on.
    pub(crate) fn change(&mut self, when: Option<&Condition>, after: &[u64]) {
        if self.0.last().and_then(|term| term.when.as_ref()) != when {
            self.0.push(Term { after: after.to_vec(), when: when.cloned() });
        }
    }

    /// Forgets conditions for events that can no longer be read. `oldest` is the oldest sequence by shard.
    pub(crate) fn forget(&mut self, oldest: &[u64]) {
        let is_over = |next: &Term| oldest.iter().zip(&next.after).all(|(oldest, after)| after < oldest);
        let over = self.0.iter().skip(1).take_while(|next| is_over(next)).count();
        self.0.drain(..over);
        if self.0.iter().all(|term| term.when.is_none()) {
            self.0.clear();
        }
    }

    fn of_shard(&self, shard: u16) -> Vec<(u64, Option<Condition>)> {
        let after = |term: &Term| term.after.get(usize::from(shard)).copied().unwrap_or(0);
        self.0.iter().map(|term| (after(term), term.when.clone())).collect()
    }
}

/// The events of a type that a lane delivers: a run of positions, and conditions from some of them on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Passage {
    /// The last sequence before the run.
    pub after: u64,
    /// The last one in it.
    pub until: u64,
    /// Each holds after its sequence; they ascend.
    pub conditions: Vec<(u64, Option<Condition>)>,
    /// Exceptions of the run: after the first and up to the second sequence. They ascend, and none is empty.
    pub gaps: Vec<(u64, u64)>,
}

/// The decision of a route about an event.
#[derive(Debug, PartialEq, Eq)]
pub enum RouteDecision {
    /// The event goes to the sink.
    Taken,
    /// It doesn't.
    Skipped,
    /// Its condition is undecided, with the reason.
    Undecided(String),
}

impl Passage {
    pub(crate) fn new((after, until): (u64, u64), terms: &Terms, shard: u16) -> Self {
        Self { after, until, conditions: terms.of_shard(shard), gaps: Vec::new() }
    }

    /// A passage without events.
    pub(crate) const fn closed() -> Self {
        Self { after: u64::MAX, until: 0, conditions: Vec::new(), gaps: Vec::new() }
    }

    /// Whether the event at `sequence` is one of the run.
    pub fn covers(&self, sequence: u64) -> bool {
        sequence > self.after && sequence <= self.until && (self.gaps.is_empty() || !self.is_in_gap(sequence))
    }

    fn is_in_gap(&self, sequence: u64) -> bool {
        let next = self.gaps.partition_point(|(_, until)| *until < sequence);
        self.gaps.get(next).is_some_and(|(after, _)| sequence > *after)
    }

    /// The decision about an event of the run. Adds the steps to `spent`.
    pub fn judge(&self, sequence: u64, payload: &[u8], spent: &mut usize) -> RouteDecision {
        let term = self.conditions.iter().rev().find(|(after, _)| sequence > *after);
        let Some(condition) = term.and_then(|(_, when)| when.as_ref()) else { return RouteDecision::Taken };
        match condition.holds_counting(payload, spent) {
            Ok(true) => RouteDecision::Taken,
            Ok(false) => RouteDecision::Skipped,
            Err(reason) => RouteDecision::Undecided(reason),
        }
    }
}

/// Events whose route condition is undecided, with the reasons, in order.
pub type Undecided = Vec<(u64, String)>;

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(text: &str) -> Condition {
        text.parse().unwrap()
    }

    fn judged(terms: &Terms, sequence: u64, payload: &str) -> RouteDecision {
        Passage::new((0, u64::MAX), terms, 1).judge(sequence, payload.as_bytes(), &mut 0)
    }

    #[test]
    fn event_is_judged_by_condition_at_its_position() {
        let mut terms = Terms::default();
        assert_eq!(judged(&terms, 1, "1"), RouteDecision::Taken);
        terms.change(Some(&condition("a == 1")), &[7, 5]);
        terms.change(Some(&condition("a == 1")), &[8, 6]);
        terms.change(None, &[9, 10]);
        assert_eq!(terms.0.len(), 2, "the same isn't another one");
        let at = |sequence| judged(&terms, sequence, r#"{"a":2}"#);
        assert_eq!(
            [5, 6, 10, 11].map(at),
            [RouteDecision::Taken, RouteDecision::Skipped, RouteDecision::Skipped, RouteDecision::Taken]
        );
        assert!(matches!(judged(&Terms::beginning(Some(&condition("a > 1"))), 1, "{}"), RouteDecision::Undecided(_)));
    }

    #[test]
    fn large_event_may_use_more_steps() {
        let condition = condition("l.all(x, l.all(y, x + y > 0))");
        let judged = |elements: usize| {
            let payload = format!(r#"{{"l":[{}1]}}"#, "1,".repeat(elements - 1));
            let mut spent = 0;
            let verdict = condition.holds_counting(payload.as_bytes(), &mut spent);
            assert!(spent <= steps_max(payload.len()), "{spent}");
            (verdict.map_err(|reason| reason.contains("too many steps")), spent)
        };
        assert_eq!((judged(30).0, judged(100).0), (Ok(true), Err(true)));
        assert!(judged(100).1 >= CONDITION_STEPS_LEAST);
        let linear: Condition = "l.all(x, x > 0) && l.exists(x, x > 1)".parse().unwrap();
        let payload = format!(r#"{{"l":[{}2]}}"#, "1,".repeat(50_000));
        assert_eq!(linear.holds(payload.as_bytes()), Ok(true), "it is large");
    }

    #[test]
    fn conditions_are_kept_as_long_as_their_events() {
        let mut terms = Terms::beginning(Some(&condition("a")));
        terms.change(Some(&condition("b")), &[7, 5]);
        terms.change(None, &[9, 10]);
        let mut forgotten = terms.clone();
        forgotten.forget(&[8, 5]);
        assert_eq!(forgotten, terms, "shard 1 has event 5 yet");
        forgotten.forget(&[8, 6]);
        assert_eq!(forgotten.0[..], terms.0[1..]);
        forgotten.forget(&[10, 11]);
        assert_eq!(forgotten, Terms::default());
    }
}
