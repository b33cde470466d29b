//! The upstreams in use, and the discovery of their writers by DNS. Each upstream is looked up on a task of its own, so neither a
//! batch nor another upstream waits for DNS.

use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sink::remote::{Upstream, Writers};
use tokio::task::JoinHandle;

use crate::config::Configuration;
use crate::log;

/// The pause between two look-ups of a host.
const LOOK_UP_EVERY: Duration = Duration::from_secs(5);

/// The upstreams of the current configuration. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct UpstreamBoard(Arc<Mutex<Vec<InUse>>>);

struct InUse {
    upstream: Upstream,
    discovery: Option<Discovery>,
}

/// The task of an upstream's look-ups. It is aborted on drop.
struct Discovery(JoinHandle<()>);

impl Drop for Discovery {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl UpstreamBoard {
    /// The upstreams of this configuration. It must be called on a runtime, which runs their discovery.
    pub(crate) fn new(configuration: &Configuration) -> Self {
        let board = Self::default();
        board.show(configuration);
        board
    }

    /// Applies the writers of this configuration. An unchanged discovery keeps running.
    pub(crate) fn show(&self, configuration: &Configuration) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *held);
        for upstream in &configuration.upstreams {
            upstream.apply();
            let is_alike = |known: &InUse| {
                known.upstream.is_same(upstream) && known.upstream.config().writers == upstream.config().writers
            };
            let known = before.iter().position(is_alike).map(|at| before.swap_remove(at));
            let discovery = known.map_or_else(|| discover(upstream), |known| known.discovery);
            held.push(InUse { upstream: upstream.clone(), discovery });
        }
    }

    /// All upstreams.
    pub(crate) fn all(&self) -> Vec<Upstream> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().map(|in_use| in_use.upstream.clone()).collect()
    }
}

fn discover(upstream: &Upstream) -> Option<Discovery> {
    let Writers::Dns(endpoint) = &upstream.config().writers else { return None };
    let (host, port) = endpoint.host_and_port()?;
    let look_up = move || {
        let host = host.clone();
        async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) }
    };
    Some(Discovery(tokio::spawn(follow(upstream.clone(), look_up))))
}

/// Looks the writers up until the future is dropped. While DNS returns no address, the set is kept.
async fn follow<F: Future<Output = io::Result<BTreeSet<SocketAddr>>>>(upstream: Upstream, look_up: impl Fn() -> F) {
    let name = &upstream.config().name;
    let mut has_failed = false;
    loop {
        let failure = match look_up().await {
            Ok(addresses) if !addresses.is_empty() => {
                upstream.lookups().resolved.add(1);
                if upstream.resolve(&addresses) {
                    let list: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                    log::info(format_args!("upstream {name}: DNS gives {} writers: {}", list.len(), list.join(", ")));
                } else if has_failed {
                    log::info(format_args!("upstream {name}: DNS answers again"));
                }
                None
            }
            Ok(_) => Some("no address".to_owned()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(reason) = &failure {
            upstream.lookups().failed.add(1);
            if !has_failed {
                let message = "the last known writers stay in use, and the host is looked up every 5 s";
                log::warning(format_args!("upstream {name}: DNS gives no writers: {reason}; {message}"));
            }
        }
        has_failed = failure.is_some();
        tokio::time::sleep(LOOK_UP_EVERY).await;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails loudly")]
mod tests {
    use sink::remote::{Spread, UpstreamConfig};
    use tokio::time::{advance, timeout};

    use super::*;

    fn upstream() -> Upstream {
        let writers = Writers::Dns("https://writers.example:8081".parse().unwrap());
        let name = "back".to_owned();
        Upstream::new(UpstreamConfig {
            name,
            writers,
            sends_to_all: false,
            spread: Spread::Lane,
            token: None,
            ca: None,
        })
    }

    fn labels(upstream: &Upstream) -> Vec<String> {
        upstream.servers().iter().map(|server| server.label()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn an_empty_or_failed_answer_keeps_the_set_and_a_writer_that_stays_keeps_its_state() {
        let one: SocketAddr = "10.0.0.1:8081".parse().unwrap();
        let two: SocketAddr = "10.0.0.2:8081".parse().unwrap();
        let answers = [
            Err(io::Error::other("no server")),
            Ok(BTreeSet::from([one])),
            Ok(BTreeSet::new()),
            Err(io::Error::other("no server")),
            Ok(BTreeSet::from([two, one])),
            Ok(BTreeSet::from([two])),
        ];
        let answers = Arc::new(Mutex::new(answers.into_iter()));
        let look_up = {
            let answers = answers.clone();
            move || std::future::ready(answers.lock().unwrap().next().unwrap())
        };
        let upstream = upstream();
        let following = tokio::spawn(follow(upstream.clone(), look_up));
        let mut seen = Vec::new();
        for _ in 0..6 {
            tokio::task::yield_now().await;
            seen.push((labels(&upstream), upstream.servers().first().cloned()));
            advance(LOOK_UP_EVERY).await;
        }
        let sets: Vec<_> = seen.iter().map(|(labels, _)| labels.join(" ")).collect();
        let (one, two) = (one.to_string(), two.to_string());
        assert_eq!(sets, ["", &one, &one, &one, &format!("{one} {two}"), &two]);
        let server = |at: usize| seen[at].1.clone().unwrap();
        assert!(Arc::ptr_eq(&server(1), &server(4)), "the writer keeps its state in a changed set");
        assert_eq!((upstream.lookups().resolved.get(), upstream.lookups().failed.get()), (3, 3));
        following.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_discovery_ends_with_its_upstream() {
        let upstream = upstream();
        let (held, end) = tokio::sync::oneshot::channel::<()>();
        let held = Arc::new(held);
        let look_up = move || {
            let held = held.clone();
            async move {
                let _held = held;
                std::future::pending().await
            }
        };
        let discovery = Discovery(tokio::spawn(follow(upstream, look_up)));
        tokio::task::yield_now().await;
        drop(discovery);
        assert!(timeout(LOOK_UP_EVERY, end).await.unwrap().is_err(), "the task is gone");
    }
}
