//! The backlog limit of each sink: beyond it, events with a route to it are rejected, so a store that is down for days
//! does not use up the disk for the others. It also reserves the space that stores on this disk will need.

use std::collections::{BTreeMap, BTreeSet};

use eventlog::{EventLog, Segments};
use ledger::{LedgerState, SinkName, SinkProgress};

/// A sink at its limit accepts events again after its backlog has fallen by one part in this number.
const MARGIN_PART: u64 = 4;

/// The settings of a sink that matter here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BacklogLimit {
    /// Bytes, if the configuration sets them.
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

    /// Measures the backlogs, and closes and opens the gates of types accordingly. Returns which sinks have reached or
    /// left their limits.
    pub(crate) fn check(&mut self, log: &EventLog, state: &LedgerState, disk_bytes: u64) -> Vec<(SinkName, bool)> {
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
        // Also without a change: a type may be new.
        if !full.is_empty() || !self.full.is_empty() {
            for (name, gate) in log.types().gates() {
                gate.set_closed(full.iter().any(|sink| state.routes.leads(&name, sink)));
            }
        }
        self.full = full;
        changed
    }

    /// Reserves in the log the space that stores on this disk will need for their backlogs, and for what still fits the
    /// segments that are being written.
    pub(crate) fn reserve(&self, log: &EventLog, state: &LedgerState) {
        // Read first: what is begun after this is added to the reservation.
        let begun = log.disk_guard().bytes_begun();
        let local = || self.limits.iter().filter(|(_, limit)| limit.on_this_disk);
        let stores = local().count() as u64;
        let waiting: u64 = local().filter_map(|(name, _)| Some(bytes_waiting(log, state.sinks.get(name)?))).sum();
        let of_newest =
            |bytes: fn(&Segments) -> u64| log.shards().iter().map(|shard| bytes(shard.segments())).sum::<u64>();
        let left = of_newest(Segments::newest_free).saturating_mul(stores);
        log.disk_guard().reserve(waiting.saturating_add(left), of_newest(Segments::newest_bytes), stores, begun);
    }
}

fn bytes_waiting(log: &EventLog, sink: &SinkProgress) -> u64 {
    let of_shard = |shard: &std::sync::Arc<eventlog::Shard>| {
        let cursor = sink.lanes.get(usize::from(shard.number())).map_or(0, |lane| lane.cursor);
        shard.segments().bytes_after(cursor, shard.durable())
    };
    log.shards().iter().map(of_shard).sum()
}
