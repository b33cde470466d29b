//! What a load has done so far, for whoever shows it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Counts over all inputs; read at any time.
#[derive(Debug, Default)]
pub struct LoadCounters {
    counts: Mutex<Counts>,
    pub(super) bytes_read: Arc<AtomicU64>,
}

/// The counts of one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes read of the input that is read now.
    pub bytes_read: u64,
    /// Bytes that it has; 0 where that isn't known.
    pub bytes_all: u64,
    /// Lines read in this run, blank ones too; 0 where only those that match are counted.
    pub lines_read: u64,
    /// Lines that match; all of them where nothing is to be matched.
    pub matched: u64,
    /// Lines that a condition says neither yes nor no to.
    pub undecided: u64,
    /// Events that the server has accepted.
    pub accepted: u64,
    /// Events that it had already.
    pub duplicates: u64,
    /// Lines that it refused.
    pub refused: u64,
    /// Lines that it refused in earlier runs, as far as these are gone on with.
    pub refused_before: u64,
    /// Batches that were sent again.
    pub batches_again: u64,
    /// How often lines of a file that is followed may have been left unread.
    pub gaps: u64,
}

impl Counts {
    /// Whether anything was read to its end, or answered.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.lines_read + self.matched + self.undecided + self.sent() > 0
    }

    /// Lines that were sent and answered. Blank lines are no events: nothing is said of them.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.accepted + self.duplicates + self.refused
    }
}

impl LoadCounters {
    /// The counts now.
    #[must_use]
    pub fn read(&self) -> Counts {
        self.change(|counts| Counts { bytes_read: self.bytes_read.load(Ordering::Relaxed), ..*counts })
    }

    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Counts) -> T) -> T {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Adds to a count, and gives what it was.
pub(super) const fn add(count: &mut u64, more: u64) -> u64 {
    *count += more;
    *count - more
}
