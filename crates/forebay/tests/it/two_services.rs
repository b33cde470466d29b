//! A gateway and a writer as two processes: from a request to the writer's store, with both killed.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{Folder, PROTOCOL, Running, Server, after, exchange, forebay, payloads, wait_until};
use testkit::ports::free_address;

/// A writer; killed when it is dropped.
pub(crate) struct BackEnd {
    process: Running,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
}

impl BackEnd {
    /// Starts it on this address, and waits until it says that it listens.
    pub(crate) fn start_on(data: &Path, listen: &str, arguments: &[&str]) -> Self {
        let mut command = forebay();
        command.arg("writer").args(arguments);
        Self::start_by(command, data, listen)
    }

    /// The same by this command.
    pub(crate) fn start_by(mut command: Command, data: &Path, listen: &str) -> Self {
        command.args(["--listen", listen, "--admin", "127.0.0.1:0", "--data"]).arg(data);
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map(Result::unwrap);
        let line = lines.find(|line| line.contains("accepts batches on")).expect("the writer starts");
        let mut addresses =
            line.split("://").skip(1).map(|rest| rest.split([' ', '/']).next().unwrap().parse().unwrap());
        let (address, admin) = (addresses.next().unwrap(), addresses.next().unwrap());
        // Read on to the end, or the writer could meet a closed pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process: Running(process), address, admin }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn metrics(&self) -> String {
        exchange(self.admin, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").1
    }

    /// Ends it in an orderly way.
    pub(crate) fn stop(self) {
        self.signal("-TERM");
        self.wait_stopped();
    }

    pub(crate) fn signal(&self, signal: &str) {
        self.process.signal(signal);
    }

    /// Waits for its orderly end.
    pub(crate) fn wait_stopped(self) {
        assert_eq!(self.wait_end(), Some(0));
    }

    /// Waits for its end and returns its exit code, if it ends with one.
    pub(crate) fn wait_end(mut self) -> Option<i32> {
        self.process.wait_end()
    }
}

pub(crate) fn gateway(data: &Path, arguments: &[&str], log: &Path) -> Server {
    let mut command = forebay();
    command.arg("gateway").args(arguments).stderr(std::fs::File::create(log).unwrap());
    Server::spawn_serving(command, data, "127.0.0.1:0", "127.0.0.1:0")
}

/// A gateway's and a writer's places of one test.
struct Places {
    folder: Folder,
}

impl Places {
    fn new() -> Self {
        Self { folder: Folder::new() }
    }

    fn writer(&self) -> PathBuf {
        self.folder.path("writer")
    }

    fn gateway(&self, url: &str) -> Server {
        gateway(&self.folder.data(), &["--writer", url], &self.folder.path("log"))
    }
}

#[test]
fn writer_stores_each_event_once_through_kills() {
    let places = Places::new();
    let address = free_address().to_string();
    let mut writer = BackEnd::start_on(&places.writer(), &address, &[]);
    let mut server = places.gateway(&writer.url());
    let mut number = 0;
    let post = |server: &Server, number: usize| {
        assert_eq!(server.post_with_key(&format!("k{number}"), &format!("{{\"number\":  {number}}}")), 200);
    };
    for round in 0..4 {
        for _ in 0..50 {
            post(&server, number);
            number += 1;
        }
        // Events in flight now are stored or not: their outcome is unknown.
        drop(writer);
        if round % 2 == 1 {
            drop(server);
        } else {
            post(&server, number);
            number += 1;
            drop(server);
        }
        writer = BackEnd::start_on(&places.writer(), &address, &[]);
        server = places.gateway(&writer.url());
        // Some are resent, as by a client that got no answer.
        (0..number).step_by(7).for_each(|again| post(&server, again));
    }
    server.wait_delivered();
    drop(server);
    writer.stop();
    let stored = payloads(&places.writer());
    assert_eq!(stored.len(), number, "none is there twice");
    let expected: BTreeSet<String> = (0..number).map(|number| format!("{{\"number\":  {number}}}")).collect();
    assert!(stored.into_iter().collect::<BTreeSet<_>>() == expected, "byte for byte");
}

#[test]
fn events_are_read_back_through_the_writer() {
    let places = Places::new();
    let writer = BackEnd::start_on(&places.writer(), "127.0.0.1:0", &[]);
    let server = places.gateway(&writer.url());
    let (status, _) = server.post("/ingest/event/order", "{\"number\": 7}");
    assert_eq!(status, 200);
    server.wait_delivered();
    let request = format!("GET /events?type=order HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.intake);
    let (status, page) = exchange(server.intake, &request);
    assert_eq!(status, 200, "{page}");
    assert!(page.contains("{\"number\": 7}"), "{page}");
}

#[test]
fn dead_letter_is_replayed_through_the_writer() {
    let places = Places::new();
    let writer = BackEnd::start_on(&places.writer(), "127.0.0.1:0", &[]);
    let server = places.gateway(&writer.url());
    assert_eq!(server.post("/ingest/event", "1").0, 200);
    server.wait_delivered();
    let store = rusqlite::Connection::open(places.writer().join("events.db")).unwrap();
    store.execute_batch("create unique index one_of_each on events (payload)").unwrap();
    assert_eq!(server.post("/ingest/event", "1").0, 200);
    server.wait("forebay_dead_letters{", |held| held == 1);
    store.execute_batch("drop index one_of_each").unwrap();
    let replay = || {
        let mut command = forebay();
        command.args(["dead", "replay", "--admin", &server.admin.to_string(), "--data"]).arg(places.folder.data());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let mut said = String::new();
    let is_stored = || {
        said = replay();
        said.contains(" 1 stored")
    };
    assert!(wait_until(is_stored), "{said}");
    assert_eq!(payloads(&places.writer()), ["1", "1"]);
}

#[test]
fn only_scope_deliver_opens_a_writer() {
    let places = Places::new();
    let token = |name: &str, scope: &str| {
        let mut command = forebay();
        command.args(["token", "new", name, "--scope", scope, "--data"]).arg(places.writer());
        String::from_utf8(command.output().unwrap().stdout).unwrap().trim().to_owned()
    };
    let (deliver, ingest) = (token("gateways", "deliver"), token("clients", "ingest,read,admin"));
    let writer = BackEnd::start_on(&places.writer(), "127.0.0.1:0", &[]);
    let configure = |token: &str| {
        let text = format!(
            "[upstreams.back]\nservers = [\"{}\"]\ntoken = \"{token}\"\n[sinks.local]\nkind = \"writer\"\nupstream = \"back\"\n\
             store = \"sqlite\"\n[types.\"*\"]\nroutes = [\"local\"]\n",
            writer.url()
        );
        places.folder.write("gateway.toml", text)
    };
    let config = configure(&ingest);
    let server = gateway(&places.folder.data(), &["--config", &config], &places.folder.path("log"));
    assert_eq!(server.post("/ingest/event", "1").0, 200, "events are accepted while the writer rejects requests");
    let request = format!("GET /api/routes HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.admin);
    let says_why = || exchange(server.admin, &request).1.contains("the token lacks the scope `deliver`");
    assert!(wait_until(says_why), "{:?}", exchange(server.admin, &request));
    drop(server);
    let config = configure(&deliver);
    let server = gateway(&places.folder.data(), &["--config", &config], &places.folder.path("log"));
    server.wait_delivered();
    assert_eq!(payloads(&places.writer()), ["1"]);
}

#[test]
fn invalid_batch_requests_are_rejected_with_advice() {
    let places = Places::new();
    let writer = BackEnd::start_on(&places.writer(), "127.0.0.1:0", &[]);
    let ask = |head: &str, body: &str| {
        let length = body.len();
        let host = writer.address;
        let request =
            format!("{head}{PROTOCOL}Host: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
        exchange(writer.address, &request)
    };
    for (head, body, status, says) in [
        ("POST /ingest/data HTTP/1.1\r\n", "{}", 415, "gateway"),
        ("POST /ingest/data/local HTTP/1.1\r\nContent-Type: application/json\r\n", "{}", 415, "gateway"),
        ("POST /ingest/event HTTP/1.1\r\n", "{}", 404, "gateway"),
        ("GET /ingest/data/other HTTP/1.1\r\n", "", 404, "it has: local"),
        ("GET /ingest/data/local/cursor HTTP/1.1\r\n", "", 400, "Forebay-Lane"),
        ("GET /ingest/data/local HTTP/1.1\r\nOrigin: http://evil.example\r\n", "", 403, "web pages"),
        (
            "POST /ingest/data/local HTTP/1.1\r\nContent-Type: application/vnd.forebay.batch\r\nForebay-Positions: 1-1\r\n\
             Forebay-Lane: 00000000000000000000000000000001/0/local\r\n",
            "FBB1 this is no frame",
            400,
            "checksum",
        ),
    ] {
        let (found, answer) = ask(head, body);
        assert_eq!(found, status, "{head}: {answer}");
        assert!(answer.contains(says), "{head}: {answer}");
    }
    // This creates the table.
    assert_eq!(ask("GET /ingest/data/local HTTP/1.1\r\n", "").0, 200);
    drop(writer);
    assert!(payloads(&places.writer()).is_empty());
}

/// Files of at most ten events: kills have to happen while some are being written.
const OBJECTS: &str = "envelope = true\nmax_records = 10\nmax_age = \"1s\"\n";

#[test]
fn objects_hold_each_event_once_through_kills() {
    let places = Places::new();
    let address = free_address().to_string();
    let config = places
        .folder
        .write("writer.toml", format!("[sinks.archive]\nkind = \"directory\"\npath = \"archive\"\n{OBJECTS}"));
    let start = || BackEnd::start_on(&places.writer(), &address, &["--config", &config]);
    let mut writer = start();
    let text = format!(
        "[upstreams.back]\nservers = [\"{}\"]\n[sinks.archive]\nkind = \"writer\"\nupstream = \"back\"\n\
         store = \"directory\"\nserve = true\n{OBJECTS}[types.\"*\"]\nroutes = [\"archive\"]\n",
        writer.url()
    );
    let config = places.folder.write("gateway.toml", text);
    let server = gateway(&places.folder.data(), &["--config", &config], &places.folder.path("log"));
    let archive = places.writer().join("archive");
    let objects = || std::fs::read_dir(&archive).into_iter().flatten().count();
    let mut number = 0;
    for _ in 0..4 {
        let before = objects();
        for _ in 0..50 {
            assert_eq!(server.post("/ingest/event", &format!("{{\"number\": {number}}}")).0, 200);
            number += 1;
        }
        // One object of this round is there, and others are in flight.
        assert!(wait_until(|| objects() > before));
        drop(writer);
        writer = start();
    }
    server.wait_delivered();
    let stored = crate::directory::read(&archive);
    let numbers: BTreeSet<u64> = stored.values().map(|payload| payload["number"].as_u64().unwrap()).collect();
    assert_eq!(stored.len(), number, "none is there twice");
    assert_eq!(numbers, (0..number as u64).collect());
    // They are read back through the writer as well.
    let names = std::fs::read_dir(archive.join(crate::directory::MANIFESTS)).unwrap();
    let name = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).max().unwrap();
    let name = format!("{}/{name}", crate::directory::MANIFESTS);
    let request =
        format!("GET /objects/archive/{name} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.intake);
    let (status, answer) = exchange(server.intake, &request);
    assert_eq!(status, 200, "{answer}");
    assert!(answer.ends_with(&std::fs::read_to_string(archive.join(&name)).unwrap()), "{answer}");
    for missing in [request.replace("-0000-0", "-0000-9"), request.replace("/archive/", "/archive/folder/")] {
        assert_eq!(exchange(server.intake, &missing).0, 404, "{missing}");
    }
}

#[test]
fn gateway_connections_leave_descriptors_for_files() {
    let places = Places::new();
    // Sixteen connections would take all that the soft limit leaves.
    let mut command = after("ulimit -n 200; ulimit -Sn 20");
    command.arg("writer");
    let writer = BackEnd::start_by(command, &places.writer(), "127.0.0.1:0");
    let mut gateways: Vec<TcpStream> = (0..150).map(|_| TcpStream::connect(writer.address).unwrap()).collect();
    let request = format!("GET /ingest/data/local HTTP/1.1\r\n{PROTOCOL}Host: {}\r\n\r\n", writer.address);
    // A silent connection yields to a later one: the address has half of the 100 places.
    for gateway in &mut gateways[100..] {
        gateway.write_all(request.as_bytes()).unwrap();
        let mut answer = [0; 15];
        gateway.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200 OK");
    }
    assert!(writer.metrics().contains("forebay_writer_batches_total"));
}
