//! `forebay bench` against the real server: its report agrees with the store.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;

use crate::support::{Folder, Running, Server, forebay};

fn bench(server: &Server, arguments: &[&str]) -> (i32, String) {
    let mut command = forebay();
    command.args(["bench", "--url", &server.url(), "--duration", "300ms", "--connections", "5"]).args(arguments);
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
    let folder = Folder::new();
    let data = folder.data();
    let server = Server::start(&data);
    let store = data.join("events.db");
    let mut events = 0.0;
    let verify = ["--json", "--verify", store.to_str().unwrap()];
    for more in [&[][..], &["--key"], &["--rate", "10"], &["--batch", "7", "--kind", "job"]] {
        let (code, text) = bench(&server, &[&verify, more].concat());
        assert_eq!(code, 0, "{text}");
        assert_eq!((number(&text, "lost"), number(&text, "doubled")), (0.0, 0.0), "{text}");
        assert!(number(&text, "acknowledged") > 0.0, "{text}");
        events += number(&text, "acknowledged");
        assert!(rows(&data) == events, "{} rows, {text}", rows(&data));
    }
}

#[test]
fn rejected_requests_are_counted() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let file = folder.write("lines", "no\n");
    let (code, text) = bench(&server, &["--file", &file]);
    assert!(code == 3 && text.contains("answered 400"), "{text}");
    assert!(text.contains(", the first: found a word without double quotes"), "the server's message: {text}");
    let last = text.lines().find(|line| line.starts_with("result")).unwrap();
    assert!(last.contains("NOT CLEAN: ") && last.contains("got another status than 200"), "{text}");
}

#[test]
fn missed_schedule_is_reported() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    // No machine sends ten million requests a second over five connections.
    let (code, text) = bench(&server, &["--rate", "10000000"]);
    assert!(code == 3 && text.contains("weren't sent in time: give more --connections"), "{text}");
    let (code, text) = bench(&server, &[]);
    assert!(code == 0 && text.ends_with("result              clean\n"), "{text}");
}

#[test]
fn wrong_store_is_reported_before_the_load() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let other = folder.path("other.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch("create table other (payload text)").unwrap();
    for (name, why) in [("absent.db", "there is no file"), ("other.db", "no table `events`")] {
        let (code, text) = bench(&server, &["--verify", &folder.text(name)]);
        assert!(code == 1 && text.contains(why), "{text}");
    }
    assert_eq!(server.metric("forebay_events_accepted_total"), 0);
}

/// Another server's store looks right, and gets no events.
#[test]
fn figures_are_shown_before_the_store_is_checked() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let other = folder.text("other.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch("create table events (payload text)").unwrap();
    let mut command = forebay();
    command.args(["bench", "--url", &server.url(), "--duration", "100ms", "--connections", "2", "--verify", &other]);
    let mut process = Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(process.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let shown: Vec<String> = lines.by_ref().take_while(|line| !line.starts_with("own CPU")).collect();
    assert!(shown.iter().any(|line| line.starts_with("latency p99")), "{shown:?}");
    assert!(process.0.try_wait().unwrap().is_none(), "it still looks for them");
    // The terminal is closed: the figures until then are printed.
    process.signal("-HUP");
    let rest: Vec<String> = lines.collect();
    assert!(rest.first().is_some_and(|line| line.starts_with("in the store") && !line.contains(" 0 lost")), "{rest:?}");
    let mut errors = String::new();
    process.0.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(errors.contains("stopped before the end"), "{errors}");
    assert_eq!(process.0.wait().unwrap().code(), Some(3));
}

#[test]
fn figures_are_shown_though_the_server_is_gone() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let mut command = forebay();
    command.args(["bench", "--url", &server.url(), "--duration", "100s", "--connections", "2"]);
    let process = Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    server.wait("forebay_events_accepted_total", |accepted| accepted > 0);
    drop(server);
    let mut process = process;
    let (mut text, mut errors) = (String::new(), String::new());
    process.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    process.0.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(text.contains("events answered 200") && text.contains("latency p99"), "{text}");
    assert!(errors.contains("refused"), "{errors}");
    assert_eq!(process.0.wait().unwrap().code(), Some(3));
}
