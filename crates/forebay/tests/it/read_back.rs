//! Events that are read back over HTTP.

mod concurrent;
mod huge;
mod pages;
mod pending;
mod refusals;
mod retention;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::support::{Folder, Server, exchange};

/// An event as an answer shows it.
#[derive(Debug, Deserialize)]
struct Event {
    id: String,
    r#type: String,
    source: String,
    received_at: String,
    /// `null` if it is omitted.
    #[serde(default)]
    payload: Box<RawValue>,
}

/// A page of them.
#[derive(Debug, Deserialize)]
struct Page {
    events: Vec<Event>,
    next: Option<String>,
}

impl Page {
    fn payloads(&self) -> Vec<&str> {
        self.events.iter().map(|event| event.payload.get()).collect()
    }
}

/// The value of a member in a JSON answer, as text.
fn field(body: &str, name: &str) -> String {
    let document: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error} in {body}"));
    document.get(name).unwrap_or_else(|| panic!("no {name} in {body}")).get().trim_matches('"').to_owned()
}

fn ask(server: &Server, method: &str, target: &str, headers: &str) -> (u16, String) {
    let text = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{headers}Connection: close\r\n\r\n");
    exchange(server.intake, &text)
}

fn get(server: &Server, target: &str) -> (u16, String) {
    ask(server, "GET", target, "")
}

fn page(server: &Server, query: &str) -> Page {
    let (status, body) = get(server, &format!("/events{query}"));
    assert_eq!(status, 200, "{query}: {body}");
    serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error} in {body}"))
}

/// Posts with headers, and returns the answer's body.
pub(crate) fn post(server: &Server, path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    let text = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n{headers}Connection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    let (status, answer) = exchange(server.intake, &text);
    assert_eq!(status, 200, "{answer}");
    answer
}

#[test]
fn events_are_read_back_byte_for_byte() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let large = format!("[{}1]", "1,\n".repeat(100_000));
    let deep = "[".repeat(128) + &"]".repeat(128);
    let kinds = [
        "null",
        "true",
        "\"\"",
        "\"naïve \\u00e9 \\ud83d\\ude00 😀 \\/ \\u0000\"",
        "-0.0E+7",
        "123456789012345678901234567890.000",
        "{}",
        "{ \"b\" :\t1,\r\n\"a\": 2, \"b\": 3 }",
        "[ 1 , [ ] ]",
        &deep,
        &large,
    ];
    let ids: Vec<_> = kinds.iter().map(|payload| field(&post(&server, "/ingest/event", "", payload), "id")).collect();
    let lines = "{\"n\" : 1}\n\n[2 ]\n";
    post(&server, "/ingest/batch/lines", "", lines);
    server.wait_delivered();
    for (id, payload) in ids.iter().zip(kinds) {
        let (status, body) = get(&server, &format!("/events/{id}"));
        let event: Event = serde_json::from_str(&body).unwrap();
        assert_eq!((status, event.payload.get(), &event.id, &*event.r#type), (200, payload, id, "event"));
    }
    let all = page(&server, "");
    assert_eq!((&all.payloads()[..kinds.len()], &all.next), (&kinds[..], &None));
    assert_eq!(page(&server, "?type=lines").payloads(), ["{\"n\" : 1}", "[2 ]"]);
    assert!(all.events.iter().all(|event| event.received_at.ends_with('Z') && event.source.is_empty()));
}

#[test]
fn real_records_are_read_back() {
    let Some(file) = testkit::records::records("access.ndjson") else { return };
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<_> = text.lines().take(5_000).collect();
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    post(&server, "/ingest/batch/access", "Content-Type: application/x-ndjson\r\n", &lines.join("\n"));
    server.wait_delivered();
    let (mut read, mut query) = (Vec::new(), "?type=access&limit=1000".to_owned());
    loop {
        let page = page(&server, &query);
        read.extend(page.events.into_iter().map(|event| event.payload.get().to_owned()));
        let Some(next) = page.next else { break };
        query = format!("?type=access&limit=999&cursor={next}");
    }
    assert!(read == lines, "{} of {}", read.len(), lines.len());
}

#[test]
fn events_are_chosen_by_type_time_and_key() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    for n in 0..6 {
        post(&server, if n % 2 == 0 { "/ingest/event/even" } else { "/ingest/event/odd" }, "", &n.to_string());
        // One after the other: that gives their order in the store.
        server.wait_delivered();
    }
    let key = |key: &str| format!("Idempotency-Key: {key}\r\n");
    post(&server, "/ingest/event", &key("a b+c"), "\"single\"");
    let batch: Vec<_> = (1..=1_500).map(|number| number.to_string()).collect();
    post(&server, "/ingest/batch/even", &key("batch"), &batch.join("\n"));
    server.wait_delivered();

    assert_eq!(page(&server, "?type=odd").payloads(), ["1", "3", "5"]);
    assert_eq!(page(&server, "?limit=3").payloads(), ["0", "1", "2"]);
    let times: Vec<_> = page(&server, "?limit=6").events.into_iter().map(|event| event.received_at).collect();
    let between = format!("?since={}&until={}", times[2], times[4].replace('Z', "%2B00:00"));
    assert_eq!(page(&server, &between).payloads(), ["2", "3"]);
    assert_eq!(page(&server, &format!("{between}&type=even")).payloads(), ["2"]);
    assert_eq!(page(&server, "?until=1970-01-02T00:00:00Z").payloads(), [""; 0]);

    assert_eq!(page(&server, "?key=a%20b+c").payloads(), ["\"single\""]);
    assert_eq!(page(&server, "?key=a%20b+c&type=odd").payloads(), [""; 0]);
    let first = page(&server, "?key=batch&type=even&limit=1000");
    let rest = page(&server, &format!("?key=batch&type=even&cursor={}", first.next.as_ref().unwrap()));
    assert_eq!(rest.events.len(), 100, "by default there are a hundred");
    let last = page(&server, &format!("?key=batch&type=even&limit=1000&cursor={}", rest.next.as_ref().unwrap()));
    assert_eq!([first.payloads(), rest.payloads(), last.payloads()].concat(), batch);
    assert_eq!(last.next, None);

    let (status, body) = ask(&server, "HEAD", "/events?type=odd", "");
    assert_eq!((status, &*body), (200, ""));
    assert_eq!(server.metric("forebay_http_requests_total{route=\"events\",code=\"5xx\""), 0);
}

#[test]
fn id_within_the_payload_is_a_key() {
    let folder = Folder::new();
    let config = "[types.order]\nid = \"/nr\"\nroutes = [\"x\"]\n[sinks.x]\nkind = \"sqlite\"\n";
    folder.write("forebay.toml", config);
    let server = Server::start_configured(&folder.data(), &folder.path("forebay.toml"), &folder.path("log"));
    post(&server, "/ingest/event/order", "", "{\"nr\":4711}");
    post(&server, "/ingest/batch/order", "", "{\"nr\":\"a\"}\n{\"nr\":\"b\"}");
    server.wait_delivered();
    assert_eq!(page(&server, "?type=order&key=4711").payloads(), ["{\"nr\":4711}"]);
    assert_eq!(page(&server, "?type=order&key=b").payloads(), ["{\"nr\":\"b\"}"]);
}
