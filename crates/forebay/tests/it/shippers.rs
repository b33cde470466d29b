//! Senders without ids that resend a whole chunk, as log shippers do after a status that they don't handle.

use std::path::Path;

use serde_json::Value;

use crate::support::{Folder, Server, exchange, forebay};

const SINKS: &str = r#"
[types.rejected]
routes = ["rejected"]

[sinks.local]
kind = "sqlite"

[sinks.rejected]
kind = "sqlite"
path = "rejected.db"
"#;
const CHUNK: &str = "{\"n\":1}\n{\"n\":\"bad\"}\n{\"n\":2}\n{\"n\":3}\n";
/// Resends after which a shipper discards a chunk.
const RETRIES: usize = 3;

struct Shipper {
    folder: Folder,
    server: Server,
    token: String,
}

impl Shipper {
    /// A shipper of the type `logs`, which has these settings.
    fn new(logs: &str, token: &[&str]) -> Self {
        let folder = Folder::new();
        let types = format!("[types.logs]\nschema = \"logs.json\"\nroutes = [\"local\"]\n{logs}\n");
        folder.write("forebay.toml", &(types + SINKS));
        folder.write("logs.json", r#"{"properties": {"n": {"type": "integer"}}}"#);
        let new = forebay()
            .args(["token", "new", "shipper", "--scope", "ingest", "--data"])
            .arg(folder.data())
            .args(token)
            .output()
            .unwrap();
        assert!(new.status.success(), "{new:?}");
        let token = String::from_utf8(new.stdout).unwrap().trim().to_owned();
        let server = Server::start_configured(&folder.data(), &folder.path("forebay.toml"), &folder.path("log"));
        Self { folder, server, token }
    }

    fn post(&self, path: &str, headers: &str, body: &str) -> (u16, Value) {
        let (length, token) = (body.len(), &self.token);
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n{headers}\
             Content-Length: {length}\r\n\r\n{body}"
        );
        let (status, answer) = exchange(self.server.intake, &request);
        (status, serde_json::from_str(&answer).unwrap_or(Value::Null))
    }

    /// Sends a chunk until the status is one of 200 to 205, as Fluent Bit does. Returns each status.
    fn ship(&self, chunk: &str) -> Vec<u16> {
        let mut statuses = Vec::new();
        while statuses.len() <= RETRIES && !statuses.last().is_some_and(|status| (200..=205).contains(status)) {
            statuses.push(self.post("/ingest/batch/logs", "", chunk).0);
        }
        statuses
    }

    /// The payloads in SQLite after a stop.
    fn stored(self, name: &str) -> Vec<String> {
        self.server.wait_delivered();
        assert_eq!(self.server.stop("-TERM"), Some(0));
        payloads(&self.folder.data().join(name))
    }
}

fn payloads(database: &Path) -> Vec<String> {
    let connection = rusqlite::Connection::open(database).unwrap();
    let mut statement = connection.prepare("select payload from events order by payload").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

const GOOD: [&str; 3] = ["{\"n\":1}", "{\"n\":2}", "{\"n\":3}"];

#[test]
fn chunk_is_stored_several_times_by_default() {
    let shipper = Shipper::new("", &[]);
    assert_eq!(shipper.ship(CHUNK), [207; 1 + RETRIES]);
    assert_eq!(
        shipper.stored("events.db").len(),
        GOOD.len() * (1 + RETRIES),
        "a repeat can't be distinguished from an event"
    );
}

#[test]
fn chunk_is_stored_once_with_partial_200() {
    let shipper = Shipper::new("partial = \"200\"\nrefused_to = \"rejected\"", &[]);
    let (status, answer) = shipper.post("/ingest/batch/logs", "", "{\"n\":1}\n{\"n\":\"bad\"}\n");
    assert_eq!((status, &answer["accepted"], &answer["refused"][0]["line"]), (200, &1.into(), &2.into()));
    assert_eq!(shipper.ship("{\"n\":2}\n{\"n\":3}\n{\"n\":[]}\n"), [200]);
    assert_eq!(shipper.post("/ingest/batch/logs", "", "{\"n\":\"worse\"}\n").0, 422, "all are rejected");
    shipper.server.wait("forebay_quarantine_events_total{result=\"stored\"}", |stored| stored == 3);
    let Shipper { folder, server, .. } = shipper;
    server.wait_delivered();
    assert_eq!(server.stop("-TERM"), Some(0));
    assert_eq!(payloads(&folder.data().join("events.db")), GOOD);
    let texts = payloads(&folder.data().join("rejected.db"))
        .iter()
        .map(|text| serde_json::from_str::<Value>(text).unwrap()["text"].clone())
        .collect::<Vec<_>>();
    assert!(texts.contains(&"{\"n\":\"bad\"}".into()) && texts.len() == 3, "{texts:?}");
}

#[test]
fn rejected_records_that_are_not_kept_get_207() {
    let shipper = Shipper::new("partial = \"200\"\nrefused_to = \"rejected\"", &[]);
    let large = format!("{{\"n\":1}}\n{{\"n\":\"{}\"}}\n", "x".repeat(5_000));
    assert_eq!(shipper.post("/ingest/batch/logs", "", &large).0, 207, "only the first 4 KiB are kept");
    let many = "{\"n\":\"bad\"}\n".repeat(500) + "{\"n\":2}\n";
    assert_eq!(shipper.post("/ingest/batch/logs", "", &many).0, 207, "some are left out");
}

#[test]
fn chunk_is_stored_once_with_content_ids() {
    let shipper = Shipper::new("id = \"content\"", &[]);
    assert_eq!(shipper.ship(CHUNK), [207; 1 + RETRIES]);
    assert_eq!(shipper.server.metric("forebay_duplicates_total"), (GOOD.len() * RETRIES) as u64);
    let (status, answer) = shipper.post("/ingest/event/logs", "Accept: application/json\r\n", " {\"n\":1}\r\n");
    assert_eq!((status, &answer["duplicate"]), (200, &true.into()), "white space around a payload doesn't count");
    let (status, answer) = shipper.post("/ingest/batch/logs", "", "{\"n\":1}\n{\"n\":4}\n{\"n\":4}\n{\"n\": 4}\n");
    assert_eq!((status, &answer["accepted"], &answer["duplicates"]), (200, &2.into(), &2.into()));
    let keyed = |body| shipper.post("/ingest/batch/logs", "Idempotency-Key: mine\r\n", body);
    assert_eq!(keyed("{\"n\":5}\n{\"n\":5}\n").1["accepted"], 2, "the client's key is the id");
    assert_eq!(keyed("{\"n\":5}\n{\"n\":5}\n").1["duplicates"], 2);
    let expected = ["{\"n\": 4}", "{\"n\":1}", "{\"n\":2}", "{\"n\":3}", "{\"n\":4}", "{\"n\":5}", "{\"n\":5}"];
    assert_eq!(shipper.stored("events.db"), expected);
}

#[test]
fn store_drops_content_duplicate_when_index_is_lost() {
    let shipper = Shipper::new("id = \"content\"", &[]);
    assert_eq!(shipper.ship("{\"n\":1}\n"), [200]);
    let Shipper { folder, server, token } = shipper;
    server.wait_delivered();
    assert_eq!(server.stop("-TERM"), Some(0));
    // Without its journals the gateway remembers no id.
    for entry in std::fs::read_dir(folder.data()).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            std::fs::remove_dir_all(entry.path()).unwrap();
        } else if !name.ends_with(".db") && !name.ends_with(".json") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    let server = Server::start_configured(&folder.data(), &folder.path("forebay.toml"), &folder.path("log"));
    let shipper = Shipper { folder, server, token };
    assert_eq!(shipper.ship("{\"n\":1}\n{\"n\":2}\n"), [200]);
    assert_eq!(shipper.stored("events.db").len(), 2, "the id is the store's key");
}

#[test]
fn token_setting_wins_over_type() {
    let lenient = "partial = \"200\"\nrefused_to = \"rejected\"";
    assert_eq!(Shipper::new("", &["--partial", "200"]).ship(CHUNK), [200]);
    assert_eq!(Shipper::new(lenient, &["--partial", "207"]).ship(CHUNK)[0], 207);
}

#[test]
fn token_in_path_is_no_type() {
    let folder = Folder::new();
    folder.write("forebay.toml", "[gateway]\ntype_pointer = \"/type\"\n[types.\"*\"]\nlowercase = true\nroutes = [\"local\"]\n[sinks.local]\nkind = \"sqlite\"\n");
    let new =
        forebay().args(["token", "new", "shop", "--scope", "ingest", "--data"]).arg(folder.data()).output().unwrap();
    let token = String::from_utf8(new.stdout).unwrap().trim().to_owned();
    let server = Server::start_configured(&folder.data(), &folder.path("forebay.toml"), &folder.path("log"));
    let shipper = Shipper { folder, server, token: token.clone() };
    let secret = &token[3..];
    let (upper, percent) = (token.to_uppercase(), token.replace("fb_", "fb%5F"));
    for (path, headers, body, expected) in [
        (format!("/ingest/event/{token}"), String::new(), "{}".to_owned(), 404),
        (format!("/ingest/event/{upper}"), String::new(), "{}".to_owned(), 404),
        (format!("/ingest/event/{percent}"), String::new(), "{}".to_owned(), 404),
        (format!("/ingest/batch/app.{token}"), String::new(), "{}\n".to_owned(), 404),
        ("/ingest/event".to_owned(), format!("Forebay-Type: {token}\r\n"), "{}".to_owned(), 404),
        ("/ingest/event".to_owned(), String::new(), format!("{{\"type\":\"{token}\"}}"), 404),
        ("/ingest/batch".to_owned(), String::new(), format!("{{\"type\":\"{token}\"}}\n{{\"type\":\"a\"}}\n"), 207),
        (format!("/ingest/{token}"), String::new(), "{}".to_owned(), 404),
    ] {
        let (status, answer) = shipper.post(&path, &headers, &body);
        assert_eq!(status, expected, "{path} {answer}");
        let answer = answer.to_string().to_lowercase();
        assert!(!answer.contains(secret), "{path}: {answer}");
    }
    let metrics = shipper.server.metrics().to_lowercase();
    assert!(!metrics.contains(secret), "{metrics}");
    let folder = shipper.folder.path("log");
    let log = std::fs::read_to_string(folder).unwrap().to_lowercase();
    assert!(!log.contains(secret), "{log}");
    assert_eq!(shipper.stored("events.db").len(), 1);
}
