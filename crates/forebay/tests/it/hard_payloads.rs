//! Payloads that are hard to store, each as one of a thousand, in every store. A store keeps each byte for byte, or rejects it: then it is a
//! dead letter with its reason. A payload that no store could keep is rejected at the intake. The others of the thousand are always stored.

use std::path::Path;

use limits::EVENT_BYTES_MAX;

use crate::support::{Folder, Server, forebay, payloads};

mod servers;

/// Events of a batch, with the hard one in the middle.
const EVENTS: usize = 1_000;
const AT: usize = 500;

/// The outcome of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is stored unchanged.
    Stored,
    /// The intake rejects it with this code.
    Refused(&'static str),
    /// It is a dead letter, and its reason has these words.
    Dead(&'static str),
}

/// The outcome of each in a store; an event that is too large is rejected for all of them.
struct Fates {
    /// A limit of the store, if there is one.
    bad: Fate,
    /// `\u0000` in a string.
    zero: Fate,
    /// An object of 10,000 members.
    fields: Fate,
    /// A number of 40 digits.
    digits: Fate,
    /// As large as an event may be.
    large: Fate,
}

/// A store that takes everything.
const TAKES_ALL: Fates =
    Fates { bad: Fate::Stored, zero: Fate::Stored, fields: Fate::Stored, digits: Fate::Stored, large: Fate::Stored };
/// The sink of all events.
const SINK: &str = "store";

impl Fates {
    /// Each with the type that it is posted as. They are written as `jsonb` writes them, which keeps each byte.
    fn table(&self) -> Vec<(&'static str, String, Fate)> {
        let members: Vec<_> = (0..10_000).map(|number| format!("\"f{number:05}\": {number}")).collect();
        let text = |bytes: usize| format!("{{\"text\": \"{}\"}}", "x".repeat(bytes - "{\"text\": \"\"}".len()));
        vec![
            ("bad", "{\"n\": \"bad\"}".to_owned(), self.bad),
            ("zero", "{\"n\": 1, \"text\": \"a\\u0000b\"}".to_owned(), self.zero),
            ("fields", format!("{{{}}}", members.join(", ")), self.fields),
            ("digits", "{\"long\": 1234567890123456789012345678901234567890}".to_owned(), self.digits),
            ("large", text(EVENT_BYTES_MAX), self.large),
            ("huge", text(10 * EVENT_BYTES_MAX), Fate::Refused("too_large")),
        ]
    }
}

fn plain(number: usize) -> String {
    format!("{{\"n\": {number}}}")
}

/// Posts everything to a server with this sink, and compares the outcome with the expected one. `stored` returns the store's payloads,
/// and is called when the server has stopped.
fn each_meets_its_fate(folder: &Folder, sink: &str, fates: &Fates, stored: impl FnOnce() -> Vec<String>) {
    let configuration = format!("[types.\"*\"]\nroutes = [\"{SINK}\"]\n[sinks.{SINK}]\n{sink}\n");
    let configuration = folder.write("forebay.toml", configuration);
    let server = Server::start_configured(&folder.data(), Path::new(&configuration), &folder.path("log"));
    let mut expected = Vec::new();
    for (name, payload, fate) in fates.table() {
        let others = (0..EVENTS).filter(|number| *number != AT).map(plain);
        expected.extend(others);
        post(&server, name, &payload, fate);
        server.wait_delivered();
        let counted =
            |metric: &str| server.metric(&format!("forebay_events_{metric}_total{{type=\"{name}\",sink=\"{SINK}\"}}"));
        let dead = u64::from(matches!(fate, Fate::Dead(_)));
        let refused = u64::from(matches!(fate, Fate::Refused(_)));
        let counts = [counted("stored"), counted("dead")];
        assert_eq!(counts, [EVENTS as u64 - dead - refused, dead], "{name}: stored and dead");
        if let Fate::Dead(words) = fate {
            let letters = letters(&server, folder, name);
            assert!(
                letters.lines().count() == 2 && letters.contains(words),
                "{name}: {words} isn't in the dead letters {letters}"
            );
        }
        if fate == Fate::Stored {
            expected.push(payload);
        }
    }
    assert_eq!(server.stop("-TERM"), Some(0));
    let mut found = stored();
    found.sort();
    expected.sort();
    assert_eq!(found.len(), expected.len());
    let other = found.iter().zip(&expected).find(|(found, expected)| found != expected);
    let shown =
        other.map(|(found, expected)| [found, expected].map(|payload| payload.chars().take(300).collect::<String>()));
    assert_eq!(shown, None, "stored, and what should be");
    let log = std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(!log.contains("panicked"), "{log}");
}

/// Posts a thousand, of which one has this payload.
fn post(server: &Server, type_name: &str, payload: &str, fate: Fate) {
    let line = |number| if number == AT { payload.to_owned() } else { plain(number) };
    let body: Vec<String> = (0..EVENTS).map(line).collect();
    let (status, answer) = server.post(&format!("/ingest/batch/{type_name}"), &body.join("\n"));
    match fate {
        Fate::Refused(code) => {
            let expected_parts = [format!("\"line\":{}", AT + 1), format!("\"code\":\"{code}\"")];
            assert_eq!(status, 207, "{type_name}: {answer}");
            assert!(
                expected_parts.iter().all(|expected_parts| answer.contains(expected_parts)),
                "{type_name}: {answer}"
            );
        }
        _ => assert_eq!(status, 200, "{type_name}: {answer}"),
    }
}

/// The dead letters of a type, a line each.
fn letters(server: &Server, folder: &Folder, type_name: &str) -> String {
    let mut list = forebay();
    list.args(["dead", "list", "--sink", SINK, "--type", type_name, "--admin", &server.admin.to_string(), "--data"]);
    String::from_utf8(list.arg(folder.data()).output().unwrap().stdout).unwrap()
}

#[test]
fn in_sqlite() {
    let folder = Folder::new();
    std::fs::create_dir(folder.data()).unwrap();
    let table =
        "create table events (id blob not null unique, type text, source text, received_at integer, payload text);
                 create trigger refuse before insert on events when new.payload like '%bad%'
                 begin select raise(abort, 'no bad ones'); end";
    rusqlite::Connection::open(folder.data().join("events.db")).unwrap().execute_batch(table).unwrap();
    let fates = Fates { bad: Fate::Dead("no bad ones"), ..TAKES_ALL };
    each_meets_its_fate(&folder, "kind = \"sqlite\"", &fates, || payloads(&folder.data()));
}

#[test]
fn in_files_of_a_directory() {
    let folder = Folder::new();
    let sink = "kind = \"directory\"\npath = \"archive\"\nmax_age = \"1s\"";
    each_meets_its_fate(&folder, sink, &TAKES_ALL, || {
        let files = std::fs::read_dir(folder.data().join("archive")).unwrap().map(|entry| entry.unwrap().path());
        let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "ndjson"));
        files.flat_map(|path| payloads_of_lines(&std::fs::read_to_string(path).unwrap())).collect()
    });
}

/// The payloads in the lines of a file or an object, unchanged.
fn payloads_of_lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}
