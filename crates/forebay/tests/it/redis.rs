//! The real program with Redis: from a request to an entry, with both processes killed.

mod replays;

use std::path::Path;

use crate::support::{Folder, Server, wait_until};
use crate::tls::Pair;
use testkit::ports::free_port;
use testkit::proxy::Proxy;
use testkit::redis::cluster::Cluster;
use testkit::redis::sentinels::{NAME, Watched};
use testkit::redis::{RedisReply, RedisServer};

fn start(folder: &Folder, url: &str, settings: &str) -> Server {
    let configuration =
        format!("[types.\"*\"]\nroutes = [\"live\"]\n[sinks.live]\nkind = \"redis\"\nurl = \"{url}\"\n{settings}");
    let configuration = folder.write("forebay.toml", configuration);
    Server::start_configured(&folder.data(), Path::new(&configuration), &folder.path("log"))
}

/// Posts an event whose key is its number.
fn post(server: &Server, number: usize) -> u16 {
    server.post_with_key(&format!("k{number}"), &format!("{{\"number\":  {number}}}"))
}

#[test]
fn acknowledged_events_are_stored_once_through_kills() {
    let Some(redis) = RedisServer::start() else { return };
    let proxy = Proxy::start(&redis.socket());
    let url = format!("redis://{}", proxy.address());
    let folder = Folder::new();
    let mut server = start(&folder, &url, "");
    let mut number = 0;
    for _ in 0..4 {
        for _ in 0..30 {
            assert_eq!(post(&server, number), 200);
            number += 1;
        }
        // Events in flight now are stored or not: their outcome is unknown.
        redis.kill();
        for _ in 0..10 {
            assert_eq!(post(&server, number), 200, "events are accepted while the store is down");
            number += 1;
        }
        drop(server);
        redis.run();
        server = start(&folder, &url, "");
        // Some are resent, as by a client that got no answer.
        for again in (0..number).step_by(7) {
            assert_eq!(post(&server, again), 200);
        }
    }
    server.wait_delivered();
    let entries = redis.ask(&["XRANGE", "access", "-", "+"]).list();
    let payload = |entry: RedisReply| entry.list().remove(1).list().remove(3).text();
    let mut payloads: Vec<String> = entries.into_iter().map(payload).collect();
    let mut expected: Vec<String> = (0..number).map(|number| format!("{{\"number\":  {number}}}")).collect();
    payloads.sort();
    expected.sort();
    assert_eq!(payloads, expected);
    assert_eq!(server.metric("forebay_events_stored_total{"), number as u64);
    let log = std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(!log.contains("appendfsync") && !log.contains("panicked"), "{log}");
}

#[test]
fn possible_losses_are_reported_and_bad_counts_rejected() {
    let Some(redis) = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "everysec"]) else { return };
    let proxy = Proxy::start(&redis.socket());
    let folder = Folder::new();
    let settings = "mode = \"counter\"\nkey = \"bytes\"\nfield = \"/status\"\nby = \"/bytes\"\n";
    let server = start(&folder, &format!("redis://{}", proxy.address()), settings);
    let body =
        "{\"status\": 200, \"bytes\": 7}\n{\"status\": 200, \"bytes\": \"x\"}\n{\"status\": 200, \"bytes\": -2}\n";
    assert_eq!(server.post("/ingest/batch/access", body).0, 200);
    server.wait_delivered();
    assert_eq!(redis.ask(&["HGET", "bytes", "200"]).text(), "5");
    assert_eq!(server.metric("forebay_events_dead_total{"), 1);
    assert_eq!(server.metric("forebay_events_stored_total{"), 2);
    let log = || std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(wait_until(|| log().contains("appendfsync everysec")), "{}", log());
}

#[test]
fn evicting_server_gets_nothing() {
    let policy = ["--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "allkeys-lru"];
    let Some(redis) = RedisServer::start_with(&policy) else { return };
    let proxy = Proxy::start(&redis.socket());
    let folder = Folder::new();
    let server = start(&folder, &format!("redis://{}", proxy.address()), "");
    assert_eq!(post(&server, 1), 200);
    let log = || std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(wait_until(|| log().contains("set maxmemory-policy noeviction")), "{}", log());
    assert_eq!(redis.ask(&["DBSIZE"]).number(), 0);
    redis.ask(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    server.wait_delivered();
    assert_eq!(redis.ask(&["XLEN", "access"]).number(), 1);
}

#[test]
fn tls_server_is_trusted_by_certificate_only() {
    let folder = Folder::new();
    let pair = Pair::new();
    let (certificate, key) = (folder.write("server.pem", pair.certificate), folder.write("server.key", pair.key));
    let other = folder.write("other.pem", Pair::new().certificate);
    let port = free_port().to_string();
    let settings = ["--appendonly", "yes", "--appendfsync", "always", "--tls-port", &port, "--tls-auth-clients", "no"];
    let files = ["--tls-cert-file", &certificate, "--tls-key-file", &key];
    let Some(redis) = RedisServer::start_with(&[&settings[..], &files].concat()) else { return };
    let url = format!("rediss://localhost:{port}");
    let log = || std::fs::read_to_string(folder.path("log")).unwrap();

    let server = start(&folder, &url, &format!("ca = \"{other}\"\n"));
    assert_eq!(post(&server, 1), 200);
    assert!(wait_until(|| log().contains("certificate")), "{}", log());
    assert_eq!(redis.ask(&["DBSIZE"]).number(), 0, "an untrusted server gets nothing");
    drop(server);

    let server = start(&folder, &url, &format!("ca = \"{certificate}\"\n"));
    server.wait_delivered();
    assert_eq!(redis.ask(&["XLEN", "access"]).number(), 1);
}

/// The payloads of a stream's entries.
fn payloads(entries: RedisReply) -> Vec<String> {
    entries.list().into_iter().map(|entry| entry.list().remove(1).list().remove(3).text()).collect()
}

/// Posts an event for each of these numbers to each of these types.
fn post_to(server: &Server, types: &[&str], numbers: std::ops::Range<usize>) {
    for name in types {
        let lines: String = numbers.clone().map(|number| format!("{{\"number\": {number}}}\n")).collect();
        assert_eq!(server.post(&format!("/ingest/batch/{name}"), &lines).0, 200);
    }
}

fn log(folder: &Folder) -> String {
    std::fs::read_to_string(folder.path("log")).unwrap()
}

fn expect_numbers(mut found: Vec<String>, count: usize) {
    let mut expected: Vec<String> = (0..count).map(|number| format!("{{\"number\": {number}}}")).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "each once");
}

#[test]
fn sentinel_failover_loses_and_repeats_nothing() {
    let Some(watched) = Watched::start() else { return };
    let folder = Folder::new();
    let sentinels: Vec<String> = watched.sentinel_ports.iter().map(|port| format!("\"127.0.0.1:{port}\"")).collect();
    let settings = format!("sentinels = [{}]\n", sentinels.join(", "));
    let server = start(&folder, &format!("redis://{NAME}"), &settings);
    post_to(&server, &["access"], 0..500);
    server.wait_delivered();
    // Events stored from now on aren't in the server that is promoted.
    let [old, new] = &watched.servers;
    new.kill();
    post_to(&server, &["access"], 500..700);
    server.wait_delivered();
    old.kill();
    new.run();
    post_to(&server, &["access"], 700..900);
    // Sentinels cut the connections of a server that takes over.
    let has_all = || new.client().try_ask(&["XLEN", "access"]).is_ok_and(|count| count.number() == 900);
    assert!(wait_until(has_all), "{}", log(&folder));
    expect_numbers(payloads(new.ask(&["XRANGE", "access", "-", "+"])), 900);
    assert!(log(&folder).contains("a failover loses"), "{}", log(&folder));
}

#[test]
fn cluster_losing_a_master_stores_events_once() {
    const TYPES: [&str; 4] = ["access", "billing", "clicks", "devices"];
    let Some(cluster) = Cluster::start(1_500, |port| port) else { return };
    let folder = Folder::new();
    let url = format!("redis://127.0.0.1:{},127.0.0.1:{}", cluster.ports[1], cluster.ports[2]);
    let server = start(&folder, &url, "cluster = true\n");
    post_to(&server, &TYPES, 0..300);
    server.wait_delivered();
    let gone = cluster.owner_as_seen_by(0, "clicks").unwrap();
    let heir = cluster.other(gone);
    cluster.nodes[heir].kill();
    post_to(&server, &TYPES, 300..400);
    server.wait_delivered();
    cluster.nodes[gone].kill();
    cluster.nodes[heir].run();
    post_to(&server, &TYPES, 400..500);
    let count = |name: &&str| cluster.try_ask(&["XLEN", name]).map(RedisReply::number);
    let are_all_there = || TYPES.iter().all(|name| count(name) == Some(500));
    assert!(wait_until(are_all_there), "{:?} {}", TYPES.map(|name| count(&name)), log(&folder));
    for name in TYPES {
        expect_numbers(payloads(cluster.ask(&["XRANGE", name, "-", "+"])), 500);
    }
}
