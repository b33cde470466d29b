//! `forebay status` for a healthy process, for one with a dead store, and for each role: its output and exit codes.

use std::path::Path;

use serde_json::Value;
use testkit::ports::free_address;

use crate::support::{Folder, Server, exchange, forebay, wait_until};
use crate::two_services::{BackEnd, gateway};

/// No server listens on port 1.
const AWAY: &str = "kind = \"postgres\"\nurl = \"postgres://writer:sesame@127.0.0.1:1/events\"\ntable = \"events\"\n";

/// Runs `forebay status`: the exit code, and the output.
fn status(arguments: &[&str]) -> (i32, String) {
    let output = forebay().arg("status").args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

pub(crate) fn at(admin: impl ToString) -> (i32, String) {
    status(&["--admin", &admin.to_string()])
}

fn json(admin: impl ToString) -> (i32, Value) {
    let (code, text) = status(&["--output", "json", "--admin", &admin.to_string()]);
    (code, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
}

#[test]
fn healthy_server_reports_health_and_counts() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    assert_eq!((server.post("/ingest/event", "1").0, server.post("/ingest/event", "no").0), (200, 400));
    server.wait_delivered();
    let (code, text) = at(server.admin);
    assert_eq!(code, 0, "{text}");
    assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("gateway   id ")), "{text}");
    for line in ["ready     yes", "events    1 accepted, 0/s now; 1 rejected since the start", "result    healthy"] {
        assert!(text.lines().any(|shown| shown == line), "{line}: {text}");
    }
    assert!(text.contains(", serve, up ") && text.contains(" are free on its disk"), "{text}");
    assert!(text.lines().any(|line| line.split_whitespace().eq(["local", "active", "0", "-", "0"])), "{text}");
    let (code, json) = json(server.admin);
    assert_eq!((code, &json["role"], &json["events"], &json["ready"]), (0, &"serve".into(), &1.into(), &true.into()));
    assert!(json["journal"]["bytes"].as_u64().is_some_and(|bytes| bytes > 0) && json["events_per_second"].is_f64());

    let file = folder.write("forebay.toml", format!("[gateway]\nadmin = \"{}\"\nno_such = \"${{X}}\"\n", server.admin));
    assert_eq!(status(&["--config", &file]).0, 0, "the file names the address, and nothing else of it is read");
    server.stop("-KILL");
    let (code, text) = at(free_address());
    assert!(code == 1 && text.contains("can't ask the server at "), "{text}");
}

#[test]
fn unreachable_store_and_its_backlog_are_shown() {
    let folder = Folder::new();
    let configuration = format!(
        "[types.access]\nroutes = [\"local\", \"away\"]\n[sinks.local]\nkind = \"sqlite\"\n[sinks.away]\n{AWAY}"
    );
    folder.write("forebay.toml", configuration);
    let server = Server::start_configured(&folder.data(), &folder.path("forebay.toml"), &folder.path("log"));
    assert_eq!(server.post("/ingest/event/access", "{}").0, 200);
    server.wait("forebay_lane_state{sink=\"away\",shard=\"0\",state=\"waiting\"}", |waiting| waiting == 1);
    server.wait("forebay_events_pending{type=\"access\",sink=\"local\"}", |pending| pending == 0);
    let (code, text) = at(server.admin);
    assert!(code == 3 && text.contains("\nUNHEALTHY sink away waits: "), "{text}");
    let row = text.lines().find(|line| line.starts_with("away ")).unwrap();
    let cells: Vec<_> = row.split_whitespace().take(5).collect();
    // The lane has read nothing: it has no store yet.
    assert_eq!(cells, ["away", "waiting", "1", "-", "0"], "{text}");
    assert!(row.contains(" (since 20") && !text.contains("sesame") && !text.contains("local waits"), "{text}");
    let (code, json) = json(server.admin);
    assert_eq!((code, &json["sinks"][0]["backlog"]["pending"]), (3, &1.into()), "{json}");
    assert!(json["problems"][0].as_str().unwrap().starts_with("sink away waits: "), "{json}");
}

#[test]
fn removed_sink_with_events_is_a_problem() {
    let folder = Folder::new();
    let two = "[types.a]\nroutes = [\"one\"]\n[types.b]\nroutes = [\"two\"]\n[sinks.one]\nkind = \"sqlite\"\n\
               [sinks.two]\nkind = \"sqlite\"\npath = \"two.db\"\n";
    let one = "[types.a]\nroutes = [\"one\"]\n[sinks.one]\nkind = \"sqlite\"\n";
    let file = folder.write("forebay.toml", two);
    let server = Server::start_configured(&folder.data(), Path::new(&file), &folder.path("log"));
    assert_eq!(server.post("/ingest/event/b", "0").0, 200);
    server.wait_delivered();
    let store = rusqlite::Connection::open(folder.data().join("two.db")).unwrap();
    assert!(wait_until(|| store.execute_batch("begin immediate").is_ok()));
    assert_eq!(server.post("/ingest/event/b", "1").0, 200);
    let has_age = || json(server.admin).1["sinks"][1]["backlog"]["oldest_seconds"].is_u64();
    assert!(wait_until(has_age), "{:?}", json(server.admin));
    folder.write("forebay.toml", one);
    let request = format!("POST /api/reload HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.admin);
    assert_eq!(exchange(server.admin, &request).0, 200);
    let (code, text) = at(server.admin);
    assert!(
        code == 3 && text.contains("two was removed from the configuration and has a backlog of 1 event"),
        "{text}"
    );
    drop(store);
}

#[test]
fn writer_shows_last_result_of_each_store() {
    let folder = Folder::new();
    let writer = BackEnd::start_on(&folder.path("writer"), "127.0.0.1:0", &[]);
    let of_writer = |admin: std::net::SocketAddr| status(&["--role", "writer", "--admin", &admin.to_string()]);
    let (code, text) = of_writer(writer.admin);
    assert!(code == 0 && text.contains(", writer, up ") && text.contains("\nlocal  unused\n"), "{text}");
    let server = gateway(&folder.data(), &["--writer", &writer.url()], &folder.path("log"));
    assert_eq!(server.post("/ingest/event", "1").0, 200);
    server.wait_delivered();
    let (code, text) = of_writer(writer.admin);
    assert!(code == 0 && text.contains("\nlocal  active\n") && text.contains("1 stored since the start, "), "{text}");
    let (code, text) = at(server.admin);
    assert!(code == 0 && text.contains(", gateway, up ") && text.contains("1 accepted"), "{text}");
    drop((server, writer));

    let file = folder.write("writer.toml", format!("[sinks.away]\n{AWAY}"));
    let writer = BackEnd::start_on(&folder.path("writer"), "127.0.0.1:0", &["--config", &file]);
    let configuration = format!(
        "[upstreams.back]\nservers = [\"{}\"]\n[sinks.away]\nkind = \"writer\"\nupstream = \"back\"\nstore = \"postgres\"\n\
         [types.\"*\"]\nroutes = [\"away\"]\n",
        writer.url()
    );
    let file = folder.write("gateway.toml", configuration);
    let server = gateway(&folder.path("other"), &["--config", &file], &folder.path("log"));
    server.wait("forebay_lane_state{sink=\"away\",shard=\"0\",state=\"waiting\"}", |waiting| waiting == 1);
    let (code, text) = of_writer(writer.admin);
    assert!(code == 3 && text.contains("\nUNHEALTHY sink away fails: ") && !text.contains("sesame"), "{text}");
    let request = format!("POST /api/status HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", writer.admin);
    assert_eq!(exchange(writer.admin, &request).0, 405);
}

#[test]
fn port_without_a_token_shows_nothing() {
    let folder = Folder::new();
    let mut command = forebay();
    command.args(["token", "new", "me", "--scope", "admin", "--data"]).arg(folder.data());
    let token = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let server = Server::start(&folder.data());
    let admin = server.admin.to_string();
    let (code, text) = at(&admin);
    assert!(
        code == 1
            && text.contains(
                "the command needs a token with the scope admin, or read if it changes nothing: set FOREBAY_TOKEN"
            ),
        "{text}"
    );
    assert_eq!(status(&["--admin", &admin, "--token", token.trim()]).0, 0);
}
