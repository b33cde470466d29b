//! Discovery by DNS: one writer at each address of a host. An answer may name a part of the addresses only: Consul and Route 53 limit the number
//! in each answer and choose them at random. So an address stays in the set for a while after the last answer that named it.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use sink_remote::{ServerState, Upstream};
use tokio::time::Instant;

use super::LOOK_UP_EVERY;
use super::report::LookUpReport;

/// An address leaves the set when no answer has named it for this long.
const KEPT_FOR: Duration = Duration::from_mins(5);
/// The same if the writer at the address is ejected: it has probably been removed.
const KEPT_FOR_EJECTED: Duration = Duration::from_secs(30);

/// Follows the addresses of the URL's host until the future is dropped.
pub(super) async fn follow_host(upstream: Upstream, host: String, port: u16) {
    let look_up = || async { Ok(tokio::net::lookup_host((host.as_str(), port)).await?.collect()) };
    follow(upstream, look_up).await;
}

/// Looks the writers up until the future is dropped. While DNS returns no address, the set is kept.
pub(super) async fn follow<F: Future<Output = io::Result<BTreeSet<SocketAddr>>>>(
    upstream: Upstream,
    look_up: impl Fn() -> F,
) {
    let mut report = LookUpReport::new(&upstream, "DNS");
    let mut named = Named::default();
    loop {
        match look_up().await {
            Ok(addresses) if !addresses.is_empty() => {
                report.resolved(upstream.resolve(&named.with(&addresses, &ejected(&upstream))));
            }
            Ok(_) => report.failed("no address"),
            Err(error) => report.failed(&error.to_string()),
        }
        tokio::time::sleep(LOOK_UP_EVERY).await;
    }
}

fn ejected(upstream: &Upstream) -> BTreeSet<SocketAddr> {
    let servers = upstream.servers();
    let ejected = servers.iter().filter(|server| server.state() == ServerState::Ejected);
    ejected.filter_map(|server| server.address()).collect()
}

/// The addresses of recent answers, with the time of the last answer that named them.
#[derive(Default)]
struct Named(BTreeMap<SocketAddr, Instant>);

impl Named {
    /// Adds an answer. Returns the addresses that are in the set now.
    fn with(&mut self, answer: &BTreeSet<SocketAddr>, ejected: &BTreeSet<SocketAddr>) -> BTreeSet<SocketAddr> {
        let now = Instant::now();
        self.0.extend(answer.iter().map(|address| (*address, now)));
        self.0.retain(|address, named_at| {
            let kept_for = if ejected.contains(address) { KEPT_FOR_EJECTED } else { KEPT_FOR };
            named_at.elapsed() < kept_for
        });
        self.0.keys().copied().collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails loudly")]
mod tests {
    use std::sync::{Arc, Mutex};

    use sink_remote::Writers;
    use tokio::time::advance;

    use super::super::tests::{labels, upstream};
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn failed_look_up_keeps_the_set_of_writers() {
        let one: SocketAddr = "10.0.0.1:8081".parse().unwrap();
        let two: SocketAddr = "10.0.0.2:8081".parse().unwrap();
        let answers = [
            Err(io::Error::other("no server")),
            Ok(BTreeSet::from([one])),
            Ok(BTreeSet::new()),
            Err(io::Error::other("no server")),
            Ok(BTreeSet::from([two, one])),
        ];
        let answers = Arc::new(Mutex::new(answers.into_iter()));
        let look_up = {
            let answers = answers.clone();
            move || std::future::ready(answers.lock().unwrap().next().unwrap())
        };
        let upstream = upstream(Writers::Dns("https://writers.example:8081".parse().unwrap()));
        let following = tokio::spawn(follow(upstream.clone(), look_up));
        let mut seen = Vec::new();
        for _ in 0..5 {
            tokio::task::yield_now().await;
            seen.push((labels(&upstream), upstream.servers().first().cloned()));
            advance(LOOK_UP_EVERY).await;
        }
        let sets: Vec<_> = seen.iter().map(|(labels, _)| labels.join(" ")).collect();
        let (one, two) = (one.to_string(), two.to_string());
        assert_eq!(sets, ["", &one, &one, &one, &format!("{one} {two}")]);
        let server = |at: usize| seen[at].1.clone().unwrap();
        assert!(Arc::ptr_eq(&server(1), &server(4)), "the writer keeps its state in a changed set");
        assert_eq!((upstream.lookups().resolved.get(), upstream.lookups().failed.get()), (2, 3));
        following.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn partial_answers_do_not_shrink_the_set() {
        let all: Vec<SocketAddr> = (1..=6).map(|host| SocketAddr::from(([10, 0, 0, host], 8081))).collect();
        let (mut named, none) = (Named::default(), BTreeSet::new());
        let part = |from: usize| all.iter().cycle().skip(from).take(3).copied().collect::<BTreeSet<_>>();
        named.with(&part(0), &none);
        for from in 0..100 {
            advance(LOOK_UP_EVERY).await;
            let set = named.with(&part(from), &none);
            assert!(from < 6 || set.len() == 6, "{from}: {set:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn removed_address_leaves_after_its_time() {
        let [one, two]: [SocketAddr; 2] = ["10.0.0.1:8081", "10.0.0.2:8081"].map(|text| text.parse().unwrap());
        let (both, first) = (BTreeSet::from([one, two]), BTreeSet::from([one]));
        for (ejected, kept_for) in [(BTreeSet::new(), KEPT_FOR), (BTreeSet::from([two]), KEPT_FOR_EJECTED)] {
            let mut named = Named::default();
            named.with(&both, &ejected);
            advance(kept_for - LOOK_UP_EVERY).await;
            assert_eq!(named.with(&first, &ejected), both);
            advance(LOOK_UP_EVERY).await;
            assert_eq!(named.with(&first, &ejected), first);
        }
        let mut named = Named::default();
        named.with(&both, &both);
        advance(2 * KEPT_FOR).await;
        assert_eq!(named.with(&both, &both), both, "an ejected writer that DNS names stays");
    }
}
