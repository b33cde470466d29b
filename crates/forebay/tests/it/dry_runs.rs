//! `POST /api/try`: a dry run over the admin API gives the answer that the sender of the payload would get, and the bytes to be stored.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::support::{Folder, HANGS, Server, exchange, forebay, payloads, wait_until};

const CONFIG: &str = r#"
[types.access]
id = "/id"
schema = "access.json"
transform = [
  { drop = "/referrer", when = "referrer == null" },
  { set = "/slow", to = "bytes > 1000000" },
  { enrich = "/from", from = "header", header = "X-From" },
  { filter = "path != '/health'" },
]
routes = ["local", "other"]

[types.order]
id = "/id"
transform = [{ explode = "/items" }, { set = "/kind", value = "item" }]
routes = ["local"]

[types.once]
transform = [{ dedupe = "/n", window = "1h" }]
routes = ["local"]

[types.large]
transform = [{ explode = "/items" }]
routes = ["other"]

[types.counted]
routes = ["local"]

[types.counted.aggregate.hits]
window = "1m"
measures = { n = "count" }
routes = ["local"]

[sinks.local]
kind = "sqlite"

[sinks.other]
kind = "null"
"#;

struct Fixture {
    /// Killed before its directory is removed.
    server: Server,
    folder: Folder,
}

impl Fixture {
    fn start() -> Self {
        let folder = Folder::new();
        folder.write("forebay.toml", CONFIG);
        let schema = r#"{"required": ["path"], "properties": {"path": {"type": "string"}, "bytes": {"minimum": 0}}}"#;
        folder.write("access.json", schema);
        let server = Server::start_configured(&folder.data(), &folder.path("forebay.toml"), &folder.path("log"));
        Self { server, folder }
    }

    fn attempt(&self, path: &str, body: &str) -> (u16, String) {
        attempt(self.server.admin, path, "", body)
    }

    /// The answer for a payload that could be tried.
    fn report(&self, path: &str, body: &str) -> Value {
        let (status, report) = self.attempt(path, body);
        assert_eq!(status, 200, "{report}");
        serde_json::from_str(&report).unwrap()
    }
}

fn attempt(admin: SocketAddr, path: &str, headers: &str, body: &str) -> (u16, String) {
    let length = body.len();
    let request = format!(
        "POST /api/try{path} HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\nX-From: here\r\n{headers}Content-Length: \
         {length}\r\n\r\n{body}"
    );
    exchange(admin, &request)
}

#[derive(Deserialize)]
struct Report<'t> {
    #[serde(borrow)]
    stored: Vec<Stored<'t>>,
    #[serde(borrow)]
    refused: Option<&'t RawValue>,
}

#[derive(Deserialize)]
struct Stored<'t> {
    id: Option<String>,
    #[serde(borrow)]
    payload: &'t RawValue,
}

/// The payloads that would be stored, byte for byte.
pub(crate) fn payloads_of(report: &str) -> Vec<String> {
    let report: Report<'_> = serde_json::from_str(report).unwrap();
    report.stored.iter().map(|stored| stored.payload.get().to_owned()).collect()
}

#[test]
fn each_stage_is_shown_with_its_duration() {
    let fixture = Fixture::start();
    let event = r#"{ "id": 7, "path": "/a", "bytes": 2e6, "referrer": null }"#;
    let report = fixture.report("/access", event);
    let steps = report["steps"].as_array().unwrap().iter().map(|step| {
        assert!(step["microseconds"].as_f64().is_some(), "{step}");
        format!("{} {} {} {}", step["step"], step["operation"], step["did"], step["payload"])
    });
    let steps: Vec<_> = steps.collect();
    let whole = r#"{"bytes":2e6,"from":"here","id":7,"path":"/a","slow":true}"#.replace("2e6", "2000000.0");
    assert_eq!(steps.len(), 4);
    assert!(steps[0].starts_with("1 \"drop\" \"done\" {\"bytes\""), "{steps:?}");
    assert_eq!(steps[3], format!("4 \"filter\" \"done\" {whole}"));
    for stage in ["json_microseconds", "schema_microseconds", "ids_microseconds"] {
        assert!(report[stage].as_f64().is_some(), "{stage}: {report}");
    }
    let stored = &report["stored"][0];
    assert_eq!(stored["routes"], serde_json::json!(["local", "other"]));
    assert!(stored["id"].as_str().unwrap().parse::<event::EventId>().is_ok(), "{stored}");
    // Without a client's id, the id is created at the real intake.
    assert_eq!(fixture.report("/once", "{}")["stored"][0]["id"], Value::Null);
    assert_eq!(fixture.report("/order", r#"{"items":[1,2]}"#)["stored"][1]["payload"]["items"], 2);
    let filtered = fixture.report("/access", r#"{"path":"/health","bytes":1}"#);
    assert_eq!(filtered["filtered"], serde_json::json!([{"step": 4, "operation": "filter"}]));
    assert_eq!(filtered["stored"], serde_json::json!([]));
}

#[test]
fn context_of_the_event_is_used() {
    let fixture = Fixture::start();
    let config = CONFIG.replace(
        "{ dedupe = \"/n\", window = \"1h\" }",
        "{ enrich = \"/at\", from = \"received_time\" }, \
         { enrich = \"/client\", from = \"client\" }, { enrich = \"/source\", from = \"source\" }",
    );
    fixture.folder.write("forebay.toml", config);
    let admin = fixture.server.admin;
    let reload = format!("POST /api/reload HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
    assert_eq!(exchange(admin, &reload).0, 200);
    let query = "?received=2026-11-22T10:00:00Z&client=192.0.2.7&source=the%20shop&key=k1";
    let (_, report) = fixture.attempt(&format!("/once{query}"), "{}");
    let wanted = r#"{"at":"2026-11-22T10:00:00.000000Z","client":"192.0.2.7","source":"the shop"}"#;
    assert_eq!(payloads_of(&report), [wanted]);
    let id = |report: &str| serde_json::from_str::<Report<'_>>(report).unwrap().stored[0].id.clone();
    let (_, again) = fixture.attempt(&format!("/once{query}"), "{}");
    assert!(id(&report).is_some() && id(&report) == id(&again), "{report}");
    for (query, wanted) in
        [("client=x", "must be an IP address"), ("received=now", "received=now"), ("form=1", "unknown parameter form")]
    {
        let (status, report) = fixture.attempt(&format!("/once?{query}"), "{}");
        assert!(status == 400 && report.contains(wanted), "{status} {report}");
    }
}

/// Payloads of many kinds: valid, rejected at each stage, filtered, and exploded.
fn events(seed: u64) -> Vec<(&'static str, String)> {
    let mut state = seed;
    let mut next = |most: usize| {
        // Any numbers will do (Knuth's MMIX).
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % most
    };
    let values = [
        "\"/a\"",
        "\"/health\"",
        "7",
        "1e400",
        "-0.0",
        "2000000.50",
        "null",
        "[ 1, {} ]",
        "\"\\u00e9 \\\" \\/\"",
        "{\"b\" : 1}",
        "\"\\ud800\"",
        "tru",
        "\"é\"",
        "[]",
        "[{\"id\":\"x\"},{\"id\":\"y\"}]",
        "\"\"",
        "true",
    ];
    let names = ["path", "bytes", "referrer", "items", "x", "id"];
    // No id of another event: those that can't be one, or are none.
    let ids = ["[]", "\"\"", "true", "null"];
    let mut event = |number: usize| {
        let (type_name, first) = match next(8) {
            0..5 => ("access", "\"path\":\"/p\", \"bytes\": 12"),
            5..7 => ("order", "\"items\" : [1, 2.50]"),
            _ => ("once", ""),
        };
        // Unique ids: nothing is a duplicate.
        let own = format!("\"id\": \"{seed}-{number}\"");
        let mut members = vec![own, first.to_owned()];
        for _ in 0..next(3) {
            let name = names[next(names.len())];
            let value = if name == "id" { ids[next(ids.len())] } else { values[next(values.len())] };
            members.push(format!("{}\"{name}\"{}:{value}", [" ", "", "\t"][next(3)], ["", "  "][next(2)]));
        }
        members.retain(|member| !member.is_empty());
        let broken = ["", "", "", "", "", "", "", "}", ","][next(9)];
        (type_name, format!("{}{{{}}}{broken}{}", ["", " "][next(2)], members.join(","), ["", "\n"][next(2)]))
    };
    (0..150).map(&mut event).collect()
}

#[test]
fn dry_run_and_post_give_the_same_result() {
    let fixture = Fixture::start();
    let (mut expected, mut rejected, mut with_id) = (Vec::new(), 0, 0);
    for (type_name, event) in [1, 2].into_iter().flat_map(events) {
        let (status, report) = fixture.attempt(&format!("/{type_name}"), &event);
        assert_eq!(status, 200, "{report}");
        let report: Report<'_> = serde_json::from_str(&report).unwrap();
        let length = event.len();
        let post = format!(
            "POST /ingest/event/{type_name} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-From: here\r\nAccept: application/json\r\n\
             Content-Length: {length}\r\n\r\n{event}"
        );
        let (status, answer) = exchange(fixture.server.intake, &post);
        match report.refused {
            Some(rejection) => {
                rejected += 1;
                assert_eq!(rejection.get(), answer.trim_end(), "{event}");
            }
            None => assert_eq!(status, 200, "{event}: {answer}"),
        }
        if let Some(Some(id)) = report.stored.first().map(|stored| &stored.id) {
            with_id += 1;
            assert!(answer.contains(id), "{event}: {answer}, and not {id}");
        }
        expected.extend(report.stored.iter().map(|stored| stored.payload.get().to_owned()));
    }
    assert!(rejected > 50 && with_id > 100, "{rejected} rejected, {with_id} with ids");
    expected.sort();
    fixture.server.wait_delivered();
    assert_eq!(payloads(&fixture.folder.data()), expected);
}

#[test]
fn nothing_is_counted_remembered_or_kept() {
    let fixture = Fixture::start();
    let figures = |metrics: &str| -> Vec<String> {
        let counts = ["forebay_events_", "forebay_refusals_", "forebay_http_requests", "forebay_journal_records"];
        let is_count = |line: &&str| counts.iter().any(|name| line.starts_with(name));
        metrics.lines().filter(is_count).map(str::to_owned).collect()
    };
    let before = figures(&fixture.server.metrics());
    assert!(before.len() > 10, "{before:?}");
    for _ in 0..2 {
        assert_eq!(fixture.report("/once", "{\"n\":1}")["stored"].as_array().unwrap().len(), 1, "it is no duplicate");
        assert_eq!(fixture.report("/access", "{}")["refused"]["code"], "schema");
        assert_eq!(
            fixture.report("/access", r#"{"path":"/health","bytes":1}"#)["filtered"].as_array().unwrap().len(),
            1
        );
    }
    assert_eq!(figures(&fixture.server.metrics()), before);
    assert_eq!(fixture.server.post("/ingest/event/once", "{\"n\":1}").0, 200);
    fixture.server.wait_delivered();
    assert_eq!(payloads(&fixture.folder.data()), ["{\"n\":1}"], "a dry run stores nothing");
}

#[test]
fn invalid_requests_are_explained() {
    let fixture = Fixture::start();
    let admin = fixture.server.admin;
    for (path, status, wanted) in [
        ("/unknown", 404, "the configuration has neither [types.unknown]"),
        ("/counted.hits", 404, "results of an aggregate"),
        ("/A%20b", 404, "unknown_type"),
        // An event without a type is of type `event`, which doesn't exist here.
        ("", 200, "\"code\":\"unknown_type\""),
        ("/", 200, "\"code\":\"unknown_type\""),
        ("ing/access", 404, "no such path"),
    ] {
        let (found, report) = fixture.attempt(path, "{}");
        assert!(found == status && report.contains(wanted), "{path}: {found} {report}");
    }
    let (status, report) =
        exchange(admin, &format!("GET /api/try/access HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n"));
    assert!(status == 405 && report.contains("only POST"), "{status} {report}");
    let (status, report) = attempt(admin, "/access", "Content-Encoding: gzip\r\n", "x");
    assert!(status == 415 && report.contains("content_encoding"), "{status} {report}");
    let (status, _) = attempt(admin, "/access", "Origin: http://evil.example\r\n", "{}");
    assert_eq!(status, 403, "pages of others");
    let report = fixture.report("/access", "not JSON");
    assert_eq!((report["refused"]["code"].as_str(), report["refused"]["status"].as_u64()), (Some("json"), Some(400)));
}

#[test]
fn dry_run_accepts_the_largest_event() {
    let fixture = Fixture::start();
    let most = limits::EVENT_BYTES_MAX;
    let of = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    let (status, report) = fixture.attempt("/once", &of(most));
    assert_eq!((status, payloads_of(&report)), (200, vec![of(most)]));
    for bytes in [most + 1, 3 * most] {
        let (status, report) = fixture.attempt("/once", &of(bytes));
        assert!(status == 413 && report.contains("too_large"), "{status} {report}");
    }
    // With chunks, the length isn't known before the end.
    let mut stream = TcpStream::connect(fixture.server.admin).unwrap();
    stream.set_read_timeout(Some(HANGS)).unwrap();
    let head = format!(
        "POST /api/try/once HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n",
        fixture.server.admin
    );
    stream.write_all(head.as_bytes()).unwrap();
    for _ in 0..20 {
        let chunk = format!("10000\r\n{}\r\n", "1".repeat(0x10000));
        stream.write_all(chunk.as_bytes()).unwrap();
    }
    stream.write_all(b"0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[test]
fn long_explosion_is_shortened() {
    let fixture = Fixture::start();
    let items: Vec<String> = (0..5_000).map(|n| n.to_string()).collect();
    let (status, report) = fixture.attempt("/order", &format!("{{\"items\":[{}]}}", items.join(",")));
    assert_eq!((status, payloads_of(&report).len()), (200, 5_000));
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((report["steps"].as_array().unwrap().len(), report["more_steps"].as_u64()), (1_000, Some(4_001)));
}

#[test]
fn dry_run_needs_an_existing_token() {
    let folder = Folder::new();
    let data = folder.text("data");
    let token = |scope: &str| {
        let output = forebay().args(["token", "new", scope, "--scope", scope, "--data", &data]).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap().lines().find(|line| line.contains("fb_")).unwrap().trim().to_owned()
    };
    let (reader, admin) = (token("read"), token("admin"));
    let server = Server::start(&folder.data());
    let with = |token: &str| attempt(server.admin, "/event", &format!("Authorization: Bearer {token}\r\n"), "{}").0;
    assert_eq!(attempt(server.admin, "/event", "", "{}").0, 401);
    assert_eq!((with(&reader), with(&admin), with("fb_unknown")), (200, 200, 401));
}

#[test]
fn others_are_answered_while_a_payload_is_awaited() {
    let fixture = Fixture::start();
    let admin = fixture.server.admin;
    let head = format!("POST /api/try/once HTTP/1.1\r\nHost: {admin}\r\nContent-Length: 10\r\n\r\n");
    let waiting: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = TcpStream::connect(admin).unwrap();
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    assert!(fixture.server.metrics().contains("forebay_"), "no payload is there yet");
    for mut stream in waiting {
        stream.set_read_timeout(Some(HANGS)).unwrap();
        stream.write_all(b"{\"n\": 1   ").unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
    }
}

#[test]
fn unread_answers_are_counted() {
    let fixture = Fixture::start();
    let admin = fixture.server.admin;
    // Each answer has more than 8 MB, and there are 32 MiB for all.
    let body = format!("{{\"pad\": \"{}\", \"items\": [1, 2, 3, 4, 5, 6, 7, 8]}}", "x".repeat(1_000_000));
    let unread = || {
        let mut stream = TcpStream::connect(admin).unwrap();
        stream.set_read_timeout(Some(HANGS)).unwrap();
        let head = format!("POST /api/try/large HTTP/1.1\r\nHost: {admin}\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all((head + &body).as_bytes()).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        (stream, String::from_utf8(status.into()).unwrap())
    };
    let answers: Vec<_> = (0..5).map(|_| unread()).collect();
    let statuses: Vec<&str> = answers.iter().map(|(_, status)| &status[9..]).collect();
    assert_eq!((statuses[0], statuses[4]), ("200", "503"), "{statuses:?}");
    drop(answers);
    assert!(wait_until(|| unread().1.ends_with("200")), "the memory is free when its client is gone");
}
