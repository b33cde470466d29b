//! Why an append fails.

/// Why an event isn't durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// Too many bytes wait to be committed; nothing was appended.
    #[error("too many bytes wait for the disk: retry")]
    Busy,
    /// The disk is full, or has only the space that delivery needs; nothing was stored.
    #[error("the disk is full: retry when it has space again")]
    NoSpace,
    /// The journal failed. Recovery decides at the next start whether the event survives. To send it again with the same key is safe.
    #[error("the journal has failed and the server ends to recover it: retry after its restart")]
    Failed,
}
