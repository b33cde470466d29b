//! Stored events over the bus: `[bus.events]` of `serve` and of a writer, with a real NATS and a client that isn't ours.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use testkit::nats::{NatsClient, NatsMessage, NatsServer};
use testkit::proxy::Proxy;

use crate::read_back;
use crate::support::{Folder, Server, exchange, wait_until};
use crate::two_services::BackEnd;
use crate::upstreams::FrontEnd;

const SUBJECT: &str = "forebay.events.get";
const UNKNOWN: &str = "00000000-0000-0000-0000-000000000000";

fn bus(address: SocketAddr) -> String {
    format!("[bus]\nurl = \"nats://{address}\"\n[bus.events]\n")
}

fn start(folder: &Folder, nats: &NatsServer) -> Server {
    start_at(folder, nats, nats.address())
}

/// Starts a server that reaches NATS at this address.
fn start_at(folder: &Folder, nats: &NatsServer, address: SocketAddr) -> Server {
    let text = format!("{}[types.\"*\"]\nroutes = [\"local\"]\n[sinks.local]\nkind = \"sqlite\"\n", bus(address));
    let configuration = folder.write("forebay.toml", text);
    let server = Server::start_with(&folder.data(), &["--config", &configuration], &folder.path("log"));
    wait_answered(nats);
    server
}

/// Waits until a process answers. A writer's store exists from its first batch on.
fn wait_answered(nats: &NatsServer) {
    let mut client = nats.client();
    assert!(wait_until(|| code(&client.request(SUBJECT, UNKNOWN)).is_some()));
}

fn code(answer: &NatsMessage) -> Option<&str> {
    answer.header("Nats-Service-Error-Code")
}

/// Posts events, and returns their ids and payloads when they are stored.
fn post(server: &Server, count: usize) -> Vec<(String, String)> {
    let event = |number: usize| {
        let payload = format!("{{\"number\":  {number}}}");
        let answer = read_back::post(server, "/ingest/event/access", "", &payload);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        (answer["id"].as_str().unwrap().to_owned(), payload)
    };
    let events = (0..count).map(event).collect();
    server.wait_delivered();
    events
}

fn by_http(server: &Server, id: &str) -> String {
    let head = "HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let (status, body) = exchange(server.intake, &format!("GET /events/{id} {head}"));
    assert_eq!(status, 200, "{body}");
    body
}

/// Begins a request for each, and returns the answers by the subjects that they come on.
fn request_all(client: &mut NatsClient, ids: impl Iterator<Item = String>) -> Vec<String> {
    ids.map(|id| client.begin(SUBJECT, &id)).collect()
}

fn answers(client: &mut NatsClient, count: usize) -> BTreeMap<String, NatsMessage> {
    (0..count).map(|_| client.next_message()).map(|answer| (answer.subject.clone(), answer)).collect()
}

fn text(answer: &NatsMessage) -> &str {
    std::str::from_utf8(&answer.payload).unwrap()
}

fn stats(client: &mut NatsClient) -> Value {
    serde_json::from_str(&client.ask("$SRV.STATS.forebay-events", "")).unwrap()
}

#[test]
fn stored_events_are_answered_as_by_http() {
    let Some(nats) = NatsServer::start() else { return };
    let folder = Folder::new();
    let server = start(&folder, &nats);
    let mut client = nats.client();
    let events = post(&server, 3);
    for (id, _) in &events {
        let answer = client.request(SUBJECT, id);
        assert_eq!((text(&answer), answer.headers.as_str()), (by_http(&server, id).as_str(), ""));
    }
    let id = &events[0].0;
    for (body, expected) in [(UNKNOWN, "404"), ("", "400"), (&id[1..], "400"), (&format!("\"{id}\""), "400")] {
        let answer = client.request(SUBJECT, body);
        assert_eq!((code(&answer), answer.payload.len()), (Some(expected), 0), "{body}: {}", answer.headers);
        assert!(answer.header("Nats-Service-Error").is_some_and(|text| !text.is_empty()));
    }
    // A message without a reply subject is no request.
    let before = stats(&mut client)["endpoints"][0]["num_requests"].as_u64().unwrap();
    client.send(format!("PUB {SUBJECT} 36\r\n{id}\r\n").as_bytes());
    assert_eq!(stats(&mut client)["endpoints"][0]["num_requests"], before);
}

#[test]
fn concurrent_requests_get_their_own_events() {
    let Some(nats) = NatsServer::start() else { return };
    let folder = Folder::new();
    let server = start(&folder, &nats);
    let mut client = nats.client();
    let events = post(&server, 300);
    // Some twice, some that aren't stored.
    let unknown = |number: usize| format!("00000000-0000-0000-0000-{number:012}");
    let ids = (0..1000).map(|number| match number % 3 {
        0 => unknown(number),
        _ => events[number % events.len()].0.clone(),
    });
    let subjects = request_all(&mut client, ids);
    let answers = answers(&mut client, subjects.len());
    for (number, subject) in subjects.iter().enumerate() {
        let answer = &answers[subject];
        if number % 3 == 0 {
            assert_eq!(code(answer), Some("404"), "{}", answer.headers);
        } else {
            assert!(text(answer).contains(&events[number % events.len()].1), "{number}: {}", text(answer));
        }
    }
}

#[test]
fn each_request_of_a_burst_is_answered_and_counted() {
    const COUNT: usize = 20_000;
    let Some(nats) = NatsServer::start() else { return };
    let folder = Folder::new();
    let server = start(&folder, &nats);
    let (mut client, mut receiver) = (nats.client(), nats.client());
    let request = format!("PUB {SUBJECT} _INBOX.burst.1 36\r\n{UNKNOWN}\r\n");
    receiver.send(b"SUB _INBOX.burst.* 9\r\n");
    // NATS carries out commands in their order.
    let before = stats(&mut receiver)["endpoints"][0]["num_requests"].as_u64().unwrap();
    let sending = std::thread::spawn(move || {
        client.send(request.repeat(COUNT).as_bytes());
        client
    });
    let codes = (0..COUNT).map(|_| code(&receiver.next_message()).unwrap().to_owned());
    let (unknown, busy): (Vec<_>, Vec<_>) = codes.partition(|code| code == "404");
    assert!(!unknown.is_empty() && busy.iter().all(|code| code == "503"), "{busy:?}");
    let stats = stats(&mut sending.join().unwrap());
    assert_eq!(stats["endpoints"][0]["num_requests"].as_u64().unwrap() - before, COUNT as u64);
    let answers = |answer| server.metric(&format!("forebay_bus_event_requests_total{{answer=\"{answer}\"}}"));
    assert_eq!([answers("event"), answers("none")], [0, 0]);
}

#[test]
fn answer_goes_to_an_inbox_only() {
    let Some(nats) = NatsServer::start() else { return };
    let folder = Folder::new();
    let server = start(&folder, &nats);
    let id = post(&server, 1)[0].0.clone();
    let mut client = nats.client();
    client.send(format!("SUB shop.orders 9\r\nPUB {SUBJECT} shop.orders 36\r\n{id}\r\n").as_bytes());
    // Its answer would be received earlier than the next one.
    server.wait("forebay_bus_event_requests_total{answer=\"none\"}", |count| count == 1);
    let answer = client.request(SUBJECT, &id);
    assert!(answer.subject.starts_with("_INBOX.") && text(&answer).contains(&id), "{answer:?}");
    let stats = stats(&mut client);
    assert!(stats["endpoints"][0]["last_error"].as_str().unwrap().contains("begins with _"), "{stats}");
}

#[test]
fn writer_answers_from_its_sinks() {
    let Some(nats) = NatsServer::start() else { return };
    let folder = Folder::new();
    let text = format!("{}[sinks.warehouse]\nkind = \"sqlite\"\n", bus(nats.address()));
    let configuration = folder.write("writer.toml", text);
    let writer = BackEnd::start_on(&folder.path("writer"), "127.0.0.1:0", &["--config", &configuration]);
    wait_answered(&nats);
    let front = FrontEnd::start(&format!("servers = [\"{}\"]", writer.url()), "store = \"sqlite\"");
    let events = post(&front.server, 5);
    let mut client = nats.client();
    for (id, payload) in &events {
        let answer = client.request(SUBJECT, id);
        assert!(self::text(&answer).contains(payload), "{answer:?}");
    }
    writer.stop();
    assert!(client.request(SUBJECT, UNKNOWN).headers.starts_with("NATS/1.0 503"), "no process listens now");
}

#[test]
fn service_answers_again_after_restart_of_nats() {
    let Some(nats) = NatsServer::start() else { return };
    let folder = Folder::new();
    let server = start(&folder, &nats);
    let events = post(&server, 1);
    for _ in 0..3 {
        nats.kill();
        nats.run();
        wait_answered(&nats);
        assert!(text(&nats.client().request(SUBJECT, &events[0].0)).contains(&events[0].1));
    }
    // Also at its start there may be no NATS.
    assert_eq!(server.stop("-TERM"), Some(0));
    nats.kill();
    let configuration = folder.text("forebay.toml");
    let server = Server::start_with(&folder.data(), &["--config", &configuration], &folder.path("log"));
    assert_eq!(by_http(&server, &events[0].0), by_http(&server, &events[0].0), "HTTP doesn't need NATS");
    nats.run();
    wait_answered(&nats);
}

#[test]
fn stop_answers_waiting_requests() {
    let Some(nats) = NatsServer::start() else { return };
    let proxy = Proxy::to(nats.address());
    let folder = Folder::new();
    let server = start_at(&folder, &nats, proxy.address());
    let events = post(&server, 1);
    let mut client = nats.client();
    let by_bus = text(&client.request(SUBJECT, &events[0].0)).to_owned();
    // They are in flight from NATS when Forebay unsubscribes.
    let frozen = proxy.freeze_after(0);
    for _ in 0..256 {
        client.begin(SUBJECT, &events[0].0);
    }
    server.signal("-TERM");
    let log = || std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(wait_until(|| log().contains("stopping: ")));
    // It unsubscribes immediately afterwards; a slow machine only makes the test easier.
    std::thread::sleep(Duration::from_millis(100));
    drop(frozen);
    for _ in 0..256 {
        assert_eq!(text(&client.next_message()), by_bus);
    }
    assert!(client.request(SUBJECT, UNKNOWN).headers.starts_with("NATS/1.0 503"));
    assert_eq!(server.wait_end(), Some(0));
}

#[test]
fn tools_see_a_micro_service() {
    let Some(nats) = NatsServer::start() else { return };
    let folder = Folder::new();
    let server = start(&folder, &nats);
    let mut client = nats.client();
    let events = post(&server, 1);
    let ask = |client: &mut NatsClient, subject: &str| -> Value {
        serde_json::from_str(&client.ask(&format!("$SRV.{subject}"), "")).unwrap()
    };
    let ping = ask(&mut client, "PING");
    let id = ping["id"].as_str().unwrap().to_owned();
    let identity = |answer: &Value| ["name", "id", "version"].map(|key| answer[key].clone());
    for subject in ["PING.forebay-events", &format!("PING.forebay-events.{id}"), "INFO", "STATS"] {
        assert_eq!(identity(&ask(&mut client, subject)), identity(&ping), "{subject}");
    }
    assert_eq!(ping["name"], "forebay-events");
    assert_eq!(ping["type"], "io.nats.micro.v1.ping_response");
    let info = ask(&mut client, &format!("INFO.forebay-events.{id}"));
    assert_eq!(info["type"], "io.nats.micro.v1.info_response");
    assert_eq!(info["endpoints"][0]["subject"], SUBJECT);
    let before = stats(&mut client)["endpoints"][0].clone();
    client.request(SUBJECT, &events[0].0);
    client.request(SUBJECT, "not an id");
    let stats = stats(&mut client);
    assert_eq!(stats["type"], "io.nats.micro.v1.stats_response");
    let (endpoint, added) = (&stats["endpoints"][0], |key: &str| {
        stats["endpoints"][0][key].as_u64().unwrap() - before[key].as_u64().unwrap()
    });
    assert_eq!([added("num_requests"), added("num_errors")], [2, 1]);
    assert!(endpoint["last_error"].as_str().unwrap().starts_with("400:"), "{endpoint}");
    assert!(added("processing_time") > 0 && endpoint["queue_group"] == "forebay", "{endpoint}");
    // Other names and instances are others' business.
    let answer = client.request("$SRV.PING.other", "");
    assert!(answer.headers.starts_with("NATS/1.0 503"), "{answer:?}");
}

/// Users with the permissions that the guide names.
const USERS: &str = "authorization { users = [
  { user: forebay, password: x, permissions {
    subscribe = [\"forebay.events.get\", \"$SRV.>\", \"_INBOX.>\"]
    allow_responses = { max: 1, expires: \"1m\" } } }
  { user: orders, password: x, permissions { publish = [\"forebay.events.get\"], subscribe = [\"_INBOX.>\"] } }
] }\nmax_payload: 4000\n";

#[test]
fn permissions_and_max_payload_of_nats_apply() {
    let Some(nats) = NatsServer::start_with(USERS) else { return };
    let folder = Folder::new();
    let text = format!(
        "[bus]\nurl = \"nats://forebay:x@{}\"\n[bus.events]\n[types.\"*\"]\nroutes = [\"local\"]\n[sinks.local]\nkind = \"sqlite\"\n",
        nats.address()
    );
    let configuration = folder.write("forebay.toml", text);
    let server = Server::start_with(&folder.data(), &["--config", &configuration], &folder.path("log"));
    let mut client = nats.client_of("\"user\":\"orders\",\"pass\":\"x\"");
    assert!(wait_until(|| code(&client.request(SUBJECT, UNKNOWN)).is_some()));
    let events = post(&server, 1);
    assert_eq!(self::text(&client.request(SUBJECT, &events[0].0)), by_http(&server, &events[0].0));
    let large = format!("\"{}\"", "a".repeat(4000));
    let answer: Value = serde_json::from_str(&read_back::post(&server, "/ingest/event/access", "", &large)).unwrap();
    server.wait_delivered();
    let answer = client.request(SUBJECT, answer["id"].as_str().unwrap());
    assert_eq!(code(&answer), Some("413"), "{answer:?}");
    assert!(answer.header("Nats-Service-Error").unwrap().contains("4000 bytes"));
}

#[test]
fn reload_changes_the_searched_sinks() {
    let Some(nats) = NatsServer::start() else { return };
    let folder = Folder::new();
    let server = start(&folder, &nats);
    let before = post(&server, 1);
    let text = std::fs::read_to_string(folder.path("forebay.toml")).unwrap();
    let second = "[sinks.second]\nkind = \"sqlite\"\npath = \"second.db\"\n[types.access]\nroutes = [\"second\"]\n";
    folder.write("forebay.toml", format!("{text}{second}"));
    let request = format!("POST /api/reload HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.admin);
    assert_eq!(exchange(server.admin, &request).0, 200);
    let after = post(&server, 1);
    let mut client = nats.client();
    for (id, payload) in before.iter().chain(&after) {
        assert!(self::text(&client.request(SUBJECT, id)).contains(payload));
    }
    assert_ne!(before, after);
}
