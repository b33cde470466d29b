//! What the ledger knows next to the accepted events: for each sink its lanes' cursors and outcomes, and the types that
//! it has routes from.

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
    /// The last sequence before the lane began.
    pub start: u64,
    /// The last position up to which every event has its outcome.
    pub cursor: u64,
    /// Positions up to the cursor that couldn't be read.
    pub(crate) lost: u64,
    /// All of these lie between the first and the second sequence, since the start of the process. Not saved.
    pub(crate) lost_within: Option<(u64, u64)>,
    /// The store was seen ahead of the journal: what is between can't be told apart from new events.
    pub ahead: bool,
    pub(crate) outcomes: BTreeMap<TypeName, OutcomeCounts>,
    /// Whether the store has told where it is since the start of the process. Not saved.
    pub(crate) confirmed: bool,
    /// Where the journal ended at the first start since which the store hasn't told: more than that it can't have.
    pub unconfirmed_since: Option<u64>,
    /// Which of the ledger's changes was that it has told. Not saved.
    pub(crate) confirmed_in: u64,
    /// Why the lane stopped, if its store and its journal disagree. Not saved: the lane finds it again.
    pub dispute: Option<Dispute>,
    /// Whether the operator permits it to accept what the store has.
    pub accept: Option<Accept>,
}

impl LaneProgress {
    /// Whether the events of `span` up to `needed` have come to their ends, to the extent that this process knows: the
    /// saved cursor may be ahead of a store that was set back.
    fn has_passed(&self, needed: u64, is_configured: bool) -> bool {
        (self.confirmed || !is_configured) && self.cursor >= needed
    }

    /// The cursor from which a lane resumes if its store is at `position`: a lane that began with a later event resumes there, however
    /// little its store has.
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
    /// Up to where the outcomes take the journal of the sink's dead letters into account.
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

    /// Whether a route has events that the lanes haven't passed, or may still get some.
    pub(crate) fn waits(&self) -> bool {
        self.routes.iter().any(|(name, route)| {
            let is_before = |(shard, lane): (usize, &LaneProgress)| {
                lane.cursor < route.bounds(u16::try_from(shard).unwrap_or(u16::MAX)).1
            };
            let may_hold = route.closed.is_none() || route.held(self.outcomes(name)) > 0;
            may_hold && self.lanes.iter().enumerate().any(is_before)
        })
    }

    /// Where its lane hasn't brought all events of these types in `span` to an end.
    fn pending(&self, span: &SequenceRange, types: &[TypeName]) -> Option<Option<u64>> {
        let lane = self.lanes.get(usize::from(span.shard));
        let start = lane.map_or(0, |lane| lane.start);
        // A request has one set of routes, so the last of its events has those of all.
        let routed = types.iter().filter_map(|name| self.routes.get(name));
        let needed = routed.filter_map(|route| route.last_in(span, start)).max()?;
        match lane {
            // One that has stopped until the operator acts doesn't get there while anybody waits.
            Some(lane) if lane.has_lost(span) || lane.dispute.is_some() => Some(None),
            Some(lane) if lane.has_passed(needed, self.configured) => None,
            _ => Some(self.configured.then_some(needed)),
        }
    }

    /// Gives up what closed routes hold, of one type or of all. Says what was given up of each.
    pub fn give_up(&mut self, only: Option<&TypeName>) -> Vec<(TypeName, u64)> {
        let outcomes: Vec<OutcomeCounts> = self.routes.keys().map(|name| self.outcomes(name)).collect();
        let chosen = |name: &TypeName| only.is_none_or(|only| only == name);
        let given_up = self.routes.iter_mut().zip(outcomes).filter(|((name, _), _)| chosen(name));
        let given_up = given_up.map(|((name, route), outcomes)| (name.clone(), route.give_up(outcomes)));
        given_up.filter(|(_, events)| *events > 0).collect()
    }

    /// What is known of a sink before it is looked up in the configuration, and before its store was asked.
    pub(crate) fn forget_process(&mut self) {
        self.configured = false;
        self.lanes.iter_mut().for_each(|lane| (lane.confirmed, lane.dispute) = (false, None));
    }

    /// At a start nothing was heard of any store yet: `ends` are those of the journal, by shard.
    pub fn reset_confirmation(&mut self, ends: impl Iterator<Item = u64>) {
        for (lane, end) in self.lanes.iter_mut().zip(ends) {
            lane.unconfirmed_since.get_or_insert(end);
        }
    }

    /// Whether the sink needs segments: one that was taken out of the configuration does while events wait for it.
    pub(crate) fn holds(&self) -> bool {
        self.configured || self.waits()
    }
}

/// All sinks, and the routes by which their events were chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerState {
    /// The routes by which events were chosen last.
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

    /// Notes the routes of a type that has just been seen for the first time.
    pub(crate) fn register_type(&mut self, name: &TypeName) {
        for (sink, state) in &mut self.sinks {
            if state.configured && !state.routes.contains_key(name) && self.routes.leads(name, sink) {
                state.routes.insert(name.clone(), RouteState::beginning(self.routes.condition(name, sink)));
            }
        }
    }

    /// The lanes that haven't brought all of the events to an end.
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

    /// A number that changes whenever more is known to be lost: the `losses` that starts have found, and the positions that lanes
    /// couldn't read.
    pub(crate) fn known_lost(&self, losses: usize) -> u64 {
        let lanes = self.sinks.values().flat_map(|sink| &sink.lanes);
        losses as u64 + lanes.map(|lane| lane.lost).sum::<u64>()
    }

    /// For each shard the sequence up to which no sink needs segments, `accepted` at most.
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
