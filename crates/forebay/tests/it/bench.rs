//! `forebay bench` against the real server: what it says was stored is what is stored.

use std::path::Path;

use crate::support::{Folder, Server, forebay};

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
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let file = folder.write("lines", "no\n");
    let (code, text) = bench(&server, &["--file", &file]);
    assert!(code == 3 && text.contains("answered 400"), "{text}");
}
