//! The real program with Swift and S3: from a request to an object, with both processes killed.

mod attachments;
mod over_tls;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use random::Random;

use crate::directory::{Known, codings, read};
use crate::support::{Folder, Server, wait_until};
use testkit::proxy::Proxy;
use testkit::swift::{KEY, SwiftProcess, SwiftServer, USER};

/// Many small objects: kills have to happen while some are being written.
const RULES: &str =
    "object = \"{type}-of-{day}-\"\nformat = \"ndjson.zst\"\nenvelope = true\nmax_records = 100\nmax_age = \"1s\"\n";

fn swift(place: impl std::fmt::Display) -> String {
    format!(
        "kind = \"swift\"\nauth = \"http://{place}/auth/v1.0\"\nuser = \"{USER}\"\nkey = \"{KEY}\"\n\
         container = \"events\"\n{RULES}"
    )
}

fn s3(place: impl std::fmt::Display) -> String {
    format!(
        "kind = \"s3\"\nurl = \"http://{place}\"\naccess_key = \"{USER}\"\nsecret_key = \"{KEY}\"\n\
         bucket = \"events\"\n{RULES}"
    )
}

fn start(folder: &Folder, sink: &str) -> Server {
    let configuration = format!("[types.\"*\"]\nroutes = [\"archive\"]\n[sinks.archive]\n{sink}");
    let configuration = folder.write("forebay.toml", configuration);
    Server::start_configured(&folder.data(), Path::new(&configuration), &folder.path("log"))
}

/// Puts everything that the container has into a folder.
fn fetch(swift: &SwiftServer, folder: &Path) {
    std::fs::create_dir_all(folder.join(crate::directory::MANIFESTS)).unwrap();
    let client = swift.client();
    for name in client.list("events") {
        std::fs::write(folder.join(&name), client.get("events", &name).unwrap()).unwrap();
    }
}

fn kills_leave_every_acknowledged_event_in_one_object(sink: &str, swift: &SwiftServer, killed: &[SwiftProcess]) {
    let mut random = Random::new(7);
    let folder = Folder::new();
    let known = Arc::new(Known::default());
    for (round, coding) in codings().iter().cycle().take(6).enumerate() {
        let format = if *coding == "zstd" { "ndjson.zst" } else { coding };
        let server = start(&folder, &sink.replace("ndjson.zst", format));
        known.stop.store(false, Ordering::Relaxed);
        let clients: Vec<_> = (0..2)
            .map(|_| {
                let (known, address) = (known.clone(), server.intake);
                std::thread::spawn(move || known.post(address))
            })
            .collect();
        let wanted = known.acknowledged.lock().unwrap().len() + 400;
        assert!(wait_until(|| known.acknowledged.lock().unwrap().len() >= wanted));
        server.wait("forebay_events_stored_total{", |stored| stored > 0);
        let part = killed[round % killed.len()];
        swift.kill_part(part);
        std::thread::sleep(Duration::from_micros(random.below(60_000)));
        drop(server);
        known.stop.store(true, Ordering::Relaxed);
        clients.into_iter().for_each(|client| client.join().unwrap());
        swift.run_part(part);
    }
    let server = start(&folder, sink);
    server.wait_delivered();
    let stored = server.metric("forebay_events_stored_total{");
    assert_eq!(server.stop("-TERM"), Some(0));
    swift.update_listings();
    let objects = folder.path("objects");
    fetch(swift, &objects);
    known.expect_each_once(&read(&objects), stored);
    let log = std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(!log.contains("panicked") && !log.contains(&format!("{KEY}\"")), "{log}");
}

#[test]
fn swift_has_acknowledged_events_once_through_kills() {
    let Some(server) = SwiftServer::start() else { return };
    let parts = [SwiftProcess::Object, SwiftProcess::Proxy, SwiftProcess::Container];
    kills_leave_every_acknowledged_event_in_one_object(&swift(server.address()), &server, &parts);
}

#[test]
fn s3_has_acknowledged_events_once_through_kills() {
    let Some(server) = SwiftServer::start() else { return };
    // Services of S3 list what they have: an object that Swift has and doesn't list doesn't exist for them.
    let parts = [SwiftProcess::Proxy, SwiftProcess::Container];
    kills_leave_every_acknowledged_event_in_one_object(&s3(server.address()), &server, &parts);
}

#[test]
fn ack_stored_waits_for_the_object() {
    let Some(server) = SwiftServer::start() else { return };
    let proxy = Proxy::to(server.address());
    let folder = Folder::new();
    let forebay = start(&folder, &swift(proxy.address()));
    let body = "{\"a\" :\t1.0e0}";
    let request = |number: usize| {
        format!(
            "POST /ingest/event/some.type HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nForebay-Ack: stored\r\n\
             Idempotency-Key: {number}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    assert_eq!(crate::support::exchange(forebay.intake, &request(1)).0, 200);
    let client = server.client();
    let names = client.list("events");
    assert_eq!(names.len(), 2, "{names:?}");
    let name = names.iter().find(|name| name.ends_with(".ndjson.zst")).unwrap();
    assert!(name.starts_with("some.type-of-20") && name.contains("-archive-"), "{name}");
    let lines = zstd::decode_all(&*client.get("events", name).unwrap()).unwrap();
    assert!(String::from_utf8(lines).unwrap().ends_with("\"payload\":{\"a\" :\t1.0e0}}\n"));
    let cut = proxy.cut_after(0);
    assert_eq!(forebay.post("/ingest/event", "2").0, 200, "events are accepted while the store is down");
    let log = || std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(wait_until(|| log().contains("container events of Swift")), "{}", log());
    drop(cut);
    forebay.wait_delivered();
    assert_eq!(client.list("events").len(), 4);
}

#[test]
fn memory_is_independent_of_object_size() {
    const MIB: usize = 1 << 20;
    let Some(server) = SwiftServer::start() else { return };
    let folder = Folder::new();
    let sink = swift(server.address()).replace(RULES, "envelope = true\nmax_bytes = \"96MiB\"\nmax_age = \"1h\"\n");
    let forebay = start(&folder, &sink);
    let event = format!("{{\"text\": \"{}\"}}\n", "x".repeat(1000));
    let batch = event.repeat(MIB / event.len());
    for _ in 0..96 {
        assert_eq!(forebay.post("/ingest/batch", &batch).0, 200);
    }
    forebay.wait("forebay_events_stored_total{", |stored| stored > 0);
    let most = forebay.memory("VmHWM");
    // The most that an object may buffer, 64 MiB, and the server with its console.
    assert!(most < 76 * MIB, "{} MiB for an object of 96", most / MIB);
    assert_eq!(forebay.stop("-TERM"), Some(0));
    let objects = folder.path("objects");
    fetch(&server, &objects);
    let events = 96 * (MIB / event.len());
    assert_eq!(read(&objects).len(), events, "each is there, as the manifests say");
}
