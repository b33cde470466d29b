//! The binary as its users meet it: started on free ports, posted to, looked at, stopped and killed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A running server; killed when it is dropped.
struct Server {
    process: Child,
    intake: SocketAddr,
    admin: SocketAddr,
}

impl Server {
    /// Starts it on ports that the operating system chooses, and reads from the banner which they are.
    fn start(data: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data"]).arg(data);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut banner = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut address = |mark: &str| -> SocketAddr {
            let line = banner.find(|line| line.contains(mark)).unwrap();
            let rest = line.split("http://").nth(1).unwrap();
            rest.split(['/', ' ']).next().unwrap().parse().unwrap()
        };
        let (intake, admin) = (address("takes events on"), address("/metrics"));
        Self { process, intake, admin }
    }

    fn post(&self, path: &str, body: &str) -> (u16, String) {
        let length = body.len();
        exchange(
            self.intake,
            &format!("POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"),
        )
    }

    fn metrics(&self) -> String {
        exchange(self.admin, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").1
    }

    fn metric(&self, series: &str) -> u64 {
        let text = self.metrics();
        let line = text.lines().find(|line| line.starts_with(series)).unwrap_or_else(|| panic!("{series} in {text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    fn wait_stored(&self) {
        while self.metric("forebay_events_pending{type=\"event\"") > 0 {
            std::thread::yield_now();
        }
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.process.id().to_string()]).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn exchange(address: SocketAddr, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

fn payloads(data: &Path) -> Vec<String> {
    let connection = rusqlite::Connection::open(data.join("events.db")).unwrap();
    let mut statement = connection.prepare("select payload from events order by rowid").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn what_is_posted_is_stored_once_through_a_kill_and_a_stop() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::start(&data);
    assert_eq!(server.post("/ingest/event", "{\"n\":1}").0, 200);
    let (status, answer) = server.post("/ingest/batch", "{\"n\":2}\nno\n{\"n\":3}\n");
    assert_eq!(status, 207, "{answer}");
    assert!(answer.contains("\"accepted\":2") && answer.contains("\"line\":2"), "{answer}");
    server.wait_stored();
    server.signal("-KILL");
    drop(server);

    let mut server = Server::start(&data);
    assert_eq!(server.post("/ingest/event", "4").0, 200);
    server.wait_stored();
    for (series, expected) in [("accepted_total", 4), ("stored_total", 4), ("dead_total", 0), ("skipped_total", 0)] {
        assert_eq!(server.metric(&format!("forebay_events_{series}{{type=\"event\"")), expected, "{series}");
    }
    assert_eq!(server.metric("forebay_ledger_errors_total"), 0);
    assert_eq!(server.metric("forebay_refusals_total{code=\"json\"}"), 0);
    server.signal("-TERM");
    assert_eq!(server.process.wait().unwrap().code(), Some(0));
    assert_eq!(payloads(&data), ["{\"n\":1}", "{\"n\":2}", "{\"n\":3}", "4"]);
}

#[test]
fn a_second_process_is_refused_and_harms_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::start(&data);
    let second = Command::new(env!("CARGO_BIN_EXE_forebay"))
        .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data"])
        .arg(&data)
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&second.stderr).contains("is in use by another Forebay"));
    assert_eq!(server.post("/ingest/event", "1").0, 200);
}

#[test]
fn every_metric_is_documented_and_the_other_way_round() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let text = server.metrics();
    let page = include_str!("../../../docs/metrics.md");
    let shown: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    for name in &shown {
        assert!(
            page.contains(&format!("`{name}`")) || page.contains(&format!("`{name}{{")),
            "{name} isn't in the page"
        );
    }
    let documented = page.lines().filter_map(|line| line.strip_prefix("| `")?.split(['`', '{']).next());
    for name in documented {
        assert!(shown.contains(&name), "the page has {name}, the server doesn't");
    }
}

#[test]
fn the_journal_can_be_looked_into() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut server = Server::start(&data);
    server.post("/ingest/event/access", "{\"b\" : 1,\n \"a\":2}");
    server.signal("-TERM");
    server.process.wait().unwrap();
    let journal = |command: &str| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_forebay")).args(["journal", command, "--data"]).arg(&data).output();
        let output = output.unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(journal("export"), (0, "{\"b\" : 1,  \"a\":2}\n".to_owned()));
    let (code, text) = journal("verify");
    assert!(code == 0 && text.starts_with("ok: 1 segment(s), 2 block(s), 1 record(s)"), "{text}");
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
    assert!(code == 0 && text.contains("1 segment(s) written anew, 1 record(s) lost"), "{text}");
    assert_eq!(journal("verify").0, 0);
}
