//! Counts of the actions on a sink's dead letters.

use metrics::Counter;

/// Counts of the actions on a sink's dead letters.
#[derive(Debug, Default)]
pub struct DeadCounters {
    /// Dead letters that the sink stored on a replay.
    pub replayed: Counter,
    /// Dead letters that it rejected again.
    pub refused_again: Counter,
    /// Dead letters that were discarded.
    pub dropped: Counter,
}
