//! Each server starts, answers, and is gone with its files when its value is dropped.
#![allow(clippy::unwrap_used, reason = "a test fails loudly")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;

use testkit::etcd::EtcdServer;
use testkit::nats::NatsServer;
use testkit::opensearch::OpenSearch;
use testkit::postgres::PostgresServer;
use testkit::proxy::Proxy;
use testkit::redis::RedisServer;
use testkit::swift::SwiftServer;

/// What Redis answers to a PING.
const PONG: &[u8] = b"+PONG\r\n";

fn assert_gone(folder: PathBuf) {
    assert!(!folder.exists(), "{} is left", folder.display());
}

#[test]
fn postgres_answers() {
    let Some(server) = PostgresServer::start() else { return };
    assert_eq!(server.psql("select 1"), "1");
    server.kill();
    server.run();
    assert_eq!(server.psql("select 2"), "2");
    let folder = server.folder().to_owned();
    drop(server);
    assert_gone(folder);
}

#[test]
fn redis_answers_and_a_proxy_cuts() {
    let Some(server) = RedisServer::start() else { return };
    assert_eq!(server.ask(&["PING"]).text(), "PONG");
    let proxy = Proxy::start(&server.socket());
    let ping = || {
        let mut stream = TcpStream::connect(proxy.address()).unwrap();
        stream.write_all(b"PING\r\n").unwrap();
        let mut answer = Vec::new();
        let _ = stream.take(PONG.len() as u64).read_to_end(&mut answer);
        answer
    };
    assert_eq!(ping(), PONG);
    let cut = proxy.cut_after(2);
    assert_eq!(ping(), b"+P");
    drop(cut);
    assert_eq!(ping(), PONG);
    let folder = server.folder().to_owned();
    drop(server);
    assert_gone(folder);
}

#[test]
fn nats_answers() {
    let Some(server) = NatsServer::start() else { return };
    assert_eq!(server.client().count("NONE"), None);
    let folder = server.folder().to_owned();
    drop(server);
    assert_gone(folder);
}

#[test]
fn opensearch_answers() {
    let Some(server) = OpenSearch::start() else { return };
    assert!(server.get("/").contains("opensearch"));
    let folder = server.folder().to_owned();
    drop(server);
    assert_gone(folder);
}

#[test]
fn swift_answers() {
    let Some(server) = SwiftServer::start() else { return };
    assert!(server.client().ask("PUT", "/new", &[], b"").is_success());
    let folder = server.folder().to_owned();
    drop(server);
    assert_gone(folder);
}

#[test]
fn etcd_answers() {
    let Some(server) = EtcdServer::start() else { return };
    server.control(&["put", "/forebay/writers/one", "x"]);
    assert_eq!(server.registered(), 1);
}
