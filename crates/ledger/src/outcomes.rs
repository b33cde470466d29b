//! Counts of outcomes.

use event::TypeName;

/// The outcomes of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutcomeCounts {
    /// The store has them.
    pub stored: u64,
    /// They are dead letters, or were dropped.
    pub dead: u64,
    /// They were not for the sink.
    pub skipped: u64,
}

impl OutcomeCounts {
    pub(crate) const fn total(self) -> u64 {
        self.stored + self.dead + self.skipped
    }

    pub(crate) const fn add(&mut self, other: Self) {
        self.stored += other.stored;
        self.dead += other.dead;
        self.skipped += other.skipped;
    }

    /// Moves an event from dead to stored, or back. If none was counted nothing changes, so the sum stays the same.
    pub(crate) const fn move_one(&mut self, is_stored: bool) {
        let (from, to) =
            if is_stored { (&mut self.dead, &mut self.stored) } else { (&mut self.stored, &mut self.dead) };
        if *from > 0 {
            *from -= 1;
            *to += 1;
        }
    }

    /// `None` if there are fewer.
    pub(crate) fn less(self, other: Self) -> Option<Self> {
        Some(Self {
            stored: self.stored.checked_sub(other.stored)?,
            dead: self.dead.checked_sub(other.dead)?,
            skipped: self.skipped.checked_sub(other.skipped)?,
        })
    }
}

/// The outcomes of a batch: for each type its number of events with each outcome.
pub type Tally = Vec<(TypeName, OutcomeCounts)>;
