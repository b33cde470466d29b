//! One writer of an upstream: its health, its load and its counters.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use event::cells::{Counter, Histogram};
use tokio::time::Instant;

use super::health::Ejection;
use net::http_client::Endpoint;

/// The weight of the newest batch in the average of a writer's cost.
const SAMPLE_WEIGHT: f64 = 0.3;
/// The time constant of a cost's decay: without batches, the cost falls to 1/e in this time, so that a writer that was slow is tried again.
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
    /// The writer, a proxy before it, or another server at its address refused the request, or did not answer as a writer.
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

/// A writer.
#[derive(Debug)]
pub struct WriterServer {
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
    /// Failures of the writer itself.
    ejection: Option<Ejection>,
    /// Failures of its stores and refused requests, by the sink's name.
    of_sinks: BTreeMap<String, Ejection>,
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
    pub(super) fn new(key: ServerKey) -> Self {
        Self {
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

    /// Whether the writer is ejected for all sinks. Lanes then use another one, if there is one.
    #[must_use]
    pub fn is_ejected(&self) -> bool {
        let now = Instant::now();
        self.held().ejection.is_some_and(|ejection| !ejection.is_over(now))
    }

    /// The time of the failure, if the writer is ejected for lanes of this sink.
    pub(super) fn failed_at(&self, sink: &str, now: Instant) -> Option<Instant> {
        let held = self.held();
        let ejections = held.ejection.iter().chain(held.of_sinks.get(sink));
        ejections.filter(|ejection| !ejection.is_over(now)).map(|ejection| ejection.failed_at).max()
    }

    pub(crate) fn count(&self, outcome: RequestOutcome) {
        self.requests[outcome as usize].add(1);
    }

    /// Ejects the writer for all sinks: it does not answer, drains, refuses the token, or does not answer as a writer.
    pub(crate) fn eject(&self) {
        let mut held = self.held();
        held.ejection = Some(Ejection::after(held.ejection));
        self.ejections.add(1);
    }

    /// Ejects the writer for this sink: its store failed, or the writer refused the request.
    pub(crate) fn eject_for(&self, sink: &str) {
        let mut held = self.held();
        let ejection = Ejection::after(held.of_sinks.get(sink).copied());
        held.of_sinks.insert(sink.to_owned(), ejection);
        self.ejections.add(1);
    }

    /// Ends the ejection: the writer has answered as a writer.
    pub(crate) fn answers(&self) {
        self.held().ejection = None;
    }

    /// Ends the ejection for this sink: the writer has answered a batch or an object of it.
    pub(crate) fn stores(&self, sink: &str) {
        self.held().of_sinks.remove(sink);
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
