//! A gateway and several writers: lanes move to another writer when one is killed, silent or draining, and when the set changes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Folder, Server, exchange, payloads, wait_until};
use crate::tls::Pair;
use crate::two_services::{BackEnd, gateway};
use testkit::ports::free_address;
use testkit::postgres::PostgresServer;
use testkit::proxy::Proxy;

pub(crate) const NULL: &str = "[sinks.warehouse]\nkind = \"null\"\n";

/// A gateway with this table `[upstreams.back]`.
pub(crate) struct FrontEnd {
    /// Killed before its directory is removed.
    pub(crate) server: Server,
    pub(crate) folder: Folder,
    store: &'static str,
}

impl FrontEnd {
    pub(crate) fn start(upstream: &str, store: &'static str) -> Self {
        let folder = Folder::new();
        let config = folder.write("gateway.toml", Self::text(upstream, store));
        let server = gateway(&folder.data(), &["--config", &config], &folder.path("log"));
        Self { server, folder, store }
    }

    fn text(upstream: &str, store: &str) -> String {
        format!(
            "[upstreams.back]\n{upstream}\n[sinks.warehouse]\nkind = \"writer\"\nupstream = \"back\"\n{store}\n\
             [types.\"*\"]\nroutes = [\"warehouse\"]\n"
        )
    }

    pub(crate) fn reload(&self, upstream: &str) {
        self.folder.write("gateway.toml", Self::text(upstream, self.store));
        let admin = self.server.admin;
        let request = format!("POST /api/reload HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
        assert_eq!(exchange(admin, &request).0, 200);
    }

    pub(crate) fn post(&self, numbers: std::ops::Range<usize>) {
        for number in numbers {
            assert_eq!(self.server.post_with_key(&format!("k{number}"), &format!("{{\"number\": {number}}}")), 200);
        }
    }

    pub(crate) fn requests(&self, server: &str, outcome: &str) -> u64 {
        let labels = format!("{{upstream=\"back\",server=\"{server}\",outcome=\"{outcome}\"}}");
        self.server.metric(&format!("forebay_upstream_requests_total{labels}"))
    }
}

fn listed(writers: &[&BackEnd]) -> String {
    let urls: Vec<String> = writers.iter().map(|writer| format!("\"{}\"", writer.url())).collect();
    format!("servers = [{}]", urls.join(", "))
}

pub(crate) fn writer_on(folder: &Folder, name: &str, listen: &str, sinks: &str) -> BackEnd {
    let config = folder.write(&format!("{name}.toml"), sinks);
    BackEnd::start_on(&folder.path(name), listen, &["--config", &config])
}

fn writer(folder: &Folder, name: &str, sinks: &str) -> BackEnd {
    writer_on(folder, name, "127.0.0.1:0", sinks)
}

pub(crate) fn warehouse(postgres: &PostgresServer) -> String {
    format!("[sinks.warehouse]\nkind = \"postgres\"\nurl = \"{}\"\n", postgres.url())
}

#[test]
fn failing_writers_store_each_event_once() {
    let Some(postgres) = PostgresServer::shared() else { return };
    let folder = Folder::new();
    let mut writers = ["one", "two"].map(|name| Some(writer(&folder, name, &warehouse(&postgres))));
    let front =
        FrontEnd::start(&listed(&writers.each_ref().map(|writer| writer.as_ref().unwrap())), "store = \"postgres\"");
    front.post(0..20);
    let mut number = 20;
    for (at, name) in ["one", "two"].into_iter().enumerate() {
        // Lanes that use this one move; the other lanes stay.
        let killed = writers[at].take().unwrap();
        let address = killed.address.to_string();
        drop(killed);
        front.post(number..number + 20);
        front.server.wait_delivered();
        writers[at] = Some(writer_on(&folder, name, &address, &warehouse(&postgres)));
        let silent = writers[at].as_ref().unwrap();
        front.post(number + 20..number + 40);
        front.server.wait_delivered();
        silent.signal("-STOP");
        front.post(number + 40..number + 60);
        front.server.wait_delivered();
        silent.signal("-CONT");
        number += 60;
    }
    assert_eq!(
        postgres.psql("select count(*), count(distinct payload->>'number') from events"),
        format!("{number}|{number}")
    );
    assert!(front.server.metric("forebay_upstream_ejections_total{") > 0);
}

#[test]
fn stopping_writer_answers_its_committed_batch() {
    let Some(postgres) = PostgresServer::shared() else { return };
    let folder = Folder::new();
    let (writers, front, mut gate) = locked_out(&folder, &postgres);
    let waits = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    front.post(1..2);
    assert!(wait_until(|| postgres.psql(waits) == "1"), "the batch waits in the store");
    // Only one of the two has it, and each gets a SIGTERM.
    writers.iter().for_each(|writer| writer.signal("-TERM"));
    let refuses = |writer: &BackEnd| std::net::TcpStream::connect(writer.address).is_err();
    assert!(wait_until(|| writers.iter().all(refuses)), "they no longer accept connections");
    gate.stdin.take().unwrap().write_all(b"commit;\n").unwrap();
    assert!(gate.wait().unwrap().success());
    writers.into_iter().for_each(BackEnd::wait_stopped);
    front.server.wait_delivered();
    assert_eq!(postgres.psql("select count(*) from events"), "2");
    let no_answer = front.server.metrics();
    let lines = no_answer.lines().filter(|line| line.contains("outcome=\"no_answer\""));
    assert!(lines.clone().count() == 2 && lines.clone().all(|line| line.ends_with(" 0")), "{no_answer}");
}

#[test]
fn writer_with_slow_store_is_awaited() {
    let Some(postgres) = PostgresServer::shared() else { return };
    let folder = Folder::new();
    let (writers, front, mut gate) = locked_out(&folder, &postgres);
    front.post(1..2);
    // A writer that was silent for so long would be abandoned.
    let waits = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and now() - query_start > '5 s'";
    assert!(wait_until(|| postgres.psql(waits) == "1"), "one writer waits for the store");
    gate.stdin.take().unwrap().write_all(b"commit;\n").unwrap();
    assert!(gate.wait().unwrap().success());
    front.server.wait_delivered();
    assert_eq!(postgres.psql("select count(*) from events"), "2");
    let unanswered = writers.iter().map(|writer| front.requests(&writer.url(), "no_answer"));
    assert_eq!(unanswered.sum::<u64>(), 0);
    assert_eq!(front.server.metric("forebay_upstream_ejections_total{"), 0);
}

#[test]
fn store_failing_at_one_writer_uses_another() {
    let Some(postgres) = PostgresServer::shared() else { return };
    let folder = Folder::new();
    let proxies = [0, 1].map(|_| Proxy::start(&postgres.socket()));
    let start = |(name, proxy): (&str, &Proxy)| {
        let url = postgres.url_at(proxy.address());
        writer(&folder, name, &format!("[sinks.warehouse]\nkind = \"postgres\"\nurl = \"{url}\"\n"))
    };
    let [one, other] = &proxies;
    let writers = [start(("one", one)), start(("two", other))];
    let front = FrontEnd::start(&listed(&writers.each_ref()), "store = \"postgres\"");
    front.post(0..10);
    front.server.wait_delivered();
    // Whichever has the lane loses its store, but not its gateway.
    for (number, proxy) in (1..).zip(&proxies) {
        let hindrance = proxy.cut_after(0);
        front.post(number * 10..number * 10 + 10);
        front.server.wait_delivered();
        assert_eq!(
            postgres.psql("select count(*), count(distinct id) from events"),
            format!("{0}|{0}", number * 10 + 10)
        );
        drop(hindrance);
    }
    let failed = writers.iter().map(|writer| front.requests(&writer.url(), "store_failed"));
    assert!(failed.sum::<u64>() > 0);
}

/// A gateway with two writers that has stored one event, and a session that keeps the table from being written to.
fn locked_out(folder: &Folder, postgres: &PostgresServer) -> ([BackEnd; 2], FrontEnd, std::process::Child) {
    let writers = ["one", "two"].map(|name| writer(folder, name, &warehouse(postgres)));
    let front = FrontEnd::start(&listed(&writers.each_ref()), "store = \"postgres\"");
    front.post(0..1);
    front.server.wait_delivered();
    let gate = lock(postgres);
    (writers, front, gate)
}

/// A session that keeps the table from being written to until it commits.
fn lock(postgres: &PostgresServer) -> std::process::Child {
    let mut psql = Command::new("psql");
    psql.arg(postgres.url()).args(["-q", "-v", "ON_ERROR_STOP=1"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut session = psql.spawn().unwrap();
    let stdin = session.stdin.as_mut().unwrap();
    stdin.write_all(b"begin;\nlock table events in exclusive mode;\n").unwrap();
    let held = "select count(*) from pg_locks join pg_database on database = pg_database.oid where datname = current_database()
                and mode = 'ExclusiveLock' and granted and relation = 'events'::regclass";
    assert!(wait_until(|| postgres.psql(held) == "1"));
    session
}

#[test]
fn reload_moves_lanes_to_new_writers() {
    let folder = Folder::new();
    let [one, two] = ["one", "two"].map(|name| writer(&folder, name, NULL));
    let front = FrontEnd::start(&listed(&[&one]), "store = \"null\"");
    front.post(0..10);
    front.server.wait_delivered();
    let batches = front.server.metric("forebay_lane_batches_total{");
    front.reload(&listed(&[&two]));
    front.post(10..20);
    front.server.wait_delivered();
    assert!(front.requests(&two.url(), "answered") > 0);
    assert!(front.server.metric("forebay_lane_batches_total{") > batches, "the lanes are the ones before");
    let metrics = one.metrics();
    assert!(
        metrics.contains("\nforebay_writer_records_total 10\n"),
        "nothing was sent to the removed writer: {metrics}"
    );
    assert_eq!(front.server.metric("forebay_upstream_servers{"), 1);
}

#[test]
fn writers_are_found_by_dns() {
    let folder = Folder::new();
    let address: SocketAddr = free_address();
    let _writer = writer_on(&folder, "one", &address.to_string(), NULL);
    let dns = format!("dns = \"http://localhost:{}\"", address.port());
    let front = FrontEnd::start(&dns, "store = \"null\"");
    front.post(0..10);
    front.server.wait_delivered();
    assert!(front.requests(&address.to_string(), "answered") > 0);
    assert!(front.server.metric("forebay_upstream_lookups_total{upstream=\"back\",result=\"resolved\"}") > 0);
}

#[test]
fn writer_found_by_dns_needs_matching_certificate() {
    let (folder, pair) = (Folder::new(), Pair::new());
    let tls = "[writer.tls]\ncertificate = \"writer.pem\"\nkey = \"writer.key\"\n";
    folder.write("writer.key", &pair.key);
    let certificate = folder.write("writer.pem", &pair.certificate);
    let writer = writer(&folder, "one", &format!("{tls}{NULL}"));
    let upstream = format!("dns = \"https://localhost:{}\"\nca = \"{certificate}\"", writer.address.port());
    let front = FrontEnd::start(&upstream, "store = \"null\"");
    front.post(0..3);
    front.server.wait_delivered();
    // A client that uses http:// gets an error that says so.
    let (status, body) = exchange(writer.address, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(status == 400 && body.contains("this port speaks TLS"), "{status} {body}");
    let forgotten = FrontEnd::start(&format!("servers = [\"http://{}\"]", writer.address), "store = \"null\"");
    forgotten.post(0..1);
    let log = || std::fs::read_to_string(forgotten.folder.path("log")).unwrap();
    assert!(wait_until(|| log().contains("this port speaks TLS")), "{}", log());
    // A certificate that nothing vouches for is none.
    let strange =
        FrontEnd::start(&format!("dns = \"https://localhost:{}\"", writer.address.port()), "store = \"null\"");
    strange.post(0..1);
    let log = || std::fs::read_to_string(strange.folder.path("log")).unwrap();
    assert!(wait_until(|| log().contains("certificate")), "{}", log());
    assert_eq!(strange.server.metric("forebay_events_pending{type=\"access\",sink=\"warehouse\"}"), 1);
}

#[test]
fn unresolved_name_keeps_events_until_reload() {
    let folder = Folder::new();
    let one = writer(&folder, "one", NULL);
    let front = FrontEnd::start("dns = \"http://no-such-host.invalid:8081\"", "store = \"null\"");
    front.post(0..10);
    front.server.wait("forebay_upstream_lookups_total{upstream=\"back\",result=\"failed\"}", |failed| failed > 0);
    assert_eq!(front.server.metric("forebay_events_pending{"), 10);
    front.reload(&listed(&[&one]));
    front.server.wait_delivered();
}

#[test]
fn mode_all_stores_everything_at_each_writer() {
    let folder = Folder::new();
    let sqlite = "[sinks.warehouse]\nkind = \"sqlite\"\n";
    let [one, two] = ["one", "two"].map(|name| writer(&folder, name, sqlite));
    let upstream = format!("mode = \"all\"\nservers = {{ a = \"{}\", b = \"{}\" }}", one.url(), two.url());
    let front = FrontEnd::start(&upstream, "store = \"sqlite\"");
    front.post(0..10);
    front.server.wait_delivered();
    let address = two.address.to_string();
    drop(two);
    front.post(10..20);
    front.server.wait("forebay_events_pending{type=\"access\",sink=\"warehouse-a\"}", |pending| pending == 0);
    assert_eq!(front.server.metric("forebay_events_pending{type=\"access\",sink=\"warehouse-b\"}"), 10);
    let two = writer_on(&folder, "two", &address, sqlite);
    front.server.wait_delivered();
    one.stop();
    two.stop();
    let stored = |name: &str| payloads(Path::new(&folder.text(name)));
    assert_eq!(stored("one").len(), 20);
    assert_eq!(stored("one"), stored("two"));
}

#[test]
fn server_added_to_mode_all_gets_later_events() {
    let folder = Folder::new();
    let [one, two] = ["one", "two"].map(|name| writer(&folder, name, NULL));
    let upstream = |servers: &str| format!("mode = \"all\"\nservers = {{ {servers} }}");
    let alone = upstream(&format!("a = \"{}\"", one.url()));
    let front = FrontEnd::start(&alone, "store = \"null\"");
    front.post(0..10);
    front.server.wait_delivered();
    front.reload(&upstream(&format!("a = \"{}\", b = \"{}\"", one.url(), two.url())));
    front.post(10..15);
    front.server.wait_delivered();
    let delivered =
        |sink: &str| front.server.metric(&format!("forebay_events_stored_total{{type=\"access\",sink=\"{sink}\"}}"));
    assert_eq!((delivered("warehouse-a"), delivered("warehouse-b")), (15, 5));
    front.reload(&alone);
    front.post(15..20);
    front.server.wait("forebay_events_pending{type=\"access\",sink=\"warehouse-a\"}", |pending| pending == 0);
}

#[test]
fn batches_are_spread_over_the_writers() {
    let folder = Folder::new();
    let writers = ["one", "two"].map(|name| writer(&folder, name, NULL));
    let front = FrontEnd::start(&format!("{}\nspread = \"batch\"", listed(&writers.each_ref())), "store = \"null\"");
    let uses_both = || {
        assert_eq!(front.server.post("/ingest/event", "1").0, 200);
        writers.iter().all(|writer| front.requests(&writer.url(), "answered") > 5)
    };
    assert!(wait_until(uses_both), "{}", front.server.metrics());
}

/// Starts a server that is no writer: it answers every request with this status. It serves until the process ends. Returns its URL.
fn foreign_server(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| drop(refuse(stream, status))));
    url
}

fn refuse(mut stream: TcpStream, status: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    write!(stream, "HTTP/1.1 {status}\r\nLocation: /elsewhere\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")
}

#[test]
fn servers_that_are_no_writers_are_ejected() {
    let folder = Folder::new();
    let writers = ["one", "two"].map(|name| writer(&folder, name, NULL));
    let strays = ["401 Unauthorized", "403 Forbidden", "404 Not Found", "200 OK", "302 Found"].map(foreign_server);
    let urls: Vec<String> = writers.iter().map(BackEnd::url).chain(strays.clone()).collect();
    let front = FrontEnd::start(&format!("servers = {urls:?}\nspread = \"batch\""), "store = \"null\"");
    let ejections = |url: &str| {
        front.server.metric(&format!("forebay_upstream_ejections_total{{upstream=\"back\",server=\"{url}\"}}"))
    };
    let ejected = || front.server.metric("forebay_upstream_servers{upstream=\"back\",state=\"ejected\"}");
    let is_ejected = wait_until(|| ejected() == strays.len() as u64);
    assert!(is_ejected && strays.iter().all(|url| ejections(url) == 1), "{}", front.server.metrics());
    let refused: Vec<u64> = strays.iter().map(|url| front.requests(url, "refused")).collect();
    front.post(0..50);
    front.server.wait_delivered();
    assert!(strays.iter().all(|url| front.requests(url, "answered") == 0));
    assert!(writers.iter().all(|writer| ejections(&writer.url()) == 0));
    // Probes continue, and a stray gets nothing else.
    let is_probed_again = || strays.iter().zip(&refused).all(|(url, before)| front.requests(url, "refused") > *before);
    assert!(wait_until(is_probed_again) && ejected() == strays.len() as u64, "{}", front.server.metrics());
}
