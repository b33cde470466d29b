//! How long connections are kept between requests, and what clients learn of it.

use std::time::Duration;

use gateway::GatewayOptions;

use crate::fixture::{Fixture, open_types};

fn options(idle_timeout: u64) -> GatewayOptions {
    GatewayOptions {
        idle_timeout: Duration::from_secs(idle_timeout),
        tick: Duration::from_millis(5),
        ..GatewayOptions::default()
    }
}

/// The `Connection` and the `Keep-Alive` of the response to an event with these header lines.
fn connection_headers(fixture: &Fixture, headers: &str) -> (Option<String>, Option<String>) {
    let answer = fixture.post("/ingest/event", headers, "1");
    assert_eq!(answer.status, 200);
    let header = |name| answer.header(name).map(str::to_owned);
    (header("connection"), header("keep-alive"))
}

#[test]
fn keep_alive_header_shows_idle_timeout() {
    let fixture = Fixture::with(open_types(), GatewayOptions { tick: Duration::from_hours(1), ..options(620) });
    let kept = (Some("keep-alive".to_owned()), Some("timeout=620".to_owned()));
    assert_eq!(connection_headers(&fixture, "Connection: keep-alive\r\n"), kept);
    assert_eq!(connection_headers(&fixture, "Connection: X, Keep-Alive\r\n"), kept);
    assert_eq!(connection_headers(&fixture, ""), (None, None), "HTTP/1.1 keeps connections without these headers");
    let closed = (Some("close".to_owned()), None);
    assert_eq!(connection_headers(&fixture, "Connection: keep-alive, close\r\n"), closed);
    let mut old = fixture.connect();
    old.send("POST /ingest/event HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n1");
    let answer = old.answer();
    assert_eq!((answer.header("connection"), answer.header("keep-alive")), (Some("keep-alive"), Some("timeout=620")));
    fixture.gateway().announce_stop();
    assert_eq!(connection_headers(&fixture, "Connection: keep-alive\r\n"), closed, "it stops");
}

#[test]
fn reload_applies_to_open_connections() {
    let fixture = Fixture::with(open_types(), options(3600));
    let mut client = fixture.connect();
    client.post("/ingest/event", "Connection: keep-alive\r\n", b"1");
    assert_eq!(client.answer().header("keep-alive"), Some("timeout=3600"));
    fixture.gateway().control().configure(&open_types(), &options(1));
    assert!(client.read_to_close());
    fixture.gateway().control().configure(&open_types(), &options(1800));
    assert_eq!(connection_headers(&fixture, "Connection: keep-alive\r\n").1.as_deref(), Some("timeout=1800"));
}
