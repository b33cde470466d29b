//! `Forebay-Ack` over a real store: the answers, and the state of the store then.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::support::{Folder, HANGS, Server, exchange, forebay, wait_until};

const STORED: &str = "Forebay-Ack: stored\r\n";
/// Longer than any test waits.
const PATIENT: &str = "[gateway]\nack_timeout = \"5min\"\n";
const HASTY: &str = "[gateway]\nack_timeout = \"1s\"\n";
const TYPES: &str = "[types.a]\nroutes = [\"one\"]\n[types.b]\nroutes = [\"one\", \"two\"]\n";
const SINKS: &str = "[sinks.one]\nkind = \"sqlite\"\n[sinks.two]\nkind = \"sqlite\"\npath = \"two.db\"\n";
const TABLE: &str = "create table events (id blob not null unique, type text, source text, received_at integer, \
                     payload text); create trigger refuse before insert on events when new.payload like '%bad%' \
                     begin select raise(abort, 'no bad ones'); end";

struct Fixture {
    /// Killed before its directory is removed.
    server: Option<Server>,
    folder: Folder,
}

impl Fixture {
    /// Its server isn't started yet.
    fn new(config: &[&str]) -> Self {
        const { assert!(HANGS.as_secs() < 300, "who waits is more patient than a test") };
        let folder = Folder::new();
        std::fs::create_dir(folder.data()).unwrap();
        folder.write("forebay.toml", config.concat());
        Self { server: None, folder }
    }

    fn started(config: &[&str]) -> Self {
        let mut fixture = Self::new(config);
        fixture.start();
        fixture
    }

    fn start(&mut self) {
        let (config, log) = (self.folder.path("forebay.toml"), self.folder.path("log"));
        self.server = Some(Server::start_configured(&self.folder.data(), &config, &log));
    }

    fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    fn post(&self, path: &str, headers: &str, body: &str) -> (u16, Value) {
        let length = body.len();
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n");
        let (status, body) = exchange(self.server().intake, &format!("{head}{headers}\r\n{body}"));
        (status, serde_json::from_str(&body).unwrap_or_default())
    }

    fn admin(&self, path: &str) -> (u16, String) {
        let admin = self.server().admin;
        exchange(admin, &format!("POST {path} HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n"))
    }

    fn reload(&self, config: &[&str]) {
        self.folder.write("forebay.toml", config.concat());
        let (status, body) = self.admin("/api/reload");
        assert_eq!(status, 200, "{body}");
    }

    fn sql(&self, file: &str, text: &str) -> rusqlite::Connection {
        let store = rusqlite::Connection::open(self.folder.data().join(file)).unwrap();
        assert!(wait_until(|| store.execute_batch(text).is_ok()), "{text}");
        store
    }

    /// Nothing can be written to this store until the value is dropped.
    fn lock(&self, file: &str) -> rusqlite::Connection {
        self.sql(file, "begin immediate")
    }

    fn rows(&self, file: &str) -> i64 {
        let store = rusqlite::Connection::open(self.folder.data().join(file)).unwrap();
        store.query_row("select count(*) from events", [], |row| row.get(0)).unwrap()
    }

    /// Waits until as many events are durable: their clients wait for the store.
    fn wait_accepted(&self, events: u64) {
        self.server().wait("forebay_events_accepted_total", |accepted| accepted == events);
    }
}

#[test]
fn answered_events_are_stored_through_kills_and_reloads() {
    let fixture = Fixture::started(&[PATIENT, TYPES, SINKS]);
    let (over, checked) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        // Other clients, which don't wait.
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    assert_eq!(fixture.post("/ingest/event/b", "", "0").0, 200);
                }
            });
        }
        let clients: Vec<_> = (0..3)
            .map(|client| {
                let (fixture, checked) = (&fixture, &checked);
                scope.spawn(move || {
                    let one = rusqlite::Connection::open(fixture.folder.data().join("events.db")).unwrap();
                    let two = rusqlite::Connection::open(fixture.folder.data().join("two.db")).unwrap();
                    for number in 0..40 {
                        let payload = format!("\"{client}-{number}\"");
                        let (path, body) = match number % 4 {
                            0 => ("/ingest/batch/b", format!("{payload}\n{payload}\n")),
                            _ => ("/ingest/event/b", payload.clone()),
                        };
                        assert_eq!(fixture.post(path, STORED, &body).0, 200);
                        let wanted: i64 = if number % 4 == 0 { 2 } else { 1 };
                        for store in [&one, &two] {
                            let count = "select count(*) from events where payload = ?1";
                            let rows: i64 = store.query_row(count, [&payload], |row| row.get(0)).unwrap();
                            assert_eq!(rows, wanted, "{payload}");
                        }
                        checked.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let ended: Vec<_> = clients.into_iter().map(|client| client.join().is_ok()).collect();
        over.store(true, Ordering::Relaxed);
        assert_eq!(ended, [true; 3]);
    });
    assert_eq!(checked.into_inner(), 120);
}

#[test]
fn failing_sink_is_named_at_the_timeout() {
    let mut fixture = Fixture::new(&[HASTY, "type_pointer = \"/t\"\n", TYPES, SINKS]);
    std::fs::create_dir(fixture.folder.data().join("two.db")).unwrap();
    fixture.start();
    assert_eq!(fixture.post("/ingest/event/a", STORED, "1").0, 200, "it has no route there");
    let (status, answer) = fixture.post("/ingest/event/b", STORED, "2");
    assert_eq!((status, &answer["pending"], &answer["duplicate"]), (202, &json!(["two"]), &json!(false)));
    let (status, answer) = fixture.post("/ingest/batch", STORED, "{\"t\":\"a\"}\n{\"t\":\"b\"}\n");
    assert_eq!((status, &answer["pending"], &answer["accepted"]), (202, &json!(["two"]), &json!(2)));
    let (status, answer) = fixture.post("/ingest/batch", STORED, "{\"t\":\"a\"}\n{\"t\":\"a\"}\n");
    assert_eq!((status, &answer["accepted"]), (200, &json!(2)));
    assert_eq!(fixture.rows("events.db"), 6, "the other sink has all of them");
}

#[test]
fn rejected_event_and_its_duplicates_get_424() {
    let mut fixture = Fixture::new(&[PATIENT, TYPES, SINKS]);
    drop(fixture.sql("events.db", TABLE));
    fixture.start();
    let key = [STORED, "Idempotency-Key: k\r\n"].concat();
    let expect_dead_letter = |path: &str, headers: &str, body: &str| {
        let (status, answer) = fixture.post(path, headers, body);
        assert_eq!((status, &answer["code"]), (424, &json!("dead_letter")), "{answer}");
        let dead = answer["dead"].as_array().unwrap().clone();
        assert_eq!((dead.len(), &dead[0]["sink"], &answer["pending"]), (1, &json!("one"), &json!([])), "{answer}");
        assert_eq!(dead[0]["reason"], "rejected_by_store", "{answer}");
        assert!(!answer.to_string().contains("no bad ones"), "the store's words: {answer}");
        dead[0]["id"].as_str().unwrap().to_owned()
    };
    let id = expect_dead_letter("/ingest/event/b", &key, "\"bad\"");
    assert_eq!(expect_dead_letter("/ingest/event/b", &key, "\"bad\""), id, "a duplicate");
    for path in [
        format!("/events/{id}"),
        format!("/events/{id}?type=b"),
        "/events?type=b&key=k".to_owned(),
        "/events?type=b".to_owned(),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let (status, answer) = exchange(fixture.server().intake, &request);
        assert!([200, 424].contains(&status), "{path}: {status} {answer}");
        assert!(
            !answer.contains("no bad ones") && !answer.contains("take the event"),
            "the store's words: {path}: {answer}"
        );
        assert_eq!(
            path.starts_with("/events/"),
            answer.contains("rejected_by_store") && status == 424,
            "{path}: {answer}"
        );
    }
    let batch = [STORED, "Idempotency-Key: batch\r\n"].concat();
    let other = expect_dead_letter("/ingest/batch/a", &batch, "1\n\"bad too\"\n3\n");
    assert_eq!(expect_dead_letter("/ingest/batch/a", &batch, "1\n\"bad too\"\n3\n"), other);
    assert_eq!(fixture.post("/ingest/event/b", STORED, "4").0, 200, "another event's dead letter is ignored");

    let dead = |arguments: &[&str]| {
        let admin = fixture.server().admin.to_string();
        let output = forebay().arg("dead").args(arguments).args(["--admin", &admin]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(dead(&["show", &id]).contains("\"bad\"") && dead(&["show", &other]).contains("\"bad too\""));
    drop(fixture.sql("events.db", "drop trigger refuse"));
    dead(&["replay", "--id", &id]);
    dead(&["drop", "--id", &other]);
    assert_eq!(fixture.post("/ingest/event/b", &key, "\"bad\"").0, 200, "it was replayed");
    let (status, answer) = fixture.post("/ingest/batch/a", &batch, "1\n\"bad too\"\n3\n");
    assert_eq!((status, &answer["dead"][0]["reason"]), (424, &json!("dropped")));
}

#[test]
fn duplicate_waits_with_the_original() {
    let fixture = Fixture::started(&[PATIENT, TYPES, SINKS]);
    assert_eq!(fixture.post("/ingest/event/b", STORED, "0").0, 200);
    let lock = fixture.lock("two.db");
    let post = || {
        fixture.post("/ingest/event/b", &[STORED, "Accept: application/json\r\nIdempotency-Key: k\r\n"].concat(), "1")
    };
    thread::scope(|scope| {
        let first = scope.spawn(post);
        fixture.wait_accepted(2);
        let again = scope.spawn(post);
        fixture.server().wait("forebay_duplicates_total", |duplicates| duplicates == 1);
        assert!(!first.is_finished() && !again.is_finished());
        drop(lock);
        let [first, again] = [first, again].map(|client| client.join().unwrap());
        assert_eq!((first.0, &first.1["duplicate"]), (200, &json!(false)));
        assert_eq!((again.0, &again.1["duplicate"]), (200, &json!(true)));
    });
    assert_eq!((fixture.rows("events.db"), fixture.rows("two.db")), (2, 2));
}

#[test]
fn retry_after_a_kill_gets_the_result() {
    let mut fixture = Fixture::started(&[PATIENT, TYPES, SINKS]);
    assert_eq!(fixture.post("/ingest/event/b", STORED, "0").0, 200);
    let lock = fixture.lock("two.db");
    let headers = [STORED, "Accept: application/json\r\nIdempotency-Key: k\r\n"].concat();
    let (intake, request) = (fixture.server().intake, format!("Content-Length: 1\r\n{headers}\r\n1"));
    let client = thread::spawn(move || {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(intake).unwrap();
        stream.set_read_timeout(Some(HANGS)).unwrap();
        stream.write_all(format!("POST /ingest/event/b HTTP/1.1\r\nHost: localhost\r\n{request}").as_bytes()).unwrap();
        let mut answer = String::new();
        // The client only sees the end of the connection.
        let _ = stream.read_to_string(&mut answer);
        answer
    });
    fixture.wait_accepted(2);
    assert_eq!(fixture.server.take().unwrap().stop("-KILL"), None);
    assert_eq!(client.join().unwrap(), "", "no client got an acknowledgement");
    drop(lock);
    fixture.start();
    let (status, answer) = fixture.post("/ingest/event/b", &headers, "1");
    assert_eq!((status, &answer["duplicate"]), (200, &json!(true)));
    assert_eq!((fixture.rows("events.db"), fixture.rows("two.db")), (2, 2));
}

#[test]
fn removed_route_ends_the_wait() {
    let fixture = Fixture::started(&[PATIENT, TYPES, SINKS]);
    assert_eq!(fixture.post("/ingest/event/b", STORED, "0").0, 200);
    let lock = fixture.lock("two.db");
    let key = [STORED, "Idempotency-Key: k\r\n"].concat();
    let fewer = "[types.a]\nroutes = [\"one\"]\n[types.b]\nroutes = [\"one\"]\n[sinks.one]\nkind = \"sqlite\"\n";
    thread::scope(|scope| {
        let client = scope.spawn(|| fixture.post("/ingest/event/b", &key, "1"));
        fixture.wait_accepted(2);
        fixture.reload(&[PATIENT, fewer]);
        let (status, answer) = client.join().unwrap();
        assert_eq!((status, &answer["pending"]), (202, &json!(["two"])), "the route holds it");
    });
    assert_eq!(fixture.post("/ingest/event/b", STORED, "2").0, 200, "it never had that route");
    let (status, answer) = fixture.post("/ingest/event/b", &key, "1");
    assert_eq!((status, &answer["pending"]), (202, &json!(["two"])));
    drop(lock);
    let admin = fixture.server().admin.to_string();
    let output = forebay().args(["route", "drop", "two", "--admin", &admin]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fixture.post("/ingest/event/b", &key, "1").0, 200, "discarded events don't count");
}

#[test]
fn waiting_request_survives_a_reload() {
    let fixture = Fixture::started(&[PATIENT, TYPES, SINKS]);
    assert_eq!(fixture.post("/ingest/event/b", STORED, "0").0, 200);
    let lock = fixture.lock("two.db");
    thread::scope(|scope| {
        let client = scope.spawn(|| fixture.post("/ingest/event/b", STORED, "1"));
        fixture.wait_accepted(2);
        fixture.reload(&[PATIENT, TYPES, SINKS, "[types.c]\nroutes = [\"two\"]\n"]);
        assert!(!client.is_finished());
        drop(lock);
        assert_eq!(client.join().unwrap().0, 200);
    });
    assert_eq!(fixture.rows("two.db"), 2);
}

#[test]
fn stop_answers_waiting_requests() {
    let mut fixture = Fixture::started(&[PATIENT, TYPES, SINKS]);
    assert_eq!(fixture.post("/ingest/event/b", STORED, "0").0, 200);
    let lock = fixture.lock("two.db");
    thread::scope(|scope| {
        let client = scope.spawn(|| fixture.post("/ingest/event/b", STORED, "1"));
        fixture.wait_accepted(2);
        fixture.server().wait("forebay_events_stored_total{type=\"b\",sink=\"one\"}", |stored| stored == 2);
        fixture.server().signal("-TERM");
        let (status, answer) = client.join().unwrap();
        assert_eq!((status, &answer["pending"]), (202, &json!(["two"])));
    });
    drop(lock);
    assert_eq!(fixture.server.take().unwrap().wait_end(), Some(0));
}

#[test]
fn from_memory_events_are_accepted_counted_and_stored() {
    let fixture = Fixture::started(&[
        PATIENT,
        "[types.a]\nack_memory = true\nroutes = [\"one\"]\n",
        "[sinks.one]\nkind = \"sqlite\"\n",
    ]);
    for number in 0..10 {
        assert_eq!(fixture.post("/ingest/event/a", "Forebay-Ack: memory\r\n", &number.to_string()).0, 202);
    }
    fixture.wait_accepted(10);
    fixture.server().wait_delivered();
    assert_eq!(fixture.rows("events.db"), 10);
}
