//! `GET /api/tap`: live samples of events, at each point that an event passes.

use std::net::SocketAddr;

use serde_json::Value;

use crate::fixture::Fixture;
use crate::support::{Folder, exchange, wait_until};
use crate::two_services::{BackEnd, gateway};
use crate::watch::Stream;

const CONFIG: &str = r#"
[types.access]
routes = ["local"]

[types.login]
transform = [{ hash = "/user" }]
routes = ["local"]

[types.odd]
routes = [{ to = "local", when = "missing > 1" }]

[sinks.local]
kind = "sqlite"
"#;

fn tap(admin: SocketAddr, query: &str) -> Stream {
    Stream::open(admin, &format!("/api/tap{query}"))
}

/// The status, and the problem's code and detail.
fn refused(admin: SocketAddr, query: &str) -> (u16, String, String) {
    let request = format!("GET /api/tap{query} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let (status, body) = exchange(admin, &request);
    let problem: Value = serde_json::from_str(&body).unwrap();
    let text = |name: &str| problem[name].as_str().unwrap().to_owned();
    (status, text("code"), text("detail"))
}

#[test]
fn event_is_seen_at_each_point() {
    let fixture = Fixture::new(CONFIG);
    let (server, admin) = (fixture.server(), fixture.server().admin);
    let mut taps = ["?at=received", "", "?at=stored&sink=local", "?at=dead"].map(|query| tap(admin, query));
    let (status, code, _) = refused(admin, "?at=refused");
    assert_eq!((status, &*code), (503, "busy"), "four are open");
    assert_eq!(server.post("/ingest/event/access", "{\n \"path\": \"/a\"}").0, 200);
    assert_eq!(server.post("/ingest/batch/login", "{\"user\":\"anna-secret\"}\n{\"user\":\"berta-secret\"}").0, 200);
    assert_eq!(server.post("/ingest/event/odd", "{\"n\":1}").0, 200);
    let mut next = |tap: usize| taps[tap].next_with("n");

    let received = [next(0), next(0), next(0), next(0)];
    assert_eq!((&received[0]["payload"]["path"], &received[0]["type"]), (&"/a".into(), &"access".into()));
    assert_eq!(received.iter().map(|line| line["n"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(received[1]["type"] == "login" && received[1]["bytes"] == 22, "{received:?}");
    assert!(!format!("{received:?}").contains("secret"), "steps haven't hidden it yet: {received:?}");

    let accepted: Vec<Value> = (0..4).map(|_| next(1)).collect();
    let of_type = |lines: &[Value], name: &str| lines.iter().find(|line| line["type"] == name).unwrap().clone();
    let access = of_type(&accepted, "access");
    assert!(access["at"] == "accepted" && access["position"].as_str().unwrap().contains(':'), "{access}");
    assert_eq!((access["id"].as_str().unwrap().len(), &access["bytes"]), (36, &16.into()));
    let hashed = of_type(&accepted, "login");
    assert!(hashed["payload"]["user"].is_string() && !hashed.to_string().contains("secret"), "{hashed}");

    let stored = [next(2), next(2), next(2)];
    let access = of_type(&stored, "access");
    assert!(access["sink"] == "local" && access["after_ms"].is_u64() && access["payload"]["path"] == "/a", "{access}");
    let dead = next(3);
    assert!(dead["type"] == "odd" && dead["reason"].as_str().unwrap().contains("missing"), "{dead}");

    drop(taps);
    let mut refused = None;
    assert!(wait_until(|| {
        let opened = tap(admin, "?at=refused");
        let is_open = opened.status == 200;
        refused = Some(opened);
        is_open
    }));
    let mut refused = refused.unwrap();
    assert_eq!(server.post("/ingest/event/access", "no JSON").0, 400);
    assert_eq!(server.post("/ingest/batch/access", "1\nno JSON\n").0, 207);
    let lines = [refused.next_with("n"), refused.next_with("n")];
    assert!(lines.iter().all(|line| line["code"] == "json" && line["payload"].is_null()), "{lines:?}");
    assert_eq!((&lines[0]["line"], &lines[1]["line"]), (&Value::Null, &2.into()));
}

#[test]
fn condition_and_filters_select() {
    let fixture = Fixture::new(CONFIG);
    let (server, admin) = (fixture.server(), fixture.server().admin);
    let mut failed = tap(admin, "?type=access&where=status%20%3D%3D%20500&rate=2000");
    // A condition on hidden values would show them.
    let mut hidden = tap(admin, "?at=received&where=user%20%3D%3D%20%22anna%22");
    let lines: String =
        (0..40).map(|n| format!("{{\"n\":{n},\"status\":{}}}\n", if n % 4 == 0 { 500 } else { 200 })).collect();
    assert_eq!(server.post("/ingest/batch/access", &lines).0, 200);
    let long = format!("{{\"status\":500,\"long\":\"{}\"}}", "x".repeat(5_000));
    assert_eq!(server.post("/ingest/event/access", &long).0, 200);
    assert_eq!(server.post("/ingest/event/login", "{\"user\":\"anna\",\"status\":500}").0, 200);
    // A sum may come between two of the lines.
    let (mut shown, mut passed, mut matched) = (Vec::new(), 0, 0);
    while passed < 41 || shown.len() < 11 {
        let line = failed.next().expect("the stream goes on");
        if !line["n"].is_null() {
            shown.push(line);
        } else if !line["sum"].is_null() {
            passed += line["passed"].as_u64().unwrap();
            matched += line["matched"].as_u64().unwrap();
            assert_eq!(line["dropped"], 0);
        }
    }
    assert_eq!((passed, matched), (41, 11));
    assert!(shown.iter().all(|line| line["type"] == "access"), "{shown:?}");
    assert!(shown[..10].iter().all(|line| line["payload"]["status"] == 500), "{shown:?}");
    assert!(shown[10]["payload_head"].as_str().is_some_and(|head| head.len() == 4_096), "{}", shown[10]);
    let mut sum = hidden.next_with("sum");
    while sum["looked_at"] == 0 {
        sum = hidden.next_with("sum");
    }
    assert_eq!(sum["matched"], 0);
    for (query, wanted) in [("?at=x", "use `received`"), ("?where=a%20%3D", "where="), ("?sink=local", "at=stored")] {
        let (status, code, detail) = refused(admin, query);
        assert!(status == 400 && code == "query" && detail.contains(wanted), "{query}: {detail}");
    }
}

#[test]
fn burst_is_sampled_and_counted() {
    let fixture = Fixture::new(CONFIG);
    let (server, admin) = (fixture.server(), fixture.server().admin);
    // The second client reads only at the end.
    let (mut quick, mut slow) = (tap(admin, "?rate=10"), tap(admin, "?at=stored&rate=2000"));
    let body: String = (0..10_000).map(|n| format!("{{\"n\":{n},\"pad\":\"{}\"}}\n", "x".repeat(200))).collect();
    let before = server.memory("VmRSS");
    for _ in 0..5 {
        assert_eq!(server.post("/ingest/batch/access", &body).0, 200);
    }
    server.wait_delivered();
    let mut totals = [0; 3];
    while totals[0] < 50_000 {
        let sum = quick.next_with("sum");
        for (total, member) in totals.iter_mut().zip(["passed", "looked_at", "shown"]) {
            *total += sum[member].as_u64().unwrap();
        }
        assert!(sum["looked_at"].as_u64().unwrap() <= 2_000 && sum["shown"].as_u64().unwrap() <= 10, "{sum}");
    }
    assert!(totals[0] == 50_000 && (100..10_000).contains(&totals[1]) && totals[2] >= 10, "{totals:?}");
    let mut passed = 0;
    while passed < 50_000 {
        passed += slow.next_with("sum")["passed"].as_u64().unwrap();
    }
    assert_eq!(passed, 50_000);
    let grown = server.memory("VmRSS").saturating_sub(before);
    assert!(grown < 64 << 20, "the taps' part is a few MiB: {grown}");
}

#[test]
fn taps_end_with_their_client_and_the_process() {
    let fixture = Fixture::new(CONFIG);
    let (server, admin) = (fixture.server(), fixture.server().admin);
    let mut open: Vec<Stream> = (0..4).map(|_| tap(admin, "?at=received")).collect();
    assert_eq!(refused(admin, "").0, 503);
    assert_eq!(refused(admin, "?at=gone").0, 400, "a mistake is named first");
    open.truncate(1);
    assert!(wait_until(|| tap(admin, "?at=dead").status == 200));
    server.signal("-TERM");
    while open[0].next().is_some() {}
}

#[test]
fn writer_has_taps_of_stored_events() {
    let folder = Folder::new();
    let writer = BackEnd::start_on(&folder.path("writer"), "127.0.0.1:0", &[]);
    let server = gateway(&folder.data(), &["--writer", &writer.url()], &folder.path("log"));
    let (mut of_writer, mut of_gateway) = (tap(writer.admin, "?sink=local"), tap(server.admin, "?at=stored"));
    assert_eq!(server.post("/ingest/event", "{\"n\":1}").0, 200);
    for tap in [&mut of_writer, &mut of_gateway] {
        let line = tap.next_with("n");
        assert_eq!((&line["at"], &line["sink"], &line["payload"]["n"]), (&"stored".into(), &"local".into(), &1.into()));
    }
    let (status, _, detail) = refused(writer.admin, "?at=accepted");
    assert!(status == 400 && detail.contains("use at=stored"), "{detail}");
}
