//! Clusters: the conformance suite over several slots, failovers, and slots that move from one node to another.

use std::collections::HashSet;
use std::time::Duration;

use event::EventId;
use sink::{Batch, Cursor, Record, Sink, SinkError};
use sink_redis::{Deployment, Redis, RedisConfig, RedisServerUrl, Structure};
use sink_testing::conformance::{SinkHarness, check, sequences};

use crate::fixture::{Fixture, STREAM, server, until};
use sink_testing::events::{batch_of, bring_to, lane};
use testkit::proxy::{FaultGuard, Proxy};
use testkit::redis::cluster::Cluster;
use testkit::redis::{RedisReply, RedisServer};

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

const SEQUENCES: u32 = 16;
/// The proxies cut after multiples of this many bytes of responses, up to this many times.
const CUTS: usize = 12;
const CUT_STEP: usize = 5;
/// After this many milliseconds a node counts as dead, in tests that kill one.
const QUICK: u32 = 1_500;
/// The same in tests that kill none, so a slow machine has no failover.
const PATIENT: u32 = 60_000;
const POISON: &str = "spoilt";
/// Types, each with a separate key: prefixes of one name.
const TYPES: [&str; 6] = ["a", "ac", "acc", "acce", "acces", "access"];

/// Six nodes, each with a proxy in front of it, whose address the node announces.
struct Nodes {
    cluster: Cluster,
    proxies: Vec<Proxy>,
}

impl Nodes {
    /// A node that is silent for this many milliseconds counts as dead.
    fn start(timeout: u32) -> Option<Self> {
        let proxies = Mutex::new(Vec::new());
        let before = |port: u16| {
            let proxy = Proxy::to(SocketAddr::from(([127, 0, 0, 1], port)));
            let announced = proxy.address().port();
            proxies.lock().unwrap().push(proxy);
            announced
        };
        let cluster = Cluster::start(timeout, before)?;
        Some(Self { cluster, proxies: proxies.into_inner().unwrap() })
    }

    /// The nodes of the conformance suite.
    fn shared() -> Option<&'static Self> {
        static NODES: OnceLock<Option<Nodes>> = OnceLock::new();
        NODES.get_or_init(|| Self::start(PATIENT)).as_ref()
    }

    fn config(&self, key: &str, structure: Structure) -> RedisConfig {
        let url = format!("redis://{},{}", self.proxies[0].address(), self.proxies[1].address());
        let (server, more) = RedisServerUrl::nodes(&url).unwrap();
        RedisConfig {
            server,
            deployment: Deployment::Cluster(more),
            ca: None,
            key: key.parse().unwrap(),
            structure,
            timeout: Duration::from_secs(5),
            connections_max: RedisConfig::CONNECTIONS_MAX,
        }
    }

    fn sink(&self, key: &str, structure: Structure) -> Sink {
        Sink::new(Redis::new(self.config(key, structure)))
    }

    /// Ids and payloads of the entries of these streams.
    fn entries(&self, pattern: &str) -> Vec<(EventId, Vec<u8>)> {
        let row = |entry: RedisReply| {
            let fields = entry.list().remove(1).list();
            (fields[1].clone().text().parse().unwrap(), fields[3].clone().bytes())
        };
        let entries = |key: &String| self.cluster.ask(&["XRANGE", key, "-", "+"]).list();
        self.cluster.keys(pattern).iter().flat_map(entries).map(row).collect()
    }

    fn expect_all_once(&self, pattern: &str, expected: u64) {
        let ids: Vec<_> = self.entries(pattern).into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids.len() as u64, expected);
        assert_eq!(ids.into_iter().collect::<HashSet<_>>().len() as u64, expected, "each once");
    }

    fn count(&self, pattern: &str) -> u64 {
        self.cluster.keys(pattern).iter().map(|key| self.cluster.ask(&["XLEN", key]).number()).sum()
    }
}

/// Events of several types.
fn mixed(shard: u16, first: u64, payloads: &[&str]) -> Batch {
    batch_of(shard, first, payloads, |record| Record {
        type_name: &record.type_name[..1 + usize::try_from(record.sequence % 6).unwrap()],
        ..record
    })
}

fn mixed_plain(shard: u16) -> impl Fn(u64, usize) -> Batch {
    move |first, count| mixed(shard, first, &vec!["{\"status\": 200}"; count])
}

const ENTRIES: u8 = 0;
const STRINGS: u8 = 1;

struct TestedSink<const OF: u8> {
    nodes: &'static Nodes,
    key: String,
}

impl<const OF: u8> SinkHarness for TestedSink<OF> {
    const COMPARES: bool = true;
    const RECOGNISES_IDS: bool = OF == STRINGS;
    const REJECTS: bool = OF == STRINGS;
    const ALL_OR_NOTHING: bool = false;
    const SHARES_FAULTS: bool = true;
    type Fault = Vec<FaultGuard>;

    async fn fresh() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let key = format!("c{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        Self { nodes: Nodes::shared().expect("asked before"), key }
    }

    fn sink(&self) -> Sink {
        match OF {
            ENTRIES => self.nodes.sink(&format!("{}:{{type}}", self.key), STREAM),
            _ => self.nodes.sink(&format!("{}:{{id}}", self.key), Structure::Strings),
        }
    }

    async fn rows(&self) -> Vec<(EventId, Vec<u8>)> {
        if OF == ENTRIES {
            return self.nodes.entries(&format!("{}:*", self.key));
        }
        let mut rows = Vec::new();
        for key in self.nodes.cluster.keys(&format!("{{?}}{}:*", self.key)) {
            if self.nodes.cluster.ask(&["TYPE", &key]).text() == "string" {
                let payload = self.nodes.cluster.ask(&["GET", &key]).bytes();
                rows.push((key.rsplit(':').next().unwrap().parse().unwrap(), payload));
            }
        }
        rows
    }

    async fn poison(&self, id: EventId) {
        let id = id.to_string();
        // A string doesn't take a list's place.
        let digit = id.chars().last().unwrap();
        self.nodes.cluster.ask(&["RPUSH", &format!("{{{digit}}}{}:{id}", self.key), POISON]);
    }

    async fn outage(&self, stage: usize) -> Option<Vec<FaultGuard>> {
        (stage < CUTS).then(|| self.nodes.proxies.iter().map(|proxy| proxy.cut_after(stage * CUT_STEP)).collect())
    }

    async fn stall(&self) -> Vec<FaultGuard> {
        self.nodes.proxies.iter().map(|proxy| proxy.freeze_after(0)).collect()
    }
}

#[test]
fn cluster_passes_each_case_and_follows_the_model() {
    if Nodes::shared().is_some() {
        check::<TestedSink<ENTRIES>>();
        sequences::<TestedSink<ENTRIES>>(SEQUENCES);
        check::<TestedSink<STRINGS>>();
        sequences::<TestedSink<STRINGS>>(SEQUENCES);
    }
}

#[tokio::test]
async fn killed_masters_replica_has_each_event_once() {
    const EACH: u64 = 12_000;
    let Some(nodes) = Nodes::start(QUICK) else { return };
    let sink = nodes.sink("k:{type}", STREAM);
    let load = [0, 1].map(|shard| {
        let sink = sink.clone();
        tokio::spawn(async move { bring_to(&sink, shard, EACH, mixed_plain(shard)).await })
    });
    until("something is stored", || nodes.count("k:*") > 1_000).await;
    let gone = nodes.cluster.owner_as_seen_by(1, "k:access").unwrap();
    nodes.cluster.nodes[gone].kill();
    let (seen_by, other) = ((gone + 1) % 3, nodes.cluster.other(gone));
    until("its replica takes over", || nodes.cluster.owner_as_seen_by(seen_by, "k:access") == Some(other)).await;
    for lane in load {
        lane.await.unwrap();
    }
    assert!(sink.warning().unwrap().contains("a failover loses"), "{:?}", sink.warning());
    nodes.expect_all_once("k:*", 2 * EACH);
    assert_eq!(nodes.cluster.keys("k:*").len(), TYPES.len());
}

#[tokio::test]
async fn only_unreplicated_events_are_redelivered() {
    // More than connections buffer for a replica that doesn't read.
    const TAIL: u64 = 2_500;
    let Some(nodes) = Nodes::start(QUICK) else { return };
    let Nodes { cluster, .. } = &nodes;
    // Four of the six keys are on one master, and the notes on another.
    let sink = nodes.sink("m:{type}", STREAM);
    let text = format!("{{\"text\": \"{}\"}}", "x".repeat(20_000));
    let large = |first, count| mixed(0, first, &vec![text.as_str(); count]);
    bring_to(&sink, 0, 120, &large).await;
    let gone = cluster.owner_as_seen_by(1, "m:acce").unwrap();
    let (old, new) = (&cluster.nodes[gone], &cluster.nodes[cluster.other(gone)]);
    new.freeze();
    bring_to(&sink, 0, 120 + TAIL, &large).await;
    assert_eq!(nodes.count("m:*"), 120 + TAIL, "acknowledged");
    old.kill();
    new.thaw();
    until("the replica takes over", || {
        let mut others = (0..3).filter(|node| node % 3 != gone % 3);
        others.all(|node| cluster.owner_as_seen_by(node, "m:acce") == Some(cluster.other(gone)))
    })
    .await;
    let position = loop {
        if let Ok(Cursor::Store(position)) = sink.cursor(&lane(0)).await {
            break position;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(position < 120 + TAIL, "it has lost a tail: {position}");
    // A new process sees the same.
    let other = nodes.sink("m:{type}", STREAM);
    assert_eq!(other.cursor(&lane(0)).await, Ok(Cursor::Store(position)));
    // Batches with other boundaries, the last of which has nothing for most places.
    bring_to(&other, 0, 120 + TAIL, |first, count| large(first, count.min(37))).await;
    nodes.expect_all_once("m:*", 120 + TAIL);
    assert_eq!(sink.cursor(&lane(0)).await, Ok(Cursor::Store(120 + TAIL)));
}

/// A slot that is moving, as when a cluster is rebalanced.
struct Move<'a> {
    cluster: &'a Cluster,
    slot: String,
    from: usize,
    to: usize,
}

impl<'a> Move<'a> {
    fn begin(cluster: &'a Cluster, key: &str) -> Self {
        let from = cluster.owner_as_seen_by(0, key).unwrap();
        let moved = Self { cluster, slot: cluster.slot(key).to_string(), from, to: (from + 1) % 3 };
        moved.set(moved.to, &["IMPORTING", &cluster.id(from)]);
        moved.set(from, &["MIGRATING", &cluster.id(moved.to)]);
        moved
    }

    fn set(&self, node: usize, what: &[&str]) {
        self.cluster.nodes[node].ask(&[&["CLUSTER", "SETSLOT", &self.slot], what].concat());
    }

    fn keys(&self, keys: &[&str]) {
        let port = self.cluster.ports[self.to].to_string();
        let head = ["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
        self.cluster.nodes[self.from].ask(&[&head, keys].concat());
    }

    fn end(self) {
        let owner = self.cluster.id(self.to);
        [self.to, self.from, 3 - self.from - self.to].iter().for_each(|node| self.set(*node, &["NODE", &owner]));
    }
}

#[tokio::test]
async fn moving_slot_gets_no_partial_writes() {
    let Some(nodes) = Nodes::start(PATIENT) else { return };
    let sink = nodes.sink("moving", STREAM);
    let plain = mixed_plain(0);
    bring_to(&sink, 0, 10, &plain).await;
    let moving = Move::begin(&nodes.cluster, "moving");
    bring_to(&sink, 0, 20, &plain).await;
    moving.keys(&["forebay:{moving}:cursors"]);
    // A command for the cursor alone is sent to the cursor's node; a command for the data too waits.
    assert_eq!(sink.cursor(&lane(0)).await, Ok(Cursor::Store(20)));
    let Err(SinkError::Unavailable(reason)) = sink.write(&plain(21, 10)).await else {
        panic!("its keys are on two nodes")
    };
    assert!(reason.contains("moving to another node"), "{reason}");
    moving.keys(&["moving"]);
    bring_to(&sink, 0, 30, &plain).await;
    moving.end();
    bring_to(&sink, 0, 40, &plain).await;
    nodes.expect_all_once("moving", 40);
}

#[tokio::test]
async fn moving_slots_have_each_event_once() {
    const EACH: u64 = 6_000;
    let Some(nodes) = Nodes::start(PATIENT) else { return };
    let sink = nodes.sink("busy:{type}", STREAM);
    let done = tokio::spawn({
        let sink = sink.clone();
        async move { bring_to(&sink, 0, EACH, mixed_plain(0)).await }
    });
    let mut moves = 0;
    while !done.is_finished() || moves < 6 {
        let key = format!("busy:{}", TYPES[moves % TYPES.len()]);
        let moving = Move::begin(&nodes.cluster, &key);
        loop {
            let keys = nodes.cluster.nodes[moving.from].ask(&["CLUSTER", "GETKEYSINSLOT", &moving.slot, "1"]);
            let Some(key) = keys.list().pop() else { break };
            moving.keys(&[&key.text()]);
            // The lane may write between any two keys.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        moving.end();
        moves += 1;
        // It is stored during the move, on a machine of any speed.
        let before = nodes.count("busy:*");
        until("the lane continues", || done.is_finished() || nodes.count("busy:*") > before).await;
    }
    done.await.unwrap();
    nodes.expect_all_once("busy:*", EACH);
}

#[tokio::test]
async fn wrong_cluster_settings_are_reported() {
    let (Some(nodes), Some(alone)) = (Nodes::start(QUICK), server()) else { return };
    let right = nodes.config("k", STREAM);
    let failure = async |config: RedisConfig| Sink::new(Redis::new(config)).connect().await.unwrap_err();
    let single = RedisConfig { deployment: Deployment::Alone, ..right.clone() };
    let SinkError::Misconfigured(reason) = failure(single).await else { panic!("it is one of several") };
    assert!(reason.contains("set cluster = true"), "{reason}");
    let fixture = Fixture::new(alone, STREAM);
    let cluster = RedisConfig { deployment: Deployment::Cluster(Vec::new()), ..fixture.config.clone() };
    let SinkError::Misconfigured(reason) = failure(cluster).await else { panic!("it is alone") };
    assert!(reason.contains("remove `cluster`"), "{reason}");

    // Without full coverage the other slots work.
    let sink = nodes.sink("k:{type}", STREAM);
    nodes
        .cluster
        .nodes
        .iter()
        .for_each(|node| drop(node.ask(&["CONFIG", "SET", "cluster-require-full-coverage", "no"])));
    let slot = nodes.cluster.slot("k:access").to_string();
    nodes.cluster.nodes.iter().for_each(|node| drop(node.client().try_ask(&["CLUSTER", "DELSLOTS", &slot])));
    let at = |sequence| batch_of(0, sequence, &["1"], |record| record);
    let Err(SinkError::Unavailable(reason)) = sink.write(&at(1)).await else { panic!("no node has it") };
    assert!(reason.contains("redis-cli --cluster check"), "{reason}");
    bring_to(&nodes.sink("l:{type}", STREAM), 0, 10, |first, count| mixed(0, first, &vec!["1"; count])).await;

    nodes.cluster.nodes.iter().for_each(RedisServer::kill);
    let SinkError::Unavailable(reason) = failure(right).await else { panic!("no node responds") };
    assert!(reason.contains("no node returned the cluster's slots"), "{reason}");
}
