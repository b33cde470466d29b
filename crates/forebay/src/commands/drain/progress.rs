//! Detects a drain without progress.

use std::time::Duration;

use delivery::{Delivery, LaneState};
use tokio::time::Instant;

/// Figures that change when a lane or an aggregate makes progress.
#[derive(PartialEq, Eq)]
struct Stamp {
    cursors: Vec<u64>,
    pending: u64,
    /// The lag, the windows and the results of each aggregate.
    aggregates: Vec<(u64, usize, u64)>,
}

/// The last figures, and the time of their last change.
pub(super) struct Progress {
    stamp: Stamp,
    since: Instant,
}

impl Progress {
    pub(super) fn new(delivery: &Delivery) -> Self {
        Self { stamp: stamp(delivery), since: Instant::now() }
    }

    /// The time without progress. A write in flight counts as progress: the sink's timeouts end it.
    pub(super) fn stalled_for(&mut self, delivery: &Delivery) -> Duration {
        let stamp = stamp(delivery);
        if stamp != self.stamp || is_writing(delivery, &stamp) {
            (self.stamp, self.since) = (stamp, Instant::now());
        }
        self.since.elapsed()
    }
}

fn stamp(delivery: &Delivery) -> Stamp {
    let cursors = delivery.lanes().lanes().iter().map(|lane| lane.cursor()).collect();
    let pending = delivery.ledger().pending_by_sink().values().sum();
    let aggregates = delivery.aggregates().aggregates();
    let of_aggregate = aggregates.iter().map(|aggregate| {
        let figures = aggregate.figures();
        (aggregate.lag(), figures.windows, figures.counts.results)
    });
    Stamp { cursors, pending, aggregates: of_aggregate.collect() }
}

/// Whether a lane may have a write in flight. While windows are open, only the aggregates' figures count.
fn is_writing(delivery: &Delivery, stamp: &Stamp) -> bool {
    stamp.aggregates.iter().all(|(lag, windows, _)| *lag == 0 && *windows == 0)
        && delivery.lanes().lanes().iter().any(|lane| lane.state() == LaneState::Delivering && lane.backlog() > 0)
}
