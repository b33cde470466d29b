//! The ledger's state in addition to the accepted events: for each sink its lanes' cursors and outcomes, and the types that it
//! has routes from.

use std::collections::{BTreeMap, BTreeSet};

use event::TypeName;
use eventlog::{PendingLane, SequenceRange, WatchRequest};
use sink::{Claim, Mark};

use crate::dispute::{Accept, Dispute};
use crate::outcomes::OutcomeCounts;
use crate::route_state::RouteState;
use crate::routes::{Routes, SinkName};

/// One lane: everything up to its cursor has its outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneProgress {
    /// The last sequence before the lane's first event.
    pub start: u64,
    /// The last position up to which every event has its outcome.
    pub cursor: u64,
    /// The lane delivers none of the events after the cursor up to this position. Not saved: the lane judges them again.
    pub(crate) skipped_to: u64,
    /// Positions up to the cursor that couldn't be read.
    pub(crate) lost: u64,
    /// All lost positions are between these two sequences, since the start of the process. Not saved.
    pub(crate) lost_within: Option<(u64, u64)>,
    /// The store was ahead of the journal: its events cannot be distinguished from new ones at the same positions.
    pub ahead: bool,
    pub(crate) outcomes: BTreeMap<TypeName, OutcomeCounts>,
    /// Whether the store has reported its cursor since the start of the process. Not saved.
    pub(crate) confirmed: bool,
    /// The end of the journal at the first start since which the store has not answered. It cannot have later events.
    pub unconfirmed_since: Option<u64>,
    /// The number of the ledger's change in which it answered. Not saved.
    pub(crate) confirmed_in: u64,
    /// Why the lane stopped, if its store and its journal disagree. Not saved: the lane finds it again.
    pub dispute: Option<Dispute>,
    /// Whether the operator permits it to accept what the store has.
    pub accept: Option<Accept>,
}

impl LaneProgress {
    /// Whether the events of `span` up to `needed` have their outcomes, to the knowledge of this process: the saved cursor
    /// may be ahead of a store that was set back.
    fn has_passed(&self, needed: u64, is_configured: bool) -> bool {
        (self.confirmed || !is_configured) && self.cursor.max(self.skipped_to) >= needed
    }

    /// The cursor from which a lane resumes if its store is at `position`. A lane that began with a later event resumes
    /// there, even if its store has less.
    pub fn resume_at(&self, position: u64) -> u64 {
        position.max(self.start).min(self.cursor)
    }

    fn has_lost(&self, span: &SequenceRange) -> bool {
        self.lost_within.is_some_and(|(first, last)| first <= span.last && span.first <= last)
    }
}

/// A sink.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SinkProgress {
    /// By shard.
    pub lanes: Vec<LaneProgress>,
    pub(crate) routes: BTreeMap<TypeName, RouteState>,
    /// The position of the journal of the sink's dead letters up to which the outcomes include it.
    pub dead_up_to: u64,
    /// Claims of this data directory's processes that the store may hold, the newest last.
    pub(crate) claims: Vec<Claim>,
    /// The mark of the store that a sink of a writer is bound to.
    pub mark: Option<Mark>,
    /// Whether the sink is in the configuration. Not saved.
    pub(crate) configured: bool,
}

impl SinkProgress {
    pub(crate) fn outcomes(&self, name: &TypeName) -> OutcomeCounts {
        let mut sum = OutcomeCounts::default();
        self.lanes.iter().filter_map(|lane| lane.outcomes.get(name)).for_each(|outcomes| sum.add(*outcomes));
        sum
    }

    /// Whether a route has events that the lanes have not passed, or may still get some.
    pub(crate) fn waits(&self) -> bool {
        self.routes.iter().any(|(name, route)| {
            let is_before = |(shard, lane): (usize, &LaneProgress)| {
                lane.cursor < route.bounds(u16::try_from(shard).unwrap_or(u16::MAX)).1
            };
            let may_hold = route.closed.is_none() || route.held(self.outcomes(name)) > 0;
            may_hold && self.lanes.iter().enumerate().any(is_before)
        })
    }

    /// The position that its lane has yet to pass for all events of these types in `span` to end.
    fn pending(&self, span: &SequenceRange, types: &[TypeName]) -> Option<Option<u64>> {
        let lane = self.lanes.get(usize::from(span.shard));
        let start = lane.map_or(0, |lane| lane.start);
        // A request has one set of routes, so the routes of its last event are those of all.
        let routed = types.iter().filter_map(|name| self.routes.get(name));
        let needed = routed.filter_map(|route| route.last_in(span, start)).max()?;
        match lane {
            // A lane that has stopped does not get there until the operator decides.
            Some(lane) if lane.has_lost(span) || lane.dispute.is_some() => Some(None),
            Some(lane) if lane.has_passed(needed, self.configured) => None,
            _ => Some(self.configured.then_some(needed)),
        }
    }

    /// Discards the backlog of closed routes, of one type or of all. Returns the number of discarded events of each.
    pub fn discard(&mut self, only: Option<&TypeName>) -> Vec<(TypeName, u64)> {
        let outcomes: Vec<OutcomeCounts> = self.routes.keys().map(|name| self.outcomes(name)).collect();
        let chosen = |name: &TypeName| only.is_none_or(|only| only == name);
        let discarded = self.routes.iter_mut().zip(outcomes).filter(|((name, _), _)| chosen(name));
        let discarded = discarded.map(|((name, route), outcomes)| (name.clone(), route.discard(outcomes)));
        discarded.filter(|(_, events)| *events > 0).collect()
    }

    /// Resets what depends on the configuration and on the store's answers.
    pub(crate) fn forget_process(&mut self) {
        self.configured = false;
        self.lanes.iter_mut().for_each(|lane| (lane.confirmed, lane.dispute, lane.skipped_to) = (false, None, 0));
    }

    /// At a start no store has answered yet: `ends` are the ends of the journal, by shard.
    pub fn reset_confirmation(&mut self, ends: impl Iterator<Item = u64>) {
        for (lane, end) in self.lanes.iter_mut().zip(ends) {
            lane.unconfirmed_since.get_or_insert(end);
        }
    }

    /// Whether the sink needs segments: a removed one does while it has pending events.
    pub(crate) fn holds(&self) -> bool {
        self.configured || self.waits()
    }
}

/// All sinks, and the routes that their events were chosen by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerState {
    /// The routes that events were chosen by last.
    pub routes: Routes,
    /// The sinks by name.
    pub sinks: BTreeMap<SinkName, SinkProgress>,
    /// The types that are results of aggregates, or were.
    pub(crate) derived: BTreeSet<TypeName>,
    /// The number of known losses when the routes' lost events were last counted: see [`LedgerState::known_lost`].
    pub(crate) counted_lost: u64,
}

impl LedgerState {
    /// The sinks of the configuration.
    pub(crate) fn configured(&self) -> impl Iterator<Item = &SinkName> {
        self.sinks.iter().filter(|(_, sink)| sink.configured).map(|(name, _)| name)
    }

    /// Registers the routes of a type that is seen for the first time.
    pub(crate) fn register_type(&mut self, name: &TypeName) {
        for (sink, state) in &mut self.sinks {
            if state.configured && !state.routes.contains_key(name) && self.routes.leads(name, sink) {
                state.routes.insert(name.clone(), RouteState::beginning(self.routes.condition(name, sink)));
            }
        }
    }

    /// The lanes that have not ended all of the events.
    pub(crate) fn pending(&mut self, asked: &WatchRequest) -> Vec<PendingLane> {
        asked.types.iter().for_each(|name| self.register_type(name));
        let of_sink = |(sink, state): (&SinkName, &SinkProgress)| {
            let in_span = |span: &SequenceRange| {
                let until = state.pending(span, &asked.types)?;
                Some(PendingLane { sink: sink.clone(), shard: span.shard, until })
            };
            asked.spans.iter().filter_map(in_span).collect::<Vec<_>>()
        };
        self.sinks.iter().flat_map(of_sink).collect()
    }

    /// A number that changes whenever more losses are known: the `losses` that starts have found, and the positions
    /// that lanes could not read.
    pub(crate) fn known_lost(&self, losses: usize) -> u64 {
        let lanes = self.sinks.values().flat_map(|sink| &sink.lanes);
        losses as u64 + lanes.map(|lane| lane.lost).sum::<u64>()
    }

    /// The sequence up to which no sink needs segments, for each shard; at most `accepted`.
    pub fn passed(&self, counted_up_to: &[u64]) -> Vec<u64> {
        let mut passed = counted_up_to.to_vec();
        for state in self.sinks.values().filter(|state| state.holds()) {
            for (limit, lane) in passed.iter_mut().zip(&state.lanes) {
                *limit = (*limit).min(if lane.confirmed || !state.configured { lane.cursor } else { 0 });
            }
        }
        passed
    }
}

#[cfg(test)]
mod tests;
