//! SIGTERM: requests in flight are finished, no new ones begin, and a second signal ends the process immediately.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::{Folder, HANGS, Server, exchange, payloads, wait_until};

fn begin(server: &Server, part: &str) -> TcpStream {
    let mut client = TcpStream::connect(server.intake).unwrap();
    client.set_read_timeout(Some(HANGS)).unwrap();
    client.write_all(part.as_bytes()).unwrap();
    client
}

/// Sends the rest, and returns all answers until the connection is closed.
fn end(client: &mut TcpStream, rest: &str) -> String {
    client.write_all(rest.as_bytes()).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer
}

/// A server that has begun to take a POST, and whose log says that it stops.
fn stopping(folder: &Folder) -> (Server, TcpStream, TcpStream) {
    let log = folder.path("log");
    let server = Server::start_with(&folder.data(), &[], &log);
    let post = begin(&server, "POST /ingest/event HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n1");
    let ready = begin(&server, "GET /readyz HTTP/1.1\r\nHost: ");
    server.wait("forebay_http_in_flight_bytes", |bytes| bytes > 0);
    server.wait("forebay_http_connections", |connections| connections >= 2);
    server.signal("-TERM");
    assert!(wait_until(|| std::fs::read_to_string(&log).unwrap().contains("stopping")));
    (server, post, ready)
}

#[test]
fn stop_answers_in_flight_requests_only() {
    let folder = Folder::new();
    let (server, mut post, mut ready) = stopping(&folder);
    assert!(wait_until(|| TcpStream::connect(server.intake).is_err()), "no new connections");
    let of_admin = exchange(server.admin, "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert_eq!(of_admin, (503, "not ready: the server is stopping\n".to_owned()));
    let answer = end(&mut ready, "x\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("the server is stopping"), "{answer}");
    let answer = end(&mut post, "2");
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.to_ascii_lowercase().contains("connection: close"),
        "{answer}"
    );
    assert_eq!(server.wait_end(), Some(0));
    assert_eq!(payloads(&folder.data()), ["12"]);
}

#[test]
fn second_signal_ends_the_process_immediately() {
    let folder = Folder::new();
    let (server, mut post, _ready) = stopping(&folder);
    assert_eq!(server.stop("-INT"), Some(143));
    let answer = post.read_to_string(&mut String::new());
    assert!(matches!(answer, Ok(0) | Err(_)), "no client got an acknowledgement");
    let server = Server::start(&folder.data());
    assert_eq!(server.metric("forebay_events_accepted_total"), 0);
}
