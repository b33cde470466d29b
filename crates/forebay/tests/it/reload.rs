//! Reloads: settings that come into use, errors that change nothing, and routes that are added and removed.

mod command;
mod dry_run;
mod rules;

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::support::{Folder, HANGS, Server, exchange, forebay, wait_until};
use testkit::ports::free_address;

const TWO: &str = "[types.a]\nroutes = [\"one\"]\n[types.b]\nroutes = [\"two\"]\n\
                   [sinks.one]\nkind = \"sqlite\"\n[sinks.two]\nkind = \"sqlite\"\ntable = \"two\"\n";
const ONE: &str = "[types.a]\nroutes = [\"one\"]\n[sinks.one]\nkind = \"sqlite\"\n";

struct Fixture {
    /// Killed before its directory is removed.
    server: Option<Server>,
    folder: Folder,
}

impl Fixture {
    fn new(config: &str) -> Self {
        let folder = Folder::new();
        folder.write("forebay.toml", config);
        let mut fixture = Self { server: None, folder };
        fixture.start();
        fixture
    }

    fn start(&mut self) {
        let config = self.folder.text("forebay.toml");
        let log = self.folder.path("log");
        self.server = Some(Server::start_with(&self.folder.data(), &["--config", &config], &log));
    }

    fn stop(&mut self, signal: &str) -> Option<i32> {
        self.server.take().unwrap().stop(signal)
    }

    fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path("log")).unwrap()
    }

    /// Reads this configuration by the admin API: status and body of the answer.
    fn reload(&self, config: &str) -> (u16, String) {
        self.folder.write("forebay.toml", config);
        let admin = self.server().admin;
        exchange(admin, &format!("POST /api/reload HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n"))
    }

    /// A request of the admin API without a body: the status and the answer.
    fn ask(&self, request: &str) -> (u16, Value) {
        let admin = self.server().admin;
        let (status, body) =
            exchange(admin, &format!("{request} HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n"));
        (status, serde_json::from_str(&body).unwrap())
    }

    fn accepts(&self, config: &str) {
        let (status, body) = self.reload(config);
        assert_eq!(status, 200, "{body}");
    }

    fn post(&self, type_name: &str, body: &str) -> u16 {
        self.server().post(&format!("/ingest/event/{type_name}"), body).0
    }

    fn rows(&self, table: &str) -> i64 {
        let store = rusqlite::Connection::open(self.folder.data().join("events.db")).unwrap();
        store.query_row(&format!("select count(*) from {table}"), [], |row| row.get(0)).unwrap()
    }

    /// Makes the store refuse to be written to by others, until the value is dropped.
    fn lock(&self) -> rusqlite::Connection {
        let store = rusqlite::Connection::open(self.folder.data().join("events.db")).unwrap();
        let locked = wait_until(|| store.execute_batch("begin immediate").is_ok());
        assert!(locked);
        store
    }

    fn route(&self, arguments: &[&str]) -> (i32, String) {
        let mut command = forebay();
        command.arg("route").args(arguments).arg("--data").arg(self.folder.data());
        if let Some(server) = &self.server {
            command.args(["--admin", &server.admin.to_string()]);
        }
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(text).unwrap())
    }

    fn counts(&self, type_name: &str, sink: &str) -> [u64; 4] {
        let of = |name: &str| self.server().metric(&format!("{name}{{type=\"{type_name}\",sink=\"{sink}\"}}"));
        ["stored_total", "dead_total", "skipped_total", "pending"].map(|name| of(&format!("forebay_events_{name}")))
    }
}

#[test]
fn sighup_applies_types_routes_limits_and_origins() {
    let fixture = Fixture::new(ONE);
    assert_eq!((fixture.post("a", "1"), fixture.post("b", "2")), (200, 404));
    let mut open = TcpStream::connect(fixture.server().intake).unwrap();
    open.set_read_timeout(Some(HANGS)).unwrap();
    let preflight = "OPTIONS /ingest/event HTTP/1.1\r\nHost: localhost\r\nOrigin: https://a.example\r\n\r\n";
    let mut asked = || {
        open.write_all(preflight.as_bytes()).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            assert_eq!(open.read(&mut byte).unwrap(), 1);
            answer.push(byte[0]);
        }
        String::from_utf8(answer).unwrap().contains("access-control-allow-origin")
    };
    assert!(!asked());
    fixture.folder.write("forebay.toml", format!("[gateway]\ncors_origins = [\"https://a.example\"]\n{TWO}"));
    fixture.server().signal("-HUP");
    fixture.server().wait("forebay_reloads_total{result=\"applied\"}", |reloads| reloads == 1);
    assert!(asked(), "the connection continues, under the new rules");
    assert_eq!((fixture.post("a", "3"), fixture.post("b", "4")), (200, 200));
    fixture.server().wait_delivered();
    assert_eq!((fixture.rows("events"), fixture.rows("two")), (2, 1));
    assert!(
        wait_until(|| fixture.log().contains("the configuration was reloaded and is in use now")),
        "{}",
        fixture.log()
    );
    assert_eq!(fixture.counts("b", "two"), [1, 0, 0, 0]);
}

#[test]
fn invalid_configuration_changes_nothing_and_is_reported() {
    let fixture = Fixture::new(ONE);
    let other_port = format!("[gateway]\nshards = 7\n{TWO}").replace("[gateway]", "[gateway]\ntype_pointer = \"/t\"");
    std::fs::create_dir(fixture.folder.data().join("folder")).unwrap();
    let no_file = TWO.replace("table = \"two\"", "path = \"folder\"");
    let both = format!("[gateway]\nshards = 7\n{no_file}");
    let wrong = [
        (
            format!("{TWO}[sinks.three]\nkind = \"oracle\"\nsize = 1\n[types.c]\nroutes = [\"four\"]\n"),
            ["oracle", "four"],
        ),
        ("[types".into(), ["not TOML", "forebay.toml"]),
        (other_port, ["gateway.shards", "restart"]),
        (no_file, ["sink two", "folder"]),
        (both, ["gateway.shards", "sink two"]),
    ];
    for (number, (config, words)) in wrong.iter().enumerate() {
        let (status, body) = fixture.reload(config);
        assert_eq!(status, 422, "{body}");
        for word in words {
            assert!(body.contains(word), "{word}: {body}");
            assert!(wait_until(|| fixture.log().contains(word)), "{word}: {}", fixture.log());
        }
        assert_eq!(fixture.server().metric("forebay_reloads_total{result=\"refused\"}"), number as u64 + 1);
        assert_eq!((fixture.post("a", "1"), fixture.post("b", "2")), (200, 404));
    }
    assert_eq!(fixture.server().metric("forebay_reloads_total{result=\"applied\"}"), 0);
    fixture.server().wait_delivered();
    assert_eq!(fixture.rows("events"), wrong.len() as i64);
}

#[test]
fn request_in_flight_survives_a_reload() {
    let fixture = Fixture::new(TWO);
    let begin = |type_name: &str| {
        let mut client = TcpStream::connect(fixture.server().intake).unwrap();
        client.set_read_timeout(Some(HANGS)).unwrap();
        let head = format!("POST /ingest/event/{type_name} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n1");
        client.write_all(head.as_bytes()).unwrap();
        client
    };
    let (mut kept, mut gone) = (begin("a"), begin("b"));
    fixture.server().wait("forebay_http_in_flight_bytes", |bytes| bytes >= 2);
    fixture.accepts(ONE);
    let end = |client: &mut TcpStream| {
        client.write_all(b"2").unwrap();
        let mut answer = [0; 12];
        client.read_exact(&mut answer).unwrap();
        String::from_utf8(answer.to_vec()).unwrap()
    };
    assert_eq!(end(&mut kept), "HTTP/1.1 200");
    assert_eq!(end(&mut gone), "HTTP/1.1 404", "its routes are closed: it is rejected");
    fixture.server().wait_delivered();
    assert_eq!(fixture.server().metric("forebay_ledger_errors_total"), 0);
}

#[test]
fn removed_route_holds_events_until_restored_or_dropped() {
    let mut fixture = Fixture::new(TWO);
    fixture.post("b", "0");
    fixture.server().wait_delivered();
    let lock = fixture.lock();
    for body in ["1", "2", "3"] {
        assert_eq!(fixture.post("b", body), 200);
    }
    fixture.accepts(ONE);
    drop(lock);
    assert_eq!(fixture.counts("b", "two"), [1, 0, 0, 3]);
    assert_eq!(fixture.server().metric("forebay_route_removed{type=\"b\",sink=\"two\"}"), 1);
    assert!(wait_until(|| fixture.log().contains("sink=two events=3")), "{}", fixture.log());
    let (code, text) = fixture.route(&["list"]);
    assert!(code == 0 && has_row(&text, "b two removed 3 1 0 0"), "{text}");
    let (_, json) = fixture.route(&["list", "--output", "json"]);
    assert!(
        json.contains(
            "{\"type\":\"b\",\"sink\":\"two\",\"state\":\"removed\",\"reason\":null,\"since\":null,\"pending\":3"
        ),
        "{json}"
    );

    fixture.accepts(TWO);
    fixture.server().wait_delivered();
    assert_eq!(fixture.rows("two"), 4, "it resumes at its cursor");
    assert_eq!(fixture.counts("b", "two"), [4, 0, 0, 0]);

    for online in [true, false] {
        let before = fixture.counts("b", "two");
        let lock = fixture.lock();
        assert_eq!(fixture.post("b", "5"), 200);
        let (code, text) = fixture.route(&["drop", "two"]);
        assert!(code == 1 && text.contains("nothing to drop: no removed route"), "{text}");
        fixture.accepts(ONE);
        drop(lock);
        for ignored in ["until=2020-01-01T00:00:00Z", "limit=1", "where=false", "sink=two"] {
            let (status, answer) = fixture.ask(&format!("POST /api/routes/drop?sink=two&{ignored}"));
            assert_eq!((status, &answer["code"]), (400, &"query".into()), "{ignored}: {answer}");
        }
        if !online {
            assert_eq!(fixture.stop("-TERM"), Some(0));
        }
        let (code, text) = fixture.route(&["drop", "two", "--type", "b"]);
        assert_eq!((code, &*text), (0, "b to two: 1 event discarded\n"));
        if !online {
            fixture.start();
        }
        assert_eq!(fixture.counts("b", "two"), [before[0], 0, before[2] + 1, 0]);
        let (code, text) = fixture.route(&["drop", "two"]);
        assert!(code == 1 && text.contains("nothing to drop"), "{text}");
        let (code, text) = fixture.route(&["list"]);
        assert!(code == 0 && has_row(&text, "a one active") && !text.contains("two"), "it holds nothing: {text}");
        fixture.accepts(TWO);
        assert_eq!(fixture.post("b", "6"), 200);
        fixture.server().wait_delivered();
        assert_eq!(fixture.counts("b", "two"), [before[0] + 1, 0, before[2] + 1, 0], "it begins again");
    }
    assert_eq!(fixture.rows("two"), 6);
    assert_eq!(fixture.server().metric("forebay_ledger_errors_total"), 0);
}

#[test]
fn outage_continues_through_reload_and_start() {
    let url = format!("http://{}/", free_address());
    let config = format!("[types.a]\nroutes = [\"away\"]\n[sinks.away]\nkind = \"webhook\"\nurl = \"{url}\"\n");
    let mut fixture = Fixture::new(&config);
    assert_eq!(fixture.post("a", "1"), 200);
    let waits_since = |fixture: &Fixture| {
        let mut sink = Value::Null;
        let waits = || {
            sink = fixture.ask("GET /api/overview").1["sinks"][0].take();
            sink["state"] == "waiting"
        };
        assert!(wait_until(waits), "{sink}");
        sink["since"].as_str().unwrap().to_owned()
    };
    let since = waits_since(&fixture);
    fixture.accepts(&config.replace("[sinks.away]", "[types.b]\nroutes = [\"away\"]\n[sinks.away]"));
    assert_eq!(waits_since(&fixture), since);
    let is_saved = || fixture.ask("GET /api/sinks/away").1["failures"][0]["from"] == *since;
    assert!(wait_until(is_saved), "{since}");
    assert_eq!(fixture.stop("-KILL"), None);
    fixture.start();
    assert!(wait_until(|| waits_since(&fixture) == since), "{since}");
}

#[test]
fn new_route_begins_at_end_or_oldest() {
    let fixture = Fixture::new(ONE);
    for body in ["1", "2"] {
        fixture.post("a", body);
    }
    fixture.server().wait_delivered();
    let more = |from: &str| {
        format!(
            "[types.a]\nroutes = [\"one\", \"{from}\"]\n[sinks.one]\nkind = \"sqlite\"\n\
                                     [sinks.{from}]\nkind = \"sqlite\"\ntable = \"t_{from}\"\nfrom = \"{from}\"\n"
        )
    };
    for (from, expected) in [("end", 1), ("oldest", 4)] {
        fixture.accepts(&more(from));
        fixture.post("a", "3");
        fixture.server().wait_delivered();
        assert_eq!(fixture.rows(&format!("t_{from}")), expected, "{from}");
    }
    assert_eq!(fixture.rows("events"), 4);
    assert_eq!(fixture.server().metric("forebay_ledger_errors_total"), 0);
}

#[test]
fn lane_stopped_by_older_store_resumes_after_drop() {
    let mut fixture = Fixture::new(ONE);
    let state =
        |fixture: &Fixture| fixture.server().metric("forebay_lane_state{sink=\"one\",shard=\"0\",state=\"stopped\"}");
    let long = format!("\"{}\"", "x".repeat(900_000));
    // The first segment, which has 4 MiB, is freed: the journal can't give the store its first events again.
    for _ in 0..8 {
        assert_eq!(fixture.post("a", &long), 200);
    }
    fixture.server().wait_delivered();
    fixture.server().wait("forebay_journal_freed_segments_total", |freed| freed > 0);
    fixture.stop("-TERM");
    std::fs::remove_file(fixture.folder.data().join("events.db")).unwrap();
    fixture.start();
    assert_eq!(fixture.post("a", "3"), 200);
    fixture.server().wait("forebay_lane_state{sink=\"one\",shard=\"0\",state=\"stopped\"}", |stopped| stopped == 1);
    let (_, text) = fixture.route(&["list"]);
    assert!(has_row(&text, "a one stopped 1 8") && text.contains("restored from a backup"), "{text}");
    let (code, text) = fixture.route(&["drop", "one"]);
    assert_eq!((code, &*text), (0, "one: delivery resumes after the events that the store has lost: 1 lane\n"));
    fixture.server().wait_delivered();
    assert_eq!((fixture.rows("events"), state(&fixture)), (1, 0));
    fixture.stop("-KILL");
    fixture.start();
    assert_eq!(fixture.post("a", "4"), 200);
    fixture.server().wait_delivered();
    assert_eq!(fixture.rows("events"), 2);
    assert_eq!(fixture.server().metric("forebay_ledger_errors_total"), 0);
}

#[test]
fn log_format_and_level_are_reloaded() {
    // A start with JSON writes its addresses to the log.
    let mut fixture = Fixture::new(ONE);
    fixture.accepts(&format!("[log]\nformat = \"json\"\n{ONE}"));
    assert_eq!(fixture.reload("[types").0, 422);
    assert_eq!(fixture.stop("-TERM"), Some(0));
    let log = fixture.log();
    for line in log.lines().skip_while(|line| !line.starts_with('{')) {
        assert!(line.starts_with("{\"time\":\"20") && line.ends_with("\"}"), "{line}");
    }
    assert!(
        log.contains("\"level\":\"error\",\"message\":\"the configuration was read again") && log.contains("\"info\"")
    );
    fixture.folder.write("forebay.toml", format!("[log]\nlevel = \"error\"\n{ONE}"));
    fixture.start();
    assert_eq!(fixture.stop("-TERM"), Some(0));
    assert_eq!(fixture.log(), "");
}

#[test]
fn error_inside_a_multibyte_character_changes_nothing() {
    const TYPED: &str = "[types.a]\nroutes = [\"one\"]\nschema = \"a.json\"\n[sinks.one]\nkind = \"sqlite\"\n";
    let fixture = Fixture::new(ONE);
    for wrong in ["{\u{201c}type\u{201d}: 1}", "{\u{a0}\"type\": \"object\"}", "{\"type\": é}", "é"] {
        fixture.folder.write("a.json", wrong);
        let (status, body) = fixture.reload(TYPED);
        assert_eq!(status, 422, "{body}");
        assert!(body.contains("a.json"), "{body}");
        assert_eq!(fixture.post("a", "{}"), 200);
    }
    fixture.folder.write("a.json", "\u{feff}{\"type\": \"object\"}");
    fixture.accepts(&format!("\u{feff}{TYPED}"));
    assert_eq!((fixture.post("a", "{}"), fixture.post("a", "1")), (200, 422));
}

/// Whether a row of a table begins with these cells.
fn has_row(table: &str, cells: &str) -> bool {
    table.lines().any(|line| line.split_whitespace().collect::<Vec<_>>().join(" ").starts_with(cells))
}
