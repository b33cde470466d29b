//! Findings of a real server that lacks something, provoked without rights: a reader of its log, descriptors, a CPU, a quick disk. Control groups,
//! a stolen CPU and a clock that jumps need the rights of root: `findings/tests.rs` has these from recorded figures.

use std::io::{PipeReader, pipe};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Folder, Running, Server, exchange, forebay, wait_until};

fn health(server: &Server) -> Value {
    let request = "GET /api/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let (status, body) = exchange(server.admin, request);
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// Waits for a finding, and does something in the meantime.
fn wait_for(server: &Server, code: &str, mut meanwhile: impl FnMut()) -> Value {
    let mut seen = Value::Null;
    let is_found = wait_until(|| {
        meanwhile();
        seen = health(server);
        seen["findings"].as_array().unwrap().iter().any(|finding| finding["code"] == code)
    });
    assert!(is_found, "no {code} in {seen}");
    let found = seen["findings"].as_array().unwrap().iter().find(|finding| finding["code"] == code).unwrap().clone();
    assert!(found["since"].as_str().unwrap().starts_with("20"), "{found}");
    assert!(server.metrics().contains(&format!("forebay_finding{{finding=\"{code}\"}} 1\n")), "{code}");
    found
}

/// The metric of an idle server, which a test compares with.
fn assert_absent(server: &Server, code: &str) {
    assert!(server.metrics().contains(&format!("forebay_finding{{finding=\"{code}\"}} 0\n")), "{code}");
}

fn put_level(server: &Server, body: &str) -> (u16, String) {
    let length = body.len();
    let request = format!(
        "PUT /api/log HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    exchange(server.admin, &request)
}

/// A server whose log nothing reads.
fn unread(folder: &Folder) -> (Server, PipeReader) {
    let (reader, output) = pipe().unwrap();
    let mut command = forebay();
    command.arg("serve").stderr(output);
    (Server::start_command(command, &folder.data()), reader)
}

#[test]
fn unread_log_is_a_finding_and_its_lines_are_kept() {
    let (folder, idle) = (Folder::new(), Folder::new());
    let control = Server::start(&idle.data());
    let (server, _reader) = unread(&folder);
    let mut requests = 0;
    // Changes are always logged.
    let found = wait_for(&server, "log", || {
        if server.metric("forebay_log_dropped_total") == 0 {
            (0..200).for_each(|_| assert_eq!(put_level(&server, "{\"level\":\"info\",\"for\":\"1h\"}").0, 200));
            requests += 200;
        }
    });
    assert_eq!((&found["level"], requests > 1_000), (&"error".into(), true), "{found}");
    assert!(found["text"].as_str().unwrap().contains("nothing read stderr"), "{found}");
    assert_absent(&control, "log");
    let log = exchange(server.admin, "GET /api/log HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").1;
    let lines = serde_json::from_str::<Value>(&log).unwrap()["lines"].as_array().unwrap().len();
    assert_eq!(lines, 1_000);
}

#[test]
fn used_up_descriptors_are_a_finding() {
    let (folder, idle) = (Folder::new(), Folder::new());
    let control = Server::start(&idle.data());
    let server = Server::start_with_descriptors(&folder.data(), 64, Some(50_000), &folder.path("log"));
    let mut clients = Vec::new();
    let found = wait_for(&server, "descriptors", || {
        if clients.len() < 60 {
            clients.push(TcpStream::connect(server.intake).unwrap());
        }
    });
    assert!(found["text"].as_str().unwrap().contains("64 file descriptors"), "{found}");
    assert_absent(&control, "descriptors");
}

/// With 64 descriptors 32 connections can be open, half of them from one client: 44 descriptors are in use.
#[test]
fn client_that_descriptors_limit_is_a_finding() {
    let folder = Folder::new();
    let server = Server::start_with_descriptors(&folder.data(), 64, None, &folder.path("log"));
    let _clients: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(server.intake).unwrap()).collect();
    let found = wait_for(&server, "descriptors", || {});
    let text = found["text"].as_str().unwrap();
    assert!(text.starts_with("closed 4 connections ") && text.contains("64 file descriptors"), "{found}");
    assert!(text.contains(" 32 connections can be open, 16 of them from one client"), "{found}");
}

#[test]
fn neighbours_on_its_cpu_are_a_finding() {
    let folder = Folder::new();
    let mut command = Command::new("taskset");
    // The scheduler prefers threads that sleep most of the time, unless others have a higher priority.
    command.args(["-c", "0", "nice", "-n", "15", env!("CARGO_BIN_EXE_forebay"), "serve"]).stderr(Stdio::null());
    if Command::new("taskset").arg("--version").output().is_err() {
        return testkit::skipped::report("taskset is not installed");
    }
    let server = Server::start_command(command, &folder.data());
    let spin =
        || Running(Command::new("taskset").args(["-c", "0", "sh", "-c", "while :; do :; done"]).spawn().unwrap());
    let _neighbours: Vec<Running> = (0..6).map(|_| spin()).collect();
    let found = wait_for(&server, "cpu_busy", || assert_eq!(server.post("/ingest/event", "1").0, 200));
    assert!(found["text"].as_str().unwrap().contains("thread shard-"), "{found}");
}

#[test]
fn slow_disk_is_a_finding_and_its_fdatasync_is_logged() {
    let (folder, idle) = (Folder::new(), Folder::new());
    let control = Server::start(&idle.data());
    let server = Server::start_with(&folder.data(), &[], &folder.path("log"));
    let pid = server.id().to_string();
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=fdatasync", "-e", "inject=fdatasync:delay_enter=1200000", "-p", &pid]);
    let Ok(tracer) = strace.stderr(Stdio::null()).spawn() else {
        return testkit::skipped::report("strace is not installed");
    };
    let mut tracer = Running(tracer);
    let mut is_refused = false;
    let is_attached = wait_until(|| {
        is_refused = tracer.0.try_wait().unwrap().is_some();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        is_refused || !status.contains("TracerPid:\t0\n")
    });
    if is_refused {
        return testkit::skipped::report("strace may not trace here");
    }
    assert!(is_attached);
    let found = wait_for(&server, "disk_slow", || assert_eq!(server.post("/ingest/event", "1").0, 200));
    assert!(found["text"].as_str().unwrap().contains("the slowest percent of fdatasyncs took"), "{found}");
    assert_absent(&control, "disk_slow");
    let log = std::fs::read_to_string(folder.path("log")).unwrap();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("an fdatasync took more than 1 s")).collect();
    assert!(lines.len() == 1 && lines[0].contains(" shard=0 ") && lines[0].contains(" events=1 "), "{log}");
}
