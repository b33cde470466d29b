//! Connections that are cut and that freeze, servers that are killed, emptied or full, and scripts that fail midway.

use sink::{Cursor, Sink, SinkError, WriteOutcome};
use sink_redis::Structure;
use sink_testing::faults::{
    CutStep, FaultHarness, Load, count_in_order, cut_at_any_byte, freeze_and_thaw, kill_under_load,
};

use crate::fixture::{Fixture, STREAM, server};
use sink_testing::events::{batch, deliver, lane, plain};
use testkit::proxy::Proxy;
use testkit::redis::RedisServer;

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
        count_in_order(self.entries().into_iter().map(|(id, _)| id))
    }
}

#[tokio::test]
async fn batch_with_a_cut_response_is_stored_once() {
    let Some(server) = server() else { return };
    let step = CutStep { new: 29, open: 1 }.unless_all(std::env::var("FOREBAY_REDIS_CUTS").ok());
    cut_at_any_byte(&Fixture::new(server, STREAM), step, 100).await;
}

#[tokio::test]
async fn frozen_connection_writes_nothing_after_thawing() {
    let Some(server) = server() else { return };
    // Before the first script's response, in it, and between scripts.
    freeze_and_thaw(&Fixture::new(server, STREAM), &[0, 1, 10, 20, 30, 50, 10_000], 3_000).await;
}

#[tokio::test]
async fn server_killed_under_load_has_each_event_once() {
    let Some(server) = RedisServer::start() else { return };
    // The server ends with the process, and the thread that kills it uses it too.
    let server: &RedisServer = Box::leak(Box::new(server));
    let load = Load { lanes: 3, records: 1_500, kills: 5 }.with_kills(std::env::var("FOREBAY_REDIS_KILLS").ok());
    let restart = || {
        server.kill();
        server.run();
    };
    kill_under_load(&Fixture::new(server, STREAM), load, restart).await;
}

#[tokio::test]
async fn emptied_server_rejects_a_gap() {
    let Some(server) = RedisServer::start() else { return };
    let fixture = Fixture::new(&server, STREAM);
    let sink = fixture.sink();
    deliver(&sink, &plain(0, 1, 10)).await;
    server.ask(&["FLUSHALL"]);
    // Another process detects it too.
    let sink = fixture.sink();
    let next = plain(0, 11, 1).sent_after(10, 10);
    let Err(SinkError::Unavailable(reason)) = sink.write(&next).await else { panic!("1 to 10 are missing") };
    assert!(reason.contains("the server was emptied"), "{reason}");
    assert_eq!(fixture.server.ask(&["DBSIZE"]).number(), 0, "nothing was written");
    assert_eq!(sink.cursor(&lane(0)).await, Ok(Cursor::Store(0)), "and delivery can continue from there");
    deliver(&sink, &plain(0, 1, 11)).await;
    assert_eq!(fixture.count(), 11);
}

#[tokio::test]
async fn full_server_stores_no_part_of_a_script() {
    let Some(server) = RedisServer::start() else { return };
    let fixture = Fixture::new(&server, STREAM);
    let sink = fixture.sink();
    deliver(&sink, &plain(0, 1, 10)).await;
    server.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    let Err(SinkError::Unavailable(reason)) = sink.write(&plain(0, 11, 5_000)).await else { panic!("it has no room") };
    assert!(reason.contains("OOM") && reason.contains("maxmemory"), "{reason}");
    assert_eq!((fixture.count(), sink.cursor(&lane(0)).await), (10, Ok(Cursor::Store(10))));
    server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    deliver(&sink, &plain(0, 11, 5_000)).await;
    assert_eq!(fixture.count(), 5_010);
}

#[tokio::test]
async fn server_that_became_a_replica_gets_nothing() {
    let Some(server) = RedisServer::start() else { return };
    let fixture = Fixture::new(&server, STREAM);
    let sink = fixture.sink();
    deliver(&sink, &plain(0, 1, 10)).await;
    server.ask(&["REPLICAOF", "127.0.0.1", "1"]);
    for _ in 0..2 {
        let Err(SinkError::Unavailable(reason)) = sink.write(&plain(0, 11, 5)).await else { panic!("it is a replica") };
        assert!(reason.contains("replica"), "{reason}");
    }
    server.ask(&["REPLICAOF", "NO", "ONE"]);
    deliver(&sink, &plain(0, 11, 5)).await;
    assert_eq!(fixture.count(), 15);
}

#[tokio::test]
async fn failed_script_is_resumed_after_its_last_record() {
    let Some(server) = server() else { return };
    let field = || "/f".parse().unwrap();
    let fixture = Fixture::new(server, Structure::Counter { field: field(), by: Some("/n".parse().unwrap()) });
    let sink = fixture.sink();
    let counted = |field: &str| server.ask(&["HGET", &fixture.key, field]);
    server.ask(&["HSET", &fixture.key, "full", "9223372036854775807", "text", "x"]);
    let one = r#"{"f": "a", "n": 1}"#;
    let payloads = [one, r#"{"f": "full", "n": 1}"#, one, r#"{"f": "text", "n": 1}"#, one];
    let (mut rest, mut refused) = (batch(0, 1, &payloads), Vec::new());
    // Each attempt finds the first event that can't be counted, and sets the cursor after the applied ones.
    for (index, position, words) in [(1, 1, "overflow"), (2, 3, "not an integer")] {
        let Ok(WriteOutcome::Rejected { refused: found }) = sink.write(&rest).await else {
            panic!("one can't be counted")
        };
        assert_eq!((found.len(), found[0].index), (1, index));
        assert!(found[0].reason.contains(words), "{}", found[0].reason);
        assert_eq!(sink.cursor(&lane(0)).await, Ok(Cursor::Store(position)));
        refused.push(index);
        rest = rest.without(&[index]);
    }
    assert_eq!(sink.write(&rest).await, Ok(WriteOutcome::Committed));
    assert_eq!(sink.write(&rest).await, Ok(WriteOutcome::Committed));
    assert_eq!(counted("a").text(), "3", "each once");
}

#[tokio::test]
async fn user_without_all_permissions_writes_nothing() {
    let Some(server) = RedisServer::start() else { return };
    let mut fixture = Fixture::new(&server, STREAM);
    let url = format!("redis://ann:secret@{}", fixture.proxy.address());
    fixture.config.server = url.parse().unwrap();
    let allow = |rules: &[&str]| {
        server.ask(&[&["ACL", "SETUSER", "ann", "reset", "on", ">secret", "+info", "+config|get"], rules].concat());
    };
    let key = format!("~{}", fixture.key);
    let all = ["+eval", "+hget", "+hset", "+hdel", "+type", "+xadd", "~forebay:*"];
    let expect_rejection = async |words: &str| {
        let Err(SinkError::Misconfigured(reason)) = fixture.sink().write(&plain(0, 1, 5)).await else {
            panic!("{words}")
        };
        assert!(reason.contains(words) && !reason.contains("secret"), "{reason}");
        assert_eq!(server.ask(&["EXISTS", &fixture.key]).number(), 0, "{reason}");
    };
    expect_rejection("may log in").await;
    allow(&["+eval", "+hget", "+hset", "+hdel", "+type", "~forebay:*", &key]);
    expect_rejection("grant its user").await;
    allow(&all);
    expect_rejection("grant its user").await;
    // Entries could be written, but not the cursor.
    for rules in [&["+@all", "-hset", "~*"][..], &["+@all", "%R~forebay:*", &key]] {
        allow(rules);
        expect_rejection("grant its user").await;
    }
    allow(&[&all[..], &[&key]].concat());
    assert_eq!(fixture.sink().write(&plain(0, 1, 5)).await, Ok(WriteOutcome::Committed));
    assert_eq!(fixture.count(), 5);
}
