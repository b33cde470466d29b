//! Throttling of repeated messages: the first one is logged at once, then at most one every ten seconds, with the count since.

use std::time::Duration;

use tokio::time::Instant;

/// Between two messages of the same.
const EVERY: Duration = Duration::from_secs(10);

/// When the next message may be.
#[derive(Debug, Default)]
pub(crate) struct LogThrottle(Option<Instant>);

impl LogThrottle {
    /// Whether it is time for a message; it counts as written then.
    pub(crate) fn take(&mut self) -> bool {
        let now = Instant::now();
        let is_time = self.0.is_none_or(|next| next <= now);
        if is_time {
            self.0 = Some(now + EVERY);
        }
        is_time
    }

    /// When it is time again, if there was a message.
    pub(crate) const fn next(&self) -> Option<Instant> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_is_told_at_once_and_the_next_after_a_while() {
        let mut pace = LogThrottle::default();
        assert!(pace.take());
        assert!(!pace.take());
        tokio::time::advance(EVERY - Duration::from_millis(1)).await;
        assert!(!pace.take());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(pace.take());
        assert!(!pace.take());
    }
}
