//! Counts of the events of a fold.

/// Counts of events since the fold began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldCounts {
    /// Events of the type.
    pub events: u64,
    /// How often an event was too late for a window, and is in no result of it.
    pub late: u64,
    /// How often an event went to a part of a window that was over.
    pub parts: u64,
    /// Events dated too far ahead, or before 1970, that are in no result.
    pub out_of_range: u64,
    /// How often an event went to an overflow group.
    pub overflowed: u64,
    /// Values that no measure could use: not a number for a sum, or too long to be kept.
    pub unused: u64,
    /// Results that were emitted.
    pub results: u64,
}

/// Events that are not, or not completely, in the results, since the last report. Not part of the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Events that were too late for at least one window.
    pub late: u64,
    /// How late the latest event was, compared with the newest of its shard: microseconds.
    pub lag: i64,
    /// Events dated too far ahead, or before 1970.
    pub out_of_range: u64,
}
