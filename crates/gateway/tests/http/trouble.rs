//! Failures around requests: overload, a failing disk, clients that disconnect, invalid HTTP, the stop.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::fixture::{Client, Fixture, LOOK_EVERY, open_types};
use event::TypeName;
use eventlog::Gate;
use gateway::{ErrorCode, GatewayOptions, GatewayTypes, RouteName, StatusClass};
use journal::simulated_disk::{Operation, SimulatedDisk, SimulatedError};
use limits::HEADER_BYTES_MAX;

const FAR: Duration = Duration::from_secs(60);

#[test]
fn other_paths_and_methods_are_rejected() {
    let fixture = Fixture::open();
    let mut client = fixture.connect();
    for (method, path, status, code, allow) in [
        ("GET", "/", 404, "not_found", None),
        ("POST", "/ingest", 404, "not_found", None),
        ("GET", "/ingest/event", 405, "method_not_allowed", Some("OPTIONS, POST")),
        ("PUT", "/ingest/batch/a", 405, "method_not_allowed", Some("OPTIONS, POST")),
        ("DELETE", "/healthz", 405, "method_not_allowed", Some("GET, HEAD, OPTIONS")),
    ] {
        client.send(format!("{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
        let answer = client.answer();
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{method} {path}");
        assert_eq!(answer.header("allow"), allow);
    }
    assert_eq!(fixture.counters().requests(RouteName::Other, StatusClass::ClientError), 2);
}

#[test]
fn health_endpoints_report_alive_and_ready() {
    let fixture = Fixture::open();
    let mut client = fixture.connect();
    for path in ["/healthz", "/readyz"] {
        for method in ["GET", "HEAD"] {
            client.send(format!("{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
            assert_eq!(client.answer().status, 200);
        }
    }
    fixture.gateway().announce_stop();
    // Each response closes its connection from now on: a balancer's next request goes elsewhere.
    client.send("HEAD /readyz HTTP/1.1\r\nHost: x\r\n\r\n");
    let head = client.answer_to_head();
    assert_eq!((head.status, head.header("connection")), (503, Some("close")));
    assert!(head.header("content-length").is_some_and(|length| length.parse::<usize>().unwrap() > 0));
    assert!(client.read_to_close());
    let get = |path: &str| {
        let mut client = fixture.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
        client.answer()
    };
    let answer = get("/readyz");
    assert_eq!((answer.status, answer.code().as_str()), (503, "not_ready"));
    assert_eq!(get("/healthz").status, 200);
    assert_eq!(fixture.post("/ingest/event", "", "1").status, 200);
}

#[test]
fn bytes_in_flight_above_the_limit_are_shed() {
    let options = GatewayOptions { in_flight_bytes_max: 1000, ..GatewayOptions::default() };
    let fixture = Fixture::with(open_types(), options);
    let mut slow = fixture.connect();
    slow.send("POST /ingest/batch HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
    slow.send(vec![b'\n'; 800]);
    fixture.wait("the bytes are there", |counters| counters.bytes_in_flight() == 800);
    let body = [b"1".as_slice(), &[b' '; 200]].concat();
    let answer = fixture.post("/ingest/event", "", &body);
    assert_eq!((answer.status, answer.code().as_str()), (503, "overload"));
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(fixture.post("/ingest/event", "", "2").status, 200);
    slow.send([vec![b'\n'; 198], b"3\n".to_vec()].concat());
    assert_eq!(slow.answer().status, 200);
    assert_eq!(fixture.post("/ingest/event", "", &body).status, 200);
    assert_eq!(fixture.payloads(), ["2", "3", "1"]);
    assert_eq!(fixture.counters().refusals(ErrorCode::Overload), 1);
    assert_eq!(fixture.counters().bytes_in_flight(), 0);
}

#[test]
fn batch_is_counted_as_it_arrives() {
    let options = GatewayOptions { in_flight_bytes_max: 1000, ..GatewayOptions::default() };
    let fixture = Fixture::with(open_types(), options);
    let mut client = fixture.connect();
    client.send("POST /ingest/batch HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
    client.send(vec![b'\n'; 1001]);
    let answer = client.answer();
    assert_eq!((answer.status, answer.code().as_str()), (503, "overload"));
    fixture.wait("the bytes are free", |counters| counters.bytes_in_flight() == 0);
}

/// Otherwise all of them would grow until none has room, and all work for them would be wasted.
#[test]
fn batch_begins_only_if_reservations_leave_room() {
    let options =
        GatewayOptions { in_flight_bytes_max: 1_000_000, batch_wait: Duration::ZERO, ..GatewayOptions::default() };
    let fixture = Fixture::with(open_types(), options);
    let mut first = fixture.connect();
    first.send("POST /ingest/batch HTTP/1.1\r\nHost: x\r\nContent-Length: 600000\r\n\r\n\n");
    fixture.wait("its first byte is there", |counters| counters.bytes_in_flight() == 1);
    let mut second = fixture.connect();
    second.send("POST /ingest/batch HTTP/1.1\r\nHost: x\r\nContent-Length: 600000\r\n\r\n");
    let answer = second.answer();
    assert_eq!((answer.status, answer.code().as_str()), (503, "overload"), "before its body has come");
    assert_eq!(fixture.post("/ingest/batch", "", "2\n").status, 200);
    assert_eq!(fixture.post("/ingest/event", "", "3").status, 200);
    first.send([vec![b'\n'; 599_997], b"1\n".to_vec()].concat());
    assert_eq!(first.answer().status, 200);
    assert_eq!(fixture.payloads(), ["2", "3", "1"]);
}

/// A rejection makes its client reconnect and resend, which costs more than to let it wait.
#[test]
fn batch_without_room_waits_for_others() {
    let batch_wait = Duration::from_hours(1);
    let options = GatewayOptions { in_flight_bytes_max: 1_000_000, batch_wait, ..GatewayOptions::default() };
    let fixture = Fixture::with(open_types(), options);
    let usual = [vec![b'\n'; 600_000], b"0\n".to_vec()].concat();
    assert_eq!(fixture.post("/ingest/batch", "", &usual).status, 200);
    let begin = "POST /ingest/batch HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut first = fixture.connect();
    first.send(format!("{begin}1\r\n1\r\n"));
    fixture.wait("its first byte is there", |counters| counters.bytes_in_flight() == 1);
    let waiting = (2..5).map(|number| {
        let mut client = fixture.connect();
        client.send(format!("{begin}1\r\n{number}\r\n0\r\n\r\n"));
        client
    });
    let waiting: Vec<_> = waiting.collect();
    // It finds room: the others arrived earlier, and would have been rejected by now.
    assert_eq!(fixture.post("/ingest/event", "", "5").status, 200);
    first.send("0\r\n\r\n");
    assert_eq!(first.answer().status, 200);
    for mut client in waiting {
        assert_eq!(client.answer().status, 200);
    }
    let mut payloads = fixture.payloads();
    payloads.sort_unstable();
    assert_eq!(payloads, ["0", "1", "2", "3", "4", "5"]);
    assert_eq!(fixture.counters().refusals(ErrorCode::Overload), 0);
}

#[test]
fn failed_journal_answers_no_200() {
    let disk = SimulatedDisk::new(1);
    let fixture = Fixture::on_disk(Arc::new(disk.clone()));
    assert_eq!(fixture.post("/ingest/event", "", "1").status, 200);
    disk.fail_from_call(Operation::Sync, 1, SimulatedError::Io);
    for (path, body) in [("/ingest/event", "2"), ("/ingest/batch", "3\n4\n"), ("/ingest/event", "5")] {
        let answer = fixture.post(path, "", body);
        assert_eq!((answer.status, answer.code().as_str()), (500, "journal_failed"));
    }
    let mut client = fixture.connect();
    client.send("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(client.answer().status, 503);
    assert_eq!(fixture.payloads(), ["1"]);
}

#[test]
fn full_disk_is_reported_until_space_is_free() {
    let disk = SimulatedDisk::new(1);
    let fixture = Fixture::on_disk(Arc::new(disk.clone()));
    let body = format!("\"{}\"", "x".repeat(60_000));
    assert_eq!(fixture.post("/ingest/event", "", &body).status, 200);
    disk.set_capacity(Some(disk.bytes_used()));
    let full = (0..1000).map(|_| fixture.post("/ingest/event", "", &body)).find(|answer| answer.status != 200).unwrap();
    assert_eq!((full.status, full.code().as_str()), (507, "disk_full"));
    let stored = fixture.stored().len();
    disk.set_capacity(None);
    assert_eq!(fixture.post("/ingest/event", "", &body).status, 200);
    assert_eq!(fixture.stored().len(), stored + 1);
}

pub(crate) fn gate(fixture: &Fixture, type_name: &str) -> Gate {
    let types = fixture.log.types();
    types.gate(types.get(&TypeName::new(type_name).unwrap()).unwrap())
}

#[test]
fn only_types_of_full_backlogs_are_rejected() {
    let fixture = Fixture::open();
    for path in ["/ingest/event/slow", "/ingest/event/quick"] {
        assert_eq!(fixture.post(path, "", "1").status, 200);
    }
    let gate = gate(&fixture, "slow");
    gate.set_closed(true);
    let refused = fixture.post("/ingest/event/slow", "", "2");
    assert_eq!(
        (refused.status, refused.code().as_str(), refused.header("retry-after")),
        (503, "backlog_full", Some("1"))
    );
    assert_eq!(fixture.post("/ingest/batch/slow", "", "2\n3").code(), "backlog_full");
    assert_eq!(fixture.post("/ingest/event/quick", "", "4").status, 200);
    gate.set_closed(false);
    assert_eq!(fixture.post("/ingest/batch/slow", "", "5\n6").status, 200);
    assert_eq!(fixture.payloads(), ["1", "1", "4", "5", "6"]);
}

#[test]
fn batch_rejects_only_records_of_full_backlogs() {
    let types = GatewayTypes { type_pointer: Some("/type".parse().unwrap()), ..open_types() };
    let fixture = Fixture::with(types, GatewayOptions::default());
    assert_eq!(fixture.post("/ingest/batch", "", "{\"type\":\"slow\"}\n{\"type\":\"quick\"}").status, 200);
    gate(&fixture, "slow").set_closed(true);
    let some = fixture.post("/ingest/batch", "", "{\"type\":\"slow\"}\n{\"type\":\"quick\"}");
    assert_eq!((some.status, &some.json()["refused"][0]["code"]), (207, &"backlog_full".into()));
    let (json, later) = (some.json(), "later".into());
    assert_eq!(
        (&json["refused"][0]["retry"], &json["retry_later"], json.get("retry_alone")),
        (&later, &1.into(), None)
    );
    let all = fixture.post("/ingest/batch", "", "{\"type\":\"slow\"}\n{\"type\":\"slow\"}");
    assert_eq!((all.status, all.code().as_str()), (503, "backlog_full"));
    assert_eq!(fixture.stored().len(), 3);
}

#[test]
fn intake_stops_before_the_disk_is_full() {
    let disk = SimulatedDisk::new(1);
    let fixture = Fixture::on_disk(Arc::new(disk.clone()));
    let ready = |expected| {
        let mut client = fixture.connect();
        client.send("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(client.answer().status, expected);
    };
    assert_eq!(fixture.post("/ingest/event", "", "1").status, 200);
    disk.set_capacity(Some(disk.bytes_used() * 100 / 99));
    assert!(fixture.log.disk_guard().look().unwrap().1);
    let full = fixture.post("/ingest/event", "", "2");
    assert_eq!((full.status, full.code().as_str()), (507, "disk_full"));
    // The response precedes the body.
    let mut client = fixture.connect();
    client.send("POST /ingest/batch HTTP/1.1\r\nHost: x\r\nContent-Length: 30000000\r\n\r\n");
    assert_eq!(client.answer().status, 507);
    ready(503);
    disk.set_capacity(None);
    assert!(fixture.log.disk_guard().look().unwrap().1);
    ready(200);
    assert_eq!(fixture.post("/ingest/batch", "", "3").status, 200);
    assert_eq!(fixture.payloads(), ["1", "3"]);
}

#[test]
fn event_of_disconnected_client_is_never_stored_twice() {
    let fixture = Fixture::open();
    for number in 0..50 {
        let mut client = fixture.connect();
        client.post("/ingest/event", "", number.to_string().as_bytes());
        drop(client);
    }
    assert_eq!(fixture.post("/ingest/event", "", "\"last\"").status, 200);
    fixture.wait("all are gone", |counters| counters.open_connections() == 0 && counters.bytes_in_flight() == 0);
    let mut payloads = fixture.payloads();
    let all = payloads.len();
    payloads.sort();
    payloads.dedup();
    assert_eq!(payloads.len(), all);
    assert!(payloads.contains(&"\"last\"".to_owned()));
}

#[test]
fn ambiguous_heads_are_rejected_and_connection_closed() {
    let fixture = Fixture::open();
    for (head, status, code) in [
        ("Host: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked", 400, "bad_request"),
        ("Host: x\r\nContent-Length: 1\r\nContent-Length: 2", 400, "bad_request"),
        ("Host: x\nContent-Length: 1", 400, "bad_request"),
        ("Content-Length: 1", 400, "bad_request"),
        (&format!("Host: x\r\nX: {}", "x".repeat(HEADER_BYTES_MAX)), 431, "header_too_large"),
    ] {
        let mut client = fixture.connect();
        client.send(format!("POST /ingest/event HTTP/1.1\r\n{head}\r\n\r\n1"));
        let answer = client.answer();
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{head:.60}");
        assert_eq!(answer.header("connection"), Some("close"));
        client.finish_sending();
        assert!(client.read_to_close());
    }
    assert!(fixture.stored().is_empty());
}

#[test]
fn requests_before_a_bad_head_are_answered() {
    let fixture = Fixture::open();
    let mut client = fixture.connect();
    let good = "POST /ingest/event HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1";
    client.send([good, good, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n"].concat());
    let statuses: Vec<_> = (0..3).map(|_| client.answer().status).collect();
    assert_eq!(statuses, [200, 200, 400]);
    assert_eq!(fixture.stored().len(), 2);
}

#[test]
fn pipelined_requests_survive_any_split() {
    let whole = [
        "POST /ingest/event HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n11",
        "POST /ingest/event HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n2\r\n1\r\n2\r\n0\r\n\r\n",
        "\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /ingest/event HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx",
        "POST /ingest/batch HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n33\n44",
    ];
    let text = whole.concat();
    for cut in 0..text.len() {
        let fixture = Fixture::on_disk(Arc::new(SimulatedDisk::new(1)));
        let mut client = fixture.connect();
        client.send(&text[..cut]);
        // Complete requests are answered before the rest arrives, so the rest is sent separately.
        let ends = whole.iter().scan(0, |end, request| {
            *end += request.len();
            Some(*end)
        });
        let early = ends.filter(|end| *end <= cut).count();
        let mut statuses: Vec<_> = (0..early).map(|_| client.answer().status).collect();
        client.send(&text[cut..]);
        statuses.extend((early..whole.len()).map(|_| client.answer().status));
        assert_eq!(statuses, [200, 200, 200, 400, 200], "{cut}");
        assert_eq!(fixture.payloads(), ["11", "22", "33", "44"], "{cut}");
    }
}

#[test]
fn empty_line_after_body_is_ignored() {
    let options = GatewayOptions { tick: Duration::from_millis(5), ..GatewayOptions::default() };
    let fixture = Fixture::with(open_types(), options);
    let mut client = fixture.connect();
    client.send("POST /ingest/event HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1\r\n");
    assert_eq!(client.answer().status, 200);
    assert!(client.read_to_close(), "it was idle, not slow");
    assert_eq!(fixture.counters().refusals(ErrorCode::Timeout), 0);
}

#[test]
fn late_reader_gets_whole_response() {
    let fixture = Fixture::open();
    let client = fixture.connect();
    let mut sender = client.reader.get_ref().try_clone().unwrap();
    let requests = 300;
    let body = "x\n".repeat(1000);
    let request = format!("POST /ingest/batch HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let sending = std::thread::spawn(move || (0..requests).for_each(|_| sender.write_all(request.as_bytes()).unwrap()));
    // The server reads no request before it has answered the last one: its responses fill both buffers, and only then are they read.
    let (mut client, mut answered, mut still) = (client, 0, 0);
    while still < 100 {
        let now = fixture.counters().requests(RouteName::Batch, StatusClass::ClientError);
        still = if now == answered { still + 1 } else { 0 };
        answered = now;
        std::thread::sleep(LOOK_EVERY);
    }
    for _ in 0..requests {
        let answer = client.answer();
        assert_eq!((answer.status, answer.json()["refused"].as_array().unwrap().len()), (400, 1000));
    }
    sending.join().unwrap();
}

#[test]
fn head_may_arrive_byte_by_byte() {
    let fixture = Fixture::open();
    let mut client = fixture.connect();
    for byte in b"POST /ingest/event HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n12" {
        client.send([*byte]);
    }
    assert_eq!(client.answer().status, 200);
    assert_eq!(fixture.payloads(), ["12"]);
}

#[test]
fn invalid_chunk_ends_the_connection() {
    let fixture = Fixture::open();
    let mut client = fixture.connect();
    client.send("POST /ingest/event HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n1\r\n0;\n\r\n");
    let answer = client.answer();
    assert_eq!((answer.status, answer.code().as_str()), (400, "bad_request"));
    assert_eq!(answer.header("connection"), Some("close"));
    client.finish_sending();
    assert!(client.read_to_close(), "there is one answer");
    assert!(fixture.stored().is_empty());
}

#[test]
fn connections_beyond_the_limit_wait() {
    let options = GatewayOptions { connections_max: 2, ..GatewayOptions::default() };
    let fixture = Fixture::with(open_types(), options);
    let mut first: Vec<_> = (0..2).map(|_| fixture.connect()).collect();
    fixture.wait("two are open", |counters| counters.open_connections() == 2);
    let mut third = fixture.connect();
    third.post("/ingest/event", "", b"3");
    first[0].post("/ingest/event", "", b"1");
    assert_eq!(first[0].answer().status, 200);
    assert_eq!(fixture.counters().connections_accepted(), 2);
    drop(first);
    assert_eq!(third.answer().status, 200);
}

#[test]
fn client_connections_are_limited_to_its_share() {
    let options = GatewayOptions { connections_per_client: 2, ..GatewayOptions::default() };
    let fixture = Fixture::with(open_types(), options);
    let mut first: Vec<_> = (0..2).map(|_| fixture.connect()).collect();
    fixture.wait("two are open", |counters| counters.open_connections() == 2);
    assert!(fixture.connect().read_to_close());
    assert_eq!(fixture.counters().connections_refused(), 1);
    first.pop();
    fixture.wait("one is left", |counters| counters.open_connections() == 1);
    assert_eq!(fixture.post("/ingest/event", "", b"1").status, 200);
}

#[test]
fn many_clients_may_connect_concurrently() {
    let options = GatewayOptions { connections_max: 1, ..GatewayOptions::default() };
    let fixture = Fixture::with(open_types(), options);
    let first = fixture.connect();
    fixture.wait("one is open", |counters| counters.open_connections() == 1);
    let mut rest: Vec<_> = (0..300).map(|_| fixture.connect()).collect();
    drop(first);
    rest[0].post("/ingest/event", "", b"1");
    assert_eq!(rest[0].answer().status, 200);
}

#[test]
fn stop_answers_requests_in_flight_and_closes_others() {
    let mut fixture = Fixture::open();
    let (mut idle, mut fresh, mut busy) = (fixture.connect(), fixture.connect(), fixture.connect());
    idle.post("/ingest/event", "", b"1");
    assert_eq!(idle.answer().status, 200);
    busy.send("POST /ingest/batch HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n2\n");
    fixture.wait("all are there", |counters| counters.bytes_in_flight() >= 2 && counters.open_connections() == 3);
    let address = fixture.address();
    let gateway = fixture.take_gateway();
    let stopping = std::thread::spawn(move || gateway.stop(Instant::now() + FAR));
    assert!(idle.read_to_close() && fresh.read_to_close());
    assert!(std::net::TcpStream::connect(address).is_err());
    busy.send("3\n");
    let answer = busy.answer();
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    assert!(stopping.join().unwrap());
    for shard in fixture.log.shards() {
        shard.close().unwrap();
    }
    assert_eq!(fixture.payloads(), ["1", "2", "3"]);
}

#[test]
fn stop_does_not_wait_beyond_its_deadline() {
    let mut fixture = Fixture::open();
    let mut busy = fixture.connect();
    busy.send("POST /ingest/batch HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n2\n");
    fixture.wait("it is there", |counters| counters.bytes_in_flight() >= 2);
    assert!(!fixture.take_gateway().stop(Instant::now()));
    assert!(busy.read_to_close());
    assert!(fixture.stored().is_empty());
}

#[test]
fn slow_client_gets_408_and_is_closed() {
    let options = GatewayOptions { tick: Duration::from_millis(5), ..GatewayOptions::default() };
    let fixture = Fixture::with(open_types(), options);
    for part in [
        "POST /ingest/event HTTP/1.1\r\nHost",
        "POST /ingest/event HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n1",
        "POST /ingest/batch HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n1\n\r\n",
        "POST /ingest/event/A HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n1",
    ] {
        let mut client = fixture.connect();
        client.send(part);
        let answer = client.answer();
        let expected = if part.contains("/A ") { (404, "unknown_type") } else { (408, "timeout") };
        assert_eq!((answer.status, answer.code().as_str()), expected, "{part}");
        assert_eq!(answer.header("connection"), Some("close"));
        assert!(client.read_to_close());
    }
    let mut idle = fixture.connect();
    assert!(idle.read_to_close());
    fixture.wait("all are closed", |counters| counters.open_connections() == 0);
    assert_eq!(fixture.counters().refusals(ErrorCode::Timeout), 3);
    assert!(fixture.stored().is_empty());
}

#[test]
fn client_that_reads_nothing_is_closed() {
    let options = GatewayOptions { tick: Duration::from_millis(5), ..GatewayOptions::default() };
    let fixture = Fixture::with(open_types(), options);
    let mut client = fixture.connect();
    let body = "x\n".repeat(1000);
    let request = format!("POST /ingest/batch HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    while client.try_send(&request).is_ok() {}
    fixture.wait("it is closed", |counters| counters.open_connections() == 0);
}

#[test]
fn client_may_half_close_after_its_request() {
    let fixture = Fixture::open();
    let mut client = fixture.connect();
    client.post("/ingest/event", "", b"1");
    client.finish_sending();
    assert_eq!(client.answer().status, 200);
    assert!(client.read_to_close());
    let mut broken = fixture.connect();
    broken.send("POST /ingest/event HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n1");
    broken.finish_sending();
    let answer = broken.answer();
    assert_eq!((answer.status, answer.code().as_str()), (400, "body_incomplete"));
    assert!(broken.read_to_close());
    assert_eq!(fixture.payloads(), ["1"]);
}

#[test]
fn old_http_clients_get_responses_they_support() {
    let fixture = Fixture::open();
    let mut client = fixture.connect();
    client.send("POST /ingest/event HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n1");
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("connection")), (200, Some("keep-alive")));
    client.send("POST /ingest/event HTTP/1.0\r\nContent-Length: 1\r\n\r\n2");
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    assert!(client.read_to_close());
    assert_eq!(fixture.payloads(), ["1", "2"]);
}

#[test]
fn unknown_expectation_is_rejected() {
    let fixture = Fixture::open();
    let mut client = fixture.connect();
    client.send("POST /ingest/event HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nExpect: magic\r\n\r\n");
    let answer = client.answer();
    assert_eq!((answer.status, answer.code().as_str()), (417, "expectation"));
}

#[test]
fn connections_share_commits() {
    let fixture = Fixture::open();
    let address = fixture.address();
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            std::thread::spawn(move || {
                let mut clients: Vec<_> = (0..8).map(|_| Client::connect(address)).collect();
                for round in 0..20 {
                    for client in &mut clients {
                        client.post("/ingest/event", "", format!("\"{thread} {round}\"").as_bytes());
                    }
                    clients.iter_mut().for_each(|client| assert_eq!(client.answer().status, 200));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(fixture.stored().len(), 8 * 8 * 20);
    assert_eq!(fixture.counters().requests(RouteName::Event, StatusClass::Success), 8 * 8 * 20);
}
