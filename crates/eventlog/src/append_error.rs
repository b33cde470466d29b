//! Why an append fails.

/// Why an event isn't durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// Too much waits to be committed; nothing was appended.
    #[error("too much waits for the disk; try again")]
    Busy,
    /// The disk is full, or has no more left than delivery needs; nothing was stored.
    #[error("the disk is full; send the event again when there is space")]
    NoSpace,
    /// The journal failed. Recovery decides at the next start whether the event survives. To send it again with the same key is safe.
    #[error("the journal failed; the server is about to restart")]
    Failed,
}
