//! Actions on dead letters, and their outcomes.

use std::sync::Arc;

use ledger::SinkName;

/// An action on dead letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadAction {
    /// Send to their sink again.
    Replay,
    /// Discard.
    Drop,
    /// Replace the payload of the only dead letter of a sink that matches. The payload is JSON, and is not checked
    /// again. The dead letter keeps its id, and stays a dead letter.
    Edit(Arc<[u8]>),
}

/// The outcome for the dead letters of one sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadOutcome {
    /// The sink.
    pub sink: SinkName,
    /// Dead letters whose events the store has now.
    pub stored: u64,
    /// Dead letters that the store rejected again: they stay, with its newest reason.
    pub refused: u64,
    /// Dead letters that were discarded.
    pub dropped: u64,
    /// Dead letters that have another payload.
    pub edited: u64,
    /// Dead letters that stay unchanged: the store accepts them later, or their lane has not passed them.
    pub left: u64,
    /// Why the work was interrupted, if it was. What was done before is not undone.
    pub failure: Option<String>,
}

impl DeadOutcome {
    pub(crate) const fn none(sink: SinkName) -> Self {
        Self { sink, stored: 0, refused: 0, dropped: 0, edited: 0, left: 0, failure: None }
    }
}
