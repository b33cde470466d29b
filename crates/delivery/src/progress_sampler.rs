//! Samples the cursors of all lanes and shards twice a second, so the console can say when an event was stored.

use std::sync::Arc;
use std::time::Duration;

use aggregation::Clock;
use eventlog::EventLog;
use progress::ProgressBoard;
use tokio::time::Instant;

use crate::status::LaneBoard;

/// The time between two samples.
const SAMPLE_EVERY: Duration = Duration::from_millis(500);

/// Writes the progress of lanes and shards. A write that fails changes nothing in the delivery.
pub(crate) struct ProgressSampler {
    progress: ProgressBoard,
    log: Arc<EventLog>,
    lanes: LaneBoard,
    clock: Clock,
    due: Instant,
}

impl ProgressSampler {
    pub(crate) fn new(progress: ProgressBoard, log: Arc<EventLog>, lanes: LaneBoard, clock: Clock) -> Self {
        Self { progress, log, lanes, clock, due: Instant::now() }
    }

    pub(crate) const fn board(&self) -> &ProgressBoard {
        &self.progress
    }

    /// When the next sample is due.
    pub(crate) const fn due(&self) -> Instant {
        self.due
    }

    /// Samples all lanes and shards.
    pub(crate) fn sample(&mut self) {
        self.due = Instant::now() + SAMPLE_EVERY;
        let lanes = self.lanes.lanes();
        // All are read before any is written, which may take its time.
        let shards: Vec<(u16, u64)> = self.log.shards().iter().map(|shard| (shard.number(), shard.durable())).collect();
        let cursors: Vec<Option<u64>> =
            lanes.iter().map(|status| status.has_begun().then(|| status.settled())).collect();
        let now = (self.clock)();
        for (shard, durable) in shards {
            self.progress.sample_shard(shard, now, durable);
        }
        for (status, cursor) in lanes.iter().zip(cursors) {
            match cursor {
                Some(cursor) => self.progress.sample_lane(&status.progress, now, cursor),
                None => self.progress.save_failures(&status.progress, now),
            }
        }
    }
}
