//! The clocks, read once a tick of the event loop: requests of one tick share a commit, and may share its time. To read them for each
//! request would cost more than to check its JSON.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use eventlog::unix_microseconds;

/// When the current tick of a shard's event loop began.
#[derive(Debug)]
pub(crate) struct CachedClock {
    /// Microseconds since 1970, UTC.
    wall: AtomicI64,
    start: Instant,
    /// Nanoseconds since the start.
    elapsed: AtomicU64,
}

impl CachedClock {
    pub(crate) fn new() -> Self {
        let clock = Self { wall: AtomicI64::new(0), start: Instant::now(), elapsed: AtomicU64::new(0) };
        clock.refresh();
        clock
    }

    /// Reads the clocks: to be called when a tick begins.
    pub(crate) fn refresh(&self) {
        self.wall.store(unix_microseconds(), Ordering::Relaxed);
        self.elapsed.store(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// How long the tick has lasted.
    pub(crate) fn tick_time(&self) -> Duration {
        self.start.elapsed().saturating_sub(self.elapsed())
    }

    /// Microseconds since 1970, UTC.
    pub(crate) fn microseconds(&self) -> i64 {
        self.wall.load(Ordering::Relaxed)
    }

    /// Monotonic time, since an arbitrary moment.
    pub(crate) fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.elapsed.load(Ordering::Relaxed))
    }
}

/// The same time in milliseconds; 0 before 1970.
pub(crate) fn milliseconds(microseconds: i64) -> u64 {
    u64::try_from(microseconds / 1000).unwrap_or_default()
}
