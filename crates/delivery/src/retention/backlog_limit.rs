//! How much may wait for each sink: beyond it, events with a route to it are refused, so that a store that is dead for
//! days doesn't take the disk from the others. And how much of the disk the stores on it will yet take.

use std::collections::{BTreeMap, BTreeSet};

use eventlog::{EventLog, Segments};
use ledger::{LedgerState, SinkName, SinkProgress};

/// A sink takes events again when its backlog has fallen by one part in so many.
const MARGIN_PART: u64 = 4;

/// What is to be known of a sink.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BacklogLimit {
    /// Bytes, where a configuration says how many.
    pub(crate) bytes: Option<u64>,
    /// Whether it stores on a disk of this machine.
    pub(crate) on_this_disk: bool,
}

/// The limits, and which sinks are at theirs.
#[derive(Default)]
pub(crate) struct BacklogLimits {
    limits: BTreeMap<SinkName, BacklogLimit>,
    full: BTreeSet<SinkName>,
}

impl BacklogLimits {
    pub(crate) fn limit(&mut self, limits: impl Iterator<Item = (SinkName, BacklogLimit)>) {
        self.limits = limits.collect();
    }

    /// Measures what waits, and closes and opens the gates of types accordingly. Says which sinks are at their limits
    /// now and weren't, or the other way round.
    pub(crate) fn look(&mut self, log: &EventLog, state: &LedgerState, disk_bytes: u64) -> Vec<(SinkName, bool)> {
        let full: BTreeSet<SinkName> = self
            .limits
            .iter()
            .filter_map(|(name, limit)| {
                let limit = limit.bytes.unwrap_or(disk_bytes / 2);
                let limit = if self.full.contains(name) { limit - limit / MARGIN_PART } else { limit };
                let waiting = bytes_waiting(log, state.sinks.get(name)?);
                (waiting >= limit).then(|| name.clone())
            })
            .collect();
        let changed = full.symmetric_difference(&self.full).map(|name| (name.clone(), full.contains(name))).collect();
        // Also while nothing changes: a type may have been met since.
        if !full.is_empty() || !self.full.is_empty() {
            for (name, gate) in log.types().gates() {
                gate.set_closed(full.iter().any(|sink| state.routes.leads(&name, sink)));
            }
        }
        self.full = full;
        changed
    }

    /// Has the log keep free what the stores on this disk will take for what waits for them, and for what still fits the segments
    /// that are being written.
    pub(crate) fn reserve(&self, log: &EventLog, state: &LedgerState) {
        // Asked first: what is begun meanwhile is owed besides.
        let begun = log.disk_guard().bytes_begun();
        let local = || self.limits.iter().filter(|(_, limit)| limit.on_this_disk);
        let stores = local().count() as u64;
        let waiting: u64 = local().filter_map(|(name, _)| Some(bytes_waiting(log, state.sinks.get(name)?))).sum();
        let of_newest =
            |bytes: fn(&Segments) -> u64| log.shards().iter().map(|shard| bytes(shard.segments())).sum::<u64>();
        let left = of_newest(Segments::newest_left).saturating_mul(stores);
        log.disk_guard().reserve(waiting.saturating_add(left), of_newest(Segments::newest_bytes), stores, begun);
    }
}

fn bytes_waiting(log: &EventLog, sink: &SinkProgress) -> u64 {
    let of_shard = |shard: &std::sync::Arc<eventlog::Shard>| {
        let cursor = sink.lanes.get(usize::from(shard.number())).map_or(0, |lane| lane.cursor);
        shard.segments().bytes_behind(cursor, shard.durable())
    };
    log.shards().iter().map(of_shard).sum()
}
