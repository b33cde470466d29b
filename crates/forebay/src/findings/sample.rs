//! The figures that findings compare.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use config::ConnectionLimits;
use gateway::ErrorCode;
use host::{ContainerStats, ProcessStats, ThreadTimes, container_stats, cpu_steal, main_thread, process_stats};
use metrics::{Histogram, HistogramSnapshot};

use super::ServerSources;
use crate::log;

/// The beginning of the names of shards' threads.
const SHARD_THREADS: &str = "shard-";

/// The figures of one moment. What can't be read is `None`.
#[derive(Clone, Debug)]
pub(crate) struct MinuteSample {
    pub(super) at: Instant,
    /// Microseconds since 1970.
    pub(super) clock: i64,
    pub(super) process: ProcessStats,
    pub(super) container: ContainerStats,
    /// For how many seconds each of the threads that handle events was ready and had no CPU: those of shards; a writer has one.
    pub(super) run_wait: BTreeMap<String, f64>,
    /// Seconds that the hypervisor took from all CPUs, and how many CPUs there are.
    pub(super) steal: f64,
    pub(super) cpus: f64,
    /// Time at work of each shard.
    pub(super) busy: Vec<Duration>,
    pub(super) fdatasync: HistogramSnapshot,
    /// Requests that were rejected for lack of memory.
    pub(super) overload: u64,
    /// Connections that couldn't be accepted.
    pub(super) accept_errors: u64,
    /// Open connections, and those that were closed because their client had its share.
    pub(super) connections: u64,
    pub(super) connections_closed: u64,
    /// The limits of connections, if file descriptors allow fewer than are wanted.
    pub(super) lowered: Option<ConnectionLimits>,
    pub(super) log_dropped: u64,
    pub(super) disk_free_bytes: Option<u64>,
}

impl MinuteSample {
    pub(super) fn take(
        server: Option<&ServerSources>,
        threads: &ThreadTimes,
        lowered: Option<ConnectionLimits>,
    ) -> Self {
        let (steal, cpus) = cpu_steal();
        let main = main_thread();
        let is_watched = |name: &str| match server {
            Some(_) => name.starts_with(SHARD_THREADS),
            None => main.as_deref() == Some(name),
        };
        let times = threads.read().into_iter().filter(|(name, _)| is_watched(name));
        let mut fdatasync = Histogram::new().snapshot();
        if let Some(server) = server {
            server.log.shards().iter().for_each(|shard| fdatasync.merge(&shard.counters().sync_time.snapshot()));
        }
        Self {
            at: Instant::now(),
            clock: clock::unix_microseconds(),
            process: process_stats(),
            container: container_stats(),
            run_wait: times.map(|(name, time)| (name, time.run_wait_seconds)).collect(),
            steal,
            cpus,
            busy: server.map_or_else(Vec::new, |server| server.gateway.busy_times().collect()),
            fdatasync,
            overload: server.map_or(0, |server| server.gateway.refusals(ErrorCode::Overload)),
            accept_errors: server.map_or(0, |server| server.gateway.accept_errors()),
            connections: server.map_or(0, |server| server.gateway.open_connections() as u64),
            connections_closed: server.map_or(0, |server| server.gateway.connections_refused()),
            lowered,
            log_dropped: log::dropped(),
            disk_free_bytes: server.map(|server| server.log.disk_guard().free_bytes()),
        }
    }
}
