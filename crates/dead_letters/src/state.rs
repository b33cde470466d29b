//! The state of a dead letter.

use crate::dead_record::RecordKind;

/// The state of a rejected event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeadLetterState {
    /// It waits for the operator.
    Held,
    /// The sink stored it on a replay.
    Replayed,
    /// The operator has discarded it.
    Dropped,
}

impl DeadLetterState {
    /// `None` for an event that is or was deferred: it is no dead letter.
    pub(super) const fn of(kind: RecordKind) -> Option<Self> {
        match kind {
            RecordKind::DeadLetter => Some(Self::Held),
            RecordKind::Replayed => Some(Self::Replayed),
            RecordKind::Dropped => Some(Self::Dropped),
            RecordKind::Deferred | RecordKind::Stored | RecordKind::Released => None,
        }
    }

    /// Whether the ledger counts it as dead; if not, as stored.
    pub(super) const fn counts_as_dead(self) -> bool {
        !matches!(self, Self::Replayed)
    }
}
