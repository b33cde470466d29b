//! Single events: every answer of `POST /ingest/event`.

use crate::fixture::{Fixture, named_types, open_types};
use event::{KeyedIds, TypeName};
use gateway::{ErrorCode, GatewayOptions, GatewayTypes, RouteName, StatusClass};
use limits::{EVENT_BYTES_MAX, KEY_BYTES_MAX};
use metrics::HistogramSnapshot;

fn keyed(type_name: &str, key: &str) -> String {
    KeyedIds::new("", &TypeName::new(type_name).unwrap(), key.as_bytes()).id(0).to_string()
}

#[test]
fn event_is_durable_before_its_response() {
    let fixture = Fixture::open();
    let answer = fixture.post("/ingest/event", "", " {\"a\":1}\n");
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b""[..]));
    let stored = fixture.stored();
    assert_eq!((stored[0].payload.as_str(), stored[0].type_name.as_str()), ("{\"a\":1}", "event"));
    assert!(stored[0].starts && stored[0].ends);
    assert_eq!(&stored[0].id[14..15], "7");
    assert_eq!(fixture.counters().requests(RouteName::Event, StatusClass::Success), 1);
    assert_eq!(fixture.counters().body_bytes(), 9);
    assert_ne!(fixture.counters().request_time(RouteName::Event), HistogramSnapshot::default());
    assert_eq!(fixture.counters().request_time(RouteName::Batch), HistogramSnapshot::default());
}

#[test]
fn response_has_id_and_position_on_request() {
    let fixture = Fixture::open();
    for (sequence, accept) in ["application/json", "text/html, application/json;q=0.5"].into_iter().enumerate() {
        let answer = fixture.post("/ingest/event", &format!("Accept: {accept}\r\n"), "1").json();
        assert_eq!(answer["id"].as_str(), Some(fixture.stored()[sequence].id.as_str()));
        assert_eq!(answer["position"], format!("0:{}", sequence + 1));
        assert_eq!(answer["duplicate"], false);
    }
    assert!(fixture.post("/ingest/event", "Accept: */*\r\n", "1").body.is_empty());
}

#[test]
fn type_comes_from_path_header_or_pointer() {
    let types = GatewayTypes { type_pointer: Some("/t".parse().unwrap()), ..open_types() };
    let fixture = Fixture::with(types, GatewayOptions::default());
    for (path, headers, payload) in [
        ("/ingest/event/by.path", "Forebay-Type: by.header\r\n", r#"{"t":"by.pointer"}"#),
        ("/ingest/event", "Forebay-Type: by.header\r\n", r#"{"t":"by.pointer"}"#),
        ("/ingest/event", "", r#"{"t":"by.pointer"}"#),
        ("/ingest/event", "", r#"{"s":"by.pointer"}"#),
    ] {
        assert_eq!(fixture.post(path, headers, payload).status, 200);
    }
    let types: Vec<_> = fixture.stored().into_iter().map(|event| event.type_name).collect();
    assert_eq!(types, ["by.path", "by.header", "by.pointer", "event"]);
    for payload in [r#"{"t":[]}"#, r#"{"t":"No Name"}"#] {
        let answer = fixture.post("/ingest/event", "", payload);
        assert_eq!((answer.status, answer.code().as_str()), (404, "unknown_type"));
        assert_eq!(answer.json()["pointer"], "/t");
    }
}

#[test]
fn unknown_type_is_rejected_and_connection_continues() {
    let fixture = Fixture::with(named_types(&[("a", None)]), GatewayOptions::default());
    let mut client = fixture.connect();
    for (path, headers) in [("/ingest/event/b", ""), ("/ingest/event", "Forebay-Type: c\r\n"), ("/ingest/event", "")] {
        client.post(path, headers, b"1");
        let answer = client.answer();
        assert_eq!((answer.status, answer.code().as_str()), (404, "unknown_type"), "{path} {headers}");
        assert_eq!(answer.header("connection"), None);
    }
    client.post("/ingest/event/a", "", b"1");
    assert_eq!(client.answer().status, 200);
    assert_eq!(fixture.stored().len(), 1);
    assert_eq!(fixture.counters().refusals(ErrorCode::UnknownType), 3);
}

#[test]
fn same_key_gives_same_id() {
    let fixture = Fixture::open();
    for path in ["/ingest/event/a", "/ingest/event/b"] {
        assert_eq!(fixture.post(path, "Idempotency-Key: k1\r\n", "1").status, 200);
    }
    let ids: Vec<_> = fixture.stored().into_iter().map(|event| event.id).collect();
    assert_eq!(ids, [keyed("a", "k1"), keyed("b", "k1")]);
}

#[test]
fn payload_id_outranks_the_key() {
    let fixture = Fixture::with(named_types(&[("a", Some("/id"))]), GatewayOptions::default());
    for (key, payload) in [("k", r#"{"id":"x"}"#), ("k", r#"{"id":12}"#), ("k", r#"{"id":null}"#), ("l", "[]")] {
        let answer = fixture.post("/ingest/event/a", &format!("Idempotency-Key: {key}\r\n"), payload);
        assert_eq!(answer.status, 200, "{payload}");
    }
    let ids: Vec<_> = fixture.stored().into_iter().map(|event| event.id).collect();
    assert_eq!(ids, [keyed("a", "x"), keyed("a", "12"), keyed("a", "k"), keyed("a", "l")]);
    let long = "x".repeat(KEY_BYTES_MAX + 1);
    for value in [r#""""#, "{}", "true", &format!("\"{long}\"")] {
        let answer = fixture.post("/ingest/event/a", "", format!("{{\"id\":{value}}}"));
        assert_eq!((answer.status, answer.code().as_str()), (400, "key"), "{value}");
        assert_eq!(answer.json()["pointer"], "/id");
    }
}

#[test]
fn key_length_is_limited() {
    let fixture = Fixture::open();
    for (length, status) in [(0, 400), (1, 200), (KEY_BYTES_MAX, 200), (KEY_BYTES_MAX + 1, 400)] {
        let answer = fixture.post("/ingest/event", &format!("Idempotency-Key: {}\r\n", "k".repeat(length)), "1");
        assert_eq!(answer.status, status, "{length}");
        assert!(status == 200 || answer.code() == "key");
    }
}

#[test]
fn invalid_json_is_rejected_with_its_offset() {
    let fixture = Fixture::open();
    for (body, code, offset) in [
        (&b"{\"a\":}"[..], "json", 5),
        (b"", "json", 0),
        (b"  ", "json", 2),
        (b"[1,2", "json", 4),
        (b"\"\xff\"", "utf8", 1),
        (br#"["\ud800"]"#, "surrogate", 2),
    ] {
        let answer = fixture.post("/ingest/event", "", body);
        assert_eq!((answer.status, answer.code().as_str()), (400, code), "{body:?}");
        assert_eq!(answer.json()["offset"], offset, "{body:?}");
    }
    let deep = fixture.post("/ingest/event", "", "[".repeat(129) + &"]".repeat(129));
    assert_eq!((deep.status, deep.code().as_str()), (400, "depth"));
    assert_eq!(fixture.counters().refusals(ErrorCode::Json), 4);
    assert!(fixture.stored().is_empty());
}

#[test]
fn event_size_is_limited_in_any_framing() {
    let fixture = Fixture::open();
    let fits = format!("\"{}\"", "x".repeat(EVENT_BYTES_MAX - 2));
    assert_eq!(fixture.post("/ingest/event", "", &fits).status, 200);
    let answer = fixture.post("/ingest/event", "", fits.clone() + " ");
    assert_eq!((answer.status, answer.code().as_str()), (413, "too_large"));
    assert_eq!(answer.header("connection"), Some("close"));

    let mut client = fixture.connect();
    client.send("POST /ingest/event HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send(format!("{:x}\r\n{fits}\r\n", fits.len()));
    client.send("1\r\n \r\n");
    let answer = client.answer();
    assert_eq!((answer.status, answer.code().as_str()), (413, "too_large"));
    assert_eq!(fixture.payloads(), [fits]);
}

#[test]
fn announced_oversize_is_rejected_before_the_body() {
    let fixture = Fixture::open();
    let mut client = fixture.connect();
    client
        .send("POST /ingest/event HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\nExpect: 100-continue\r\n\r\n");
    let answer = client.answer();
    assert_eq!((answer.status, answer.code().as_str()), (413, "too_large"));
    client.finish_sending();
    assert!(client.read_to_close());
}

#[test]
fn response_arrives_with_most_of_body_unread() {
    let fixture = Fixture::open();
    let mut client = fixture.connect();
    let body = vec![b' '; 2 * EVENT_BYTES_MAX];
    client.post("/ingest/event", "", &body);
    let answer = client.answer();
    assert_eq!((answer.status, answer.code().as_str()), (413, "too_large"));
    client.finish_sending();
    assert!(client.read_to_close());
}

#[test]
fn expect_continue_gets_100() {
    let fixture = Fixture::open();
    let mut client = fixture.connect();
    client.send("POST /ingest/event HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.answer().status, 100);
    client.send("1");
    assert_eq!(client.answer().status, 200);
}

#[test]
fn expect_continue_is_rejected_immediately() {
    let fixture = Fixture::open();
    let mut client = fixture.connect();
    client.send("POST /ingest/event/A HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n");
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("connection")), (404, Some("close")));
    client.finish_sending();
    assert!(client.read_to_close());
}

#[test]
fn chunks_form_one_payload() {
    let fixture = Fixture::open();
    let mut client = fixture.connect();
    client.send("POST /ingest/event HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    for chunk in ["{\"a", "\":", "1}"] {
        client.send(format!("{:x}\r\n{chunk}\r\n", chunk.len()));
    }
    client.send("0\r\n\r\n");
    assert_eq!(client.answer().status, 200);
    client.post("/ingest/event", "", b"2");
    assert_eq!(client.answer().status, 200);
    assert_eq!(fixture.payloads(), ["{\"a\":1}", "2"]);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let fixture = Fixture::open();
    let mut client = fixture.connect();
    let mut text = Vec::new();
    for number in 0..40 {
        let body = if number % 10 == 3 { "x".to_owned() } else { number.to_string() };
        text.extend(
            format!("POST /ingest/event HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len()).bytes(),
        );
    }
    client.send(&text);
    let statuses: Vec<_> = (0..40).map(|_| client.answer().status).collect();
    let expected: Vec<_> = (0..40).map(|number| if number % 10 == 3 { 400 } else { 200 }).collect();
    assert_eq!(statuses, expected);
    assert_eq!(fixture.stored().len(), 36);
}

#[test]
fn connections_are_spread_over_shards() {
    let fixture = Fixture::with_shards(3);
    let mut clients: Vec<_> = (0..6).map(|_| fixture.connect()).collect();
    fixture.wait("all are open", |counters| counters.open_connections() == 6);
    for client in &mut clients {
        client.post("/ingest/event", "Accept: application/json\r\n", b"1");
    }
    let shard =
        |client: &mut crate::fixture::Client| client.answer().json()["position"].as_str().unwrap()[..1].to_owned();
    let mut shards: Vec<_> = clients.iter_mut().map(shard).collect();
    shards.sort();
    assert_eq!(shards, ["0", "0", "1", "1", "2", "2"]);
    assert_eq!(fixture.stored().len(), 6);
}
