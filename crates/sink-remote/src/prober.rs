//! The prober of an upstream: finds out with small requests which writers work. There is one in a process for each upstream, so the number
//! of probes depends on the writers and their sinks, not on the lanes.
//!
//! It probes a sink of a writer that is untried or ejected, and a writer that no request has reached for a while. An ejected writer is used
//! again after a probe has succeeded.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::Method;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::binding::Binding;
use super::caller::SILENCE_MAX;
use super::exchange::{Call, Exchange};
use super::upstream::{SinkUse, Upstream, WriterServer};
use writer_protocol::SinkInfo;

/// The pause between two searches for probes that are due.
const TICK: Duration = Duration::from_millis(100);
/// A writer that no request has reached for this long is probed.
const QUIET_MAX: Duration = Duration::from_secs(5);
/// How long a writer may send heartbeats before its answer to a probe: longer than a connection to a store may take (10 s).
const ANSWER_MAX: Duration = Duration::from_secs(15);
/// Probes in flight. The others wait.
const IN_FLIGHT_MAX: usize = 32;
/// A probe of an ejected or quiet writer is late by up to this time, so gateways don't probe a writer at the same moment.
const JITTER_MAX_MILLIS: u64 = 500;

/// The writer's label and the sink of a probe in flight.
type Key = (String, String);

/// Probes the writers of the upstream until the future is dropped.
pub async fn probe(upstream: Upstream) {
    let mut prober =
        Prober { upstream, exchanges: BTreeMap::new(), in_flight: HashSet::new(), seed: RandomState::new() };
    let mut probes = FuturesUnordered::new();
    loop {
        let next = Instant::now() + TICK;
        for (key, server, exchange) in prober.due() {
            probes.push(async move {
                // The exchange records the result in the writer's health.
                drop(exchange.ask::<SinkInfo>(&server, &Call::new(Method::GET, "")).await);
                key
            });
        }
        while let Ok(Some(key)) = timeout_at(next, probes.next()).await {
            prober.in_flight.remove(&key);
        }
        sleep_until(next).await;
    }
}

struct Prober {
    upstream: Upstream,
    /// Connections for the probes of each sink.
    exchanges: BTreeMap<String, Arc<Exchange>>,
    in_flight: HashSet<Key>,
    seed: RandomState,
}

impl Prober {
    /// The probes that are due and not in flight.
    fn due(&mut self) -> Vec<(Key, Arc<WriterServer>, Arc<Exchange>)> {
        let (now, sinks) = (Instant::now(), self.upstream.state().sinks());
        self.exchanges.retain(|sink, _| sinks.iter().any(|known| known.sink == *sink));
        let mut due = Vec::new();
        for server in self.upstream.servers() {
            for sink in self.sinks_to_probe(&server, &sinks, now) {
                let key = (server.label(), sink.clone());
                if self.in_flight.len() < IN_FLIGHT_MAX && self.in_flight.insert(key.clone()) {
                    due.push((key, Arc::clone(&server), self.exchange(sink)));
                }
            }
        }
        due
    }

    /// The sinks of a writer with a due probe. One is enough to find out whether the writer itself answers.
    fn sinks_to_probe(&self, server: &WriterServer, sinks: &[Arc<SinkUse>], now: Instant) -> Vec<String> {
        let late = Duration::from_millis(self.seed.hash_one(server.label()) % JITTER_MAX_MILLIS);
        let own = sinks.iter().filter(|sink| sink.may_use(server)).map(|sink| &sink.sink);
        if let Some(quiet_for) = server.quiet_for(now) {
            let is_due = |sink: &&String| server.is_sink_probe_due(sink, now, late);
            let quiet = own.clone().find(|sink| server.is_available(sink)).filter(|_| quiet_for >= QUIET_MAX + late);
            return own.filter(is_due).chain(quiet).cloned().collect();
        }
        let is_due = server.is_probe_due(now, late);
        let is_probed = self.in_flight.iter().any(|(label, _)| *label == server.label());
        own.filter(|_| is_due && !is_probed).take(1).cloned().collect()
    }

    fn exchange(&mut self, sink: String) -> Arc<Exchange> {
        let exchange = self.exchanges.entry(sink).or_insert_with_key(|sink| {
            // A probe names no store: whether it is the bound one is a question of each sink.
            let binding = Arc::new(Binding::new(sink));
            Arc::new(Exchange::new(&self.upstream, sink, binding, SILENCE_MAX).answered_within(ANSWER_MAX))
        });
        Arc::clone(exchange)
    }
}
