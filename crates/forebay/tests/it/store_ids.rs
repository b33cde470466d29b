//! Several writers of one upstream: they are one back-end only if they reach one store and store alike.

use std::path::Path;

use crate::support::{Folder, Server, exchange, forebay, payloads, wait_until};
use crate::two_services::{BackEnd, gateway};
use testkit::ports::free_address;
use testkit::postgres::PostgresServer;

/// A writer of a table of PostgreSQL, with more settings of its sink.
fn writer(folder: &Folder, name: &str, listen: &str, url: &str, settings: &str) -> BackEnd {
    let text = format!("[sinks.warehouse]\nkind = \"postgres\"\nurl = \"{url}\"\n{settings}\n");
    let config = folder.write(&format!("{name}.toml"), text);
    BackEnd::start_on(&folder.path(name), listen, &["--config", &config])
}

/// A gateway with these writers, and more settings of its sink.
fn front(folder: &Folder, writers: &[&str], store: &str, settings: &str) -> Server {
    let text = format!(
        "[upstreams.back]\nservers = {writers:?}\n[sinks.warehouse]\nkind = \"writer\"\nupstream = \"back\"\nstore = \"{store}\"\n\
         {settings}\n[types.\"*\"]\nroutes = [\"warehouse\"]\n"
    );
    let config = folder.write("gateway.toml", text);
    gateway(&folder.data(), &["--config", &config], &folder.path("log"))
}

/// Waits until the lane says all of this while it waits.
pub(crate) fn expect_refusal(server: &Server, words: &[&str]) {
    let request = format!("GET /api/routes HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.admin);
    let mut routes = String::new();
    let says = wait_until(|| {
        routes = exchange(server.admin, &request).1;
        words.iter().all(|word| routes.contains(word))
    });
    assert!(says, "{words:?} in {routes}");
}

/// Two databases of one server.
pub(crate) fn two_databases() -> Option<[PostgresServer; 2]> {
    Some([PostgresServer::shared()?, PostgresServer::shared()?])
}

/// How many events the first database has; the other one has no table unless it was used.
fn rows(postgres: &PostgresServer) -> String {
    postgres.psql("select string_agg(payload->>'n', ' ' order by payload->>'n') from events")
}

fn post(server: &Server, number: usize) {
    assert_eq!(server.post_with_key(&format!("k{number}"), &format!("{{\"n\": {number}}}")), 200);
}

fn accept(server: &Server) {
    let mut command = forebay();
    let output = command.args(["route", "accept", "warehouse", "--admin", &server.admin.to_string()]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn writers_of_two_databases_are_rejected() {
    let Some([first, other]) = two_databases() else { return };
    let folder = Folder::new();
    let address = free_address().to_string();
    let one = writer(&folder, "one", &address, &first.url(), "");
    let two = writer(&folder, "two", "127.0.0.1:0", &other.url(), "");
    let both = [one.url(), two.url()];
    let both = [both[0].as_str(), both[1].as_str()];
    let server = front(&folder, &both, "postgres", "");
    post(&server, 1);
    expect_refusal(&server, &[both[0], both[1], "in two stores", "let both use one store"]);
    assert_eq!((rows(&first), rows(&other)), (String::new(), String::new()));
    drop(server);
    // Once one of them was used it alone is right, also after a start, and also while it is down.
    let server = front(&folder, &both[..1], "postgres", "");
    server.wait_delivered();
    drop(server);
    one.stop();
    let server = front(&folder, &both, "postgres", "");
    post(&server, 2);
    expect_refusal(&server, &[both[1], "in another store", "forebay route accept"]);
    let _one = writer(&folder, "one", &address, &first.url(), "");
    server.wait_delivered();
    assert_eq!((rows(&first), rows(&other)), ("1 2".to_owned(), String::new()));
}

#[test]
fn operator_accepts_another_store() {
    let folder = Folder::new();
    let data = folder.path("writer");
    let writer = BackEnd::start_on(&data, "127.0.0.1:0", &[]);
    let server = front(&folder, &[&writer.url()], "sqlite", "sink = \"local\"");
    post(&server, 1);
    server.wait_delivered();
    // The same address points to another file from now on.
    let before = folder.path("before");
    std::fs::create_dir(&before).unwrap();
    std::fs::rename(data.join("events.db"), before.join("events.db")).unwrap();
    for log in ["events.db-wal", "events.db-shm"] {
        std::fs::rename(data.join(log), before.join(log)).unwrap();
    }
    post(&server, 2);
    expect_refusal(&server, &[&writer.url(), "in another store", "forebay route accept"]);
    assert!(payloads(&data).is_empty(), "nothing is written to it");
    accept(&server);
    server.wait_delivered();
    let stored = payloads(&data);
    assert!(stored.contains(&"{\"n\": 2}".to_owned()), "{stored:?}");
    assert_eq!(payloads(&before), ["{\"n\": 1}"]);
}

#[test]
fn writers_with_other_settings_are_rejected() {
    let Some(postgres) = PostgresServer::shared() else { return };
    let folder = Folder::new();
    let url = postgres.url();
    let one = writer(&folder, "one", "127.0.0.1:0", &url, "max_connections = 3");
    for (at, (settings, part)) in [
        ("table = \"other\"", "differ in `table`"),
        ("table = \"narrow\"\ncolumns = { n = \"/n\" }", "differ in `columns`"),
        ("payload_type = \"text\"", "differ in `payload`"),
        ("conflict = \"overwrite\"", "differ in `conflict`"),
    ]
    .into_iter()
    .enumerate()
    {
        let two = writer(&folder, &format!("two{at}"), "127.0.0.1:0", &url, settings);
        let server = front(&folder, &[&one.url(), &two.url()], "postgres", "");
        post(&server, at);
        expect_refusal(&server, &[&one.url(), &two.url(), part, "same configuration"]);
    }
    // Pools and timeouts are set by each writer.
    let two = writer(&folder, "two", "127.0.0.1:0", &url, "max_connections = 5\ntimeout = \"7s\"");
    front(&folder, &[&one.url(), &two.url()], "postgres", "").wait_delivered();
    assert_eq!(rows(&postgres), "0 1 2 3");
}

#[test]
fn gateway_accepting_unstorable_events_is_rejected() {
    let Some(postgres) = PostgresServer::shared() else { return };
    let folder = Folder::new();
    let one = writer(&folder, "one", "127.0.0.1:0", &postgres.url(), "");
    let nul = |server: &Server| server.post("/ingest/event", "{\"n\": \"\\u0000\"}").0;
    let server = front(&folder, &[&one.url()], "postgres", "payload_type = \"text\"");
    assert_eq!(nul(&server), 200, "a table of texts takes it");
    expect_refusal(
        &server,
        &[&one.url(), "`payload` of its sink `warehouse` is jsonb, this gateway's table says text"],
    );
    drop(server);
    for settings in ["", "payload_type = \"jsonb\""] {
        let server = front(&folder, &[&one.url()], "postgres", settings);
        assert_eq!(nul(&server), 422, "jsonb doesn't");
    }
    assert_eq!(postgres.psql("select to_regclass('events') is null or not exists (select from events)"), "t");
}

#[test]
fn writer_without_embedded_store_creates_no_file() {
    let Some(postgres) = PostgresServer::shared() else { return };
    let folder = Folder::new();
    let one = writer(&folder, "one", "127.0.0.1:0", &postgres.url(), "");
    let server = front(&folder, &[&one.url()], "postgres", "");
    post(&server, 1);
    server.wait_delivered();
    assert_eq!(rows(&postgres), "1");
    assert!(!Path::new(&folder.path("one")).exists(), "its data directory isn't needed");
}
