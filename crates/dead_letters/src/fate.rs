//! The state of a dead letter.

use eventlog::{Dead, Settled};

/// What became of a refused event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It waits for a person.
    Held,
    /// The sink has taken it after all.
    Replayed,
    /// A person has given it up.
    Dropped,
}

impl Fate {
    /// `None` for an event that is set aside, or was: it is no letter.
    pub(super) const fn of(dead: &Dead<'_>) -> Option<Self> {
        match dead.settled {
            None => Some(Self::Held),
            Some(Settled::Replayed) => Some(Self::Replayed),
            Some(Settled::Dropped) => Some(Self::Dropped),
            Some(Settled::SetAside | Settled::Taken | Settled::Released) => None,
        }
    }

    /// Whether the ledger counts it as dead; else as stored.
    pub(super) const fn counts_as_dead(self) -> bool {
        !matches!(self, Self::Replayed)
    }
}
