//! The counters that findings compare.

use std::time::{Duration, Instant, SystemTime};

use gateway::ErrorCode;
use host::{ThreadTimes, container_stats, cpu_steal, process_stats};
use metrics::{Histogram, HistogramSnapshot};

use super::ServerSources;
use crate::log;

/// The beginning of the names of shards' threads.
const SHARD_THREADS: &str = "shard-";

/// The counters of one moment. All but the last three only grow.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(super) at: Instant,
    /// Seconds in which the container's limit held it.
    pub(super) throttled: f64,
    pub(super) cpu_limit: Option<f64>,
    /// Seconds in which threads of shards were ready and had no CPU.
    pub(super) run_wait: f64,
    /// Seconds that the hypervisor took from all CPUs, and how many CPUs there are.
    pub(super) steal: f64,
    pub(super) cpus: f64,
    /// Time at work of each shard.
    pub(super) busy: Vec<Duration>,
    pub(super) fdatasync: HistogramSnapshot,
    /// Requests that were rejected for lack of memory.
    pub(super) overload: u64,
    pub(super) log_dropped: u64,
    pub(super) clock: SystemTime,
    pub(super) open_fds: u64,
    pub(super) max_fds: u64,
}

impl Sample {
    pub(super) fn take(server: Option<&ServerSources>, threads: &ThreadTimes) -> Self {
        let (container, process, (steal, cpus)) = (container_stats(), process_stats(), cpu_steal());
        let times = threads.read();
        let of_shards = times.iter().filter(|(name, _)| name.starts_with(SHARD_THREADS));
        let mut fdatasync = Histogram::new().snapshot();
        if let Some(server) = server {
            server.log.shards().iter().for_each(|shard| fdatasync.merge(&shard.counters().sync_time.snapshot()));
        }
        Self {
            at: Instant::now(),
            throttled: container.throttled_seconds.unwrap_or_default(),
            cpu_limit: container.cpu_limit,
            run_wait: of_shards.map(|(_, time)| time.run_wait_seconds).sum(),
            steal,
            cpus,
            busy: server.map_or_else(Vec::new, |server| server.gateway.busy_times().collect()),
            fdatasync,
            overload: server.map_or(0, |server| server.gateway.refusals(ErrorCode::Overload)),
            log_dropped: log::dropped(),
            clock: clock::now(),
            open_fds: process.open_fds.unwrap_or_default(),
            max_fds: process.max_fds.unwrap_or(u64::MAX),
        }
    }
}
