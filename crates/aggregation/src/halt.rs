//! The order to lanes and aggregates to end.

/// Whether lanes and aggregates are to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// They continue.
    No,
    /// When they have caught up.
    WhenDone,
    /// When they have caught up, no window is open, and no event is set aside.
    WhenDrained,
    /// After the write in hand.
    Now,
}
