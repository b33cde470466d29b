//! Responses that leave before the request was read reach clients that write all of it before they read.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use access::Demand;
use gateway::GatewayOptions;
use limits::{BATCH_BYTES_MAX, DRAIN_BYTES_MAX};
use net::lingering_close::DrainLimiter;

use crate::fixture::{Client, Fixture, open_types};

const MB: usize = 1_000_000;

/// Deadlines that never pass, however slow the machine is.
fn patient() -> GatewayOptions {
    GatewayOptions { tick: Duration::from_hours(1), ..GatewayOptions::default() }
}

/// Deadlines that pass immediately.
fn hasty() -> GatewayOptions {
    GatewayOptions { tick: Duration::from_millis(5), ..GatewayOptions::default() }
}

/// Writes a request with a body of so many bytes, and only then reads the status of the response and all after it.
fn write_then_read(stream: &mut (impl Read + Write), start: &str, bytes: usize) -> u16 {
    write!(stream, "{start} HTTP/1.1\r\nHost: x\r\nContent-Length: {bytes}\r\n\r\n").unwrap();
    let piece = vec![b' '; MB];
    for _ in 0..bytes / MB {
        stream.write_all(&piece).unwrap();
    }
    stream.flush().unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).unwrap();
    let status = response.split(|byte| *byte == b' ').nth(1).and_then(|status| str::from_utf8(status).ok());
    let text = String::from_utf8_lossy(&response);
    assert!(text.contains("\r\nconnection: close\r\n"), "{text}");
    status.and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

/// Each rejection, with a gateway and a request that gets it before the body is read.
fn refusals() -> Vec<(u16, GatewayOptions, &'static str)> {
    let token = GatewayOptions { demand: Demand::Always, ..patient() };
    let loopback = GatewayOptions { allowed_hosts: Some(Vec::new()), ..patient() };
    let (no_room, batch_wait) = (1000, Duration::ZERO);
    let busy = GatewayOptions { in_flight_bytes_max: no_room, batch_wait, ..patient() };
    vec![
        (400, patient(), "POST /ingest/event/a|b"),
        (400, patient(), "POST /ingest/event?a b"),
        (400, patient(), "POST /ingest/event HTTP/1.1\r\nContent-Length: 1\r\nX:"),
        (400, patient(), "POST /ingest/batch HTTP/1.1\r\nForebay-Atomic: maybe\r\nX:"),
        (401, token, "POST /ingest/batch"),
        (403, loopback, "POST /ingest/batch"),
        (404, patient(), "POST /nowhere"),
        (404, patient(), "POST /ingest/batch/.."),
        (405, patient(), "PUT /ingest/batch"),
        (413, patient(), "POST /ingest/event"),
        (415, patient(), "POST /ingest/batch HTTP/1.1\r\nContent-Encoding: br\r\nX:"),
        (417, patient(), "POST /ingest/batch HTTP/1.1\r\nExpect: magic\r\nX:"),
        (503, busy, "POST /ingest/batch"),
    ]
}

#[test]
fn client_that_writes_first_gets_each_rejection() {
    for (status, options, start) in refusals() {
        let fixture = Fixture::with(open_types(), options);
        for bytes in [5 * MB, 60 * MB] {
            let heard = match status {
                // With a length, a batch of 60 MB is rejected for its size.
                503 => chunked(&fixture, bytes),
                _ => write_then_read(fixture.connect().reader.get_mut(), start, bytes),
            };
            assert_eq!(heard, status, "{start}, {bytes} bytes");
            fixture.wait("no byte of it is kept", |counters| {
                counters.bytes_in_flight() == 0 && counters.drains().draining() == 0
            });
        }
        let discarded = fixture.counters().drains().discarded_bytes();
        assert!(discarded > 60 * MB as u64, "{start}: {discarded}");
        assert_eq!(fixture.counters().drains().refused(), 0);
    }
}

/// The same in chunks: the status.
fn chunked(fixture: &Fixture, bytes: usize) -> u16 {
    let mut client = fixture.connect();
    client.send("POST /ingest/batch HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    let chunk = [format!("{MB:x}\r\n").as_bytes(), &vec![b' '; MB], b"\r\n"].concat();
    (0..bytes / MB).for_each(|_| client.send(&chunk));
    client.send("0\r\n\r\n");
    let status = client.answer().status;
    assert!(client.read_to_close());
    status
}

#[test]
fn early_batch_rejection_reaches_the_client() {
    let fixture = Fixture::with(open_types(), patient());
    // More than a batch may have, which only its bytes show.
    assert_eq!(chunked(&fixture, BATCH_BYTES_MAX + 20 * MB), 413);
}

#[test]
fn rejection_precedes_body_if_client_waits() {
    let fixture = Fixture::with(open_types(), patient());
    let mut client = fixture.connect();
    client.send("POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 60000000\r\n\r\n");
    assert_eq!(client.answer().status, 404);
    fixture.wait("the rest is read", |counters| counters.drains().draining() == 1);
    drop(client);
    fixture.wait("it is closed", |counters| counters.open_connections() == 0 && counters.drains().draining() == 0);
}

#[test]
fn rejection_does_not_wait_for_expected_body() {
    let fixture = Fixture::with(open_types(), patient());
    let mut client = fixture.connect();
    client.send("POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 60000000\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.answer().status, 404);
    // The client keeps its direction open.
    fixture.wait("it is closed", |counters| counters.open_connections() == 0);
    let drains = fixture.counters().drains();
    assert_eq!((drains.draining(), drains.discarded_bytes(), drains.refused()), (0, 0, 0));
}

#[test]
fn drain_ends_after_its_byte_limit() {
    let fixture = Fixture::with(open_types(), patient());
    let mut client = fixture.connect();
    client.send("POST /nowhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    let piece = vec![b'0'; MB];
    while client.try_send(&piece).is_ok() {}
    fixture.wait("it is closed", |counters| counters.open_connections() == 0);
    let discarded = fixture.counters().drains().discarded_bytes();
    assert!((DRAIN_BYTES_MAX..DRAIN_BYTES_MAX + MB as u64).contains(&discarded), "{discarded}");
}

#[test]
fn drain_ends_after_its_timeout() {
    let fixture = Fixture::with(open_types(), hasty());
    let mut client = fixture.connect();
    client.send("POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 60000000\r\n\r\n");
    assert_eq!(client.answer().status, 404);
    fixture.wait("it is closed", |counters| counters.open_connections() == 0);
    assert_eq!(fixture.counters().drains().draining(), 0);
}

#[test]
fn connections_beyond_the_drain_limit_close_immediately() {
    let drains = Arc::new(DrainLimiter::new(1));
    let fixture = Fixture::with(open_types(), GatewayOptions { drains: drains.clone(), ..patient() });
    let begin = || {
        let mut client = fixture.connect();
        client.send("POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 60000000\r\n\r\n");
        assert_eq!(client.answer().status, 404);
        client
    };
    let first = begin();
    fixture.wait("the first is drained", |_| drains.draining() == 1);
    let _second = begin();
    fixture.wait("the second is closed", |counters| counters.open_connections() == 1);
    assert_eq!((drains.draining(), drains.refused()), (1, 1));
    drop(first);
    fixture.wait("the first is closed", |counters| counters.open_connections() == 0);
    let third = begin();
    fixture.wait("the third is drained", |_| drains.draining() == 1);
    drop(third);
}

#[test]
fn stop_does_not_wait_for_rejected_bodies() {
    let mut fixture = Fixture::with(open_types(), hasty());
    let mut client = fixture.connect();
    client.send("POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 60000000\r\n\r\n");
    assert_eq!(client.answer().status, 404);
    let far = Instant::now() + Duration::from_secs(60);
    assert!(fixture.take_gateway().stop(far));
}

#[test]
fn short_rest_is_read_and_connection_continues() {
    let fixture = Fixture::with(open_types(), patient());
    let mut client = fixture.connect();
    for _ in 0..3 {
        client.post("/nowhere", "", &[b' '; 60_000]);
        let answer = client.answer();
        assert_eq!((answer.status, answer.header("connection")), (404, None));
    }
    assert_eq!(fixture.counters().drains().discarded_bytes(), 0);
}

/// A client that speaks plain HTTP on a port with TLS.
pub(crate) fn write_then_read_plain(fixture: &Fixture) -> u16 {
    let mut client = Client::connect(fixture.address());
    write_then_read(client.reader.get_mut(), "POST /ingest/batch", 20 * MB)
}

/// A rejected request over TLS; its client gets the end of the stream, and may still send.
pub(crate) fn write_then_read_secure(stream: &mut (impl Read + Write)) -> u16 {
    write_then_read(stream, "POST /nowhere", 20 * MB)
}

#[test]
fn half_closed_client_is_not_drained() {
    let fixture = Fixture::with(open_types(), patient());
    let mut stream = TcpStream::connect(fixture.address()).unwrap();
    stream.write_all(b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 60000000\r\n\r\n ").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 404 "), "{response}");
    fixture.wait("it is closed", |counters| counters.open_connections() == 0);
}
