//! A type's route to a sink: where it begins and ends, and where it was out in between.

use eventlog::SequenceRange;

use crate::condition::{Condition, Passage, Terms};
use crate::outcomes::OutcomeCounts;

/// A route that was taken out of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Closed {
    /// For each shard the last sequence that the route still holds.
    pub(crate) until: Vec<u64>,
    /// How many events of its type had been accepted by then; later ones are skipped.
    pub(crate) accepted: u64,
    /// The sink was in the configuration without it: lanes may have gone past later events, which are skipped
    /// permanently.
    pub(crate) passed: bool,
}

/// Positions at which a route was out while its sink's lanes could continue. Their events are skipped.
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
    /// Events that were accepted before the route began, or while it was out: skipped.
    pub(crate) base: u64,
    /// Events that were accepted for it, have no outcome, and are lost from the journal, as the last start counted them.
    pub(crate) lost: u64,
    /// For each shard the last sequence before the route began; missing ones are 0.
    pub(crate) from: Vec<u64>,
    pub(crate) closed: Option<Closed>,
    /// The conditions that it has, and had.
    pub(crate) terms: Terms,
    /// In order.
    pub(crate) gaps: Vec<Gap>,
}

impl RouteState {
    /// The route of a type that has just come, with this condition.
    pub(crate) fn beginning(when: Option<&Condition>) -> Self {
        Self { terms: Terms::beginning(when), ..Self::default() }
    }

    /// How many of its events have no outcome yet, of `outcomes` that are known; 0 for a route that continues.
    pub(crate) fn held(&self, outcomes: OutcomeCounts) -> u64 {
        let closed = self.closed.as_ref().map_or(0, |closed| closed.accepted);
        closed.saturating_sub(self.base + self.lost).saturating_sub(outcomes.total())
    }

    /// Gives up what a closed route holds: those events are skipped. Says how many they were.
    pub(crate) fn give_up(&mut self, outcomes: OutcomeCounts) -> u64 {
        let held = self.held(outcomes);
        if let Some(closed) = self.closed.as_ref().filter(|_| held > 0) {
            self.base += held;
            self.from.clone_from(&closed.until);
        }
        held
    }

    /// Whether what it held was given up: it doesn't continue where it was.
    pub(crate) fn is_given_up(&self) -> bool {
        self.closed
            .as_ref()
            .is_some_and(|closed| closed.until.iter().any(|until| *until > 0) && closed.until == self.from)
    }

    /// The closed route is there again, after `end`, up to which `accepted` events of its type came. Those that came
    /// meanwhile are its own if its sink was `away` just as long. Else they aren't, wherever the lanes are: a store may
    /// be ahead of what is known of it, and has passed over them.
    pub(crate) fn put_back(&mut self, away: bool, end: &[u64], accepted: u64) {
        let Some(closed) = self.closed.take().filter(|closed| !away || closed.passed) else { return };
        self.base += accepted.saturating_sub(closed.accepted);
        match self.gaps.last_mut().filter(|gap| gap.until == closed.until) {
            Some(gap) => gap.until = end.to_vec(),
            None if closed.until == end => {}
            None => self.gaps.push(Gap { after: closed.until, until: end.to_vec() }),
        }
    }

    /// Forgets what nobody can read any longer: by shard the oldest sequence that there is.
    pub(crate) fn forget(&mut self, oldest: &[u64]) {
        self.terms.forget(oldest);
        self.gaps.retain(|gap| oldest.iter().zip(&gap.until).any(|(oldest, until)| until >= oldest));
    }

    /// The events of this type that a lane delivers: those after the first and up to the second sequence.
    pub(crate) fn bounds(&self, shard: u16) -> (u64, u64) {
        (at(&self.from, shard), self.closed.as_ref().map_or(u64::MAX, |closed| at(&closed.until, shard)))
    }

    /// But for those after the first and up to the second sequence of any of these, which ascend.
    pub(crate) fn gaps_of(&self, shard: u16) -> Vec<(u64, u64)> {
        self.gaps.iter().map(|gap| gap.of_shard(shard)).filter(|(after, until)| after < until).collect()
    }

    /// Its events that come the way of a shard's lane, those after `after` and up to `until`.
    pub(crate) fn passage(&self, shard: u16, (after, until): (u64, u64)) -> Passage {
        let (from, closed) = self.bounds(shard);
        let run = (from.max(after), closed.min(until));
        Passage { gaps: self.gaps_of(shard), ..Passage::new(run, &self.terms, shard) }
    }

    /// The last position in `span` that a lane has to pass which began after `start`.
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
