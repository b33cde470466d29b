//! Ejection: a writer that fails is not used for a time that doubles with each further failure.

use std::time::Duration;

use tokio::time::Instant;

/// The length of the first ejection. Each further failure doubles it.
const EJECTION_MIN: Duration = Duration::from_secs(1);
/// The longest ejection.
const EJECTION_MAX: Duration = Duration::from_secs(30);

/// The consecutive failures of a writer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ejection {
    failures: u32,
    pub(super) failed_at: Instant,
    until: Instant,
}

impl Ejection {
    /// The ejection after another failure.
    pub(super) fn after(before: Option<Self>) -> Self {
        let now = Instant::now();
        // If the last ejection ended long ago, the next one is the shortest again.
        let failures = before.filter(|before| now < before.until + EJECTION_MAX).map_or(0, |before| before.failures);
        let length = EJECTION_MIN.saturating_mul(1 << failures.min(5)).min(EJECTION_MAX);
        Self { failures: failures + 1, failed_at: now, until: now + length }
    }

    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.until <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ejections_grow_from_1_to_30_seconds_and_start_again_after_a_long_time() {
        let length = |ejection: Ejection| (ejection.until - ejection.failed_at).as_secs();
        let mut ejection = Ejection::after(None);
        let mut lengths = vec![length(ejection)];
        for _ in 0..6 {
            tokio::time::advance(ejection.until - ejection.failed_at).await;
            assert!(ejection.is_over(Instant::now()));
            ejection = Ejection::after(Some(ejection));
            lengths.push(length(ejection));
        }
        assert_eq!(lengths, [1, 2, 4, 8, 16, 30, 30]);
        tokio::time::advance(2 * EJECTION_MAX).await;
        assert_eq!(length(Ejection::after(Some(ejection))), 1);
    }
}
