//! `forebay drain` delivers all events that a removed server has left; the data directory can then be deleted.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Folder, Running, Server, forebay, payloads, wait_until};
use crate::two_services::{BackEnd, gateway};
use testkit::ports::free_address;

const DRAINED: &str = "everything is stored: ";

/// A finished run: its exit code, standard output and standard error.
#[derive(Debug)]
struct Drained {
    code: Option<i32>,
    text: String,
    log: String,
}

fn command(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = forebay();
    command.arg("drain").args(arguments).arg("--data").arg(folder.data());
    command
}

fn drain(folder: &Folder, arguments: &[&str]) -> Drained {
    let output = command(folder, arguments).output().unwrap();
    let [text, log] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    Drained { code: output.status.code(), text, log }
}

#[track_caller]
fn drain_all(folder: &Folder, arguments: &[&str]) {
    let drained = drain(folder, arguments);
    assert!(drained.code == Some(0) && drained.text.starts_with(DRAINED), "{drained:?}");
}

/// Kills a server as soon as it has answered these posts.
fn post_and_kill(server: Server, bodies: impl Iterator<Item = String>) {
    for body in bodies {
        assert_eq!(server.post("/ingest/event/access", &body).0, 200);
    }
    server.signal("-KILL");
    server.wait_end();
}

fn rows(folder: &Path, of: &str) -> Vec<String> {
    let store = rusqlite::Connection::open(folder.join("events.db")).unwrap();
    let mut rows = store.prepare("select payload from events where type = ?1 order by payload").unwrap();
    rows.query_map([of], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// A configuration whose store is next to the data directory.
const OUTSIDE: &str = "[gateway]\nshards = 1\n[types.\"*\"]\nroutes = [\"local\"]\n[sinks.local]\nkind = \"sqlite\"\npath = \"../events.db\"\n";

/// Twenty payloads in the order of their bytes.
fn numbers() -> impl Iterator<Item = String> {
    (10..30).map(|number| format!("{{\"number\": {number}}}"))
}

#[test]
fn drain_stores_once_and_names_unreachable_stores() {
    let folder = Folder::new();
    let address = free_address().to_string();
    let url = format!("http://{address}");
    let at = folder.path("writer");
    let server = gateway(&folder.data(), &["--writer", &url], &folder.path("log"));
    post_and_kill(server, numbers());

    let drained = drain(&folder, &["--writer", &url, "--timeout", "1s"]);
    assert_eq!(drained.code, Some(3), "{drained:?}");
    assert!(drained.text.starts_with("local  access  waiting  20 pending: "), "{drained:?}");
    assert!(drained.log.contains("Raise --timeout"), "{drained:?}");

    let _writer = BackEnd::start_on(&at, &address, &[]);
    for _ in 0..2 {
        drain_all(&folder, &["--writer", &url]);
        assert_eq!(payloads(&at), numbers().collect::<Vec<_>>());
    }
    // The same with the variables of a container.
    let mut of_container = command(&folder, &[]);
    let output = of_container.env("FOREBAY_ROLE", "gateway").env("FOREBAY_WRITERS", &url).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    // A server can still start on the directory, and resumes at the cursors.
    let server = gateway(&folder.data(), &["--writer", &url], &folder.path("log"));
    assert_eq!(server.post("/ingest/event", "1").0, 200);
    server.wait_delivered();
    assert_eq!(payloads(&at).len(), 21);
}

#[test]
fn drain_refuses_running_server_and_invalid_configuration() {
    let folder = Folder::new();
    let missing = drain(&folder, &[]);
    assert!(missing.code == Some(1) && missing.log.contains("there is no data directory"), "{missing:?}");
    assert!(!folder.data().exists(), "nothing is made");
    let outside = folder.write("outside.toml", OUTSIDE);
    let server = Server::start_with(&folder.data(), &["--config", &outside], &folder.path("log"));
    assert_eq!(server.post("/ingest/event", "1").0, 200);
    let in_use = drain(&folder, &[]);
    assert!(in_use.code == Some(1) && in_use.log.contains("is in use"), "{in_use:?}");
    assert_eq!(server.post("/ingest/event", "2").0, 200);
    assert_eq!(server.stop("-TERM"), Some(0));
    let config = folder.write("wrong.toml", "[sinks.a]\n");
    let wrong = drain(&folder, &["--config", &config]);
    assert!(wrong.code == Some(2) && wrong.log.contains("missing setting `sinks.a.kind`"), "{wrong:?}");
    let at_once = drain(&folder, &["--config", &outside, "--timeout", "0s"]);
    assert!(at_once.code == Some(2) && at_once.log.contains("longer than 0"), "{at_once:?}");
    drain_all(&folder, &["--config", &outside]);
    assert_eq!(payloads(&folder.path("")), ["1", "2"]);
    let output = forebay().args(["drain", "--data", &outside]).output().unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && log.contains("outside.toml isn't a directory"), "{log}");
}

/// A configuration whose windows and objects stay open for long.
const OPEN: &str = "[types.access]\nroutes = [\"local\", \"archive\"]\n[types.access.aggregate.hits]\nwindow = \"1day\"\n\
                    measures = { requests = \"count\", bytes = \"sum:/n\" }\nroutes = [\"local\", \"archive\"]\n\
                    [types.access.aggregate.visits]\nwindow = \"session 12h\"\nmeasures = { pages = \"count\" }\nroutes = [\"local\"]\n\
                    [sinks.local]\nkind = \"sqlite\"\npath = \"../events.db\"\n\
                    [sinks.archive]\nkind = \"directory\"\npath = \"../archive\"\nenvelope = true\nmax_age = \"1h\"\n";

#[test]
fn drain_closes_windows_and_writes_partial_objects() {
    let folder = Folder::new();
    let config = folder.write("forebay.toml", OPEN);
    let server = Server::start_with(&folder.data(), &["--config", &config], &folder.path("log"));
    post_and_kill(server, (0..10).map(|number| format!("{{\"n\": {number}}}")));
    for _ in 0..2 {
        drain_all(&folder, &["--config", &config]);
        let [hits, visits] = ["access.hits", "access.visits"].map(|of| rows(&folder.path(""), of));
        // At midnight the events are in two windows.
        let sum = |results: &[String], member: &str| -> u64 {
            let of = |text: &String| serde_json::from_str::<serde_json::Value>(text).unwrap()[member].as_u64().unwrap();
            results.iter().map(of).sum()
        };
        assert_eq!((sum(&hits, "requests"), sum(&hits, "bytes"), sum(&visits, "pages")), (10, 45, 10));
        assert_eq!(visits.len(), 1);
        let archived = crate::directory::read(&folder.path("archive"));
        assert_eq!(archived.len(), 10 + hits.len(), "each event and each result once");
    }
}

#[test]
fn killed_drain_can_be_repeated() {
    const EVENTS: usize = 400;
    let folder = Folder::new();
    // Many small objects: kills have to interrupt some of them. The store is down: no run may complete.
    let routes = "routes = [\"local\", \"archive\"";
    let open = OPEN.replacen(routes, &format!("{routes}, \"late\""), 1);
    let late = "[sinks.late]\nkind = \"directory\"\npath = \"../late\"\nenvelope = true\n";
    let config = folder.write("forebay.toml", format!("{open}max_records = 5\n{late}"));
    let blocked = ["archive", "late"].map(|name| folder.path(name));
    blocked.iter().for_each(|path| std::fs::write(path, "no directory").unwrap());
    let server = Server::start_with(&folder.data(), &["--config", &config], &folder.path("log"));
    post_and_kill(server, (0..EVENTS).map(|number| format!("{{\"n\": {number}}}")));
    std::fs::remove_file(&blocked[0]).unwrap();
    let files = || std::fs::read_dir(&blocked[0]).into_iter().flatten().count();
    for round in 0..5 {
        let before = files();
        let mut run = command(&folder, &["--config", &config, "--timeout", "1s"]);
        let mut running = Running(run.stdout(Stdio::null()).spawn().unwrap());
        // The last rounds may have nothing to write.
        assert!(wait_until(|| files() > before || running.0.try_wait().unwrap().is_some()));
        let is_killed = running.0.kill().is_ok() && running.wait_end().is_none();
        assert!(is_killed || round > 0, "it writes for longer than that");
    }
    std::fs::remove_file(&blocked[1]).unwrap();
    drain_all(&folder, &["--config", &config]);
    let archived = crate::directory::read(&folder.path("archive"));
    let (hits, stored) = (rows(&folder.path(""), "access.hits"), rows(&folder.path(""), "access"));
    assert_eq!((archived.len(), stored.len()), (EVENTS + hits.len(), EVENTS));
    let numbers: std::collections::BTreeSet<u64> =
        archived.values().filter_map(|payload| payload["n"].as_u64()).collect();
    assert_eq!(numbers.len(), EVENTS, "none is lost");
    assert_eq!(crate::directory::read(&blocked[1]).len(), EVENTS);
    let counted =
        |text: &String| serde_json::from_str::<serde_json::Value>(text).unwrap()["requests"].as_u64().unwrap();
    assert_eq!(hits.iter().map(counted).sum::<u64>(), EVENTS as u64);
}

#[test]
fn signal_ends_drain_and_lists_remaining_events() {
    let folder = Folder::new();
    let url = format!("http://{}", free_address());
    let server = gateway(&folder.data(), &["--writer", &url], &folder.path("log"));
    post_and_kill(server, ["1".to_owned()].into_iter());
    let mut drain = command(&folder, &["--writer", &url, "--timeout", "24h"]);
    let mut running = Running(drain.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let mut log = BufReader::new(running.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(log.any(|line| line.contains("draining: pending events: 1 for local")));
    std::thread::spawn(move || log.for_each(drop));
    running.signal("-TERM");
    assert_eq!(running.wait_end(), Some(3));
    let text = std::io::read_to_string(running.0.stdout.take().unwrap()).unwrap();
    // The lane is connecting to its store, or waits for the next attempt.
    assert!(text.starts_with("local  access  ") && text.contains("  1 pending"), "{text}");
}

#[test]
fn dead_letters_are_exported_to_a_new_file() {
    let folder = Folder::new();
    let config = folder.write("forebay.toml", OUTSIDE);
    let server = Server::start_with(&folder.data(), &["--config", &config], &folder.path("log"));
    assert_eq!(server.post("/ingest/event", "1").0, 200);
    server.wait_delivered();
    let store = rusqlite::Connection::open(folder.path("events.db")).unwrap();
    let refuse = "create trigger refuse before insert on events when new.payload like '%bad%' begin select raise(abort, 'no bad ones'); end";
    assert!(wait_until(|| store.execute_batch(refuse).is_ok()));
    drop(store);
    post_and_kill(server, ["\"bad\"", "\"good\""].map(str::to_owned).into_iter());
    let (file, name) = (folder.path("letters"), folder.text("letters"));
    let drained = drain(&folder, &["--config", &config, "--dead-letters", &name]);
    assert_eq!((drained.code, &*drained.text), (Some(3), "local  access  dead  1 dead letter\n"), "{drained:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    let letter: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&letter["payload"], &letter["type"]), (&"bad".into(), &"access".into()), "{text}");
    assert!(letter["reason"].as_str().unwrap().contains("no bad ones"), "{text}");
    let again = drain(&folder, &["--config", &config, "--dead-letters", &name]);
    assert!(again.code == Some(1) && again.log.contains("this file exists"), "{again:?}");
    let shown = drain(&folder, &["--config", &config, "--dead-letters", "-"]);
    assert_eq!((shown.code, shown.text), (Some(3), format!("{text}{}", drained.text)));
    assert_eq!(payloads(&folder.path("")), ["\"good\"", "1"]);
}

#[test]
fn unusable_export_file_fails_before_delivery() {
    let folder = Folder::new();
    let config = folder.write("forebay.toml", OUTSIDE);
    let server = Server::start_with(&folder.data(), &["--config", &config], &folder.path("log"));
    post_and_kill(server, ["1".to_owned()].into_iter());
    let journal = || std::fs::read_dir(folder.data().join("journal/0000")).unwrap().count();
    let before = journal();
    for (file, reason) in [("none/letters", "No such file"), ("data/letters", "is in the data directory")] {
        let refused = drain(&folder, &["--config", &config, "--dead-letters", &folder.text(file)]);
        assert!(refused.code == Some(1) && refused.log.contains(reason), "{refused:?}");
    }
    assert!(!folder.data().join("letters.part").exists());
    assert_eq!(journal(), before, "no journal was opened");
    drain_all(&folder, &["--config", &config, "--dead-letters", &folder.text("letters")]);
    assert!(folder.path("letters").exists() && !folder.path("letters.part").exists());
}

#[test]
fn remaining_events_are_listed_if_export_fails() {
    let folder = Folder::new();
    let url = format!("http://{}", free_address());
    let server = gateway(&folder.data(), &["--writer", &url], &folder.path("log"));
    post_and_kill(server, ["1".to_owned()].into_iter());
    let letters = folder.text("letters");
    let mut drain = command(&folder, &["--writer", &url, "--timeout", "24h", "--dead-letters", &letters]);
    let mut running = Running(drain.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let mut log = BufReader::new(running.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(log.any(|line| line.contains("draining: pending events")));
    std::thread::spawn(move || log.for_each(drop));
    assert!(folder.path("letters.part").exists());
    // The file can't get its name.
    std::fs::create_dir(&letters).unwrap();
    running.signal("-TERM");
    assert_eq!(running.wait_end(), Some(3));
    let text = std::io::read_to_string(running.0.stdout.take().unwrap()).unwrap();
    assert!(text.contains("  1 pending") && text.contains("the dead letters weren't exported: "), "{text}");
    assert!(!folder.path("letters.part").exists());
}

#[test]
fn directory_with_a_store_is_reported() {
    let folder = Folder::new();
    let archive = "[types.\"*\"]\nroutes = [\"archive\"]\n[sinks.archive]\nkind = \"directory\"\npath = \"archive\"\n";
    let config = folder.write("archive.toml", archive);
    let server = Server::start_with(&folder.data(), &["--config", &config], &folder.path("log"));
    post_and_kill(server, numbers());
    let stays = |sink: &str, name: &str| {
        format!("{sink}  -  store  {}: is in the data directory\n", folder.data().join(name).display())
    };
    let drained = drain(&folder, &["--config", &config]);
    assert_eq!((drained.code, &*drained.text), (Some(3), &*stays("archive", "archive")), "{drained:?}");

    // A symbolic link to the directory is the directory.
    let folder = Folder::new();
    std::os::unix::fs::symlink(folder.data(), folder.path("link")).unwrap();
    let config = folder.write("linked.toml", OUTSIDE.replace("../events.db", &folder.text("link/events.db")));
    let server = Server::start_with(&folder.data(), &["--config", &config], &folder.path("log"));
    post_and_kill(server, numbers());
    let drained = drain(&folder, &["--config", &config]);
    assert!(drained.code == Some(3) && drained.text.contains("local  -  store  "), "{drained:?}");
    assert_eq!(payloads(&folder.data()), numbers().collect::<Vec<_>>());
}

#[test]
fn store_of_an_earlier_drain_is_reported() {
    let folder = Folder::new();
    let address = free_address().to_string();
    let url = format!("http://{address}");
    let server = gateway(&folder.data(), &["--writer", &url], &folder.path("log"));
    post_and_kill(server, numbers());
    let store = folder.data().join("events.db");
    let drained = drain(&folder, &[]);
    let stays = format!("local  -  store  {}: is in the data directory\n", store.display());
    assert_eq!((drained.code, drained.text), (Some(3), stays));
    assert_eq!(payloads(&folder.data()), numbers().collect::<Vec<_>>());
    let _writer = BackEnd::start_on(&folder.path("writer"), &address, &[]);
    let drained = drain(&folder, &["--writer", &url]);
    let stays = format!("-  -  file  {}: isn't part of Forebay's own state", store.display());
    assert!(drained.code == Some(3) && drained.text.contains(&stays), "{drained:?}");
}

#[test]
fn configuration_without_open_aggregate_is_rejected() {
    let folder = Folder::new();
    let aggregate = |window: &str| {
        format!(
            "{OUTSIDE}[types.access]\nroutes = [\"local\"]\n[types.access.aggregate.hits]\nwindow = \"{window}\"\nmeasures = {{ n = \"count\" }}\nroutes = [\"local\"]\n"
        )
    };
    let config = folder.write("forebay.toml", aggregate("1day"));
    let server = Server::start_with(&folder.data(), &["--config", &config], &folder.path("log"));
    post_and_kill(server, numbers());
    let without = format!("{OUTSIDE}[types.access]\nroutes = [\"local\"]\n");
    let others = [
        (without, "isn't in this configuration"),
        (OUTSIDE.to_owned(), "isn't in this configuration"),
        (aggregate("2days"), "has another definition in this configuration"),
    ];
    for (other, reason) in others {
        let other = folder.write("other.toml", other);
        let refused = drain(&folder, &["--config", &other]);
        let message =
            format!("aggregate access.hits {reason}, and may have open windows: drain with its last configuration");
        assert!(refused.code == Some(2) && refused.log.contains(&message), "{refused:?}");
        assert_eq!(refused.text, "");
    }
    drain_all(&folder, &["--config", &config]);
    let hits = rows(&folder.path(""), "access.hits");
    let counted = |text: &String| serde_json::from_str::<serde_json::Value>(text).unwrap()["n"].as_u64().unwrap();
    assert_eq!(hits.iter().map(counted).sum::<u64>(), 20);

    for file in std::fs::read_dir(folder.data().join("aggregates")).unwrap() {
        std::fs::write(file.unwrap().path(), "damaged").unwrap();
    }
    let damaged = drain(&folder, &["--config", &config]);
    assert!(
        damaged.code == Some(2) && damaged.log.contains("has lost its state (its state files are damaged)"),
        "{damaged:?}"
    );
}

#[test]
fn part_cut_off_by_recovery_is_reported() {
    let folder = Folder::new();
    let config = folder.write("forebay.toml", OUTSIDE);
    let server = Server::start_with(&folder.data(), &["--config", &config], &folder.path("log"));
    post_and_kill(server, numbers());
    let last = numbers().last().unwrap();
    let files = || std::fs::read_dir(folder.data().join("journal/0000")).unwrap().map(|file| file.unwrap().path());
    let is_hit = files().filter(|path| {
        let mut bytes = std::fs::read(path).unwrap();
        let at = bytes.windows(last.len()).rposition(|window| window == last.as_bytes());
        at.inspect(|at| bytes[*at..at + last.len()].fill(0)).is_some_and(|_| std::fs::write(path, bytes).is_ok())
    });
    assert_eq!(is_hit.count(), 1);
    for _ in 0..2 {
        let drained = drain(&folder, &["--config", &config]);
        let stays = "-  -  damaged  the damaged part is in ";
        let line = drained.text.lines().find(|line| line.starts_with(stays));
        assert!(drained.code == Some(3) && line.is_some_and(|line| line.ends_with(".torn")), "{drained:?}");
    }
    files()
        .filter(|path| path.extension().is_some_and(|end| end == "torn"))
        .for_each(|torn| std::fs::remove_file(torn).unwrap());
    let accepted = forebay().args(["journal", "accept-loss", "--data"]).arg(folder.data()).output().unwrap();
    assert!(accepted.status.success(), "{accepted:?}");
    drain_all(&folder, &["--config", &config]);
}
