//! Connections that are cut and that freeze, and a server that is killed.

use std::time::Duration;

use sink::Sink;
use sink_testing::faults::{CutStep, FaultHarness, Load, cut_at_any_byte, freeze_and_thaw, kill_under_load};

use crate::fixture::{Fixture, server, set_up};
use testkit::opensearch::OpenSearch;
use testkit::proxy::Proxy;

impl FaultHarness for Fixture<'_> {
    fn sink(&self) -> Sink {
        self.sink()
    }

    fn past_the_proxy(&self) -> Sink {
        self.past_the_proxy()
    }

    fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    async fn count(&self) -> u64 {
        self.count() as u64
    }
}

#[tokio::test]
async fn batch_with_a_cut_response_is_stored_once() {
    let Some(server) = server() else { return };
    let step = CutStep { new: 29, open: 29 }.unless_all(std::env::var("FOREBAY_ELASTICSEARCH_CUTS").ok());
    cut_at_any_byte(&Fixture::new(server), step, 10).await;
}

#[tokio::test]
async fn frozen_connection_changes_nothing_after_thawing() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server);
    fixture.config.timeout = Duration::from_secs(1);
    freeze_and_thaw(&fixture, &[0, 30, 90, 150, 10_000], 500).await;
}

#[tokio::test]
async fn server_killed_under_load_has_each_event_once() {
    let Some(server) = OpenSearch::start() else { return };
    // The server ends with the process, and the thread that kills it uses it too.
    let server: &OpenSearch = Box::leak(Box::new(server));
    set_up(server);
    // Its restart takes long.
    let load = Load { lanes: 3, records: 200, kills: 2 }.with_kills(std::env::var("FOREBAY_ELASTICSEARCH_KILLS").ok());
    let restart = || {
        server.kill();
        server.run();
    };
    kill_under_load(&Fixture::new(server), load, restart).await;
}
