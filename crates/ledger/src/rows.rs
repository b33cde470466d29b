//! The rows of the ledger, as metrics and commands show them.

use event::TypeName;

use crate::outcomes::OutcomeCounts;
use crate::routes::SinkName;
use crate::state::SinkProgress;

/// One type in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerRow {
    /// The type.
    pub type_name: TypeName,
    /// Its events that are or were in the journal.
    pub accepted: u64,
    /// Whether they are results of an aggregate.
    pub derived: bool,
    /// Their outcomes, for each sink that the type has or had a route to.
    pub sinks: Vec<SinkRow>,
}

/// The outcomes of a type's events in one sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkRow {
    /// The sink.
    pub sink: SinkName,
    /// Events that the store has.
    pub stored: u64,
    /// Events that the store rejected permanently.
    pub dead: u64,
    /// Events that were not for the sink: accepted before the route began or after it was closed, or its condition is
    /// false for them.
    pub skipped: u64,
    /// Events that are lost from the journal: they are damaged, or their segments are gone.
    pub lost: u64,
    /// Events without an outcome yet.
    pub pending: u64,
    /// Whether the route was removed from the configuration: pending events are kept.
    pub removed: bool,
}

/// The outcomes of a type in one sink, if they have a route, and whether the counts add up.
pub(crate) fn sink_row(
    sink: &SinkName,
    state: &SinkProgress,
    name: &TypeName,
    accepted: u64,
) -> Option<(SinkRow, bool)> {
    let route = state.routes.get(name)?;
    let mut outcomes = state.outcomes(name);
    outcomes.skipped += route.base;
    let later = route.closed.as_ref().map_or(Some(0), |closed| accepted.checked_sub(closed.accepted));
    outcomes.skipped += later.unwrap_or(0);
    let pending = accepted.checked_sub(outcomes.total() + route.lost);
    let is_right = later.is_some() && pending.is_some();
    let OutcomeCounts { stored, dead, skipped } = outcomes;
    let (pending, removed) = (pending.unwrap_or(0), route.closed.is_some());
    Some((SinkRow { sink: sink.clone(), stored, dead, skipped, lost: route.lost, pending, removed }, is_right))
}
