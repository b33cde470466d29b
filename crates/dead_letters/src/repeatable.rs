//! What a repetition of a replay does in a store.

/// Whether a store recognises an event that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeatable {
    /// An event that is sent again is stored once.
    Once,
    /// The store may store an event again that is sent again.
    Again,
}
