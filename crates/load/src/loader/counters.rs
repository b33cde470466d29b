//! The progress of a load, for display.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Counts over all inputs; read at any time.
#[derive(Debug, Default)]
pub struct LoadCounters {
    counts: Mutex<Counts>,
    /// Of the input that is read now.
    pub(super) bytes_read: Arc<AtomicU64>,
    /// Of these the bytes that an earlier run has loaded; all of them until the place where this run resumes is known.
    bytes_skipped: AtomicU64,
}

/// The counts of one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes read of all inputs, including those that an earlier run has loaded.
    pub bytes_read: u64,
    /// Bytes read to be sent by this run.
    pub bytes_sent: u64,
    /// Bytes that all inputs have; 0 if that isn't known.
    pub bytes_all: u64,
    /// Lines read in this run, blank ones too; 0 if only those that match are counted.
    pub lines_read: u64,
    /// Lines that match; all of them without a condition.
    pub matched: u64,
    /// Lines that a condition says neither yes nor no to.
    pub undecided: u64,
    /// Events that the server has accepted.
    pub accepted: u64,
    /// Events that it had already.
    pub duplicates: u64,
    /// Rejected lines.
    pub refused: u64,
    /// Lines that earlier runs have read, if this run resumes them.
    pub lines_before: u64,
    /// Lines that were rejected in earlier runs, if this run resumes them.
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

    /// Lines that were sent and answered. Blank lines are no events and get no answer.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.accepted + self.duplicates + self.refused
    }
}

impl LoadCounters {
    /// The counts now.
    #[must_use]
    pub fn read(&self) -> Counts {
        self.change(|counts| self.with_input(counts))
    }

    fn with_input(&self, counts: &Counts) -> Counts {
        let read = self.bytes_read.load(Ordering::Relaxed);
        let sent = read.saturating_sub(self.bytes_skipped.load(Ordering::Relaxed));
        Counts { bytes_read: counts.bytes_read + read, bytes_sent: counts.bytes_sent + sent, ..*counts }
    }

    /// Another input is opened: bytes read of it now aren't sent.
    pub(super) fn begin_input(&self) {
        self.change(|counts| {
            *counts = self.with_input(counts);
            self.bytes_read.store(0, Ordering::Relaxed);
            self.bytes_skipped.store(u64::MAX, Ordering::Relaxed);
        });
    }

    /// The input is open, at the place where an earlier run ended or at its beginning: bytes read from here on are sent.
    pub(super) fn begin_sending(&self, is_resumed: bool) {
        let skipped = if is_resumed { self.bytes_read.load(Ordering::Relaxed) } else { 0 };
        self.bytes_skipped.store(skipped, Ordering::Relaxed);
    }

    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Counts) -> T) -> T {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Adds to a count, and returns its previous value.
pub(super) const fn add(count: &mut u64, more: u64) -> u64 {
    *count += more;
    *count - more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_earlier_runs_are_not_sent() {
        let counters = LoadCounters::default();
        let figures = || (counters.read().bytes_read, counters.read().bytes_sent);
        let read = |bytes| counters.bytes_read.fetch_add(bytes, Ordering::Relaxed);
        counters.begin_input();
        read(70);
        assert_eq!(figures(), (70, 0), "it looks for its place");
        counters.begin_sending(true);
        read(30);
        assert_eq!(figures(), (100, 30));
        counters.begin_input();
        read(5);
        assert_eq!(figures(), (105, 30));
        counters.begin_sending(false);
        read(10);
        assert_eq!(figures(), (115, 45), "the first bytes of a file that is new are sent too");
    }
}
