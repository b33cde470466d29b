//! Connections that are cut and that freeze, servers that are killed, emptied or full, and scripts that fail on the way.

use std::time::Duration;

use sink::{Cursor, SinkError, WriteOutcome};
use sink_redis::Structure;

use crate::stand::{STREAM, Stand, server};
use sink_testing::events::{batch, deliver, lane, plain};
use testkit::redis::RedisServer;

/// Each so many bytes of the server's answers is a place to cut at; with `FOREBAY_REDIS_CUTS=all` each byte is.
const CUT_STEP: usize = 29;
/// How often the server is killed, unless `FOREBAY_REDIS_KILLS` says.
const KILLS: u32 = 5;

fn from_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[tokio::test]
async fn cut_at_any_byte_of_an_answer_a_batch_is_stored_once() {
    let Some(server) = server() else { return };
    let stand = Stand::new(server, STREAM);
    let (mut first, mut cuts) = (1, 0);
    let all = from_environment("FOREBAY_REDIS_CUTS").is_some();
    // A connection that begins with the cut, and one that was open before: its answer is a few bytes.
    for is_open in [false, true] {
        let mut sink = stand.sink();
        let step = if all || is_open { 1 } else { CUT_STEP };
        for at in (0..).step_by(step) {
            if is_open {
                sink.cursor(&lane(0)).await.unwrap();
            } else {
                sink = stand.sink();
            }
            let before = stand.proxy.answered();
            let cut = stand.proxy.cut_after(at);
            let batch = plain(0, first, 3);
            let answer = sink.write(&batch).await;
            let is_cut = stand.proxy.answered() - before == at;
            drop(cut);
            assert!(!matches!(answer, Err(SinkError::Misconfigured(_))), "{answer:?}");
            assert!(answer.is_err() || !is_cut || at > 0, "{answer:?} after {at} bytes");
            deliver(&sink, &batch).await;
            (first, cuts) = (first + 3, cuts + 1);
            if !is_cut {
                break;
            }
        }
    }
    assert!(cuts > 100, "{cuts} cuts");
    assert_eq!(stand.count(), first - 1);
    assert_eq!(stand.sink().cursor(&lane(0)).await, Ok(Cursor::Store(first - 1)));
}

#[tokio::test]
async fn a_connection_that_froze_in_a_batch_and_thaws_behind_it_writes_nothing() {
    let Some(server) = server() else { return };
    let twin = Stand::new(server, STREAM);
    let mut first = 1;
    // Frozen before the first script's answer, in it, and between scripts.
    for at in [0, 1, 10, 20, 30, 50, 10_000] {
        let (frozen, other) = (twin.sink(), twin.past_the_proxy());
        assert_eq!(frozen.cursor(&lane(0)).await, Ok(Cursor::Store(first - 1)));
        let freeze = twin.proxy.freeze_after(at);
        let batch = plain(0, first, 3_000);
        let write = {
            let (frozen, batch) = (frozen.clone(), batch.clone());
            tokio::spawn(async move { frozen.write(&batch).await })
        };
        // It may have come far or not: what the other one finds is skipped, and what it does is found.
        tokio::time::timeout(Duration::from_millis(20), std::future::pending::<()>()).await.unwrap_err();
        deliver(&other, &batch).await;
        drop(freeze);
        let answer = write.await.unwrap();
        assert!(!matches!(answer, Err(SinkError::Misconfigured(_))), "{answer:?}");
        deliver(&frozen, &batch).await;
        first += 3_000;
        assert_eq!(other.cursor(&lane(0)).await, Ok(Cursor::Store(first - 1)));
        assert_eq!(twin.count(), first - 1, "frozen after {at} bytes");
    }
    let entries = twin.entries();
    assert!(entries.is_sorted_by(|one, other| one.0 < other.0), "each once, in the order of the journal");
}

#[tokio::test]
async fn a_server_that_is_killed_under_load_has_everything_once() {
    let Some(server) = RedisServer::start() else { return };
    let stand = Stand::new(&server, STREAM);
    let kills = from_environment("FOREBAY_REDIS_KILLS").map_or(KILLS, |count| count.parse().unwrap());
    let done = tokio::sync::watch::Sender::new(false);
    let mut lanes = Vec::new();
    for shard in 0..3 {
        let (sink, done) = (stand.sink(), done.subscribe());
        lanes.push(tokio::spawn(async move {
            let mut next = 1;
            while !*done.borrow() {
                deliver(&sink, &plain(shard, next, 1_500)).await;
                next += 1_500;
            }
            next - 1
        }));
    }
    for round in 0..kills {
        let before = stand.count();
        // Something is stored between two kills, however slow the machine is.
        while stand.count() < before + 4_500 {
            tokio::time::sleep(Duration::from_millis(u64::from(round * 7 % 13) + 1)).await;
        }
        server.kill();
        server.run();
    }
    done.send_replace(true);
    let mut stored = 0;
    for lane in lanes {
        stored += lane.await.unwrap();
    }
    assert_eq!(stand.count(), stored);
    let mut ids: Vec<_> = stand.entries().into_iter().map(|(id, _)| id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len() as u64, stored, "each once");
}

#[tokio::test]
async fn a_server_that_was_emptied_takes_no_batch_that_leaves_a_gap() {
    let Some(server) = RedisServer::start() else { return };
    let stand = Stand::new(&server, STREAM);
    let sink = stand.sink();
    deliver(&sink, &plain(0, 1, 10)).await;
    server.ask(&["FLUSHALL"]);
    // Another process knows it as well.
    let sink = stand.sink();
    let next = plain(0, 11, 1).sent_after(10, 10);
    let Err(SinkError::Unavailable(reason)) = sink.write(&next).await else { panic!("1 to 10 are missing") };
    assert!(reason.contains("it was emptied"), "{reason}");
    assert_eq!(stand.server.ask(&["DBSIZE"]).number(), 0, "nothing was written");
    assert_eq!(sink.cursor(&lane(0)).await, Ok(Cursor::Store(0)), "and whoever asks can go on from there");
    deliver(&sink, &plain(0, 1, 11)).await;
    assert_eq!(stand.count(), 11);
}

#[tokio::test]
async fn a_server_without_room_stores_nothing_of_a_script_and_goes_on_when_it_has() {
    let Some(server) = RedisServer::start() else { return };
    let stand = Stand::new(&server, STREAM);
    let sink = stand.sink();
    deliver(&sink, &plain(0, 1, 10)).await;
    server.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    let Err(SinkError::Unavailable(reason)) = sink.write(&plain(0, 11, 5_000)).await else { panic!("it has no room") };
    assert!(reason.contains("OOM") && reason.contains("maxmemory"), "{reason}");
    assert_eq!((stand.count(), sink.cursor(&lane(0)).await), (10, Ok(Cursor::Store(10))));
    server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    deliver(&sink, &plain(0, 11, 5_000)).await;
    assert_eq!(stand.count(), 5_010);
}

#[tokio::test]
async fn a_server_that_became_a_replica_gets_nothing() {
    let Some(server) = RedisServer::start() else { return };
    let stand = Stand::new(&server, STREAM);
    let sink = stand.sink();
    deliver(&sink, &plain(0, 1, 10)).await;
    server.ask(&["REPLICAOF", "127.0.0.1", "1"]);
    for _ in 0..2 {
        let Err(SinkError::Unavailable(reason)) = sink.write(&plain(0, 11, 5)).await else { panic!("it is a replica") };
        assert!(reason.contains("replica"), "{reason}");
    }
    server.ask(&["REPLICAOF", "NO", "ONE"]);
    deliver(&sink, &plain(0, 11, 5)).await;
    assert_eq!(stand.count(), 15);
}

#[tokio::test]
async fn a_script_that_fails_on_the_way_is_resumed_behind_what_it_has_done() {
    let Some(server) = server() else { return };
    let field = || "/f".parse().unwrap();
    let stand = Stand::new(server, Structure::Counter { field: field(), by: Some("/n".parse().unwrap()) });
    let sink = stand.sink();
    let counted = |field: &str| server.ask(&["HGET", &stand.key, field]);
    server.ask(&["HSET", &stand.key, "full", "9223372036854775807", "text", "x"]);
    let one = r#"{"f": "a", "n": 1}"#;
    let payloads = [one, r#"{"f": "full", "n": 1}"#, one, r#"{"f": "text", "n": 1}"#, one];
    let (mut rest, mut refused) = (batch(0, 1, &payloads), Vec::new());
    // Each attempt finds the first that can't be counted, and leaves the cursor behind what it has done.
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
async fn who_may_not_write_everything_writes_nothing() {
    let Some(server) = RedisServer::start() else { return };
    let mut stand = Stand::new(&server, STREAM);
    let url = format!("redis://ann:secret@{}", stand.proxy.address());
    stand.config.server = url.parse().unwrap();
    let allow = |rules: &[&str]| {
        server.ask(&[&["ACL", "SETUSER", "ann", "reset", "on", ">secret", "+info", "+config|get"], rules].concat());
    };
    let key = format!("~{}", stand.key);
    let all = ["+eval", "+hget", "+hset", "+hdel", "+type", "+xadd", "~forebay:*"];
    let expect_refusal = async |words: &str| {
        let Err(SinkError::Misconfigured(reason)) = stand.sink().write(&plain(0, 1, 5)).await else {
            panic!("{words}")
        };
        assert!(reason.contains(words) && !reason.contains("secret"), "{reason}");
        assert_eq!(server.ask(&["EXISTS", &stand.key]).number(), 0, "{reason}");
    };
    expect_refusal("may log in").await;
    allow(&["+eval", "+hget", "+hset", "+hdel", "+type", "~forebay:*", &key]);
    expect_refusal("grant its user").await;
    allow(&all);
    expect_refusal("grant its user").await;
    // Entries could be written, and the cursor couldn't.
    for rules in [&["+@all", "-hset", "~*"][..], &["+@all", "%R~forebay:*", &key]] {
        allow(rules);
        expect_refusal("grant its user").await;
    }
    allow(&[&all[..], &[&key]].concat());
    assert_eq!(stand.sink().write(&plain(0, 1, 5)).await, Ok(WriteOutcome::Committed));
    assert_eq!(stand.count(), 5);
}
