//! Counts of outcomes.

use event::TypeName;

/// What became of events.
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

    /// An event that was dead is stored, or the other way round. Where none was counted nothing changes, so the sum
    /// stays what it is.
    pub(crate) const fn turn(&mut self, is_stored: bool) {
        let (from, to) =
            if is_stored { (&mut self.dead, &mut self.stored) } else { (&mut self.stored, &mut self.dead) };
        if *from > 0 {
            *from -= 1;
            *to += 1;
        }
    }

    /// `None` where there are fewer.
    pub(crate) fn less(self, other: Self) -> Option<Self> {
        Some(Self {
            stored: self.stored.checked_sub(other.stored)?,
            dead: self.dead.checked_sub(other.dead)?,
            skipped: self.skipped.checked_sub(other.skipped)?,
        })
    }
}

/// What a batch comes to: how many events of each type had which outcome.
pub type Tally = Vec<(TypeName, OutcomeCounts)>;
