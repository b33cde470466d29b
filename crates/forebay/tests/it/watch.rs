//! The overview of a process and its streams, over the admin port.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use crate::fixture::Fixture;
use crate::support::{Folder, HANGS, Server, exchange, wait_until};
use crate::two_services::{BackEnd, gateway};

/// An open stream of lines.
pub(crate) struct Stream {
    answer: BufReader<TcpStream>,
    pub(crate) status: u16,
}

impl Stream {
    pub(crate) fn open(admin: SocketAddr, path: &str) -> Self {
        Self::open_with(admin, path, "")
    }

    /// Opens it with more headers.
    pub(crate) fn open_with(admin: SocketAddr, path: &str, headers: &str) -> Self {
        let mut stream = TcpStream::connect(admin).unwrap();
        stream.set_read_timeout(Some(HANGS)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").unwrap();
        let mut answer = BufReader::new(stream);
        let status = text_line(&mut answer).split(' ').nth(1).unwrap().parse().unwrap();
        while !text_line(&mut answer).is_empty() {}
        Self { answer, status }
    }

    /// The next line; `None` at the stream's proper end.
    pub(crate) fn next(&mut self) -> Option<Value> {
        let length = usize::from_str_radix(&text_line(&mut self.answer), 16).unwrap();
        let line = text_line(&mut self.answer);
        if length == 0 {
            return None;
        }
        assert_eq!(length, line.len() + 1, "a chunk has one line");
        assert_eq!(text_line(&mut self.answer), "");
        Some(serde_json::from_str(&line).unwrap())
    }

    /// The next line that has this member.
    pub(crate) fn next_with(&mut self, member: &str) -> Value {
        loop {
            let line = self.next().expect("the stream goes on");
            if !line[member].is_null() {
                return line;
            }
        }
    }
}

fn text_line(answer: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    answer.read_line(&mut line).unwrap();
    assert!(line.ends_with('\n'), "cut off: {line:?}");
    line.trim_end_matches(['\r', '\n']).to_owned()
}

fn get(admin: SocketAddr, path: &str) -> (u16, Value) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let (status, body) = exchange(admin, &request);
    (status, serde_json::from_str(&body).unwrap_or_default())
}

const CONFIG: &str = "[types.access]\nroutes = [\"local\"]\n[types.access.aggregate.hits]\nwindow = \"1m\"\nmeasures = { n = \"count\" }\n\
    routes = [\"local\"]\n[types.order]\nroutes = [\"local\"]\n[sinks.local]\nkind = \"sqlite\"\n";

#[test]
fn overview_has_rates_and_outcomes() {
    let fixture = Fixture::new(CONFIG);
    let server = fixture.server();
    let mut live = Stream::open(server.admin, "/api/live");
    assert_eq!(live.status, 200);
    for _ in 0..30 {
        assert_eq!(server.post("/ingest/event/access", "{}").0, 200);
    }
    assert_eq!(server.post("/ingest/event/access", "no JSON").0, 400);
    server.wait_delivered();
    let mut line = live.next_with("totals");
    while line["totals"]["accepted"] != 30 {
        line = live.next_with("totals");
    }
    let totals = &line["totals"];
    let at_least = |value: &Value, least: f64| assert!(value.as_f64().is_some_and(|value| value >= least), "{line}");
    at_least(&totals["accepted_per_s"], 2.0);
    at_least(&totals["refused_per_min"], 5.0);
    at_least(&totals["bytes_per_s"], 5.0);
    at_least(&totals["post_p99_ms"], 0.01);
    at_least(&totals["fsync_p99_ms"], 0.001);
    at_least(&totals["events_a_commit"], 1.0);
    assert_eq!((&line["types"][0]["type"], &line["types"][0]["aggregate_of"]), (&"access".into(), &Value::Null));
    at_least(&line["types"][0]["accepted_per_s"], 2.0);
    let hits = line["types"].as_array().unwrap().iter().find(|listed| listed["type"] == "access.hits").unwrap();
    assert_eq!((&hits["aggregate_of"], &line["types_more"]), (&"access".into(), &0.into()));
    let sink = &line["sinks"][0];
    assert_eq!((&sink["sink"], &sink["kind"], &sink["state"]), (&"local".into(), &"sqlite".into(), &"active".into()));
    at_least(&sink["stored_per_s"], 2.0);
    at_least(&sink["batch_p99_ms"], 0.01);
    assert_eq!((&line["edges"][0]["type"], &line["edges"][0]["sink"]), (&"access".into(), &"local".into()));
    let row = &line["ledger"].as_array().unwrap().iter().find(|row| row["type"] == "access").unwrap();
    assert_eq!((&row["stored"], &row["adds_up"]), (&30.into(), &true.into()));
    at_least(&line["host"]["rss_bytes"], 1e6);
    at_least(&line["host"]["cpu"], 0.0);
    at_least(&line["host"]["disk_free_bytes"], 1.0);
    assert_eq!((&line["role"], &line["ready"]), (&"serve".into(), &true.into()));
    let (status, once) = get(server.admin, "/api/overview");
    assert_eq!((status, &once["totals"]["accepted"]), (200, &30.into()));
    assert!(once["n"].as_u64() > line["n"].as_u64());
    assert!(live.next_with("beat")["beat"].is_string());
}

#[test]
fn streams_leave_room_for_scrapers_and_end_with_the_process() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    // None of them reads.
    let mut streams: Vec<Stream> = (0..32).map(|_| Stream::open(server.admin, "/api/live")).collect();
    assert!(streams.iter().all(|stream| stream.status == 200));
    let (status, problem) = get(server.admin, "/api/live");
    assert_eq!((status, &problem["code"]), (503, &"busy".into()));
    assert!(server.metrics().contains("process_resident_memory_bytes"), "scrapers have connections");
    let head = exchange(server.admin, "HEAD /api/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert_eq!(head, (200, String::new()));
    streams.truncate(2);
    assert!(wait_until(|| Stream::open(server.admin, "/api/live").status == 200), "places of clients that left return");
    server.signal("-TERM");
    for stream in &mut streams {
        while stream.next().is_some() {}
    }
    assert_eq!(server.wait_end(), Some(0));
}

#[test]
fn writer_shows_rates_of_its_stores() {
    let folder = Folder::new();
    let writer = BackEnd::start_on(&folder.path("writer"), "127.0.0.1:0", &[]);
    let server = gateway(&folder.data(), &["--writer", &writer.url()], &folder.path("log"));
    let mut live = Stream::open(writer.admin, "/api/live");
    assert_eq!(server.post("/ingest/batch", "{\"n\":1}\n{\"n\":2}\n").0, 200);
    server.wait_delivered();
    let mut line = live.next_with("totals");
    while line["totals"]["accepted"] != 2 {
        line = live.next_with("totals");
    }
    let sink = &line["sinks"][0];
    assert_eq!((&line["role"], &sink["state"], &sink["kind"]), (&"writer".into(), &"active".into(), &"sqlite".into()));
    assert!(sink["stored_per_s"].as_f64() > Some(0.1) && sink["batch_p99_ms"].is_f64(), "{line}");
    assert_eq!((&sink["pending"], &line["types"]), (&Value::Null, &Value::Array(Vec::new())));
    let (_, of_gateway) = get(server.admin, "/api/overview");
    assert_eq!(of_gateway["role"], "gateway");
    assert!(of_gateway["sinks"][0]["server"].as_str().is_some_and(|url| url.starts_with("http://")), "{of_gateway}");
    writer.stop();
    while live.next().is_some() {}
}
