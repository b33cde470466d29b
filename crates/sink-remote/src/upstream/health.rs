//! The health of a writer, or of one of its sinks: untried until its first success, ejected after a failure until its next success.

use std::time::Duration;

use sink::Reason;
use tokio::time::Instant;

/// The pause before an ejected writer is probed. Each further failure doubles it.
const PROBE_AFTER_MIN: Duration = Duration::from_secs(1);
/// The longest pause before an ejected writer is probed.
const PROBE_AFTER_MAX: Duration = Duration::from_secs(30);

/// The state of a writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerState {
    /// It has neither answered nor failed yet.
    #[default]
    Untried,
    /// Its last answer was a success.
    Available,
    /// It has failed since its last success. No lane uses it while another writer is available.
    Ejected,
}

impl ServerState {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Available, Self::Ejected, Self::Untried];

    /// The state's name in metrics and in the status.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Untried => "untried",
            Self::Available => "available",
            Self::Ejected => "ejected",
        }
    }
}

/// Successes and failures of a writer, or of one of its sinks.
#[derive(Debug, Default)]
pub(super) struct Health {
    pub(super) state: ServerState,
    pub(super) succeeded_at: Option<Instant>,
    failure: Option<Failure>,
}

#[derive(Debug)]
struct Failure {
    reason: Reason,
    /// The number of failures in a row.
    count: u32,
    at: Instant,
    probe_at: Instant,
}

impl Health {
    fn ejection(&self) -> Option<&Failure> {
        self.failure.as_ref().filter(|_| self.state == ServerState::Ejected)
    }

    /// The time of the last failure, if it is ejected.
    pub(super) fn failed_at(&self) -> Option<Instant> {
        self.ejection().map(|failure| failure.at)
    }

    /// The last failure, if it is ejected.
    pub(super) fn reason(&self) -> Option<Reason> {
        self.ejection().map(|failure| failure.reason.clone())
    }

    /// Whether a probe is due that is late by `late`. An untried one is probed immediately.
    pub(super) fn is_probe_due(&self, now: Instant, late: Duration) -> bool {
        match self.state {
            ServerState::Untried => true,
            ServerState::Available => false,
            ServerState::Ejected => self.failure.as_ref().is_none_or(|failure| failure.probe_at + late <= now),
        }
    }

    /// A probe or a request of a lane has succeeded. Returns whether that ends an ejection. After a probe, the pauses stay long, for a
    /// writer that answers probes and fails otherwise.
    pub(super) fn succeeds(&mut self, is_probe: bool) -> bool {
        self.succeeded_at = Some(Instant::now());
        if !is_probe {
            self.failure = None;
        }
        std::mem::replace(&mut self.state, ServerState::Available) == ServerState::Ejected
    }

    /// A request has failed. Returns whether that ejects it.
    pub(super) fn fails(&mut self, reason: Reason) -> bool {
        let now = Instant::now();
        // After a long time without a failure, the pause is the shortest again.
        let before = self.failure.as_ref().filter(|failure| now < failure.probe_at + PROBE_AFTER_MAX);
        let count = before.map_or(0, |failure| failure.count);
        let pause = PROBE_AFTER_MIN.saturating_mul(1 << count.min(5)).min(PROBE_AFTER_MAX);
        self.failure = Some(Failure { reason, count: count + 1, at: now, probe_at: now + pause });
        std::mem::replace(&mut self.state, ServerState::Ejected) != ServerState::Ejected
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails loudly")]
mod tests {
    use super::*;

    fn pause(health: &Health) -> Duration {
        health.failure.as_ref().unwrap().probe_at - Instant::now()
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_from_1_to_30_seconds() {
        let mut health = Health::default();
        let mut pauses = Vec::new();
        for _ in 0..7 {
            health.fails("gone".into());
            pauses.push(pause(&health).as_secs());
            tokio::time::advance(pause(&health)).await;
            health.succeeds(true);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        tokio::time::advance(2 * PROBE_AFTER_MAX).await;
        health.fails("gone".into());
        assert_eq!(pause(&health).as_secs(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn ejection_ends_with_a_success_not_with_time() {
        let mut health = Health::default();
        assert!(health.state == ServerState::Untried && health.is_probe_due(Instant::now(), PROBE_AFTER_MIN));
        health.fails("gone".into());
        assert!(!health.is_probe_due(Instant::now(), Duration::ZERO));
        tokio::time::advance(Duration::from_hours(1)).await;
        assert_eq!((health.state, health.succeeded_at), (ServerState::Ejected, None));
        assert!(health.is_probe_due(Instant::now(), Duration::ZERO));
        health.succeeds(false);
        assert_eq!((health.state, health.succeeded_at), (ServerState::Available, Some(Instant::now())));
        health.fails("gone".into());
        assert_eq!(pause(&health).as_secs(), 1);
    }
}
