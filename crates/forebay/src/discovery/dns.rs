//! Discovery by DNS: one writer at each address of a host.

use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::net::SocketAddr;

use sink_remote::Upstream;

use super::LOOK_UP_EVERY;
use super::report::LookUpReport;

/// Follows the addresses of the URL's host until the future is dropped.
pub(super) async fn follow_host(upstream: Upstream, (host, port): (String, u16)) {
    let look_up = || async { Ok(tokio::net::lookup_host((host.as_str(), port)).await?.collect()) };
    follow(upstream, look_up).await;
}

/// Looks the writers up until the future is dropped. While DNS returns no address, the set is kept.
pub(super) async fn follow<F: Future<Output = io::Result<BTreeSet<SocketAddr>>>>(
    upstream: Upstream,
    look_up: impl Fn() -> F,
) {
    let mut report = LookUpReport::new(&upstream, "DNS");
    loop {
        match look_up().await {
            Ok(addresses) if !addresses.is_empty() => report.resolved(upstream.resolve(&addresses)),
            Ok(_) => report.failed("no address"),
            Err(error) => report.failed(&error.to_string()),
        }
        tokio::time::sleep(LOOK_UP_EVERY).await;
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
        let upstream = upstream(Writers::Dns("https://writers.example:8081".parse().unwrap()));
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
}
