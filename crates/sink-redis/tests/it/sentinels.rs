//! Sentinels: failovers under load, with and without lost writes, and the messages for wrong names.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use sink::{Cursor, Sink, SinkError};
use sink_redis::{Deployment, Redis, RedisConfig, Sentinel};

use crate::fixture::{STREAM, entries, until};
use sink_testing::events::{batch, bring_to, lane, plain};
use testkit::redis::RedisServer;
use testkit::redis::sentinels::{NAME, Watched};
use testkit::wait::wait_until;

const KEY: &str = "events";

fn config(watched: &Watched) -> RedisConfig {
    let sentinels: Vec<Sentinel> =
        watched.sentinel_ports.iter().map(|port| format!("127.0.0.1:{port}").parse().unwrap()).collect();
    RedisConfig {
        server: format!("redis://{NAME}").parse().unwrap(),
        deployment: Deployment::Watched(sentinels),
        ca: None,
        key: KEY.parse().unwrap(),
        structure: STREAM,
        timeout: Duration::from_secs(2),
        connections_max: RedisConfig::CONNECTIONS_MAX,
    }
}

fn count(server: &RedisServer) -> u64 {
    server.ask(&["XLEN", KEY]).number()
}

/// Each event of this many lanes with this many events each is stored once.
fn expect_all_once(server: &RedisServer, lanes: u64, each: u64) {
    let ids: Vec<_> = entries(server, KEY).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len() as u64, lanes * each);
    assert_eq!(ids.into_iter().collect::<HashSet<_>>().len() as u64, lanes * each, "each once");
}

/// Events of each of two lanes.
const EACH: u64 = 30_000;

/// Brings both lanes to their end.
async fn bring_both(sink: &Sink) {
    let load = [0, 1].map(|shard| {
        let sink = sink.clone();
        tokio::spawn(async move { bring_to(&sink, shard, EACH, |first, count| plain(shard, first, count)).await })
    });
    for lane in load {
        lane.await.unwrap();
    }
}

/// The latest failover that a live sentinel knows: lanes use only servers that a sentinel has named.
fn latest_failover(watched: &Watched) -> u64 {
    watched.failover(1).max(watched.failover(2))
}

/// The master disappears under load, by `go`, and returns by `come`, possibly in another failover; one sentinel is dead
/// before.
async fn fails_over_under_load(go: fn(&RedisServer), come: fn(&Watched)) {
    let Some(watched) = Watched::start() else { return };
    watched.sentinels[0].kill();
    let sink = Sink::new(Redis::new(config(&watched)));
    let load = tokio::spawn({
        let sink = sink.clone();
        async move { bring_both(&sink).await }
    });
    let [old, new] = &watched.servers;
    until("something is stored", || count(old) > 1_000).await;
    go(old);
    until("the replica takes over", || watched.master(1) == 1 && watched.master(2) == 1).await;
    let first = latest_failover(&watched);
    // Pending requests to the old master get their response now.
    come(&watched);
    load.await.unwrap();
    assert!(sink.warning().unwrap().contains("a failover loses"), "{:?}", sink.warning());
    let stored = count(new);
    if latest_failover(&watched) == first {
        assert_eq!(stored, 2 * EACH, "nothing was written to the old one");
    }
    expect_all_once_in_both(&watched).await;
}

/// On any master: a machine that stalls for longer than the sentinels' timeout causes another failover. Any failover
/// may lose the last writes, which are delivered again.
async fn expect_all_once_in_both(watched: &Watched) {
    let settled = || (watched.master(1), watched.master(2), latest_failover(watched));
    loop {
        let before = settled();
        // A new sink, which asks the sentinels first.
        bring_both(&Sink::new(Redis::new(config(watched)))).await;
        let other = &watched.servers[1 - before.0];
        // A sentinel that makes it a replica also closes its connections.
        let replication = || other.client().try_ask(&["INFO", "replication"]);
        let is_following = || replication().is_ok_and(|reply| reply.text().contains("role:slave"));
        until("the other follows", || settled() != before || is_following() && count(other) == 2 * EACH).await;
        if settled() == before && before.0 == before.1 {
            break;
        }
    }
    watched.servers.iter().for_each(|server| expect_all_once(server, 2, EACH));
}

#[tokio::test]
async fn killed_masters_replica_has_each_event_once() {
    fails_over_under_load(RedisServer::kill, |watched| watched.servers[0].run()).await;
}

#[tokio::test]
async fn thawed_master_gets_no_writes() {
    fails_over_under_load(RedisServer::freeze, |watched| watched.servers[0].thaw()).await;
}

#[tokio::test]
async fn thawed_master_takes_over_after_the_next_failover() {
    let come = |watched: &Watched| {
        let [old, new] = &watched.servers;
        old.thaw();
        new.freeze();
        wait_until("the old one takes over", || watched.master(1) == 0 && watched.master(2) == 0);
        new.thaw();
    };
    fails_over_under_load(RedisServer::freeze, come).await;
}

#[tokio::test]
async fn unreplicated_events_are_redelivered() {
    // More than connections buffer for a replica that doesn't read.
    const TAIL: u64 = 4_000;
    let Some(watched) = Watched::start() else { return };
    let sink = Sink::new(Redis::new(config(&watched)));
    let text = format!("{{\"text\": \"{}\"}}", "x".repeat(10_000));
    let large = |first, count| batch(0, first, &vec![text.as_str(); count]);
    bring_to(&sink, 0, 100, &large).await;
    let [old, new] = &watched.servers;
    until("the replica has it", || count(new) == 100).await;
    new.freeze();
    bring_to(&sink, 0, 100 + TAIL, &large).await;
    assert_eq!(count(old), 100 + TAIL, "acknowledged");
    old.kill();
    new.thaw();
    until("the replica takes over", || (0..3).all(|sentinel| watched.master(sentinel) == 1)).await;
    let position = loop {
        if let Ok(Cursor::Store(position)) = sink.cursor(&lane(0)).await {
            break position;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!((100..100 + TAIL).contains(&position), "it has lost a tail: {position}");
    assert_eq!(count(new), position, "cursor and data are lost together");
    bring_to(&sink, 0, 100 + TAIL, &large).await;
    expect_all_once(new, 1, 100 + TAIL);
}

#[tokio::test]
async fn lane_unaware_of_lost_tail_leaves_no_gap() {
    let Some(watched) = Watched::start() else { return };
    let sink = Sink::new(Redis::new(config(&watched)));
    bring_to(&sink, 0, 10, |first, count| plain(0, first, count)).await;
    let [old, new] = &watched.servers;
    until("the replica has it", || count(new) == 10).await;
    new.kill();
    bring_to(&sink, 0, 20, |first, count| plain(0, first, count)).await;
    old.kill();
    new.run();
    until("the replica takes over", || (0..3).all(|sentinel| watched.master(sentinel) == 1)).await;
    let reason = loop {
        match sink.write(&plain(0, 21, 5).sent_after(20, 20)).await {
            Err(SinkError::Unavailable(reason)) if reason.contains("failed over") => break reason,
            Err(SinkError::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(20)).await,
            other => panic!("{other:?}"),
        }
    };
    assert!(reason.contains("cursor is 10, but 20 was stored"), "{reason}");
    assert_eq!(count(new), 10);
    bring_to(&sink, 0, 25, |first, count| plain(0, first, count)).await;
    expect_all_once(new, 1, 25);
}

#[tokio::test]
async fn connection_closes_when_sentinels_name_another_server() {
    let Some(watched) = Watched::start() else { return };
    let sink = Sink::new(Redis::new(config(&watched)));
    bring_to(&sink, 0, 5, |first, count| plain(0, first, count)).await;
    // The old master is healthy, like a master that is isolated from the others.
    let new = &watched.servers[1];
    watched.sentinels.iter().for_each(|sentinel| drop(sentinel.ask(&["SENTINEL", "REMOVE", NAME])));
    new.ask(&["REPLICAOF", "NO", "ONE"]);
    new.ask(&["FLUSHALL"]);
    let port = watched.ports[1].to_string();
    for sentinel in &watched.sentinels {
        sentinel.ask(&["SENTINEL", "MONITOR", NAME, "127.0.0.1", &port, "2"]);
    }
    let deadline = Instant::now() + Duration::from_mins(1);
    while sink.cursor(&lane(0)).await != Ok(Cursor::Store(0)) {
        assert!(Instant::now() < deadline, "it still asks the old one");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(count(&watched.servers[0]), 5);
}

#[tokio::test]
async fn wrong_names_and_dead_sentinels_are_reported() {
    let Some(watched) = Watched::start() else { return };
    let right = config(&watched);
    let failure = async |config: RedisConfig| Sink::new(Redis::new(config)).connect().await.unwrap_err();
    let other = RedisConfig { server: "redis://other".parse().unwrap(), ..right.clone() };
    let SinkError::Misconfigured(reason) = failure(other).await else { panic!("there is no such master") };
    assert!(reason.contains("No such master") && reason.contains("the name in `url`"), "{reason}");
    let sentinel = format!("redis://127.0.0.1:{}", watched.sentinel_ports[0]).parse().unwrap();
    let alone = RedisConfig { server: sentinel, deployment: Deployment::Alone, ..right.clone() };
    let SinkError::Misconfigured(reason) = failure(alone).await else { panic!("a sentinel stores nothing") };
    assert!(reason.contains("name it in `sentinels`"), "{reason}");

    // Sentinels have separate users, which need no more than this.
    for sentinel in &watched.sentinels {
        sentinel.ask(&["ACL", "SETUSER", "ann", "on", ">secret", "+sentinel|master"]);
    }
    let asked_by = |account: &str| {
        let url = |port: &u16| format!("redis://{account}@127.0.0.1:{port}").parse().unwrap();
        let sentinels = watched.sentinel_ports.iter().map(url).collect();
        RedisConfig { deployment: Deployment::Watched(sentinels), ..right.clone() }
    };
    Sink::new(Redis::new(asked_by("ann:secret"))).connect().await.unwrap();
    let SinkError::Misconfigured(reason) = failure(asked_by("ann:other")).await else { panic!("a wrong password") };
    assert!(reason.contains("WRONGPASS") && reason.contains("`sentinels`"), "{reason}");

    watched.sentinels[..2].iter().for_each(RedisServer::kill);
    Sink::new(Redis::new(right.clone())).connect().await.unwrap();
    watched.sentinels[2].kill();
    let SinkError::Unavailable(reason) = failure(right).await else { panic!("no sentinel knows it") };
    assert!(reason.contains("no sentinel returned the master live") && reason.contains("refused"), "{reason}");
}
