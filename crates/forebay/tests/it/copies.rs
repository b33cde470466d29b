//! Two servers on copies of one data directory, and restored backups: with each kind of store.

use std::path::Path;
use std::process::Command;

use crate::support::{Folder, Server, exchange, forebay, wait_until};
use testkit::postgres::PostgresServer;
use testkit::proxy::Proxy;

/// A store of the program under test.
struct Store<'a> {
    /// The section of the sink.
    sink: String,
    /// The payloads that it has, each of which is a number, sorted.
    numbers: &'a dyn Fn() -> Vec<u64>,
}

impl Store<'_> {
    fn start(&self, folder: &Folder) -> Server {
        let configuration = format!(
            "[gateway]\nshards = 1\nack_timeout = \"5min\"\n[types.\"*\"]\nroutes = [\"s\"]\n[sinks.s]\n{}\n",
            self.sink
        );
        let configuration = folder.write("forebay.toml", configuration);
        Server::start_configured(&folder.data(), Path::new(&configuration), &folder.path("log"))
    }

    fn expect(&self, wanted: impl Iterator<Item = u64>) {
        let wanted: Vec<u64> = wanted.collect();
        let mut found = Vec::new();
        let is_so = wait_until(|| {
            found = (self.numbers)();
            found.len() >= wanted.len()
        });
        assert!(is_so && found == wanted, "the store has {found:?}");
    }
}

fn copy(from: &Folder, to: &Folder) {
    let _ = std::fs::remove_dir_all(to.data());
    assert!(Command::new("cp").arg("-a").arg(from.data()).arg(to.data()).status().unwrap().success());
}

fn body(number: u64) -> String {
    format!("{{\"n\":{number}}}")
}

/// The number of an event's payload.
fn number(payload: &str) -> u64 {
    payload.trim().strip_prefix("{\"n\":").unwrap().strip_suffix('}').unwrap().parse().unwrap()
}

fn post(server: &Server, numbers: std::ops::Range<u64>) {
    for number in numbers {
        assert_eq!(server.post("/ingest/event/access", &body(number)).0, 200);
    }
}

fn post_until_stored(server: &Server, number: u64) -> u16 {
    let body = body(number);
    let request = format!(
        "POST /ingest/event/access HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nForebay-Ack: stored\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    exchange(server.intake, &request).0
}

fn wait_stopped(server: &Server) {
    server.wait("forebay_lane_state{sink=\"s\",shard=\"0\",state=\"stopped\"}", |stopped| stopped == 1);
}

fn route(server: &Server, arguments: &[&str]) -> (i32, String) {
    let output = forebay().arg("route").args(arguments).args(["--admin", &server.admin.to_string()]).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

fn accept(server: &Server) {
    let accepted = "s: the store's cursor is accepted for 1 stopped lane\n";
    assert_eq!(route(server, &["accept", "s"]), (0, accepted.to_owned()));
    server.wait_delivered();
    let (code, text) = route(server, &["accept", "s"]);
    assert!(code != 0 && text.contains("no lane of sink s has stopped"), "{code} {text}");
}

/// Of two servers on copies of one directory one continues, and the other says why it stops.
fn two_servers(store: &Store<'_>) {
    let (one, two) = (Folder::new(), Folder::new());
    let first = store.start(&one);
    post(&first, 0..10);
    first.wait_delivered();
    assert_eq!(first.stop("-TERM"), Some(0));
    copy(&one, &two);
    let first = store.start(&one);
    post(&first, 100..110);
    first.wait_delivered();
    let second = store.start(&two);
    post(&second, 200..205);
    wait_stopped(&second);
    assert_eq!(post_until_stored(&second, 205), 202, "it isn't stored, and no client waits for it");
    post(&first, 110..150);
    first.wait_delivered();
    store.expect((0..10).chain(100..150));
    let (_, text) = route(&second, &["list"]);
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains("stopped 6 10 "), "{text}");
    assert!(text.contains("another server has claimed this lane") && text.contains("forebay route accept s"), "{text}");
    let log = || std::fs::read_to_string(two.path("log")).unwrap();
    assert!(wait_until(|| log().contains("reason=\"another server has claimed this lane")), "{}", log());
    // After a restart it is the same.
    drop(second);
    let second = store.start(&two);
    wait_stopped(&second);
    assert_eq!(route(&second, &["drop", "s"]).0, 1, "nothing is given up");
    assert_eq!(second.metric("forebay_events_pending{"), 6);
    accept(&second);
    post(&first, 150..152);
    wait_stopped(&first);
    store.expect((0..10).chain(100..150).chain(200..206));
    assert_eq!(first.metric("forebay_events_pending{"), 2);
    assert_eq!(second.metric("forebay_ledger_errors_total") + first.metric("forebay_ledger_errors_total"), 0);
}

/// A backup of a directory is restored, and its store is newer.
fn restored(store: &Store<'_>, stops: bool) {
    let (folder, backup) = (Folder::new(), Folder::new());
    let server = store.start(&folder);
    post(&server, 0..20);
    server.wait_delivered();
    assert_eq!(server.stop("-TERM"), Some(0));
    copy(&folder, &backup);
    let server = store.start(&folder);
    post(&server, 20..40);
    server.wait_delivered();
    drop(server);
    copy(&backup, &folder);
    let server = store.start(&folder);
    post(&server, 40..50);
    if stops {
        wait_stopped(&server);
        accept(&server);
    }
    post(&server, 50..60);
    server.wait_delivered();
    store.expect(0..60);
    assert_eq!(server.metric("forebay_ledger_errors_total"), 0);
    drop(server);
    let server = store.start(&folder);
    post(&server, 60..62);
    server.wait_delivered();
    store.expect(0..62);
}

fn sorted(numbers: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    numbers
}

fn with_postgres(work: impl Fn(&Store<'_>)) {
    let Some(postgres) = PostgresServer::shared() else { return };
    let numbers = || {
        let text = postgres.psql("select payload from events");
        sorted(text.lines().map(number))
    };
    let sink = format!("kind = \"postgres\"\nurl = \"{}\"\npayload_type = \"text\"", postgres.url());
    work(&Store { sink, numbers: &numbers });
}

#[test]
fn one_of_two_servers_continues_on_postgres() {
    with_postgres(two_servers);
}

#[test]
fn restored_backup_continues_with_postgres() {
    with_postgres(|store| restored(store, true));
}

/// A stream, which has each event once by the cursor alone.
fn with_redis(work: impl Fn(&Store<'_>)) {
    use testkit::redis::RedisServer;
    let Some(redis) = RedisServer::start() else { return };
    let proxy = Proxy::start(&redis.socket());
    let numbers = || {
        let entries = redis.ask(&["XRANGE", "k", "-", "+"]).list();
        sorted(entries.into_iter().map(|entry| number(&entry.list().remove(1).list().remove(3).text())))
    };
    let sink = format!("kind = \"redis\"\nurl = \"redis://{}\"\nmode = \"stream\"\nkey = \"k\"", proxy.address());
    work(&Store { sink, numbers: &numbers });
}

#[test]
fn one_of_two_servers_continues_on_redis() {
    with_redis(two_servers);
}

#[test]
fn restored_backup_continues_with_redis() {
    with_redis(|store| restored(store, true));
}

fn with_nats(work: impl Fn(&Store<'_>)) {
    use testkit::nats::NatsServer;
    let Some(nats) = NatsServer::start() else { return };
    let numbers = || {
        let messages = nats.client().messages("EVENTS", "events.access");
        sorted(messages.into_iter().map(|message| number(&String::from_utf8(message.payload).unwrap())))
    };
    let sink = format!("kind = \"nats\"\nurl = \"nats://{}\"\nstream = \"EVENTS\"", nats.address());
    work(&Store { sink, numbers: &numbers });
}

#[test]
fn one_of_two_servers_continues_on_nats() {
    with_nats(two_servers);
}

#[test]
fn restored_backup_continues_with_nats() {
    with_nats(|store| restored(store, true));
}

/// Files of a directory that both servers write to, or of one that is restored with the rest.
fn with_directory(work: impl Fn(&Store<'_>)) {
    let files = Folder::new();
    let numbers = || {
        let entries = std::fs::read_dir(files.path("archive")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let lines = paths.filter(|path| path.extension().is_some_and(|ending| ending == "ndjson"));
        let texts: Vec<String> = lines.map(|path| std::fs::read_to_string(path).unwrap()).collect();
        sorted(texts.iter().flat_map(|text| text.lines()).map(number))
    };
    let path = files.text("archive");
    let sink = format!("kind = \"directory\"\npath = \"{path}\"\ncodec = \"none\"\nmax_age = \"1s\"");
    work(&Store { sink, numbers: &numbers });
}

/// Neither stops, and nothing is lost or overwritten: both give positions to other events, and names to other files.
fn both_go_on(store: &Store<'_>) {
    let (one, two) = (Folder::new(), Folder::new());
    let first = store.start(&one);
    post(&first, 0..10);
    first.wait_delivered();
    assert_eq!(first.stop("-TERM"), Some(0));
    copy(&one, &two);
    let (first, second) = (store.start(&one), store.start(&two));
    for round in 0..3 {
        post(&first, 100 + 10 * round..110 + 10 * round);
        post(&second, 200 + 10 * round..210 + 10 * round);
        first.wait_delivered();
        second.wait_delivered();
    }
    store.expect((0..10).chain(100..130).chain(200..230));
}

#[test]
fn two_servers_on_one_directory_overwrite_nothing() {
    with_directory(both_go_on);
}

#[test]
fn restored_backup_continues_with_a_directory() {
    with_directory(|store| restored(store, false));
}

/// Objects of Swift, whose listing may lack the newest.
fn with_swift(work: impl Fn(&Store<'_>)) {
    use testkit::swift::{KEY, SwiftServer, USER};
    let Some(swift) = SwiftServer::start() else { return };
    let numbers = || {
        swift.update_listings();
        let client = swift.client();
        let names = client.list("events").into_iter().filter(|name| name.ends_with(".ndjson"));
        let texts: Vec<String> =
            names.map(|name| String::from_utf8(client.get("events", &name).unwrap()).unwrap()).collect();
        sorted(texts.iter().flat_map(|text| text.lines()).map(number))
    };
    let sink = format!(
        "kind = \"swift\"\nauth = \"http://{}/auth/v1.0\"\nuser = \"{USER}\"\nkey = \"{KEY}\"\ncontainer = \"events\"\n\
         format = \"ndjson\"\nmax_age = \"1s\"",
        swift.address()
    );
    work(&Store { sink, numbers: &numbers });
}

#[test]
fn two_servers_on_swift_overwrite_nothing() {
    with_swift(both_go_on);
}

#[test]
fn restored_backup_continues_with_swift() {
    with_swift(|store| restored(store, false));
}

/// A store whose indices begin with `name`.
fn with_elasticsearch(name: &str, work: impl Fn(&Store<'_>)) {
    use testkit::opensearch::OpenSearch;
    let Some(opensearch) = OpenSearch::shared() else { return };
    let numbers = || {
        opensearch.done("POST", &format!("/{name}-*/_refresh"), "");
        let found = opensearch.get(&format!("/{name}-*/_search?size=1000"));
        let found: serde_json::Value = serde_json::from_str(&found).unwrap();
        sorted(found["hits"]["hits"].as_array().unwrap().iter().map(|hit| hit["_source"]["n"].as_u64().unwrap()))
    };
    let address = opensearch.address();
    let sink = format!("kind = \"elasticsearch\"\nurl = \"http://{address}\"\nindex = \"{name}-{{day}}\"");
    work(&Store { sink, numbers: &numbers });
}

#[test]
fn two_servers_on_elasticsearch_overwrite_nothing() {
    with_elasticsearch("overwritten", both_go_on);
}

#[test]
fn restored_backup_continues_with_elasticsearch() {
    with_elasticsearch("restored", |store| restored(store, false));
}

#[test]
fn backup_including_the_embedded_store_stops_nothing() {
    let (folder, backup) = (Folder::new(), Folder::new());
    let store = Store { sink: "kind = \"sqlite\"".to_owned(), numbers: &Vec::new };
    let server = store.start(&folder);
    post(&server, 0..20);
    server.wait_delivered();
    assert_eq!(server.stop("-TERM"), Some(0));
    copy(&folder, &backup);
    let server = store.start(&folder);
    post(&server, 20..40);
    server.wait_delivered();
    drop(server);
    copy(&backup, &folder);
    let server = store.start(&folder);
    post(&server, 40..50);
    server.wait_delivered();
    let numbers = crate::support::payloads(&folder.data());
    assert_eq!(sorted(numbers.iter().map(|text| number(text))), (0..20).chain(40..50).collect::<Vec<_>>());
    let nothing = route(&server, &["accept", "s"]);
    assert!(nothing.0 == 1 && nothing.1.contains("no lane of sink s has stopped"), "{nothing:?}");
    assert_eq!(server.metric("forebay_events_stored_total{"), 30);
}

/// A lane says that it needs a server.
#[test]
fn to_accept_needs_a_running_server() {
    let folder = Folder::new();
    drop(Server::start(&folder.data()));
    let output = forebay().args(["route", "accept", "local", "--data"]).arg(folder.data()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("start it first"), "{said}");
}

/// A file is removed while the server runs, and the journal no longer has its first events.
#[test]
fn stopped_lane_resumes_after_drop_or_accept() {
    for (command, goes_on) in [
        ("drop", "delivery resumes after the events that the store has lost: 1 lane"),
        ("accept", "the store's cursor is accepted for 1 stopped lane"),
    ] {
        let folder = Folder::new();
        let store = Store { sink: "kind = \"sqlite\"".to_owned(), numbers: &Vec::new };
        let server = store.start(&folder);
        let long = format!("\"{}\"", "x".repeat(900_000));
        for _ in 0..8 {
            assert_eq!(server.post("/ingest/event/access", &long).0, 200);
        }
        server.wait_delivered();
        server.wait("forebay_journal_freed_segments_total", |freed| freed > 0);
        for ending in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(folder.data().join(format!("events.db{ending}")));
        }
        post(&server, 1..3);
        wait_stopped(&server);
        let (_, text) = route(&server, &["list"]);
        assert!(text.contains("forebay route accept s") && text.contains("forebay route drop s"), "{text}");
        let (code, text) = route(&server, &[command, "s"]);
        assert!(code == 0 && text.contains(goes_on), "{text}");
        server.wait_delivered();
        let stored = crate::support::payloads(&folder.data());
        assert!(stored.contains(&body(1)) && stored.contains(&body(2)));
        assert_eq!(stored.len() > 2, command == "accept", "what the journal still has is sent again");
        assert_eq!(server.metric("forebay_ledger_errors_total"), 0);
    }
}
