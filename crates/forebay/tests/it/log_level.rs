//! Another level of the log for some time, its last lines, and what `debug` shows.

use serde_json::Value;

use crate::support::{Folder, Server, exchange, forebay, wait_until};
use crate::two_services::{BackEnd, gateway};

const CANARY: &str = "canary-7c1f";

fn log(admin: &str, arguments: &[&str]) -> (bool, String) {
    let output = forebay().args(["log", "--admin", admin]).args(arguments).output().unwrap();
    let text = if output.status.success() { output.stdout } else { output.stderr };
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn debug_shows_requests_and_lanes_without_their_content() {
    let folder = Folder::new();
    let path = folder.path("log");
    let server = Server::start_with(&folder.data(), &[], &path);
    let admin = server.admin.to_string();
    let written = || std::fs::read_to_string(&path).unwrap();
    assert_eq!(server.post("/ingest/event", "1").0, 200);
    let (is_done, said) = log(&admin, &["--level", "debug", "--for", "1h"]);
    assert!(is_done && said.contains("the log has the level debug until 20") && said.contains("then info"), "{said}");

    let request = format!(
        "POST /ingest/event/access?key={CANARY} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Cookie: {CANARY}\r\nIdempotency-Key: {CANARY}\r\nContent-Length: 15\r\n\r\n\"{CANARY}..\""
    );
    assert_eq!(exchange(server.intake, &request).0, 200);
    let unknown = format!("GET /{CANARY} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert_eq!(exchange(server.intake, &unknown).0, 404);
    for wanted in [
        "DEBUG request  method=POST route=event status=200 milliseconds=",
        " bytes=15",
        "DEBUG request  method=GET route=other status=404 ",
        "DEBUG lane wrote a batch  lane=0/local sink=local shard=0 ",
    ] {
        assert!(wait_until(|| written().contains(wanted)), "no {wanted} in {}", written());
    }
    assert!(!written().contains(CANARY), "{}", written());
    assert!(!written().contains("route=event status=200 milliseconds=0 bytes=1\n"), "before the change: {}", written());

    let (is_done, said) = log(&admin, &["--level", "warning", "--for", "1s"]);
    assert!(is_done, "{said}");
    let state = || serde_json::from_str::<Value>(&log(&admin, &["--output", "json"]).1).unwrap();
    let mut seen = state();
    assert!(seen["level"] == "warning" || seen["level"] == "info", "{seen}");
    assert!(
        wait_until(|| {
            seen = state();
            seen["level"] == "info" && seen["until"].is_null()
        }),
        "{seen}"
    );
    let lines: Vec<&str> = seen["lines"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert_eq!(log(&admin, &[]).1, lines.join("\n") + "\n");
    let written = written();
    assert_eq!(written.lines().collect::<Vec<_>>(), lines, "what is kept is what was written");
}

#[test]
fn wrong_level_or_time_is_rejected() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let admin = server.admin.to_string();
    for (arguments, wanted) in [
        (&["--level", "loud"][..], "the levels are debug, info, warning and error"),
        (&["--level", "debug", "--for", "2d"], "up to 24h"),
        (&["--for", "10m"], "--level"),
    ] {
        let (is_done, said) = log(&admin, arguments);
        assert!(!is_done && said.contains(wanted), "{said}");
    }
}

#[test]
fn writer_shows_batches_of_gateways() {
    let folder = Folder::new();
    let writer = BackEnd::start_on(&folder.path("writer"), "127.0.0.1:0", &[]);
    let admin = writer.admin.to_string();
    assert!(log(&admin, &["--role", "writer", "--level", "debug"]).0);
    let url = format!("http://{}", writer.address);
    let server = gateway(&folder.data(), &["--writer", &url], &folder.path("log"));
    assert_eq!(server.post("/ingest/event", "1").0, 200);
    server.wait_delivered();
    let (_, lines) = log(&admin, &["--role", "writer"]);
    assert!(lines.contains("DEBUG batch of a gateway  lane=0/") && lines.contains(" records=1 "), "{lines}");
}
