//! A throttle of repeated messages: the first one is due immediately, then at most one in each interval.

use std::time::{Duration, Instant};

/// The usual time between two messages of the same kind.
const INTERVAL: Duration = Duration::from_secs(10);

/// When the next message is due.
#[derive(Debug, Default)]
pub struct Throttle(Option<Instant>);

impl Throttle {
    /// Whether a message is due at `now`. If so, it counts as written, and the next one is due ten seconds later.
    pub fn take(&mut self, now: Instant) -> bool {
        self.take_every(INTERVAL, now)
    }

    /// The same with another interval.
    pub fn take_every(&mut self, interval: Duration, now: Instant) -> bool {
        let is_due = self.0.is_none_or(|next| next <= now);
        if is_due {
            self.0 = Some(now + interval);
        }
        is_due
    }

    /// When the next message is due, if there was one.
    #[must_use]
    pub const fn next(&self) -> Option<Instant> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttle_passes_one_message_per_interval() {
        let (mut throttle, start) = (Throttle::default(), Instant::now());
        assert!(throttle.take(start));
        assert!(!throttle.take(start));
        assert!(!throttle.take(start + INTERVAL - Duration::from_millis(1)));
        assert_eq!(throttle.next(), Some(start + INTERVAL));
        assert!(throttle.take(start + INTERVAL));
        assert!(!throttle.take(start + INTERVAL));
        let (minute, next) = (Duration::from_mins(1), start + 2 * INTERVAL);
        assert!(throttle.take_every(minute, next) && !throttle.take_every(minute, next + INTERVAL));
    }
}
