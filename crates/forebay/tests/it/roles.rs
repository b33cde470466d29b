//! The roles of a process: run by the environment, guarded by tokens, and exchanged over one data directory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Folder, PROTOCOL, Server, exchange, forebay, payloads, wait_until};
use crate::two_services::{BackEnd, gateway};
use testkit::ports::free_address;
use testkit::postgres::PostgresServer;

/// Runs a command to its end, and returns its exit code and all that it prints.
fn run(variables: &[(&str, &str)], arguments: &[&str]) -> (Option<i32>, String) {
    let output = forebay().args(arguments).envs(variables.iter().copied()).output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    (output.status.code(), text)
}

fn post(server: &Server, path: &str, headers: &str, body: &str) -> (u16, String) {
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n");
    exchange(server.intake, &format!("{head}{headers}\r\n{body}"))
}

#[test]
fn environment_alone_configures_writer_and_gateway() {
    let folder = Folder::new();
    let mut command = forebay();
    command.env("FOREBAY_ROLE", "writer");
    let writer = BackEnd::start_by(command, &folder.path("writer"), "127.0.0.1:0");
    let mut command = forebay();
    command.env("FOREBAY_ROLE", "gateway").env("FOREBAY_WRITERS", writer.url());
    let server = Server::start_command(command, &folder.data());
    assert_eq!(post(&server, "/ingest/data", "", "{\"n\": 1}").0, 200);
    assert_eq!(post(&server, "/ingest/data/access", "", "{\"n\": 2}").0, 200);
    server.wait_delivered();
    assert_eq!(payloads(&folder.path("writer")), ["{\"n\": 1}", "{\"n\": 2}"]);
}

#[test]
fn gateway_without_configuration_sends_token_of_file() {
    let folder = Folder::new();
    let at = folder.path("writer");
    let made = forebay().args(["token", "new", "gateways", "--scope", "deliver", "--data"]).arg(&at).output().unwrap();
    let secret = folder.write("secret", made.stdout);
    let writer = BackEnd::start_on(&at, "127.0.0.1:0", &[]);
    let mut command = forebay();
    command
        .env("FOREBAY_ROLE", "gateway")
        .env("FOREBAY_WRITERS", writer.url())
        .env("FOREBAY_WRITERS_TOKEN_FILE", secret);
    let server = Server::start_command(command, &folder.data());
    assert_eq!(server.post("/ingest/event", "1").0, 200);
    server.wait_delivered();
    assert_eq!(payloads(&at), ["1"]);
}

#[test]
fn ambiguous_role_is_reported() {
    let folder = Folder::new();
    let of_writer = folder.write("writer.toml", "[writer]\nlisten = \"127.0.0.1:8081\"\n");
    let data = folder.data();
    let data = data.to_str().unwrap();
    for (variables, arguments, code, says) in [
        (
            &[("FOREBAY_ROLE", "gateway")][..],
            &["writer"][..],
            2,
            "FOREBAY_ROLE is `gateway` and the command is `writer`",
        ),
        (&[("FOREBAY_ROLE", "none")], &[], 2, "Set it to gateway, writer or serve"),
        (&[("FOREBAY_ROLE", "gateway")], &["--data", data], 2, "a gateway needs writers"),
        (&[], &["gateway", "--data", data], 2, "a gateway needs writers"),
        (&[], &["gateway", "--data", data, "--config", &of_writer], 2, "is a writer's table"),
        (&[], &["check", "--data", data, "--config", &of_writer], 2, "run `forebay writer --config "),
        (&[], &["check", "--role", "writer", "--data", data, "--config", &of_writer], 0, "listen  127.0.0.1:8081"),
        (&[("FOREBAY_ROLE", "writer")], &["check", "--data", data, "--config", &of_writer], 0, "sink    local: sqlite"),
        (
            &[("FOREBAY_WRITERS", "http://127.0.0.1:9")],
            &["serve", "--data", data],
            2,
            "`forebay serve` uses no writers",
        ),
        (
            &[("FOREBAY_ROLE", "serve"), ("FOREBAY_WRITERS", "http://127.0.0.1:9")],
            &["check"],
            2,
            "leave out --writer and FOREBAY_WRITERS",
        ),
        (&[("FOREBAY_ROLE", "writer")], &["drain", "--data", data], 2, "a writer has no journal"),
        (&[("FOREBAY_ROLE", "writer")], &["token", "list", "--data", data], 0, "there are no tokens"),
    ] {
        let (found, text) = run(variables, arguments);
        assert_eq!(found, Some(code), "{variables:?} {arguments:?}: {text}");
        assert!(text.contains(says), "{variables:?} {arguments:?}: {text}");
    }
}

#[test]
fn token_of_one_gateway_opens_no_other_lane() {
    let folder = Folder::new();
    let tokens = folder.path("writers.tokens").display().to_string();
    let make = |name: &str, origin: &str| {
        let mut command = forebay();
        command.args(["token", "new", name, "--scope", "deliver", "--gateway", origin, "--file", &tokens]);
        String::from_utf8(command.output().unwrap().stdout).unwrap().trim().to_owned()
    };
    let other = make("other", &"0f".repeat(16));
    let config = folder.write("writer.toml", "[writer]\ntoken_file = \"writers.tokens\"\n");
    let writer = BackEnd::start_on(&folder.path("writer"), "127.0.0.1:0", &["--config", &config]);
    let start = |token: &str| {
        let text = format!(
            "[upstreams.back]\nservers = [\"{}\"]\ntoken = \"{token}\"\n[sinks.local]\nkind = \"writer\"\nupstream = \"back\"\n\
             store = \"sqlite\"\n[types.\"*\"]\nroutes = [\"local\"]\n",
            writer.url()
        );
        let config = folder.write("gateway.toml", text);
        gateway(&folder.data(), &["--config", &config], &folder.path("log"))
    };
    let server = start(&other);
    assert_eq!(server.post("/ingest/event", "1").0, 200, "events are accepted while the writer rejects requests");
    let request = format!("GET /api/routes HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.admin);
    let says_why = || exchange(server.admin, &request).1.contains("bound to the gateway 0f0f");
    assert!(wait_until(says_why), "{:?}", exchange(server.admin, &request));
    drop(server);

    let (_, shown) = run(&[], &["check", "--data", folder.data().to_str().unwrap()]);
    let origin = shown.lines().find_map(|line| line.strip_prefix("gateway id ")).expect("check shows it");
    let origin = origin.split(',').next().unwrap();
    let server = start(&make("own", origin));
    server.wait_delivered();
    assert_eq!(payloads(&folder.path("writer")), ["1"]);
    assert!(server.banner.contains("accepts events on"));
    let (_, list) = run(&[], &["token", "list", "--file", &tokens]);
    let row = format!("own deliver own {origin} never");
    assert!(list.lines().any(|line| line.split_whitespace().collect::<Vec<_>>().join(" ").starts_with(&row)), "{list}");
}

#[test]
fn writer_ports_reject_other_sites_and_require_tokens() {
    let folder = Folder::new();
    let at = folder.path("writer");
    let writer = BackEnd::start_on(&at, "127.0.0.1:0", &[]);
    let ask = |address, path: &str, headers: &str| {
        exchange(address, &format!("GET {path} HTTP/1.1\r\n{PROTOCOL}{headers}Connection: close\r\n\r\n")).0
    };
    let (info, metrics) = ("/ingest/data/local", "/metrics");
    let evil = "Host: evil.example\r\n";
    let page = "Host: localhost\r\nOrigin: http://evil.example\r\n";
    for (address, path) in [(writer.address, info), (writer.admin, metrics)] {
        assert_eq!(ask(address, path, "Host: localhost\r\n"), 200, "{path}");
        assert_eq!([ask(address, path, evil), ask(address, path, page)], [403; 2], "{path}");
        assert_eq!(ask(address, "/healthz", evil), 200);
    }
    let make = |name: &str, scope: &str| {
        let output = forebay().args(["token", "new", name, "--scope", scope, "--data"]).arg(&at).output().unwrap();
        format!("{evil}Authorization: Bearer {}\r\n", String::from_utf8(output.stdout).unwrap().trim())
    };
    let [deliver, read, admin] = ["deliver", "read", "admin"].map(|scope| make(scope, scope));
    assert!(wait_until(|| ask(writer.admin, metrics, "Host: localhost\r\n") == 401));
    assert_eq!([&deliver, &read, &admin].map(|token| ask(writer.admin, metrics, token)), [403, 200, 200]);
    assert_eq!([&deliver, &read, &admin].map(|token| ask(writer.address, info, token)), [200, 403, 403]);
    assert_eq!(ask(writer.address, info, "Host: localhost\r\n"), 401);
}

#[test]
fn several_gateways_follow_one_file_of_tokens() {
    let folder = Folder::new();
    let tokens = folder.path("gateways.tokens").display().to_string();
    let make = |name: &str| {
        let output = forebay().args(["token", "new", name, "--scope", "ingest", "--file", &tokens]).output().unwrap();
        format!("Authorization: Bearer {}\r\n", String::from_utf8(output.stdout).unwrap().trim())
    };
    let first = make("first");
    let config = folder.write("gateway.toml", "[gateway]\ntoken_file = \"gateways.tokens\"\n");
    let servers = ["a", "b"].map(|name| {
        let arguments = ["--config", &config, "--writer", "http://127.0.0.1:9"];
        gateway(&folder.path(name), &arguments, &folder.path("log"))
    });
    let status = |server: &Server, token: &str| post(server, "/ingest/event", token, "1").0;
    for server in &servers {
        assert_eq!((status(server, ""), status(server, &first)), (401, 200));
    }
    let second = make("second");
    assert!(servers.iter().all(|server| wait_until(|| status(server, &second) == 200)));
    assert_eq!(run(&[], &["token", "revoke", "first", "--file", &tokens]).0, Some(0));
    assert!(servers.iter().all(|server| wait_until(|| status(server, &first) == 401)));
}

#[test]
fn ack_stored_waits_for_the_writer() {
    let folder = Folder::new();
    let at = folder.path("writer");
    let address = free_address().to_string();
    let writer = BackEnd::start_on(&at, &address, &[]);
    let text = format!(
        "[gateway]\nack_timeout = \"1s\"\n[upstreams.back]\nservers = [\"{}\"]\n[sinks.local]\nkind = \"writer\"\n\
         upstream = \"back\"\nstore = \"sqlite\"\n[types.access]\nack = \"stored\"\nroutes = [\"local\"]\n\
         [types.plain]\nroutes = [\"local\"]\n",
        writer.url()
    );
    let config = folder.write("gateway.toml", text);
    let server = gateway(&folder.data(), &["--config", &config], &folder.path("log"));
    // The first may meet a lane that connects still: it is sent until it is stored, with one key.
    let first = || post(&server, "/ingest/data/access", "Idempotency-Key: first\r\n", "\"first\"").0;
    assert!(wait_until(|| first() == 200));
    for number in 0..5 {
        let (status, body) = post(&server, "/ingest/data/access", "", &format!("\"{number}\""));
        let is_stored = payloads(&at).contains(&format!("\"{number}\""));
        assert!(
            status == 202 && body.contains("\"pending\":[\"local\"]") || status == 200 && is_stored,
            "{status} {body}"
        );
    }
    let table = rusqlite::Connection::open(at.join("events.db")).unwrap();
    let refuse = "create trigger refuse before insert on events when new.payload like '%bad%' begin select raise(abort, 'no bad ones'); end";
    assert!(wait_until(|| table.execute_batch(refuse).is_ok()));
    // One that is answered too early is requested again under its key.
    let bad = || post(&server, "/ingest/data/access", "Idempotency-Key: bad\r\n", "\"bad\"");
    assert!(wait_until(|| bad().0 == 424), "{:?}", bad());
    drop(writer);
    let (status, body) = post(&server, "/ingest/data/access", "", "\"late\"");
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &body["pending"]), (202, &serde_json::json!(["local"])));
    assert_eq!(post(&server, "/ingest/data/access", "Forebay-Ack: disk\r\n", "\"disk\"").0, 200);
    assert_eq!(post(&server, "/ingest/data/plain", "", "\"plain\"").0, 200);
    let _writer = BackEnd::start_on(&at, &address, &[]);
    server.wait_delivered();
    assert_eq!(payloads(&at).len(), 1 + 5 + 3);
}

/// A store that both roles reach, and its contents.
struct Store<'s> {
    /// The sink that stores there, without its table's head.
    settings: String,
    /// Its kind.
    kind: &'static str,
    payloads: &'s dyn Fn() -> Vec<String>,
    /// Of how many pairs of an origin and a sink it has cursors.
    lanes: &'s dyn Fn() -> i64,
}

const LANES: &str = "select count(*) from (select distinct origin, sink from forebay_cursors) as lanes";

/// One data directory under `serve`, then under a gateway with a writer, and back, each ended by SIGKILL while it delivers.
fn move_there_and_back(folder: &Folder, store: &Store<'_>) {
    let sink = format!("[sinks.warehouse]\n{}\n", store.settings);
    let types = "[types.\"*\"]\nroutes = [\"warehouse\"]\n";
    let alone = folder.write("serve.toml", format!("{sink}{types}"));
    // The lane keeps the gateway's name of the sink, regardless of the writer's name for it.
    let of_writer = folder.write("writer.toml", sink.replace("warehouse", "store"));
    let address = free_address().to_string();
    let of_gateway = folder.write(
        "gateway.toml",
        format!(
            "[upstreams.back]\nservers = [\"http://{address}\"]\n[sinks.warehouse]\nkind = \"writer\"\nupstream = \"back\"\n\
             sink = \"store\"\nstore = \"{}\"\n{types}",
            store.kind
        ),
    );
    let log: PathBuf = folder.path("log");
    let mut number = 0;
    for round in 0..4 {
        let writer =
            (round % 2 == 1).then(|| BackEnd::start_on(&folder.path("writer"), &address, &["--config", &of_writer]));
        let server = if writer.is_some() {
            gateway(&folder.data(), &["--config", &of_gateway], &log)
        } else {
            Server::start_configured(&folder.data(), Path::new(&alone), &log)
        };
        // Some are resent, as by a client that got no answer.
        for number in (0..number).step_by(7) {
            assert_eq!(server.post_with_key(&format!("k{number}"), &format!("{{\"number\":  {number}}}")), 200);
        }
        for _ in 0..40 {
            assert_eq!(server.post_with_key(&format!("k{number}"), &format!("{{\"number\":  {number}}}")), 200);
            number += 1;
        }
        // Each role has a claim and a cursor by then; the rest is in flight.
        server.wait("forebay_events_stored_total{", |stored| stored > 0);
        drop((server, writer));
    }
    let server = Server::start_configured(&folder.data(), Path::new(&alone), &log);
    server.wait_delivered();
    assert_eq!((store.lanes)(), 1, "both roles have one cursor");
    let stored = (store.payloads)();
    assert_eq!(stored.len(), number, "none is there twice: {}", folder.text("log"));
    let expected: BTreeSet<String> = (0..number).map(|number| format!("{{\"number\":  {number}}}")).collect();
    assert!(stored.into_iter().collect::<BTreeSet<_>>() == expected, "none is lost");
}

#[test]
fn data_directory_moves_between_roles_over_sqlite() {
    let folder = Folder::new();
    let at = folder.path("store");
    std::fs::create_dir(&at).unwrap();
    let settings = format!("kind = \"sqlite\"\npath = \"{}\"", at.join("events.db").display());
    let lanes = || {
        let store = rusqlite::Connection::open(at.join("events.db")).unwrap();
        store.query_row(LANES, [], |row| row.get(0)).unwrap()
    };
    move_there_and_back(&folder, &Store { settings, kind: "sqlite", payloads: &|| payloads(&at), lanes: &lanes });
}

#[test]
fn data_directory_moves_between_roles_over_postgres() {
    let Some(postgres) = PostgresServer::shared() else { return };
    let folder = Folder::new();
    let settings = format!("kind = \"postgres\"\nurl = \"{}\"\npayload_type = \"text\"", postgres.url());
    let rows = || postgres.psql("select payload from events").lines().map(ToOwned::to_owned).collect();
    let lanes = || postgres.psql(LANES).trim().parse().unwrap();
    move_there_and_back(&folder, &Store { settings, kind: "postgres", payloads: &rows, lanes: &lanes });
}
