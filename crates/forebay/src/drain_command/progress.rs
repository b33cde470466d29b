//! Whether anything goes on while a directory is drained.

use std::time::Duration;

use delivery::{Delivery, LaneState};
use tokio::time::Instant;

/// What changes whenever anything is stored or read.
type Stamp = (Vec<u64>, u64, Vec<(u64, usize, u64)>);

/// How far delivery was, and since when.
pub(super) struct Progress {
    stamp: Stamp,
    since: Instant,
}

impl Progress {
    pub(super) fn new(delivery: &Delivery) -> Self {
        Self { stamp: stamp(delivery), since: Instant::now() }
    }

    /// For how long nothing has gone on. A store that is at work on a write doesn't count as stuck: its own time-outs end that.
    pub(super) fn is_stuck_for(&mut self, delivery: &Delivery) -> Duration {
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
    (cursors, pending, of_aggregate.collect())
}

/// Whether a lane is at work on a write. While windows are open lanes gather, and aggregates go on or don't.
fn is_writing(delivery: &Delivery, (_, _, aggregates): &Stamp) -> bool {
    aggregates.iter().all(|(lag, windows, _)| *lag == 0 && *windows == 0)
        && delivery.lanes().lanes().iter().any(|lane| lane.state() == LaneState::Delivering && lane.backlog() > 0)
}
