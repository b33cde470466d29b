//! Counts of what was done with a sink's dead letters.

use metrics::Counter;

/// What was done with a sink's dead letters.
#[derive(Debug, Default)]
pub struct DeadCounters {
    /// Letters that the sink took when they were sent again.
    pub replayed: Counter,
    /// Letters that it refused once more.
    pub refused_again: Counter,
    /// Letters that were given up.
    pub dropped: Counter,
}
