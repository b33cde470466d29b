//! The memory of the process: what the configuration or the system allows, divided into budgets for this configuration.

use std::fs;
use std::num::NonZeroUsize;

use config::{AggregateConfig, Configuration, WriterConfiguration};
use limits::memory::{Budgets, MEMORY_RESERVE_BYTES, MemoryParts, WriterBudgets};
use writer::Writer;

use crate::overview::HISTORY_BYTES_MAX;

const MIB: usize = 1024 * 1024;
/// The budgets, and the messages about them.
pub(crate) struct Plan {
    pub(crate) budgets: Budgets,
    /// The memory limit in bytes, and its source. `None` is without limit.
    limit: Option<(usize, String)>,
    /// Memory of the process outside its budgets.
    reserved: usize,
    /// The memory of the smallest budgets and all else, if that is too much.
    needed: Option<usize>,
}

impl Plan {
    /// For a configuration that was read, with so many shards.
    pub(crate) fn of(configuration: &Configuration, shards: usize) -> Self {
        let limit = limit(configuration);
        let parts = parts(configuration, shards);
        let (reserved, room) = room(limit.as_ref());
        match Budgets::within(room, &parts) {
            Ok(budgets) => Self { budgets, limit, reserved, needed: None },
            Err(least) => Self { budgets: Budgets::LEAST, limit, reserved, needed: Some(least + reserved) },
        }
    }

    /// Whether parts take less than they do with enough memory.
    pub(crate) fn is_limited(&self) -> bool {
        self.budgets != Budgets::FULL
    }

    /// The message for the operator, if there is one.
    pub(crate) fn summary(&self) -> Option<String> {
        let (bytes, source) = self.limit.as_ref().filter(|_| self.is_limited())?;
        let Budgets { in_flight_bytes, batch_bytes, duplicate_window_bytes, connections, dead_letters, .. } =
            self.budgets;
        Some(format!(
            "memory limit: {} ({source}), {} of it reserved for program and kernel; in flight: {}; a batch: {}; deduplication window: \
             {} instead of {}; dead letters of a sink: {dead_letters}; connections: {connections}",
            size(*bytes),
            size(self.reserved),
            size(in_flight_bytes),
            size(batch_bytes),
            size(duplicate_window_bytes),
            size(Budgets::FULL.duplicate_window_bytes),
        ))
    }

    /// Why the limit may be exceeded, if it may.
    pub(crate) fn warning(&self) -> Option<String> {
        let (bytes, source) = self.limit.as_ref()?;
        let needed = self.needed?;
        Some(format!(
            "this configuration may take {} of memory with the smallest budgets; the limit is {} ({source}): the process may be killed. \
             Raise the limit, or configure fewer sinks, shards, connections, or less `memory` of aggregates and `object_cache`",
            size(needed),
            size(*bytes),
        ))
    }
}

/// The budgets of a writer, and the messages about them.
pub(crate) struct WriterPlan {
    pub(crate) budgets: WriterBudgets,
    limit: Option<(usize, String)>,
    /// The memory of the smallest budgets and all else, if that is too much.
    needed: Option<usize>,
    is_limited: bool,
}

impl WriterPlan {
    /// For a configuration that was read.
    pub(crate) fn of(configuration: &WriterConfiguration) -> Self {
        let fixed = configuration.sinks.values().map(|sink| sink.store.memory_bytes());
        let parts = Writer::memory_parts(configuration.sinks.len(), fixed.fold(0, usize::saturating_add));
        let limit = system_limit();
        let (reserved, room) = room(limit.as_ref());
        let fitting = WriterBudgets::within(room, &parts);
        let budgets = fitting.unwrap_or_else(|_| WriterBudgets::least(&parts));
        let is_limited = budgets != WriterBudgets::full(&parts);
        Self { budgets, limit, needed: fitting.err().map(|least| least.saturating_add(reserved)), is_limited }
    }

    /// The message for the operator, if memory is limited.
    pub(crate) fn summary(&self) -> Option<String> {
        let (bytes, source) = self.limit.as_ref().filter(|_| self.is_limited)?;
        let WriterBudgets { sink_batches_bytes, reads_bytes, connections } = self.budgets;
        Some(format!(
            "memory limit: {} ({source}); batches of a sink in memory: {}; pages being read: {}; connections: {connections}",
            size(*bytes),
            size(sink_batches_bytes),
            size(reads_bytes),
        ))
    }

    /// Why the limit may be exceeded, if it may.
    pub(crate) fn warning(&self) -> Option<String> {
        let (bytes, source) = self.limit.as_ref()?;
        Some(format!(
            "the sinks of this writer may take {} of memory with the smallest budgets, and the limit is {} ({source}): the process may \
             be killed. Raise the limit, or configure fewer sinks or `shards`",
            size(self.needed?),
            size(*bytes),
        ))
    }
}

/// Gives aggregates without a configured memory their share of the budgets.
pub(crate) fn limit_aggregates(configuration: &mut Configuration, budgets: &Budgets) {
    let types = configuration.types.values_mut().chain(configuration.other_types.as_mut());
    types.flat_map(|of| &mut of.aggregates).for_each(|aggregate| aggregate.rules.limit_memory(budgets.aggregate_bytes));
}

/// The limit of the configuration, or of the system.
fn limit(configuration: &Configuration) -> Option<(usize, String)> {
    let to_usize = |bytes| usize::try_from(bytes).unwrap_or(usize::MAX);
    if let Some(bytes) = configuration.gateway.memory {
        return Some((to_usize(bytes), "`memory` in [gateway]".to_owned()));
    }
    system_limit()
}

fn system_limit() -> Option<(usize, String)> {
    let found = host::memory_limit()?;
    Some((usize::try_from(found.bytes).unwrap_or(usize::MAX), found.file.display().to_string()))
}

/// Bytes of the process without its budgets, and the rest for them.
fn room(limit: Option<&(usize, String)>) -> (usize, usize) {
    let reserved = MEMORY_RESERVE_BYTES + resident().unwrap_or(0);
    (reserved, limit.map_or(usize::MAX, |(bytes, _)| bytes.saturating_sub(reserved)))
}

/// Bytes of anonymous memory that the process takes now: with the configuration, its schemas and tables.
fn resident() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<usize>().ok()?.checked_mul(1024)
}

fn parts(configuration: &Configuration, shards: usize) -> MemoryParts {
    let types = configuration.types.values().chain(&configuration.other_types);
    let aggregates: Vec<&AggregateConfig> = types.flat_map(|of| &of.aggregates).collect();
    let own = aggregates.iter().filter(|aggregate| aggregate.rules.has_own_memory());
    let sinks = || configuration.sinks.values();
    let cache = configuration.gateway.object_cache.map_or(0, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let letters = sinks().filter_map(|sink| sink.max_dead_letters).sum::<u64>();
    let letters = usize::try_from(letters).unwrap_or(usize::MAX).saturating_mul(limits::memory::DEAD_LETTER_BYTES);
    let fixed = own
        .clone()
        .map(|aggregate| aggregate.rules.memory_bytes())
        .chain(sinks().map(|sink| sink.store.memory_bytes()));
    MemoryParts {
        shards,
        sinks: configuration.sinks.len(),
        object_sinks: sinks().filter(|sink| sink.store.has_objects()).count(),
        dead_letter_sinks: sinks().filter(|sink| sink.max_dead_letters.is_none()).count(),
        aggregates: aggregates.len() - own.count(),
        has_object_cache: configuration.gateway.object_cache.is_none() && sinks().any(|sink| sink.serving.is_some()),
        connections: configuration.gateway.max_connections.map(NonZeroUsize::get),
        fixed_bytes: fixed.fold(cache.saturating_add(letters).saturating_add(HISTORY_BYTES_MAX), usize::saturating_add),
    }
}

fn size(bytes: usize) -> String {
    if bytes < 10 * MIB { format!("{:.1} MiB", bytes as f64 / MIB as f64) } else { format!("{} MiB", bytes / MIB) }
}
