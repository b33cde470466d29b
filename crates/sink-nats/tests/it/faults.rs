//! Connections that are cut and that freeze, servers that are killed, streams that are purged, full, or changed during
//! use.

use sink::{Cursor, Sink, SinkError};
use sink_testing::faults::{
    CutStep, FaultHarness, Load, count_in_order, cut_at_any_byte, freeze_and_thaw, kill_under_load,
};

use crate::fixture::{Fixture, server};
use sink_testing::events::{deliver, lane, plain};
use testkit::nats::NatsServer;
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
        count_in_order(self.messages().into_iter().map(|(id, _)| id))
    }
}

#[tokio::test]
async fn batch_with_a_cut_response_is_stored_once() {
    let Some(server) = server() else { return };
    let step = CutStep { new: 61, open: 1 }.unless_all(std::env::var("FOREBAY_NATS_CUTS").ok());
    cut_at_any_byte(&Fixture::new(server), step, 60).await;
}

#[tokio::test]
async fn frozen_connection_writes_nothing_after_thawing() {
    let Some(server) = server() else { return };
    // Before the first batch's response, in it, and between batches.
    freeze_and_thaw(&Fixture::new(server), &[0, 1, 50, 100, 150, 10_000], 2_500).await;
}

#[tokio::test]
async fn server_killed_under_load_has_each_event_once() {
    let Some(server) = NatsServer::start() else { return };
    // The server ends with the process, and the thread that kills it uses it too.
    let server: &NatsServer = Box::leak(Box::new(server));
    let load = Load { lanes: 3, records: 1_500, kills: 5 }.with_kills(std::env::var("FOREBAY_NATS_KILLS").ok());
    let restart = || {
        server.kill();
        server.run();
    };
    kill_under_load(&Fixture::new(server), load, restart).await;
}

#[tokio::test]
async fn purged_stream_rejects_a_gap() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server);
    let sink = fixture.sink();
    deliver(&sink, &plain(0, 1, 10)).await;
    server.client().stream("DELETE", &fixture.stream, "");
    let next = plain(0, 11, 1).sent_after(10, 10);
    let Err(SinkError::Unavailable(_)) = sink.write(&next).await else { panic!("there is no stream") };
    // It is created again, and the batch shows what is missing, also to another process.
    let sink = fixture.sink();
    let Err(SinkError::Unavailable(reason)) = sink.write(&next).await else { panic!("1 to 10 are missing") };
    assert!(reason.contains("cursor is 0, but 10 was stored"), "{reason}");
    assert_eq!(fixture.count(), 0, "nothing was written");
    assert_eq!(sink.cursor(&lane(0)).await, Ok(Cursor::Store(0)), "and delivery can continue from there");
    deliver(&sink, &plain(0, 1, 11)).await;
    assert_eq!(FaultHarness::count(&fixture).await, 11);
    assert_eq!(sink.cursor(&lane(0)).await, Ok(Cursor::Store(11)));
}

#[tokio::test]
async fn full_stream_stores_no_part_of_a_batch() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server);
    let sink = fixture.sink();
    deliver(&sink, &plain(0, 1, 10)).await;
    let update = |max| {
        let updated =
            server.client().stream("UPDATE", &fixture.stream, &fixture.description(&format!(",\"max_msgs\":{max}")));
        assert!(!updated.contains("\"error\""), "{updated}");
    };
    update(500);
    let Err(SinkError::Unavailable(reason)) = sink.write(&plain(0, 11, 900)).await else { panic!("it has no room") };
    assert!(reason.contains("maximum messages exceeded") && reason.contains("more room"), "{reason}");
    assert_eq!((fixture.count(), sink.cursor(&lane(0)).await), (11, Ok(Cursor::Store(10))));
    update(-1);
    deliver(&sink, &plain(0, 11, 900)).await;
    assert_eq!(FaultHarness::count(&fixture).await, 910);
    assert_eq!(sink.cursor(&lane(0)).await, Ok(Cursor::Store(910)));
}
