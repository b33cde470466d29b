//! A type's route to a sink: where it begins and ends, and where it was removed in between.

use eventlog::SequenceRange;

use crate::condition::{Condition, Passage, Terms};
use crate::outcomes::OutcomeCounts;

/// A route that was removed from the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Closed {
    /// For each shard the last sequence that the route still holds.
    pub(crate) until: Vec<u64>,
    /// How many events of its type had been accepted by then; later ones are skipped.
    pub(crate) accepted: u64,
    /// The sink was in the configuration without the route: lanes may have passed later events, which are skipped
    /// permanently.
    pub(crate) passed: bool,
}

/// Positions at which a route was removed while its sink's lanes could continue. Their events are skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gap {
    /// For each shard the last sequence before it; missing ones are 0.
    pub(crate) after: Vec<u64>,
    /// For each shard the last sequence in it.
    pub(crate) until: Vec<u64>,
}

impl Gap {
    fn of_shard(&self, shard: u16) -> (u64, u64) {
        (at(&self.after, shard), at(&self.until, shard))
    }
}

/// A type's route to a sink.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RouteState {
    /// Events that were accepted before the route began, or while it was removed: skipped.
    pub(crate) base: u64,
    /// Events that were accepted for it, have no outcome, and are lost from the journal, as the last start counted them.
    pub(crate) lost: u64,
    /// For each shard the last sequence before the route began; missing ones are 0.
    pub(crate) from: Vec<u64>,
    pub(crate) closed: Option<Closed>,
    /// Its present and earlier conditions.
    pub(crate) terms: Terms,
    /// In order.
    pub(crate) gaps: Vec<Gap>,
}

impl RouteState {
    /// The route of a new type, with this condition.
    pub(crate) fn beginning(when: Option<&Condition>) -> Self {
        Self { terms: Terms::beginning(when), ..Self::default() }
    }

    /// How many of its events have no outcome yet; `outcomes` is the number of known outcomes. 0 for an open route.
    pub(crate) fn held(&self, outcomes: OutcomeCounts) -> u64 {
        let closed = self.closed.as_ref().map_or(0, |closed| closed.accepted);
        closed.saturating_sub(self.base + self.lost).saturating_sub(outcomes.total())
    }

    /// Discards the backlog of a closed route: its events are skipped. Returns their number.
    pub(crate) fn discard(&mut self, outcomes: OutcomeCounts) -> u64 {
        let held = self.held(outcomes);
        if let Some(closed) = self.closed.as_ref().filter(|_| held > 0) {
            self.base += held;
            self.from.clone_from(&closed.until);
        }
        held
    }

    /// Whether its backlog was discarded: it does not continue from where it was.
    pub(crate) fn is_discarded(&self) -> bool {
        self.closed
            .as_ref()
            .is_some_and(|closed| closed.until.iter().any(|until| *until > 0) && closed.until == self.from)
    }

    /// The closed route is configured again after `end`, when `accepted` events of its type had been accepted. It gets
    /// the events of the time between if its sink was `away` for the same time. Otherwise it does not get them,
    /// regardless of the lanes' cursors: a store may be ahead of its known cursor, and has skipped them.
    pub(crate) fn restore(&mut self, away: bool, end: &[u64], accepted: u64) {
        let Some(closed) = self.closed.take().filter(|closed| !away || closed.passed) else { return };
        self.base += accepted.saturating_sub(closed.accepted);
        match self.gaps.last_mut().filter(|gap| gap.until == closed.until) {
            Some(gap) => gap.until = end.to_vec(),
            None if closed.until == end => {}
            None => self.gaps.push(Gap { after: closed.until, until: end.to_vec() }),
        }
    }

    /// Forgets what can no longer be read. `oldest` is the oldest sequence by shard.
    pub(crate) fn forget(&mut self, oldest: &[u64]) {
        self.terms.forget(oldest);
        self.gaps.retain(|gap| oldest.iter().zip(&gap.until).any(|(oldest, until)| until >= oldest));
    }

    /// The events of this type that a lane delivers: those after the first and up to the second sequence.
    pub(crate) fn bounds(&self, shard: u16) -> (u64, u64) {
        (at(&self.from, shard), self.closed.as_ref().map_or(u64::MAX, |closed| at(&closed.until, shard)))
    }

    /// Its gaps: after the first and up to the second sequence of each, ascending.
    pub(crate) fn gaps_of(&self, shard: u16) -> Vec<(u64, u64)> {
        self.gaps.iter().map(|gap| gap.of_shard(shard)).filter(|(after, until)| after < until).collect()
    }

    /// Its events that a shard's lane delivers, after `after` and up to `until`.
    pub(crate) fn passage(&self, shard: u16, (after, until): (u64, u64)) -> Passage {
        let (from, closed) = self.bounds(shard);
        let run = (from.max(after), closed.min(until));
        Passage { gaps: self.gaps_of(shard), ..Passage::new(run, &self.terms, shard) }
    }

    /// The last position in `span` that a lane with this `start` has to pass.
    pub(crate) fn last_in(&self, span: &SequenceRange, start: u64) -> Option<u64> {
        let (after, until) = self.bounds(span.shard);
        let gaps = self.gaps_of(span.shard);
        let last = gaps.iter().rev().fold(span.last.min(until), |last, (after, until)| {
            if (*after + 1..=*until).contains(&last) { *after } else { last }
        });
        (start.max(after) < last && span.first <= last).then_some(last)
    }
}

fn at(sequences: &[u64], shard: u16) -> u64 {
    sequences.get(usize::from(shard)).copied().unwrap_or(0)
}
