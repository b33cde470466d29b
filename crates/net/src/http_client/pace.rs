//! The minimum rate of a transfer: a server that moves single bytes never looks silent, and must not occupy a connection forever.

use std::time::Duration;

/// Bytes that must move in each second of waiting.
const RATE_MIN: u64 = 1024;

/// Measures a transfer in windows. Only time in which the client waits for the server counts.
#[derive(Debug)]
pub(super) struct Pace {
    window: Duration,
    waited: Duration,
    bytes: u64,
}

impl Pace {
    /// Checks the rate whenever the client has waited for `window` in total.
    pub(super) const fn new(window: Duration) -> Self {
        Self { window, waited: Duration::ZERO, bytes: 0 }
    }

    /// Notes a wait and the bytes that ended it. `false` if the window that ends here moved too few.
    pub(super) fn keeps_up(&mut self, waited: Duration, bytes: usize) -> bool {
        self.waited += waited;
        self.bytes = self.bytes.saturating_add(bytes as u64);
        if self.waited < self.window {
            return true;
        }
        let milliseconds = u64::try_from(self.waited.as_millis()).unwrap_or(u64::MAX);
        let is_fast_enough = self.bytes.saturating_mul(1000) >= milliseconds.saturating_mul(RATE_MIN);
        (self.waited, self.bytes) = (Duration::ZERO, 0);
        is_fast_enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pace_needs_bytes_per_window_without_own_waits() {
        let second = Duration::from_secs(1);
        let mut pace = Pace::new(2 * second);
        // A small response that arrives within the window has no minimum rate.
        assert!(pace.keeps_up(second, 1));
        assert!(!pace.keeps_up(second, 1), "2 bytes in 2 seconds");
        assert!(pace.keeps_up(second, 2048) && pace.keeps_up(second, 0), "the next window is judged for itself");
        assert!((0..100).all(|_| pace.keeps_up(Duration::ZERO, 1)), "nobody waited");
    }
}
