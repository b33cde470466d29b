//! `forebay bench` against the real server: what it says was stored is what is stored.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server; killed when it is dropped.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn start(data: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data"]).arg(data);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut banner = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let line = banner.find(|line| line.contains("takes events on")).unwrap();
        let url = format!("http://{}", line.split("http://").nth(1).unwrap().split(' ').next().unwrap());
        // Read on to the end, or the server could meet a closed pipe.
        std::thread::spawn(move || banner.for_each(drop));
        Self { process, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn bench(server: &Server, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.args(["bench", "--url", &server.url, "--duration", "300ms", "--connections", "5"]).args(arguments);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap(), text)
}

/// A number of the result in JSON.
fn number(text: &str, name: &str) -> f64 {
    let rest = text.split(&format!("\"{name}\":")).nth(1).unwrap_or_else(|| panic!("no {name} in {text}"));
    rest.split([',', '}']).next().unwrap().parse().unwrap()
}

fn rows(data: &Path) -> f64 {
    let connection = rusqlite::Connection::open(data.join("events.db")).unwrap();
    connection.query_row("select count(*) from events", [], |row| row.get(0)).unwrap()
}

#[test]
fn every_acknowledged_event_is_found_in_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::start(&data);
    let store = data.join("events.db");
    let mut events = 0.0;
    let verify = ["--json", "--verify", store.to_str().unwrap()];
    for more in [&[][..], &["--key"], &["--rate", "100"], &["--batch", "7", "--kind", "job"]] {
        let (code, text) = bench(&server, &[&verify, more].concat());
        assert_eq!(code, 0, "{text}");
        assert_eq!((number(&text, "lost"), number(&text, "doubled")), (0.0, 0.0), "{text}");
        assert!(number(&text, "acknowledged") > 0.0, "{text}");
        events += number(&text, "acknowledged");
        assert!(rows(&data) == events, "{} rows, {text}", rows(&data));
    }
}

#[test]
fn what_is_refused_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let file = folder.path().join("lines");
    std::fs::write(&file, "no\n").unwrap();
    let (code, text) = bench(&server, &["--file", file.to_str().unwrap()]);
    assert!(code == 3 && text.contains("answered 400"), "{text}");
}
