//! The state of a dead letter.

use crate::dead_record::RecordKind;

/// What became of a refused event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LetterState {
    /// It waits for a person.
    Held,
    /// The sink has taken it after all.
    Replayed,
    /// A person has given it up.
    Dropped,
}

impl LetterState {
    /// `None` for an event that is deferred, or was: it is no letter.
    pub(super) const fn of(kind: RecordKind) -> Option<Self> {
        match kind {
            RecordKind::Letter => Some(Self::Held),
            RecordKind::Replayed => Some(Self::Replayed),
            RecordKind::Dropped => Some(Self::Dropped),
            RecordKind::Deferred | RecordKind::Stored | RecordKind::Released => None,
        }
    }

    /// Whether the ledger counts it as dead; else as stored.
    pub(super) const fn counts_as_dead(self) -> bool {
        !matches!(self, Self::Replayed)
    }
}
