//! Data directories that an older build wrote, and was killed on: today's build starts on them, loses nothing and delivers nothing twice.
//!
//! `write_fixtures` writes them: `FIXTURES_BY=BINARY cargo test -p forebay --test it -- --ignored write_fixtures`, where BINARY is Forebay
//! at commit 276bf5a1. Their saved state is of version 1.

mod story;
mod write;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::aggregates::{results, short};
use crate::support::{Folder, Server, forebay, payloads, wait_until};
use crate::webhook::Picky;
use story::{BACKLOG, OBJECTS, SQLITE, deferred, numbers, numbers_of, start, windows};

fn archive(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/276bf5a1").join(format!("{name}.tar.zst"))
}

/// A copy of a fixture.
fn unpack(name: &str) -> Folder {
    let folder = Folder::new();
    let tar = zstd::decode_all(&*std::fs::read(archive(name)).unwrap()).unwrap();
    let mut command = Command::new("tar");
    let command = command.args(["-x", "--no-same-owner", "-C", &folder.text("")]).stdin(Stdio::piped());
    let mut process = command.spawn().unwrap();
    process.stdin.take().unwrap().write_all(&tar).unwrap();
    assert!(process.wait().unwrap().success());
    assert!(has(&folder.data(), "ledger", "forebay-ledger 1\n"), "the ledger is not of version 1");
    folder
}

/// The texts of a state file.
fn generations(directory: &Path, name: &str) -> impl Iterator<Item = String> {
    let files = ["0", "1"].map(|generation| std::fs::read(directory.join(format!("{name}.{generation}"))));
    files.into_iter().flatten().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether a generation of a state file contains this text.
fn has(directory: &Path, name: &str, text: &str) -> bool {
    generations(directory, name).any(|found| found.contains(text))
}

fn command(server: &Server, words: &[&str]) -> Output {
    forebay().args(words).args(["--admin", &server.admin.to_string()]).output().unwrap()
}

fn text(output: Output) -> String {
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

/// After a kill the state is read in the format in which today's build has saved it.
fn restart(server: Server, folder: &Folder, config: &str) -> Server {
    server.stop("-KILL");
    assert!(has(&folder.data(), "ledger", r#"{"format":"forebay-ledger","version":2}"#));
    start(forebay(), folder, config)
}

#[test]
fn backlog_of_old_build_is_stored_once() {
    let folder = unpack("backlog");
    let mut server = start(forebay(), &folder, &BACKLOG.replace(story::NOWHERE, SQLITE));
    for _ in 0..2 {
        server.wait_delivered();
        assert_eq!(server.post_with_key("first", "{\"n\":0}"), 200);
        server.wait_delivered();
        assert_eq!(numbers(&folder), (0..60).collect::<Vec<_>>());
        let count = |name: &str| server.metric(&format!("forebay_events_{name}_total"));
        assert_eq!((count("accepted"), count("stored"), count("lost")), (60, 60, 0));
        server = restart(server, &folder, &BACKLOG.replace(story::NOWHERE, SQLITE));
    }
}

#[test]
fn dead_letters_of_old_build_are_replayed_once() {
    let folder = unpack("dead-letters");
    let replays = folder.data().join("replays");
    let interrupted = generations(&replays, "local").next().expect("no replay was interrupted");
    let number = interrupted.trim_end().rsplit(' ').next().unwrap();
    let mut server = start(forebay(), &folder, "");
    server.wait("forebay_dead_letters{", |letters| letters == 2);
    assert_eq!(payloads(&folder.data()), [r#"{"good":1}"#]);
    let replayed = text(command(&server, &["dead", "replay"]));
    assert!(replayed.starts_with("local: 2 stored, 0 rejected again"), "{replayed}");
    let again = format!("{{\"sent\":{{\"shard\":0,\"sequence\":3,\"number\":{number}}}}}\n");
    assert!(has(&replays, "local", &again), "the replay is not resent under its numbers: {again}");
    for _ in 0..2 {
        assert_eq!(server.metric("forebay_dead_letters{"), 0);
        assert_eq!(payloads(&folder.data()), [r#"{"bad":2}"#, r#"{"bad":3}"#, r#"{"good":1}"#]);
        server = restart(server, &folder, "");
    }
}

#[test]
fn events_deferred_by_old_build_are_delivered_once() {
    let folder = unpack("set-aside");
    let (receiver, address) = Picky::start(u64::MAX);
    let mut server = start(forebay(), &folder, &deferred(address));
    for _ in 0..2 {
        server.wait("forebay_events_deferred{", |count| count == 0);
        server.wait_delivered();
        assert_eq!(server.metric("forebay_events_stored_total{"), 6);
        assert_eq!((receiver.taken(), receiver.has_any_twice()), (1, false));
        server = restart(server, &folder, &deferred(address));
    }
}

#[test]
fn windows_of_old_build_emit_results_once() {
    let folder = unpack("windows");
    let server = start(forebay(), &folder, &windows());
    let hit = r#"{"time":"2026-11-20T10:01:00Z","status":200,"bytes":1,"client":"192.0.2.1"}"#;
    assert_eq!(server.post("/ingest/event/access", hit).0, 200);
    let wanted = [
        "2026-11-20T09:58:00 200 requests 4 bytes 4 clients 1",
        "2026-11-20T10:00:00 200 requests 30 bytes 30 clients 1",
        "2026-11-20T10:00:00 201 requests 30 bytes 30 clients 1",
    ];
    let mut found = Vec::new();
    let are_there = wait_until(|| {
        found = results(&folder.data(), "access.hits").iter().map(short).collect();
        found.sort();
        found.len() >= wanted.len()
    });
    assert!(are_there && found == wanted, "{found:#?}");
    let server = restart(server, &folder, &windows());
    server.wait("forebay_aggregate_lag_events{", |lag| lag == 0);
    server.wait_delivered();
    assert_eq!(server.metric("forebay_events_derived_total{type=\"access.hits\""), 3);
    assert_eq!(payloads(&folder.data()).len(), 64 + 1 + 3);
}

#[test]
fn object_begun_by_old_build_is_written_once() {
    let folder = unpack("objects");
    let objects = folder.data().join("objects");
    let begun = generations(&objects, "archive.0000").find(|text| text.contains("forebay-object 1\nrun 2 10\n"));
    let begun = begun.expect("no object was begun");
    let name = begun.split_once("\nname ").unwrap().1.lines().next().unwrap();
    std::fs::rename(folder.data().join("aside"), folder.data().join("archive")).unwrap();
    let mut server = start(forebay(), &folder, OBJECTS);
    for count in [10, 12] {
        server.wait_delivered();
        let files = std::fs::read_dir(folder.data().join("archive")).unwrap().map(|entry| entry.unwrap().path());
        let files: BTreeSet<_> = files.filter(|path| path.extension().is_some_and(|end| end == "ndjson")).collect();
        assert!(files.iter().any(|path| path.ends_with(name)), "{files:?}");
        let lines: String = files.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
        assert_eq!(numbers_of(lines.lines().map(str::to_owned)), (0..count).collect::<Vec<_>>());
        server = restart(server, &folder, OBJECTS);
        if count == 10 {
            (10..12).for_each(|number| story::post(&server, number));
        }
    }
}

#[test]
fn losses_found_by_old_build_are_shown() {
    let folder = unpack("losses");
    assert!(has(&folder.data(), "losses", "forebay-losses 1\nlost 0 N 5 6 "), "no loss was found");
    let config = BACKLOG.replace(story::NOWHERE, SQLITE);
    let server = start(forebay(), &folder, &config);
    server.wait_delivered();
    let count = |name: &str| server.metric(&format!("forebay_events_{name}_total"));
    assert_eq!((count("accepted"), count("stored"), count("lost")), (6, 4, 2));
    assert_eq!(server.metric("forebay_journal_open_losses"), 1);
    server.stop("-KILL");
    let accepted = forebay().args(["journal", "accept-loss", "--data"]).arg(folder.data()).output().unwrap();
    let accepted = text(accepted);
    assert!(accepted.contains("accepted: the journal of shard 0: positions 5 to 6 are lost"), "{accepted}");
    let server = start(forebay(), &folder, &config);
    assert_eq!(server.metric("forebay_journal_open_losses"), 0);
    assert_eq!(payloads(&folder.data()).len(), 4);
}

#[test]
fn dispute_of_old_build_is_still_shown() {
    let folder = unpack("dispute");
    let server = start(forebay(), &folder, story::DISPUTE);
    story::wait_stopped(&server);
    let listed = text(command(&server, &["route", "list"]));
    assert!(
        listed.contains("another server has claimed this lane") && listed.contains("forebay route accept s"),
        "{listed}"
    );
    let stored = || story::numbers_in(&folder.path("store.db"));
    assert_eq!(stored(), (0..20).collect::<Vec<_>>());
    assert_eq!(
        text(command(&server, &["route", "accept", "s"])),
        "s: the store's cursor is accepted for 1 stopped lane\n"
    );
    server.wait_delivered();
    let all: Vec<u64> = (0..20).chain(200..206).collect();
    assert_eq!(stored(), all);
    let server = restart(server, &folder, story::DISPUTE);
    server.wait_delivered();
    assert_eq!(stored(), all);
}
