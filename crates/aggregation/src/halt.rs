//! The command to lanes and aggregates to end.

/// When lanes and aggregates end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// They do not end.
    No,
    /// When they have caught up.
    WhenDone,
    /// When they have caught up, no window is open, and no event is deferred.
    WhenDrained,
    /// After the write in progress.
    Now,
}
