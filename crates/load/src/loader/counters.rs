//! What a load has done so far, for whoever shows it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts over all inputs; read at any time.
#[derive(Debug, Default)]
pub struct Counters {
    pub(super) bytes_read: Arc<AtomicU64>,
    pub(super) bytes_all: AtomicU64,
    pub(super) lines_read: AtomicU64,
    pub(super) matched: AtomicU64,
    pub(super) undecided: AtomicU64,
    pub(super) accepted: AtomicU64,
    pub(super) duplicates: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) refused_before: AtomicU64,
    pub(super) batches_again: AtomicU64,
    pub(super) gaps: AtomicU64,
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

impl Counters {
    /// The counts now.
    #[must_use]
    pub fn read(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            bytes_read: read(&self.bytes_read),
            bytes_all: read(&self.bytes_all),
            lines_read: read(&self.lines_read),
            matched: read(&self.matched),
            undecided: read(&self.undecided),
            accepted: read(&self.accepted),
            duplicates: read(&self.duplicates),
            refused: read(&self.refused),
            refused_before: read(&self.refused_before),
            batches_again: read(&self.batches_again),
            gaps: read(&self.gaps),
        }
    }

    pub(super) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}
