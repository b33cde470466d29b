//! The wall clock, read once a turn: events of one turn share a commit, and may share its time.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

/// The time at which a shard's turn began.
#[derive(Debug, Default)]
pub(crate) struct TurnClock(AtomicI64);

impl TurnClock {
    /// To be called when a turn begins.
    pub(crate) fn refresh(&self) {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.0.store(i64::try_from(since.as_micros()).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Microseconds since 1970, UTC.
    pub(crate) fn microseconds(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The same time in milliseconds; 0 before 1970.
pub(crate) fn milliseconds(microseconds: i64) -> u64 {
    u64::try_from(microseconds / 1000).unwrap_or_default()
}
