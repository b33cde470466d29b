//! `forebay top` and `forebay tap`, with the real binary, also in a terminal.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::support::{Folder, HANGS, Running, Server, forebay, wait_until};
use crate::watch::Stream;

/// Starts a command, and passes on its lines.
fn start(arguments: &[&str], admin: SocketAddr) -> (Running, Receiver<String>) {
    let mut process =
        forebay().args(arguments).args(["--admin", &admin.to_string()]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let (sent, received) = channel();
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| drop(sent.send(line))));
    (Running(process), received)
}

/// The first line that is printed while this is posted again and again: a tap shows what comes after it was opened.
fn first_line(lines: &Receiver<String>, server: &Server, path: &str, body: &str) -> String {
    let mut line = None;
    assert!(wait_until(|| {
        server.post(path, body);
        line = lines.recv_timeout(Duration::from_millis(20)).ok();
        line.is_some()
    }));
    line.unwrap()
}

#[test]
fn tap_prints_events_until_it_is_killed() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let (mut text, lines) = start(&["tap", "--type", "access", "--where", "n > 1", "--rate", "2000"], server.admin);
    server.post("/ingest/event/access", "{\"n\": 1}");
    // A control character in a terminal would be obeyed.
    let line = first_line(&lines, &server, "/ingest/event/access", "{\"n\": 2, \"s\": \"\u{9b}31m\"}");
    assert!(line.contains("  accepted  access  0:") && line.ends_with("{\"n\": 2, \"s\": \"\\u009b31m\"}"), "{line}");
    let (mut json, lines) = start(&["tap", "--at", "refused", "--output", "json"], server.admin);
    let line: Value = serde_json::from_str(&first_line(&lines, &server, "/ingest/event/access", "no JSON")).unwrap();
    assert_eq!((&line["code"], &line["type"]), (&"json".into(), &"other".into()));
    for process in [&mut text, &mut json] {
        process.signal("-KILL");
        process.wait_end();
    }
    let is_free = || {
        let taps: Vec<Stream> = (0..4).map(|_| Stream::open(server.admin, "/api/tap")).collect();
        taps.iter().all(|tap| tap.status == 200)
    };
    assert!(wait_until(is_free), "killed clients leave their places");
    let refused = forebay().args(["tap", "--sink", "x", "--admin", &server.admin.to_string()]).output().unwrap();
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(1) && error.contains("use sink with at=stored"), "{error}");
}

#[test]
fn top_prints_one_screen_or_lines() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    assert_eq!(server.post("/ingest/event/access", "{}").0, 200);
    let output = forebay().args(["top", "--admin", &server.admin.to_string()]).output().unwrap();
    let screen = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{screen}");
    assert!(screen.contains("\nevents    1 accepted") && screen.contains("\nlocal  sqlite"), "{screen}");
    assert!(!screen.contains('\u{1b}'), "{screen}");
    let (mut process, lines) = start(&["top", "--output", "json"], server.admin);
    for n in 1..3 {
        let line: Value = serde_json::from_str(&lines.recv_timeout(HANGS).unwrap()).unwrap();
        assert!(line["totals"]["accepted"] == 1 && line["n"].as_u64() > Some(n), "{line}");
    }
    assert_eq!(server.stop("-TERM"), Some(0));
    assert_eq!(process.wait_end(), Some(1), "the stream has ended");
}

#[test]
fn top_restores_the_terminal() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "exec script -qec \"exec $*\" /dev/null",
        "sh",
        env!("CARGO_BIN_EXE_forebay"),
        "top",
        "--admin",
    ]);
    let command = command.arg(server.admin.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut top = Running(command.spawn().unwrap());
    let mut printed = top.0.stdout.take().unwrap();
    let mut seen = String::new();
    let mut until = |wanted: &str| {
        let mut bytes = [0; 4096];
        while !seen.contains(wanted) {
            let read = printed.read(&mut bytes).unwrap();
            assert!(read > 0, "no {wanted:?} in {seen:?}");
            seen += &String::from_utf8_lossy(&bytes[..read]);
        }
        seen = seen.split_off(seen.find(wanted).unwrap());
    };
    until("\u{1b}[?1049h\u{1b}[?25l");
    until("\u{1b}[H");
    until("SINK");
    until("\u{1b}[H");
    assert_eq!(server.stop("-TERM"), Some(0));
    until("NOT LIVE");
    top.0.stdin.as_mut().unwrap().write_all(b"q").unwrap();
    until("\u{1b}[?25h\u{1b}[?1049l");
    assert_eq!(top.wait_end(), Some(0));
}
