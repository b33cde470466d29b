//! The real program with NATS: from a request to a message of a stream, with both processes killed.

use std::path::Path;

use crate::support::{Folder, Server, wait_until};
use crate::tls::Pair;
use testkit::nats::{NatsServer, ROOMY};
use testkit::proxy::Proxy;

fn start(folder: &Folder, url: &str, settings: &str) -> Server {
    let configuration = format!(
        "[types.\"*\"]\nroutes = [\"bus\"]\n[sinks.bus]\nkind = \"nats\"\nurl = \"{url}\"\nstream = \"EVENTS\"\n{settings}"
    );
    let configuration = folder.write("forebay.toml", configuration);
    Server::start_configured(&folder.data(), Path::new(&configuration), &folder.path("log"))
}

/// Posts an event whose key is its number.
fn post(server: &Server, number: usize) -> u16 {
    server.post_with_key(&format!("k{number}"), &format!("{{\"number\":  {number}}}"))
}

#[test]
fn acknowledged_events_are_stored_once_through_kills() {
    let Some(nats) = NatsServer::start() else { return };
    let proxy = Proxy::to(nats.address());
    let url = format!("nats://{}", proxy.address());
    let folder = Folder::new();
    let mut server = start(&folder, &url, "");
    let mut number = 0;
    for _ in 0..4 {
        for _ in 0..30 {
            assert_eq!(post(&server, number), 200);
            number += 1;
        }
        // Events in flight now are stored or not: their outcome is unknown.
        nats.kill();
        for _ in 0..10 {
            assert_eq!(post(&server, number), 200, "events are accepted while the store is down");
            number += 1;
        }
        drop(server);
        nats.run();
        server = start(&folder, &url, "");
        // Some are resent, as by a client that got no answer.
        for again in (0..number).step_by(7) {
            assert_eq!(post(&server, again), 200);
        }
    }
    server.wait_delivered();
    let messages = nats.client().messages("EVENTS", "events.access");
    let mut payloads: Vec<String> =
        messages.into_iter().map(|message| String::from_utf8(message.payload).unwrap()).collect();
    let mut expected: Vec<String> = (0..number).map(|number| format!("{{\"number\":  {number}}}")).collect();
    payloads.sort();
    expected.sort();
    assert_eq!(payloads, expected);
    assert_eq!(server.metric("forebay_events_stored_total{"), number as u64);
    let log = std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(log.contains("sync_interval") && !log.contains("panicked"), "what a crash may lose is said: {log}");
}

#[test]
fn oversized_event_alone_is_a_dead_letter() {
    let Some(nats) = NatsServer::start_with("max_payload: 10KB\n") else { return };
    let folder = Folder::new();
    let server = start(&folder, &format!("nats://{}", nats.address()), "");
    let body = format!("1\n\"{}\"\n3\n", "x".repeat(10_000));
    assert_eq!(server.post("/ingest/batch/access", &body).0, 200);
    server.wait_delivered();
    assert_eq!(server.metric("forebay_events_dead_total{"), 1);
    assert_eq!(server.metric("forebay_events_stored_total{"), 2);
    assert_eq!(nats.client().messages("EVENTS", "events.access").len(), 2);
}

#[test]
fn stream_that_discards_cursors_gets_nothing() {
    let Some(nats) = NatsServer::start() else { return };
    let stream = |discard: &str| {
        format!(
            "{{\"name\":\"EVENTS\",\"subjects\":[\"events.>\",\"forebay.cursors.EVENTS.>\"],\"max_bytes\":1000000,\
             \"storage\":\"file\",\"num_replicas\":1,\"discard\":\"{discard}\",\"allow_atomic\":true,\
             \"allow_rollup_hdrs\":true}}"
        )
    };
    nats.client().stream("CREATE", "EVENTS", &stream("old"));
    let folder = Folder::new();
    let server = start(&folder, &format!("nats://{}", nats.address()), "");
    assert_eq!(post(&server, 1), 200);
    let log = || std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(wait_until(|| log().contains("set discard new")), "{}", log());
    assert_eq!(nats.client().count("EVENTS"), Some(0));
    let updated = nats.client().stream("UPDATE", "EVENTS", &stream("new"));
    assert!(!updated.contains("\"error\""), "{updated}");
    server.wait_delivered();
    assert_eq!(nats.client().messages("EVENTS", "events.>").len(), 1);
}

#[test]
fn tls_server_is_trusted_by_certificate_only() {
    let folder = Folder::new();
    let pair = Pair::new();
    let (certificate, key) = (folder.write("server.pem", pair.certificate), folder.write("server.key", pair.key));
    let authority = folder.write("authority.pem", Pair::new().certificate);
    let tls = format!("{ROOMY}tls {{ cert_file: \"{certificate}\", key_file: \"{key}\" }}\n");
    let Some(nats) = NatsServer::start_with(&tls) else { return };
    let log = || std::fs::read_to_string(folder.path("log")).unwrap();
    let url = format!("tls://localhost:{}", nats.address().port());
    let server = start(&folder, &url, &format!("ca = \"{authority}\"\n"));
    assert_eq!(post(&server, 1), 200);
    assert!(wait_until(|| log().contains("isn't trusted") && log().contains("the setting `ca`")), "{}", log());
    // The authority is exchanged without a restart.
    std::fs::copy(&certificate, &authority).unwrap();
    server.wait_delivered();
    assert_eq!(server.metric("forebay_events_stored_total{"), 1);
}
