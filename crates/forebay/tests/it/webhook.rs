//! Webhooks of the real program: from one Forebay to another, with both killed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::{Folder, Server, exchange, forebay, payloads, wait_until};
use crate::webhook_receiver::{self, ACCEPTED};

/// The secret of the standard's own examples.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn start(folder: &Folder, url: &str) -> Server {
    let configuration = format!(
        "[gateway]\nack_timeout = \"1s\"\n[types.\"*\"]\nroutes = [\"hook\"]\n[sinks.hook]\nkind = \"webhook\"\nurl = \"{url}\"\nsecrets = [\"{SECRET}\"]\n"
    );
    let configuration = folder.write("forebay.toml", configuration);
    Server::start_configured(&folder.data(), Path::new(&configuration), &folder.path("log"))
}

/// Posts an event whose key is its number.
fn post(server: &Server, number: usize) -> u16 {
    server.post_with_key(&format!("k{number}"), &format!("{{\"number\":\n{number}}}"))
}

#[test]
fn receiving_forebay_stores_once_through_kills() {
    let (folder, other) = (Folder::new(), Folder::new());
    let mut receiver = Server::start_to_come_back(&other.data());
    let address = receiver.intake.to_string();
    let url = format!("http://{address}/ingest/event/{{type}}");
    let mut server = start(&folder, &url);
    let mut number = 0;
    for round in 0..3 {
        for _ in 0..100 {
            assert_eq!(post(&server, number), 200);
            number += 1;
        }
        // Events in flight now are stored or not: their outcome is unknown.
        drop(receiver);
        if round == 1 {
            drop(server);
            server = start(&folder, &url);
        }
        assert_eq!(post(&server, number), 200, "events are accepted while the receiver is down");
        number += 1;
        receiver = Server::start_on(&other.data(), &address);
        for again in (0..number).step_by(7) {
            assert_eq!(post(&server, again), 200);
        }
    }
    server.wait_delivered();
    receiver.wait_delivered();
    assert_eq!(server.metric("forebay_events_dead_total{"), 0);
    drop(receiver);
    let stored = payloads(&other.data());
    let expected: BTreeSet<String> = (0..number).map(|number| format!("{{\"number\":\n{number}}}")).collect();
    assert_eq!(stored.len(), number, "none is there twice");
    assert!(stored.into_iter().collect::<BTreeSet<_>>() == expected, "byte for byte");
    let log = std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(!log.contains("panicked") && !log.contains(SECRET), "{log}");
}

#[test]
fn rejected_event_becomes_dead_letter_with_receivers_message() {
    let (folder, other) = (Folder::new(), Folder::new());
    other.write("schema.json", r#"{"properties": {"number": {"type": "integer"}}}"#);
    let configuration =
        "[types.access]\nschema = \"schema.json\"\nroutes = [\"local\"]\n[sinks.local]\nkind = \"sqlite\"\n";
    let configuration = other.write("forebay.toml", configuration);
    let receiver = Server::start_configured(&other.data(), Path::new(&configuration), &other.path("log"));
    let server = start(&folder, &format!("http://{}/ingest/event/{{type}}", receiver.intake));
    for body in ["{\"number\": 1}", "{\"number\": \"one\"}", "{\"number\": 2}"] {
        assert_eq!(server.post("/ingest/event/access", body).0, 200);
    }
    server.wait_delivered();
    assert_eq!(server.metric("forebay_events_dead_total{"), 1);
    let mut list = forebay();
    let list = list.args(["dead", "list", "--admin", &server.admin.to_string(), "--data"]).arg(folder.data());
    let listed = String::from_utf8(list.output().unwrap().stdout).unwrap();
    assert!(listed.contains("422") && listed.contains("schema"), "{listed}");
    receiver.wait_delivered();
    assert_eq!(receiver.metric("forebay_events_stored_total{"), 2);
}

/// A receiver that answers 500 to one message until it is repaired.
#[derive(Default)]
pub(crate) struct Picky {
    is_repaired: AtomicBool,
    /// How often each message was received, by its identifier.
    taken: Mutex<BTreeMap<String, u32>>,
    refused: u64,
}

impl Picky {
    pub(crate) fn start(refused: u64) -> (Arc<Self>, SocketAddr) {
        let picky = Arc::new(Self { refused, ..Self::default() });
        let answering = picky.clone();
        (picky, webhook_receiver::start(move |identifier, body| answering.answer(identifier, body)))
    }

    fn answer(&self, identifier: String, body: &[u8]) -> &'static str {
        let event: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        if event["number"] == self.refused && !self.is_repaired.load(Ordering::SeqCst) {
            return "500 Not Now";
        }
        *self.taken.lock().unwrap().entry(identifier).or_default() += 1;
        ACCEPTED
    }

    /// Messages that it has accepted, with repeats.
    pub(crate) fn taken(&self) -> usize {
        self.taken.lock().unwrap().len()
    }

    pub(crate) fn has_any_twice(&self) -> bool {
        self.taken.lock().unwrap().values().any(|count| *count > 1)
    }
}

fn routes(server: &Server, folder: &Folder) -> String {
    let mut list = forebay();
    list.args(["route", "list", "--admin", &server.admin.to_string(), "--data"]).arg(folder.data());
    String::from_utf8(list.output().unwrap().stdout).unwrap()
}

/// Posts an event under its key, and returns the answer when it is stored, or isn't after a second.
fn post_and_wait(server: &Server, number: usize) -> u16 {
    let body = format!("{{\"number\":\n{number}}}");
    let length = body.len();
    let request = format!(
        "POST /ingest/event/access HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nIdempotency-Key: k{number}\r\n\
         Forebay-Ack: stored\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    exchange(server.intake, &request).0
}

#[test]
fn failing_message_is_deferred_and_blocks_no_other() {
    let (folder, (picky, address)) = (Folder::new(), Picky::start(5_000));
    let server = start(&folder, &format!("http://{address}/"));
    let lines: String = (0..10_000).map(|number| format!("{{\"number\": {number}}}\n")).collect();
    assert_eq!(server.post("/ingest/batch/access", &lines).0, 200);
    server.wait("forebay_events_stored_total{", |stored| stored == 9_999);
    server.wait("forebay_events_deferred{", |count| count == 1);
    let listed = routes(&server, &folder);
    assert!(listed.contains("1 deferred") && listed.contains("500"), "{listed}");
    let log = || std::fs::read_to_string(folder.path("log")).unwrap();
    let is_logged = || log().lines().any(|line| line.contains("1 event deferred") && line.contains("type=access"));
    assert!(wait_until(is_logged), "{}", log());
    assert!(!picky.has_any_twice());
    // It is there after a kill, and after a reload. What was stored right before the kill may be sent again, under the same identifier.
    drop(server);
    let server = start(&folder, &format!("http://{address}/"));
    server.wait("forebay_events_deferred{", |count| count == 1);
    server.signal("-HUP");
    server.wait("forebay_reloads_total{", |count| count > 0);
    server.wait("forebay_events_deferred{", |count| count == 1);
    server.wait("forebay_events_pending{", |count| count == 1);
    assert_eq!(post_and_wait(&server, 20_000), 200, "others are stored");
    picky.is_repaired.store(true, Ordering::SeqCst);
    server.wait_delivered();
    assert_eq!(server.metric("forebay_events_stored_total{"), 10_001);
    assert_eq!(picky.taken(), 10_001);
}

#[test]
fn dropping_the_route_ends_deferred_events() {
    let (folder, (picky, address)) = (Folder::new(), Picky::start(3));
    let server = start(&folder, &format!("http://{address}/"));
    for number in 0..8 {
        assert_eq!(post(&server, number), 200);
    }
    server.wait("forebay_events_stored_total{", |stored| stored == 7);
    server.wait("forebay_events_deferred{", |count| count == 1);
    assert_eq!(
        (post_and_wait(&server, 3), post_and_wait(&server, 4)),
        (202, 200),
        "it is pending, and a neighbour stored"
    );
    let story = format!(
        "GET /api/events/by-key/story?key=k3&type=access HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        server.admin
    );
    let (_, story) = exchange(server.admin, &story);
    let reason = serde_json::from_str::<serde_json::Value>(&story).unwrap()["sinks"][0]["reason"].take();
    assert!(reason.as_str().is_some_and(|reason| reason.contains("500")), "{story}");
    folder.write("forebay.toml", "[types.\"*\"]\nroutes = [\"void\"]\n[sinks.void]\nkind = \"null\"\n");
    server.signal("-HUP");
    server.wait("forebay_route_removed{", |count| count == 1);
    let mut drop = forebay();
    drop.args(["route", "drop", "hook", "--admin", &server.admin.to_string(), "--data"]).arg(folder.data());
    let output = String::from_utf8(drop.output().unwrap().stdout).unwrap();
    assert!(output.contains("1 event discarded"), "{output}");
    server.wait("forebay_events_deferred{", |count| count == 0);
    assert_eq!((server.metric("forebay_events_pending{"), picky.taken(), picky.has_any_twice()), (0, 7, false));
}
