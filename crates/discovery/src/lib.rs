//! The discovery of writers: gateways find them by DNS or etcd, and a writer registers itself in etcd.
//!
//! [`UpstreamBoard`] has the upstreams in use. Each has a task that discovers its writers, and a task that probes them. No batch
//! and no other upstream waits for a look-up or a probe.

mod dns;
mod etcd;
mod registration;
mod registry;
mod report;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sink_remote::{Upstream, Writers};
use tokio::task::JoinHandle;

pub use registration::{Advertised, Registration};
use registry::Port;

/// The pause between two look-ups.
const LOOK_UP_EVERY: Duration = Duration::from_secs(5);

/// The upstreams of the current configuration, with their tasks. Cheap to clone.
#[derive(Clone, Default)]
pub struct UpstreamBoard(Arc<Mutex<Vec<InUse>>>);

struct InUse {
    upstream: Upstream,
    /// The look-ups, and the probes of the writers.
    tasks: Tasks,
}

/// The tasks of an upstream. They are aborted on drop.
struct Tasks(Vec<JoinHandle<()>>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

impl UpstreamBoard {
    /// These upstreams. It must be called on a runtime, which runs their discovery.
    #[must_use]
    pub fn new(upstreams: &[Upstream]) -> Self {
        let board = Self::default();
        board.show(upstreams);
        board
    }

    /// Applies the writers of these upstreams. The tasks of an unchanged discovery keep running.
    pub fn show(&self, upstreams: &[Upstream]) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *held);
        for upstream in upstreams {
            upstream.apply();
            let is_alike = |known: &InUse| {
                known.upstream.is_same(upstream) && known.upstream.config().writers == upstream.config().writers
            };
            let known = before.iter().position(is_alike).map(|at| before.swap_remove(at));
            let tasks = known.map_or_else(|| start(upstream), |known| known.tasks);
            held.push(InUse { upstream: upstream.clone(), tasks });
        }
    }

    /// All upstreams.
    #[must_use]
    pub fn all(&self) -> Vec<Upstream> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().map(|in_use| in_use.upstream.clone()).collect()
    }
}

/// The look-ups of admin ports, which aren't probed. They end when it is dropped.
pub struct Discovery(#[expect(dead_code, reason = "its tasks end on drop")] Tasks);

impl Discovery {
    /// Begins to look the servers up on the current runtime. `None` if the configuration lists them.
    #[must_use]
    pub fn start(upstream: &Upstream) -> Option<Self> {
        discover(upstream, Port::Admin).map(|task| Self(Tasks(vec![task])))
    }
}

fn start(upstream: &Upstream) -> Tasks {
    let prober = tokio::spawn(sink_remote::probe(upstream.clone()));
    Tasks(discover(upstream, Port::Delivery).into_iter().chain([prober]).collect())
}

fn discover(upstream: &Upstream, port: Port) -> Option<JoinHandle<()>> {
    match &upstream.config().writers {
        Writers::Listed(_) | Writers::Named(_) => None,
        Writers::Dns(endpoint) => {
            let (host, port) = endpoint.host_and_port()?;
            Some(tokio::spawn(dns::follow_host(upstream.clone(), host, port)))
        }
        Writers::Etcd { etcd, allows_http } => {
            Some(tokio::spawn(registry::follow(upstream.clone(), port, etcd.clone(), *allows_http)))
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails loudly")]
mod tests {
    use sink_remote::{Spread, UpstreamConfig};
    use tokio::time::timeout;

    use super::*;

    /// An upstream with these writers.
    pub(super) fn upstream(writers: Writers) -> Upstream {
        let name = "back".to_owned();
        Upstream::new(UpstreamConfig {
            name,
            writers,
            sends_to_all: false,
            spread: Spread::Lane,
            token: None,
            ca: None,
            response_timeout: limits::RESPONSE_TIMEOUT,
        })
    }

    /// Its current writers.
    pub(super) fn labels(upstream: &Upstream) -> Vec<String> {
        upstream.servers().iter().map(|server| server.label()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn discovery_ends_with_its_upstream() {
        let upstream = upstream(Writers::Dns("https://writers.example:8081".parse().unwrap()));
        let (held, end) = tokio::sync::oneshot::channel::<()>();
        let held = Arc::new(held);
        let look_up = move || {
            let held = held.clone();
            async move {
                let _held = held;
                std::future::pending().await
            }
        };
        let tasks = Tasks(vec![tokio::spawn(dns::follow(upstream, look_up))]);
        tokio::task::yield_now().await;
        drop(tasks);
        assert!(timeout(LOOK_UP_EVERY, end).await.unwrap().is_err(), "the task is gone");
    }
}
