//! The times of a stop: `stop_delay` for load balancers, `stop_deliver` for pending events.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::support::{Folder, HANGS, PROTOCOL, Server, exchange, payloads, wait_until};
use crate::two_services::{BackEnd, gateway};
use testkit::ports::free_address;

/// The whole response to a GET on a separate connection.
fn get(address: SocketAddr, path: &str) -> String {
    request(address, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{PROTOCOL}Connection: close\r\n\r\n"))
}

/// All that is received until the connection is closed.
fn request(address: SocketAddr, text: &str) -> String {
    let mut client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(HANGS)).unwrap();
    client.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer
}

fn is_unready(address: SocketAddr) -> bool {
    get(address, "/readyz").starts_with("HTTP/1.1 503")
}

#[test]
fn gateway_accepts_events_during_stop_delay() {
    let folder = Folder::new();
    let config = folder.write("forebay.toml", "[gateway]\nstop_delay = \"10min\"\n");
    let server = Server::start_with(&folder.data(), &["--config", &config], &folder.path("log"));
    assert!(get(server.intake, "/readyz").starts_with("HTTP/1.1 200"));
    server.signal("-TERM");
    assert!(wait_until(|| is_unready(server.intake)));
    assert_eq!(server.post("/ingest/event", "1").0, 200, "on a new connection");
    let answer = request(server.intake, "GET /ip HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(answer.to_ascii_lowercase().contains("connection: close"), "a client that keeps connections: {answer}");
    server.wait_delivered();
    assert_eq!(server.stop("-TERM"), Some(143), "a second signal ends it immediately");
    assert_eq!(payloads(&folder.data()), ["1"]);
}

#[test]
fn reload_changes_how_long_a_stop_takes() {
    let folder = Folder::new();
    let config = folder.write("forebay.toml", "[gateway]\nstop_delay = \"10min\"\n");
    let server = Server::start_with(&folder.data(), &["--config", &config], &folder.path("log"));
    folder.write("forebay.toml", "[gateway]\nstop_delay = \"50ms\"\nstop_deliver = \"11s\"\n");
    server.signal("-HUP");
    server.wait("forebay_reloads_total{result=\"applied\"}", |reloads| reloads == 1);
    assert_eq!(server.stop("-TERM"), Some(0), "by itself");
    let log = std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(log.contains("accepted for another 50ms") && log.contains("delivers events for up to 11s"), "{log}");
}

#[test]
fn writer_serves_during_stop_delay() {
    let folder = Folder::new();
    let start = |delay: &str| {
        let config = folder.write("writer.toml", format!("[writer]\nstop_delay = \"{delay}\"\n"));
        BackEnd::start_on(&folder.path("writer"), "127.0.0.1:0", &["--config", &config])
    };
    let writer = start("10min");
    let info = "/ingest/data/local";
    assert!(!get(writer.address, info).to_ascii_lowercase().contains("forebay-draining"));
    writer.signal("-TERM");
    assert!(wait_until(|| is_unready(writer.address)));
    let answer = get(writer.address, info).to_ascii_lowercase();
    assert!(answer.starts_with("http/1.1 200") && answer.contains("forebay-draining: true"), "{answer}");
    writer.signal("-TERM");
    assert_eq!(writer.wait_end(), Some(143));
    let writer = start("50ms");
    writer.stop();
}

/// A gateway whose writer doesn't run.
fn alone(folder: &Folder, address: &str, deliver: &str) -> Server {
    let config = folder.write("gateway.toml", format!("[gateway]\nstop_deliver = \"{deliver}\"\n"));
    let arguments = ["--config", &config, "--writer", &format!("http://{address}")];
    gateway(&folder.data(), &arguments, &folder.path("log"))
}

#[test]
fn stop_ignores_stores_without_pending_events() {
    let folder = Folder::new();
    let server = alone(&folder, &free_address().to_string(), "24h");
    let request = format!("GET /api/routes HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.admin);
    // A route is listed as soon as its type is known. The lane is then connecting to its writer.
    assert_eq!(exchange(server.admin, &request).0, 200);
    assert_eq!(server.stop("-TERM"), Some(0));
}

#[test]
fn undelivered_events_wait_for_the_next_start() {
    let folder = Folder::new();
    let address = free_address().to_string();
    let server = alone(&folder, &address, "0s");
    assert_eq!(server.post("/ingest/event", "1").0, 200);
    assert_eq!(server.stop("-TERM"), Some(0));
    let log = std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(log.contains("delivers events for up to 0s") && log.contains("1 event not stored yet"), "{log}");
    let _writer = BackEnd::start_on(&folder.path("writer"), &address, &[]);
    let server = alone(&folder, &address, "0s");
    server.wait_delivered();
    assert_eq!(server.stop("-TERM"), Some(0));
    assert_eq!(payloads(&folder.path("writer")), ["1"]);
}
