//! What a gateway has done, for metrics. Each shard has separate cells, which are summed when they are read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use clock::Throttle;
use eventlog::{Accepted, FilterStep};
use http::StatusCode;
use metrics::{Counter, Histogram, HistogramSnapshot};
use net::lingering_close::DrainLimiter;
use tokio::runtime::RuntimeMetrics;

use crate::admission::Admission;
use crate::bridge::BridgeBoard;
use crate::error_code::ErrorCode;
use crate::filter_counts::FilterCounts;
use crate::intakes::IntakeBoard;
use crate::refusals::{QuarantineCounts, RefusalCount, RefusalCounts, RefusalNews, RefusalSamples};
use crate::route::RouteName;
use crate::status_class::StatusClass;

/// The cells of one shard.
#[derive(Debug, Default)]
pub(crate) struct ShardCells {
    requests: [[Counter; StatusClass::ALL.len()]; RouteName::ALL.len()],
    times: [Histogram; RouteName::ALL.len()],
    /// From a wake-up of its event loop to the commit.
    pub(crate) iterations: Histogram,
    /// What its runtime has measured, once it runs.
    pub(crate) runtime: OnceLock<RuntimeMetrics>,
    /// Whether it is connected to the bus, if there is one.
    pub(crate) bus_connected: OnceLock<AtomicBool>,
    pub(crate) body_bytes: Counter,
    pub(crate) duplicates: Counter,
    pub(crate) tls_handshakes: Counter,
    pub(crate) tls_failures: Counter,
}

impl ShardCells {
    pub(crate) fn answered(&self, route: RouteName, status: StatusCode, elapsed: Duration) {
        self.requests[route as usize][StatusClass::of(status) as usize].add(1);
        self.times[route as usize].record(elapsed);
    }
}

/// What a gateway has done since it started.
#[derive(Debug)]
pub struct GatewayCounters {
    shards: Box<[ShardCells]>,
    admission: Arc<Admission>,
    drains: Arc<DrainLimiter>,
    pub(crate) filters: FilterCounts,
    pub(crate) refusals: RefusalCounts,
    pub(crate) refusal_samples: RefusalSamples,
    pub(crate) quarantine: QuarantineCounts,
    pub(crate) accept_errors: Counter,
    pub(crate) connections_accepted: Counter,
    pub(crate) connections_refused: Counter,
    pub(crate) bridges: BridgeBoard,
    pub(crate) intakes: IntakeBoard,
    long_iterations: Mutex<Throttle>,
}

impl GatewayCounters {
    pub(crate) fn new(
        shards: usize,
        admission: Arc<Admission>,
        drains: Arc<DrainLimiter>,
        accepted: Arc<Accepted>,
    ) -> Self {
        let shards = (0..shards).map(|_| ShardCells::default()).collect();
        let [accept_errors, connections_accepted, connections_refused] = Default::default();
        Self {
            shards,
            admission,
            drains,
            filters: FilterCounts::new(accepted),
            refusals: RefusalCounts::default(),
            refusal_samples: RefusalSamples::default(),
            quarantine: QuarantineCounts::default(),
            accept_errors,
            connections_accepted,
            connections_refused,
            bridges: BridgeBoard::default(),
            intakes: IntakeBoard::default(),
            long_iterations: Mutex::default(),
        }
    }

    pub(crate) fn shard(&self, shard: usize) -> &ShardCells {
        &self.shards[shard]
    }

    fn sum(&self, of: impl Fn(&ShardCells) -> &Counter) -> u64 {
        self.shards.iter().map(|cells| of(cells).get()).sum()
    }

    fn merged(&self, of: impl Fn(&ShardCells) -> &Histogram) -> HistogramSnapshot {
        let mut all = Histogram::default().snapshot();
        self.shards.iter().for_each(|cells| all.merge(&of(cells).snapshot()));
        all
    }

    /// Requests answered, by route and class of status.
    #[must_use]
    pub fn requests(&self, route: RouteName, class: StatusClass) -> u64 {
        self.sum(|cells| &cells.requests[route as usize][class as usize])
    }

    /// Rejected requests and records of batches, by reason. Those for [`ErrorCode::Overload`] were shed.
    #[must_use]
    pub fn refusals(&self, code: ErrorCode) -> u64 {
        self.refusals.sum(code)
    }

    /// The same by type and source, without zeroes.
    #[must_use]
    pub fn refusal_list(&self) -> Vec<RefusalCount> {
        self.refusals.list()
    }

    /// Waits until something is rejected that the log can show.
    pub async fn refusal_news(&self) -> RefusalNews {
        self.refusal_samples.news().await
    }

    /// The outcomes of quarantined events.
    #[must_use]
    pub const fn quarantine(&self) -> &QuarantineCounts {
        &self.quarantine
    }

    /// Time from a request's head to its response.
    #[must_use]
    pub fn request_time(&self, route: RouteName) -> HistogramSnapshot {
        self.merged(|cells| &cells.times[route as usize])
    }

    /// How long the iterations of each shard's event loop took, from a wake-up to the commit.
    pub fn iteration_times(&self) -> impl Iterator<Item = HistogramSnapshot> {
        self.shards.iter().map(|cells| cells.iterations.snapshot())
    }

    /// Whether a long iteration is to be logged: once a minute for all shards.
    pub(crate) fn is_long_iteration_due(&self, now: Instant) -> bool {
        self.long_iterations.lock().unwrap_or_else(PoisonError::into_inner).take_every(Duration::from_mins(1), now)
    }

    /// Open connections of a shard.
    pub(crate) fn connections_of(&self, shard: usize) -> usize {
        self.admission.connections_of(shard)
    }

    /// How long each shard's thread was at work, without the commits that it waits for.
    pub fn busy_times(&self) -> impl Iterator<Item = Duration> {
        let busy = |metrics: &RuntimeMetrics| metrics.worker_total_busy_duration(0);
        self.shards.iter().map(move |cells| cells.runtime.get().map_or(Duration::ZERO, busy))
    }

    /// Bytes of bodies received.
    #[must_use]
    pub fn body_bytes(&self) -> u64 {
        self.sum(|cells| &cells.body_bytes)
    }

    /// Events that steps dropped since the data directory was created, by type and step; those of named types are listed from the start.
    #[must_use]
    pub fn filtered(&self) -> Vec<(FilterStep, u64)> {
        self.filters.list()
    }

    /// Duplicates that were recognised.
    #[must_use]
    pub fn duplicates(&self) -> u64 {
        self.sum(|cells| &cells.duplicates)
    }

    /// Connections with a completed TLS handshake.
    #[must_use]
    pub fn tls_handshakes(&self) -> u64 {
        self.sum(|cells| &cells.tls_handshakes)
    }

    /// Connections on a port with TLS that spoke plain HTTP, or whose handshake failed.
    #[must_use]
    pub fn tls_failures(&self) -> u64 {
        self.sum(|cells| &cells.tls_failures)
    }

    /// What bridges have done.
    #[must_use]
    pub const fn bridges(&self) -> &BridgeBoard {
        &self.bridges
    }

    /// What intakes have done.
    #[must_use]
    pub const fn intakes(&self) -> &IntakeBoard {
        &self.intakes
    }

    /// Whether each shard is connected to the bus; nothing for shards without a bus.
    pub fn bus_connections(&self) -> impl Iterator<Item = bool> {
        self.shards.iter().filter_map(|cells| Some(cells.bus_connected.get()?.load(Ordering::Relaxed)))
    }

    /// Connections open now.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.admission.connections()
    }

    /// Bytes of bodies that have arrived and whose requests are not answered yet.
    #[must_use]
    pub fn bytes_in_flight(&self) -> usize {
        self.admission.bytes()
    }

    /// Connections, and bytes in flight, of one shard.
    pub(crate) fn load_of(&self, shard: usize) -> (usize, usize) {
        (self.admission.connections_of(shard), self.admission.bytes_of(shard))
    }

    /// The connections that are drained after an early response, those of the admin port too.
    #[must_use]
    pub const fn drains(&self) -> &Arc<DrainLimiter> {
        &self.drains
    }

    /// Connections accepted.
    #[must_use]
    pub fn connections_accepted(&self) -> u64 {
        self.connections_accepted.get()
    }

    /// Connections that were closed immediately, because their client had reached its limit of connections.
    #[must_use]
    pub fn connections_refused(&self) -> u64 {
        self.connections_refused.get()
    }

    /// Failed accepts of a connection, for lack of file descriptors or memory.
    #[must_use]
    pub fn accept_errors(&self) -> u64 {
        self.accept_errors.get()
    }
}
