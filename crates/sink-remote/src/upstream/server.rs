//! One writer of an upstream: its health, its load and its counters.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metrics::{Counter, Histogram};
use tokio::time::Instant;

use super::health::{Health, ServerState};
use net::http_client::Endpoint;
use sink::Reason;

/// The weight of the newest batch in the average of a writer's cost.
const SAMPLE_WEIGHT: f64 = 0.3;
/// The time constant of a cost's decay: without batches, the cost falls to 1/e in this time, and a writer that was slow is tried again.
const DECAY_SECONDS: f64 = 10.0;
/// Added to the bytes of a batch, for the fixed cost of a request.
const OVERHEAD_BYTES: f64 = 4096.0;

/// The outcome of a request to a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// The writer did the call.
    Answered,
    /// The writer answered that its store failed.
    StoreFailed,
    /// The writer, a proxy before it, or another server at its address rejected the request, or did not answer as a writer.
    Refused,
    /// Nothing was sent: the writer accepted no connection.
    Unsent,
    /// The request was sent, and no complete answer was received.
    NoAnswer,
}

impl RequestOutcome {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Answered, Self::StoreFailed, Self::Refused, Self::Unsent, Self::NoAnswer];

    /// The outcome's name in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::StoreFailed => "store_failed",
            Self::Refused => "refused",
            Self::Unsent => "unsent",
            Self::NoAnswer => "no_answer",
        }
    }
}

/// The order in which a lane tries writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ServerRank {
    Available,
    Untried,
    /// The oldest failure first.
    Ejected,
}

/// A writer.
#[derive(Debug)]
pub struct WriterServer {
    /// The upstream's name.
    upstream: Arc<str>,
    key: ServerKey,
    state: Mutex<State>,
    requests: [Counter; RequestOutcome::ALL.len()],
    ejections: Counter,
    /// Time from a request to the end of its answer.
    latency: Histogram,
}

/// The identity of a writer in a changed set: its name, its URL, and its address if DNS returned one.
pub(super) type ServerKey = (Option<String>, Endpoint, Option<SocketAddr>);

#[derive(Debug, Default)]
struct State {
    /// The health of the writer itself.
    health: Health,
    /// The health of its stores, and of requests that it rejected, by the sink's name.
    of_sinks: BTreeMap<String, Health>,
    load: Load,
}

/// The writer's speed and requests in flight.
#[derive(Debug, Default)]
struct Load {
    /// A moving average, and the time of its last update.
    seconds_a_byte: Option<(f64, Instant)>,
    in_flight: u32,
}

impl WriterServer {
    pub(super) fn new(upstream: Arc<str>, key: ServerKey) -> Self {
        Self {
            upstream,
            key,
            state: Mutex::default(),
            requests: Default::default(),
            ejections: Counter::new(),
            latency: Histogram::new(),
        }
    }

    pub(super) const fn key(&self) -> &ServerKey {
        &self.key
    }

    fn held(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer's URL.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.key.1
    }

    /// The address that DNS returned.
    #[must_use]
    pub const fn address(&self) -> Option<SocketAddr> {
        self.key.2
    }

    /// The writer's label in metrics and messages: its address if DNS returned one, else its URL.
    #[must_use]
    pub fn label(&self) -> String {
        self.address().map_or_else(|| self.endpoint().to_string(), |address| address.to_string())
    }

    /// The number of requests with this outcome.
    #[must_use]
    pub fn requests(&self, outcome: RequestOutcome) -> u64 {
        self.requests[outcome as usize].get()
    }

    /// The number of ejections of the writer, also for one sink only.
    #[must_use]
    pub const fn ejections(&self) -> &Counter {
        &self.ejections
    }

    /// Time from a request to the end of its answer; of an object that is read, to the head of the answer.
    #[must_use]
    pub const fn latency(&self) -> &Histogram {
        &self.latency
    }

    /// The state of the writer itself.
    #[must_use]
    pub fn state(&self) -> ServerState {
        self.held().health.state
    }

    /// The time since the writer's last success.
    #[must_use]
    pub fn last_success(&self) -> Option<Duration> {
        self.held().health.succeeded_at.map(|at| at.elapsed())
    }

    /// Why the writer is ejected.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        self.held().health.reason()
    }

    /// The sinks for which the writer is ejected, and why: its store failed, or it rejected the request.
    #[must_use]
    pub fn ejected_sinks(&self) -> Vec<(String, Reason)> {
        let held = self.held();
        held.of_sinks.iter().filter_map(|(sink, health)| Some((sink.clone(), health.reason()?))).collect()
    }

    /// Whether the writer and its sink have succeeded, and have not failed since.
    pub(crate) fn is_available(&self, sink: &str) -> bool {
        self.rank(sink).0 == ServerRank::Available
    }

    /// The order in which a lane of this sink tries writers.
    pub(super) fn rank(&self, sink: &str) -> (ServerRank, Option<Instant>) {
        let held = self.held();
        let of_sink = held.of_sinks.get(sink);
        let failed_at = held.health.failed_at().max(of_sink.and_then(Health::failed_at));
        let rank = match (held.health.state, of_sink.map_or(ServerState::Untried, |health| health.state)) {
            (ServerState::Ejected, _) | (_, ServerState::Ejected) => ServerRank::Ejected,
            (ServerState::Available, ServerState::Available) => ServerRank::Available,
            _ => ServerRank::Untried,
        };
        (rank, failed_at)
    }

    /// Whether the writer itself is to be probed. The probe may be late by `late`.
    pub(crate) fn is_probe_due(&self, now: Instant, late: Duration) -> bool {
        self.held().health.is_probe_due(now, late)
    }

    /// Whether this sink of the writer is to be probed.
    pub(crate) fn is_sink_probe_due(&self, sink: &str, now: Instant, late: Duration) -> bool {
        self.held().of_sinks.get(sink).is_none_or(|health| health.is_probe_due(now, late))
    }

    /// The time since the writer's last success, for a writer that is available.
    pub(crate) fn quiet_for(&self, now: Instant) -> Option<Duration> {
        let held = self.held();
        let at = held.health.succeeded_at.filter(|_| held.health.state == ServerState::Available)?;
        Some(now.saturating_duration_since(at))
    }

    pub(crate) fn count(&self, outcome: RequestOutcome) {
        self.requests[outcome as usize].add(1);
    }

    /// Ejects the writer for all sinks: it does not answer, drains, rejects the token, has another version, or does not answer as a writer.
    pub(crate) fn eject(&self, reason: Reason) {
        let is_new = self.held().health.fails(reason.clone());
        if is_new {
            self.ejections.add(1);
            let (upstream, server) = (&*self.upstream, self.label());
            tracing::warn!(
                upstream, server, %reason,
                "writer ejected: lanes prefer other writers until a probe succeeds. Check the writer"
            );
        }
    }

    /// Ejects the writer for this sink: its store failed, or the writer rejected the request.
    pub(crate) fn eject_for(&self, sink: &str, reason: Reason) {
        let is_new = self.held().of_sinks.entry(sink.to_owned()).or_default().fails(reason.clone());
        if is_new {
            self.ejections.add(1);
            let (upstream, server) = (&*self.upstream, self.label());
            tracing::warn!(
                upstream, server, server_sink = sink, %reason,
                "writer ejected for one sink: its lanes prefer other writers until a probe succeeds"
            );
        }
    }

    /// The writer has answered as a writer. A small request is a probe.
    pub(crate) fn answers(&self, is_probe: bool) {
        let was_ejected = self.held().health.succeeds(is_probe);
        if was_ejected {
            tracing::info!(upstream = &*self.upstream, server = self.label(), "writer available again");
        }
    }

    /// The writer's sink has answered: a probe, or if the request stores something, a batch or an object.
    pub(crate) fn serves(&self, sink: &str, is_probe: bool) {
        let mut held = self.held();
        let health = match held.of_sinks.get_mut(sink) {
            Some(health) => health,
            None => held.of_sinks.entry(sink.to_owned()).or_default(),
        };
        let was_ejected = health.succeeds(is_probe);
        drop(held);
        if was_ejected {
            let (upstream, server) = (&*self.upstream, self.label());
            tracing::info!(upstream, server, server_sink = sink, "writer available again for one sink");
        }
    }

    /// Counts a request while it is in flight.
    pub(crate) fn begin(&self) -> InFlight<'_> {
        self.held().load.in_flight += 1;
        InFlight { server: self, since: Instant::now() }
    }

    /// The expected seconds per byte, weighted by the requests in flight.
    pub(super) fn cost(&self, now: Instant) -> f64 {
        self.held().load.cost(now)
    }
}

impl Load {
    fn decayed(&self, now: Instant) -> Option<f64> {
        let (cost, at) = self.seconds_a_byte?;
        Some(cost * (-now.saturating_duration_since(at).as_secs_f64() / DECAY_SECONDS).exp())
    }

    fn cost(&self, now: Instant) -> f64 {
        // Writers without a sample are compared by their requests in flight.
        let cost = self.decayed(now).unwrap_or_default().max(f64::MIN_POSITIVE);
        cost * f64::from(self.in_flight + 1)
    }

    fn add_sample(&mut self, took: Duration, bytes: usize, now: Instant) {
        #[expect(clippy::cast_precision_loss, reason = "a batch has far fewer than 2⁵³ bytes")]
        let sample = took.as_secs_f64() / (bytes as f64 + OVERHEAD_BYTES);
        let before = self.decayed(now);
        let cost = before.map_or(sample, |before| before + SAMPLE_WEIGHT * (sample - before));
        self.seconds_a_byte = Some((cost, now));
    }
}

/// A request in flight, until it is dropped.
pub(crate) struct InFlight<'a> {
    server: &'a WriterServer,
    since: Instant,
}

impl InFlight<'_> {
    /// Records the time of an answer. `bytes` are those of the batch or object, if the request stored one.
    pub(crate) fn answered(self, bytes: Option<usize>) {
        let now = Instant::now();
        let took = now.saturating_duration_since(self.since);
        self.server.latency.record(took);
        if let Some(bytes) = bytes {
            self.server.held().load.add_sample(took, bytes, now);
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let load = &mut self.server.held().load;
        load.in_flight = load.in_flight.saturating_sub(1);
    }
}
