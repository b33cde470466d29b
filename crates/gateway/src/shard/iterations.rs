//! How long each iteration of a shard's event loop takes, from a wake-up to the commit. All requests of the shard wait for the longest.

use std::sync::Arc;
use std::time::{Duration, Instant};

use eventlog::Shard;

use crate::counters::GatewayCounters;

/// An iteration of this length is logged.
const LONG: Duration = Duration::from_millis(100);

/// The iterations of one shard. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Iterations {
    index: usize,
    log: Arc<Shard>,
    counters: Arc<GatewayCounters>,
}

impl Iterations {
    pub(crate) const fn new(index: usize, log: Arc<Shard>, counters: Arc<GatewayCounters>) -> Self {
        Self { index, log, counters }
    }

    /// Counts an iteration that took so long, and commits what its requests have appended.
    pub(crate) fn end(&self, took: Duration) {
        self.counters.shard(self.index).iterations.record(took);
        if took >= LONG {
            self.log_long(took);
        }
        self.log.commit_pending();
    }

    #[cold]
    fn log_long(&self, took: Duration) {
        if !self.counters.is_long_iteration_due(Instant::now()) {
            return;
        }
        let (events, bytes) = self.log.uncommitted();
        tracing::warn!(
            shard = self.index,
            milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            connections = self.counters.connections_of(self.index),
            events,
            bytes,
            "the event loop of a shard was busy for more than 100 ms, and its requests waited: see docs/guides/why-slow.md"
        );
    }
}
