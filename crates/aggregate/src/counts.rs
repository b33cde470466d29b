//! What became of the events of a fold.

/// What became of the events, counted since the fold began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldCounts {
    /// Events of the type.
    pub taken: u64,
    /// Times that an event came too late for a window and is in no result of it.
    pub late: u64,
    /// Times that an event went to a part of a window that was over.
    pub parts: u64,
    /// Events that were dated too far ahead, or before 1970, and are in no result.
    pub misdated: u64,
    /// Times that an event went to an overflow group.
    pub overflowed: u64,
    /// Values that no measure could use: what is no number for a sum, what is too long to be kept.
    pub unused: u64,
    /// Results that were given out.
    pub results: u64,
}

/// Events of which nothing, or not everything, is in the results, since somebody asked. It isn't part of the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Events that came too late for a window at least.
    pub late: u64,
    /// How far the one that came latest was behind the newest of its shard: microseconds.
    pub behind: i64,
    /// Events that were dated too far ahead, or before 1970.
    pub misdated: u64,
}
