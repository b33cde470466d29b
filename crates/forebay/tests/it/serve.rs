//! `forebay serve`: started on free ports, posted to, observed, stopped and killed.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;

use crate::support::{Folder, HANGS, Server, exchange, forebay, payloads, wait_until};
use crate::two_services::{BackEnd, gateway};
use testkit::generated::{generated_block, page_file};
use testkit::ports::free_address;

#[test]
fn events_are_stored_once_through_kill_and_stop() {
    let folder = Folder::new();
    let data = folder.data();
    let server = Server::start(&data);
    assert_eq!(server.post("/ingest/event", "{\"n\":1}").0, 200);
    let (status, answer) = server.post("/ingest/batch", "{\"n\":2}\nno\n{\"n\":3}\n");
    assert_eq!(status, 207, "{answer}");
    assert!(answer.contains("\"accepted\":2") && answer.contains("\"line\":2"), "{answer}");
    server.wait_delivered();
    server.stop("-KILL");

    let server = Server::start(&data);
    assert_eq!(server.post("/ingest/event", "4").0, 200);
    server.wait_delivered();
    for (series, expected) in [("accepted_total", 4), ("stored_total", 4), ("dead_total", 0), ("skipped_total", 0)] {
        assert_eq!(server.metric(&format!("forebay_events_{series}{{type=\"event\"")), expected, "{series}");
    }
    assert_eq!(server.metric("forebay_ledger_errors_total"), 0);
    assert_eq!(server.metric("forebay_refusals_total{code=\"json\"}"), 0);
    assert_eq!(server.stop("-TERM"), Some(0));
    assert_eq!(payloads(&data), ["4", "{\"n\":1}", "{\"n\":2}", "{\"n\":3}"]);
}

#[test]
fn second_process_is_rejected_and_harms_nothing() {
    let folder = Folder::new();
    let data = folder.data();
    let server = Server::start(&data);
    let second = || {
        let mut second = forebay();
        second.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data"]).arg(&data);
        let mut second = second.stderr(Stdio::piped()).spawn().unwrap();
        let ends = wait_until(|| second.try_wait().unwrap().is_some());
        second.kill().unwrap();
        assert!(ends, "it serves");
        second.wait_with_output().unwrap()
    };
    for lock_is_taken_away in [false, true] {
        if lock_is_taken_away {
            std::fs::remove_file(data.join("lock")).unwrap();
        }
        let second = second();
        assert_eq!(second.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&second.stderr).contains("is in use by another Forebay"));
    }
    assert_eq!(server.post("/ingest/event", "1").0, 200);
}

/// Half of so few descriptors are for connections, and the server needs less than the other half: a client that can't
/// be accepted is disconnected immediately, instead of left waiting in the queue.
#[test]
fn server_without_descriptors_rejects_clients_and_recovers() {
    let folder = Folder::new();
    let server = Server::start_with_descriptors(&folder.data(), 56, Some(50_000), &folder.path("log"));
    assert_eq!(server.post("/ingest/event", "1").0, 200);
    server.wait_delivered();
    let mut open: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(server.intake).unwrap()).collect();
    let mut last = open.pop().unwrap();
    last.set_read_timeout(Some(HANGS)).unwrap();
    let ended = last.read(&mut [0]);
    assert!(matches!(&ended, Ok(0)) || ended.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
    let mut first = open.remove(0);
    first.write_all(b"POST /ingest/event HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n2").unwrap();
    assert!(first.read(&mut [0; 100]).unwrap() > 0, "who is in is served");
    drop((open, first));
    server.wait("forebay_http_accept_errors_total", |errors| errors > 0);
    assert_eq!(server.post("/ingest/event", "3").0, 200);
    server.wait_delivered();
    assert_eq!(payloads(&folder.data()), ["1", "2", "3"]);
}

/// Of 300 descriptors 150 are for connections, and half of those for one client, as without a limit.
#[test]
fn client_cannot_exhaust_few_descriptors() {
    let folder = Folder::new();
    let server = Server::start_with_descriptors(&folder.data(), 300, None, &folder.path("log"));
    let log = || std::fs::read_to_string(folder.path("log")).unwrap();
    let says = "only 150 of 50000 connections can be open at a time, 75 of them from one client";
    assert!(wait_until(|| log().contains(says)), "{}", log());
    let open: Vec<TcpStream> = (0..160).map(|_| TcpStream::connect(server.intake).unwrap()).collect();
    server.wait("forebay_http_connections_refused_total", |refused| refused == 160 - 75);
    assert!(server.metrics().contains("\nforebay_http_connections 75\n"));
    drop(open);
}

/// Clients that take no answers hold the connections of the admin port only until they would keep others out.
#[test]
fn client_cannot_exhaust_the_admin_port() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let mut open: Vec<TcpStream> = (0..65).map(|_| TcpStream::connect(server.admin).unwrap()).collect();
    let mut last = open.pop().unwrap();
    last.set_read_timeout(Some(HANGS)).unwrap();
    assert!(matches!(last.read(&mut [0]), Ok(0)), "one too many is closed immediately");
    for mut stream in open {
        stream.set_read_timeout(Some(HANGS)).unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert!(stream.read(&mut [0; 100]).unwrap() > 0, "who is in is served");
    }
    let is_served = || {
        let mut stream = TcpStream::connect(server.admin).unwrap();
        stream.set_read_timeout(Some(HANGS)).unwrap();
        let asked = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
        asked.and_then(|()| stream.read(&mut [0; 100])).is_ok_and(|read| read > 0)
    };
    assert!(wait_until(is_served), "and leaves room");
}

#[test]
fn pages_of_other_sites_reach_neither_port() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let code = |address, request: &str, headers: &str| {
        let (status, body) = exchange(
            address,
            &format!("{request} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: 1\r\n\r\n1"),
        );
        (status, body.contains("\"code\":\"cross_origin\""))
    };
    let rebound = "Host: evil.example:8080\r\n";
    let foreign = "Host: 127.0.0.1\r\nOrigin: http://evil.example\r\nContent-Type: text/plain\r\n";
    let null = "Host: 127.0.0.1\r\nOrigin: null\r\n";
    for (address, request) in [
        (server.intake, "POST /ingest/event"),
        (server.intake, "POST /ingest/batch/a"),
        (server.intake, "GET /events"),
        (server.intake, "GET /ip"),
        (server.admin, "GET /metrics"),
        (server.admin, "GET /api/routes"),
        (server.admin, "POST /api/reload"),
        (server.admin, "GET /"),
    ] {
        for headers in [rebound, foreign, null] {
            assert_eq!(code(address, request, headers), (403, true), "{request} {headers}");
        }
        assert_ne!(code(address, request, "Host: localhost\r\nOrigin: http://localhost\r\n").0, 403, "{request}");
        let health = code(address, "GET /healthz", "Host: evil.example\r\nOrigin: null\r\n");
        assert_eq!(health, (200, false));
    }
}

#[test]
fn allowed_host_name_reaches_a_loopback_port() {
    let folder = Folder::new();
    let mut command = forebay();
    command.env("FOREBAY_GATEWAY_ALLOWED_HOSTS", "events.example, other.example");
    let server = Server::start_by(command, &folder.data());
    let post = |host: &str, origin: &str| {
        let head = format!(
            "POST /ingest/event HTTP/1.1\r\nHost: {host}\r\n{origin}Connection: close\r\nContent-Length: 1\r\n"
        );
        exchange(server.intake, &format!("{head}\r\n1")).0
    };
    assert_eq!([post("events.example", ""), post("Other.example:443", ""), post("evil.example", "")], [200, 200, 403]);
    assert_eq!(post("events.example", "Origin: https://events.example\r\n"), 200, "TLS ends at the proxy");
    assert_eq!(post("events.example", "Origin: https://evil.example\r\n"), 403);
}

/// Each metric of a server has a series with it.
const WITH_ALL_METRICS: &str = r#"[bus]
url = "nats://127.0.0.1:1"
[bus.events]

[[bridge]]
path = "/orders/{id}"
subject = "orders"

[types.access]
time = "/time"
transform = [{ filter = "n != 7" }]
routes = ["local"]

[types.access.aggregate.hits]
window = "1m"
measures = { requests = "count" }
routes = ["local"]

[types.files]
routes = ["files"]

[intakes.events]
kind = "cloudevents"

[sinks.local]
kind = "sqlite"
retention = "30d"

[sinks.files]
kind = "s3"
url = "http://127.0.0.1:1"
bucket = "bucket"
region = "region"
access_key = "key"
secret_key = "secret"
serve = true
object = "payload"
"#;

#[test]
fn metrics_and_their_documentation_match() {
    let folder = Folder::new();
    let config = folder.write("forebay.toml", WITH_ALL_METRICS);
    let mut command = forebay();
    let token = command.args(["token", "new", "clients", "--scope", "ingest", "--data"]).arg(folder.data()).output();
    let token = String::from_utf8(token.unwrap().stdout).unwrap();
    let server = Server::start_with(&folder.data(), &["--config", &config], &folder.path("server.log"));
    for body in ["{\"n\": 1, \"time\": \"?\"}", "{\"n\": 7}", "no"] {
        let head = format!("Host: localhost\r\nConnection: close\r\nAuthorization: Bearer {}\r\n", token.trim_end());
        let length = body.len();
        exchange(
            server.intake,
            &format!("POST /ingest/event/access HTTP/1.1\r\n{head}Content-Length: {length}\r\n\r\n{body}"),
        );
    }
    // It has a metric of its registration, although no etcd is there.
    let etcd = format!(
        "[writer]\nadvertise = \"http://10.0.0.1:8081\"\n[writer.etcd]\nendpoints = [\"http://{}\"]\n",
        free_address()
    );
    let config = folder.write("writer.toml", etcd);
    let writer = BackEnd::start_on(&folder.path("writer"), "127.0.0.1:0", &["--config", &config]);
    let gateway = gateway(&folder.path("gateway"), &["--writer", &writer.url()], &folder.path("log"));
    let text = [server.metrics(), writer.metrics(), gateway.metrics()].concat();
    let rows: String = ExposedMetric::all(&text).iter().map(ExposedMetric::row).collect();
    let page = "docs/reference/metrics.md";
    let table = format!("| metric | type | labels | help |\n|---|---|---|---|\n{rows}");
    generated_block(page, "metrics", &table);
    let page = std::fs::read_to_string(page_file(page)).unwrap();
    let (explained, _) = page.split_once("<!-- generated: ").unwrap();
    for metric in ExposedMetric::all(&text) {
        let with_labels = format!("`{}{{{}}}`", metric.name, metric.labels.join(","));
        let is_named = explained.contains(&format!("`{}`", metric.name)) || explained.contains(&with_labels);
        assert!(is_named, "the page doesn't explain {with_labels}");
    }
    let names = explained.lines().filter_map(|line| line.strip_prefix("| `")?.split(['`', '{']).next());
    for name in names.filter(|name| name.starts_with("forebay_")) {
        assert!(text.contains(&format!("# TYPE {name} ")), "the page has {name}, the server doesn't");
    }
}

/// A metric as a server shows it.
struct ExposedMetric<'t> {
    name: &'t str,
    kind: &'t str,
    help: &'t str,
    labels: Vec<&'t str>,
}

impl<'t> ExposedMetric<'t> {
    /// Those of a text, by name.
    fn all(text: &'t str) -> Vec<Self> {
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
        let mut metrics: Vec<Self> = types.map(|(name, kind)| Self::new(text, name, kind)).collect();
        metrics.sort_by_key(|metric| metric.name);
        metrics.dedup_by_key(|metric| metric.name);
        metrics
    }

    fn new(text: &'t str, name: &'t str, kind: &'t str) -> Self {
        let help = text.lines().find_map(|line| line.strip_prefix("# HELP ")?.strip_prefix(name)?.strip_prefix(' '));
        let series = text.lines().filter_map(|line| line.strip_prefix(name));
        let of_histogram = ["_bucket", "_sum", "_count"];
        let series = series.filter_map(|rest| match of_histogram.iter().find_map(|end| rest.strip_prefix(end)) {
            Some(rest) if kind == "histogram" => Some(rest),
            _ => rest.starts_with(['{', ' ']).then_some(rest),
        });
        let (mut labels, mut count) = (Vec::new(), 0);
        for rest in series {
            count += 1;
            // Values may have any characters: names are outside of quotes.
            let rest: Vec<&str> = rest.split('"').step_by(2).collect();
            let names = rest.iter().filter_map(|text| text.strip_suffix('='));
            let names = names.map(|text| text.trim_start_matches(['{', ','])).filter(|name| *name != "le");
            names.for_each(|name| {
                if !labels.contains(&name) {
                    labels.push(name)
                }
            });
        }
        // What the kernel doesn't show here, such as a limit that isn't set, has no series.
        let is_from_kernel = ["process_", "forebay_process_", "forebay_container_", "forebay_pressure_"]
            .iter()
            .any(|prefix| name.starts_with(prefix));
        assert!(count > 0 || is_from_kernel, "{name} has no series: extend the configuration");
        Self { name, kind, help: help.unwrap(), labels }
    }

    fn row(&self) -> String {
        let labels: Vec<String> = self.labels.iter().map(|label| format!("`{label}`")).collect();
        format!("| `{}` | {} | {} | {} |\n", self.name, self.kind, labels.join(", "), self.help)
    }
}

#[test]
fn journal_can_be_dumped_and_exported() {
    let folder = Folder::new();
    let data = folder.data();
    let server = Server::start(&data);
    server.post("/ingest/event/access", "{\"b\" : 1,\n \"a\":2}");
    server.stop("-TERM");
    let journal = |command: &str| {
        let output = forebay().args(["journal", command, "--data"]).arg(&data).output();
        let output = output.unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(journal("export"), (0, "{\"b\" : 1,  \"a\":2}\n".to_owned()));
    let mut piped = forebay();
    piped.current_dir(folder.path("")).args(["journal", "export", "--output", "-", "--data"]).arg(&data);
    let piped = piped.output().unwrap();
    assert_eq!(piped.stdout, b"{\"b\" : 1,  \"a\":2}\n", "{piped:?}");
    assert!(!folder.path("-").exists());
    let mut written = forebay();
    written.args(["journal", "export", "--output", &folder.text("out.ndjson"), "--data"]).arg(&data);
    assert_eq!(written.output().unwrap().status.code(), Some(0));
    let mode = std::fs::metadata(folder.path("out.ndjson")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "payloads may be private");
    let (code, text) = journal("verify");
    assert!(code == 0 && text.starts_with("ok: 1 segment, 2 blocks, 1 record"), "{text}");
    assert!(journal("dump").1.contains("type access"));

    let segment = std::fs::read_dir(data.join("journal/0000")).unwrap().map(|entry| entry.unwrap().path());
    let segment = segment.filter(|path| path.extension().is_some_and(|end| end == "segment")).max().unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    let at = bytes.windows(3).position(|bytes| bytes == b"\"b\"").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let (code, text) = journal("verify");
    assert!(code == 1 && text.contains("case B") && text.contains("lost 1 record"), "{text}");
    let (code, text) = journal("repair");
    assert!(code == 0 && text.contains("1 segment rewritten, 1 record permanently lost"), "{text}");
    assert_eq!(journal("verify").0, 0);
}

#[test]
fn events_removed_by_repair_can_be_resent() {
    let folder = Folder::new();
    let data = folder.data();
    let body = "{\"number\": 77}";
    let request = format!(
        "POST /ingest/event HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: application/json\r\n\
         Idempotency-Key: k\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let is_duplicate = |server: &Server| {
        let (status, answer) = exchange(server.intake, &request);
        assert_eq!(status, 200, "{answer}");
        answer.contains("\"duplicate\":true")
    };
    let server = Server::start(&data);
    assert!(!is_duplicate(&server) && is_duplicate(&server));
    // A frame of the files of ids has 48 bytes, and an id 32.
    let ids = || below(&data.join("duplicates")).into_iter().map(|path| path.metadata().unwrap().len()).sum::<u64>();
    assert!(wait_until(|| ids() >= 80), "no id is saved");
    server.stop("-KILL");

    let holds = |path: &std::path::PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        bytes.windows(body.len()).position(|bytes| bytes == body.as_bytes()).map(|at| (bytes, at))
    };
    let (path, (mut bytes, at)) =
        below(&data.join("journal")).into_iter().find_map(|path| Some((path.clone(), holds(&path)?))).unwrap();
    bytes[at + 12] ^= 1;
    std::fs::write(path, bytes).unwrap();
    let repair = forebay().args(["journal", "repair", "--data"]).arg(&data).output().unwrap();
    assert!(String::from_utf8_lossy(&repair.stdout).contains("1 record permanently lost"), "{repair:?}");
    let server = Server::start(&data);
    assert!(!is_duplicate(&server) && is_duplicate(&server));
}

/// The text between quotes in the line that begins like this, and the path of its address.
fn example(banner: &str) -> (String, String) {
    let line = banner.lines().find(|line| line.starts_with("  curl -i ")).unwrap_or_else(|| panic!("{banner}"));
    let url = line.split(' ').find_map(|word| word.strip_prefix("http://")).unwrap();
    let path = &url[url.find('/').unwrap()..];
    (path.to_owned(), line.split('\'').nth(1).unwrap().to_owned())
}

#[test]
fn first_event_of_the_banner_is_accepted() {
    let sink = "[sinks.one]\nkind = \"null\"\n";
    for (types, expected) in [
        ("[types.b]\nroutes = [\"one\"]\n[types.c]\nroutes = [\"one\"]\n", "/ingest/event/b"),
        ("[types.b]\nroutes = [\"one\"]\n[types.event]\nroutes = [\"one\"]\n", "/ingest/event"),
        ("[types.b]\nroutes = [\"one\"]\n[types.\"*\"]\nroutes = [\"one\"]\n", "/ingest/event"),
    ] {
        let folder = Folder::new();
        folder.write("forebay.toml", format!("{types}{sink}"));
        let server = Server::start_in_terminal(&folder.data(), &folder.path("forebay.toml"));
        let (path, body) = example(&server.banner);
        assert_eq!(path, expected, "{}", server.banner);
        assert_eq!(server.post(&path, &body).0, 200);
        assert_eq!(server.stop_in_terminal(), Some(0));
        let again = Server::start_in_terminal(&folder.data(), &folder.path("forebay.toml"));
        assert!(!again.banner.contains("first event"), "it isn't the first start: {}", again.banner);
        assert_eq!(again.stop_in_terminal(), Some(0));
    }
}

#[test]
fn start_without_a_terminal_proposes_no_event() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    assert!(server.banner.contains("accepts events on") && !server.banner.contains("first event"), "{}", server.banner);
}

#[test]
fn no_event_is_proposed_that_the_schema_refuses() {
    let folder = Folder::new();
    folder.write("schema.json", r#"{"required": ["n"]}"#);
    let types = "[types.b]\nschema = \"schema.json\"\nroutes = [\"one\"]\n";
    folder.write("forebay.toml", format!("{types}[sinks.one]\nkind = \"null\"\n"));
    let server = Server::start_in_terminal(&folder.data(), &folder.path("forebay.toml"));
    assert!(server.banner.contains("/ingest/event/b -d @event.json\n"), "{}", server.banner);
    assert_eq!(server.stop_in_terminal(), Some(0));
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// All files and directories below.
fn below(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { [below(&path), vec![path]].concat() } else { vec![path] }).collect()
}

#[test]
fn files_in_data_directory_belong_to_owner() {
    let folder = Folder::new();
    folder.write("forebay.toml", "");
    let start = |data: &Path| Server::start_after("umask 0", data, &folder.path("forebay.toml"), &folder.path("log"));
    let data = folder.data();
    let server = start(&data);
    assert_eq!(server.post("/ingest/event", "1").0, 200);
    server.wait_delivered();
    assert_eq!(server.stop("-TERM"), Some(0));
    let found = below(&data);
    assert!(found.len() > 8 && found.iter().any(|path| path.ends_with("events.db")), "{found:?}");
    for path in found.iter().chain([&data]) {
        assert_eq!(mode(path), if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }

    // Files that the operator has shared with other users keep their modes.
    let shared = folder.path("shared");
    std::fs::DirBuilder::new().mode(0o750).create(&shared).unwrap();
    std::fs::set_permissions(&shared, PermissionsExt::from_mode(0o750)).unwrap();
    std::fs::write(shared.join("events.db"), "").unwrap();
    std::fs::set_permissions(shared.join("events.db"), PermissionsExt::from_mode(0o640)).unwrap();
    let server = start(&shared);
    assert_eq!(server.post("/ingest/event", "1").0, 200);
    server.wait_delivered();
    assert_eq!((mode(&shared), mode(&shared.join("events.db"))), (0o750, 0o640));
    assert_eq!(mode(&shared.join("events.db-wal")), 0o640, "readers of the store may read its log");
}

#[test]
fn only_configured_limits_are_warned_of() {
    let folder = Folder::new();
    for (config, warns) in [("", false), ("[gateway]\nmax_connections = 40000\n", true)] {
        folder.write("forebay.toml", config);
        let log = folder.path("log");
        let server = Server::start_after("ulimit -n 1000", &folder.data(), &folder.path("forebay.toml"), &log);
        assert_eq!(server.stop("-TERM"), Some(0));
        let text = std::fs::read_to_string(&log).unwrap();
        assert_eq!(text.contains("of 40000 connections can be open"), warns, "{text}");
        assert_eq!(text.contains("WARN"), warns, "{text}");
    }
}
