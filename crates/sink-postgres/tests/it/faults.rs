//! Connections that are cut and that freeze, servers that are killed, a server that has lost its last transactions.

use std::time::Duration;

use sink::{Cursor, Sink, SinkError, WriteOutcome};
use sink_postgres::PayloadKind;
use sink_testing::faults::{CutStep, FaultHarness, Load, cut_at_any_byte, freeze_and_thaw, kill_under_load};

use crate::fixture::{Fixture, client, server};
use sink_testing::events::{deliver, lane, plain};
use testkit::ports::free_address;
use testkit::postgres::PostgresServer;
use testkit::proxy::Proxy;

/// A schema and its server. The primary key of its table keeps each event once.
struct Schema<'a>(Fixture, &'a PostgresServer);

impl FaultHarness for Schema<'_> {
    fn sink(&self) -> Sink {
        self.0.sink()
    }

    fn past_the_proxy(&self) -> Sink {
        self.0.past_the_proxy(self.1)
    }

    fn proxy(&self) -> &Proxy {
        &self.0.proxy
    }

    async fn count(&self) -> u64 {
        self.0.count(self.1).await
    }
}

#[tokio::test]
async fn batch_with_a_cut_response_is_stored_once() {
    let Some(server) = server() else { return };
    let schema = Schema(Fixture::new(server, PayloadKind::Jsonb).await, server);
    schema.sink().connect().await.unwrap();
    let step = CutStep { new: 29, open: 29 }.unless_all(std::env::var("FOREBAY_POSTGRES_CUTS").ok());
    cut_at_any_byte(&schema, step, 20).await;
}

#[tokio::test]
async fn frozen_connection_writes_nothing_after_thawing() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server, PayloadKind::Text).await;
    // The other connection waits for the frozen one, and writes when the server has ended it.
    fixture.config.timeout = Duration::from_secs(1);
    freeze_and_thaw(&Schema(fixture, server), &[1, 30, 90, 150, 200, 260, 400, 10_000], 2_000).await;
}

#[tokio::test]
async fn server_killed_under_load_has_each_event_once() {
    let Some(server) = PostgresServer::start() else { return };
    // The server ends with the process, and the thread that kills it uses it too.
    let server: &PostgresServer = Box::leak(Box::new(server));
    let load = Load { lanes: 3, records: 500, kills: 5 }.with_kills(std::env::var("FOREBAY_POSTGRES_KILLS").ok());
    let restart = || {
        server.kill();
        server.run();
    };
    kill_under_load(&Schema(Fixture::new(server, PayloadKind::Jsonb).await, server), load, restart).await;
}

#[tokio::test]
async fn server_with_lost_tail_rejects_a_gap() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    let sink = fixture.sink();
    deliver(&sink, &plain(0, 1, 10)).await;
    deliver(&sink, &plain(0, 11, 10)).await;
    let lost = format!(
        "delete from {0}.events where received_at > '2025-10-09 08:53:20.000010Z'; update {0}.forebay_cursors set position = 10",
        fixture.schema
    );
    client(server).await.batch_execute(&lost).await.unwrap();
    // Another process, which knows nothing of it.
    let sink = fixture.sink();
    let Err(SinkError::Unavailable(reason)) = sink.write(&plain(0, 21, 1).sent_after(20, 20)).await else {
        panic!("11 to 20 are missing")
    };
    assert!(reason.contains("older copy"), "{reason}");
    assert_eq!(sink.cursor(&lane(0)).await, Ok(Cursor::Store(10)), "and delivery can continue from there");
    deliver(&sink, &plain(0, 11, 11)).await;
    assert_eq!(fixture.count(server).await, 21);
}

#[tokio::test]
async fn writable_host_is_found_among_several() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    let closed = free_address();
    let url = fixture.url.replace("@127.0.0.1", &format!("@{closed},127.0.0.1"));
    fixture.config.server = url.parse().unwrap();
    deliver(&fixture.sink(), &plain(0, 1, 5)).await;
    assert_eq!(fixture.count(server).await, 5);
}

#[tokio::test]
async fn lanes_of_several_gateways_share_a_table() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    let mut writes = Vec::new();
    for shard in 0..6 {
        let sink = fixture.sink();
        writes.push(tokio::spawn(async move {
            for round in 0..10 {
                deliver(&sink, &plain(shard, 1 + round * 200, 200)).await;
            }
        }));
    }
    for write in writes {
        write.await.unwrap();
    }
    assert_eq!(fixture.count(server).await, 6 * 10 * 200);
}

/// The bytes of the server's answer to `begin`.
const BEGIN_ANSWER: usize = 17;

#[tokio::test]
async fn duplicate_waits_for_the_holder_of_the_cursor() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    let (frozen, other) = (fixture.sink(), fixture.past_the_proxy(server));
    deliver(&other, &plain(0, 1, 1)).await;
    assert_eq!(frozen.cursor(&lane(0)).await, Ok(Cursor::Store(1)));
    // The server has returned the lane's cursor, but the frozen connection hasn't received it.
    let freeze = fixture.proxy.freeze_after(BEGIN_ANSWER + 1);
    let held = tokio::spawn(async move { frozen.write(&plain(0, 2, 1)).await });
    let watcher = client(server).await;
    let count = async |what: &str| {
        let query = format!("select position, claim, %from \"{}\".% for update", fixture.schema);
        let sql = format!("select count(*) from pg_stat_activity where query like '{query}' and {what}");
        watcher.query_one(&sql, &[]).await.unwrap().get::<_, i64>(0)
    };
    while count("state = 'idle in transaction'").await == 0 {
        assert!(!held.is_finished());
    }
    let waiting = tokio::spawn(async move { other.write(&plain(0, 2, 3)).await });
    while count("wait_event_type = 'Lock'").await == 0 {
        assert!(!waiting.is_finished(), "it wrote concurrently, and the other's cursor would move back");
    }
    drop(freeze);
    assert_eq!(held.await.unwrap(), Ok(WriteOutcome::Committed));
    assert_eq!(waiting.await.unwrap(), Ok(WriteOutcome::Committed));
    assert_eq!(fixture.count(server).await, 4);
    assert_eq!(fixture.sink().cursor(&lane(0)).await, Ok(Cursor::Store(4)));
}
