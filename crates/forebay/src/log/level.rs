//! The lowest level that is written: the configured one, or for some time another one.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use config::LogLevel;
use tokio::task::AbortHandle;
use tokio::time::sleep;
use tracing::level_filters::LevelFilter;

/// What [`least`] reads.
static LEAST: AtomicU8 = AtomicU8::new(LogLevel::Info as u8);
/// Ends the other level.
static EXPIRY: Mutex<Option<AbortHandle>> = Mutex::new(None);
static LEVELS: Mutex<Levels> = Mutex::new(Levels { configured: LogLevel::Info, other: None, changes: 0 });

/// The levels of a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Levels {
    pub(crate) configured: LogLevel,
    /// Another level, and until when it is used: microseconds since 1970.
    pub(crate) other: Option<(LogLevel, i64)>,
    /// How often another one was chosen: each choice expires only itself.
    changes: u64,
}

impl Levels {
    /// The level in use.
    pub(crate) fn now(&self) -> LogLevel {
        self.other.map_or(self.configured, |(level, _)| level)
    }

    fn choose(&mut self, level: LogLevel, until: i64) -> u64 {
        self.other = Some((level, until));
        self.changes += 1;
        self.changes
    }

    fn expire(&mut self, change: u64) {
        if self.changes == change {
            self.other = None;
        }
    }
}

/// The levels of the process's log.
pub(crate) fn levels() -> Levels {
    *lock()
}

/// Uses another level, and the configured one again after `duration`. To be called within a runtime.
pub(crate) fn choose(level: LogLevel, duration: Duration) {
    let until = clock::unix_microseconds().saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX));
    let mut change = 0;
    change_levels(|levels| change = levels.choose(level, until));
    let expiry = tokio::spawn(async move {
        sleep(duration).await;
        change_levels(|levels| levels.expire(change));
    });
    let previous = EXPIRY.lock().unwrap_or_else(PoisonError::into_inner).replace(expiry.abort_handle());
    if let Some(previous) = previous {
        previous.abort();
    }
}

/// The level of the configuration. Another one that is in use stays until it expires.
pub(super) fn configure(level: LogLevel) {
    change_levels(|levels| levels.configured = level);
}

fn change_levels(change: impl FnOnce(&mut Levels)) {
    let mut levels = lock();
    change(&mut levels);
    LEAST.store(levels.now() as u8, Ordering::Relaxed);
    drop(levels);
    // `tracing` remembers the lowest level, and for each event whether it is written: to skip one costs a load.
    tracing::callsite::rebuild_interest_cache();
}

fn lock() -> MutexGuard<'static, Levels> {
    LEVELS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lowest level that is written.
pub(super) fn least() -> LevelFilter {
    match LEAST.load(Ordering::Relaxed) {
        least if least == LogLevel::Debug as u8 => LevelFilter::DEBUG,
        least if least == LogLevel::Info as u8 => LevelFilter::INFO,
        least if least == LogLevel::Warning as u8 => LevelFilter::WARN,
        _ => LevelFilter::ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_level_ends_with_its_own_expiry() {
        let mut levels = Levels { configured: LogLevel::Info, other: None, changes: 0 };
        let first = levels.choose(LogLevel::Debug, 1);
        levels.configured = LogLevel::Warning;
        assert_eq!(levels.now(), LogLevel::Debug, "a reload doesn't end it");
        let second = levels.choose(LogLevel::Error, 2);
        levels.expire(first);
        assert_eq!(levels.now(), LogLevel::Error, "another choice replaced the first");
        levels.expire(second);
        assert_eq!(levels.now(), LogLevel::Warning);
    }
}
