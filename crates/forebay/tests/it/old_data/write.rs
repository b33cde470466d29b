//! Writes the fixtures, by another build: real requests, and `SIGKILL`.

use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

use super::story::{BACKLOG, DISPUTE, OBJECTS, deferred, post, start, wait_stopped, windows};
use super::{archive, has};
use crate::aggregates::results;
use crate::support::{Folder, Running, Server, wait_until};
use crate::webhook::Picky;

const TABLE: &str =
    "create table events (id blob not null unique, type text, source text, received_at integer, payload text)";
const REFUSE: &str = "create trigger refuse before insert on events when new.payload like '%bad%' \
                      begin select raise(abort, 'no bad ones'); end";
/// No insert ends: it counts to 10¹⁸ first.
const STALL: &str = "create table numbers as with recursive n(x) as (select 1 union all select x + 1 from n where x < 1000) select x from n;
    create trigger stall before insert on events
    begin select count(*) from numbers a, numbers b, numbers c, numbers d, numbers e, numbers f; end";

fn old() -> Command {
    Command::new(std::env::var_os("FIXTURES_BY").expect("FIXTURES_BY names the binary of the older build"))
}

/// Packs the contents of `folder`: data directory and stores.
fn pack(folder: &Folder, name: &str) {
    let _ = ["forebay.toml", "log"].map(|file| std::fs::remove_file(folder.path(file)));
    let mut tar = Command::new("tar");
    tar.args([
        "-c",
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mtime=@0",
        "-C",
        &folder.text(""),
        ".",
    ]);
    let tar = tar.output().unwrap();
    assert!(tar.status.success(), "{tar:?}");
    let packed = zstd::encode_all(&*tar.stdout, 19).unwrap();
    assert!(packed.len() < 100_000, "{name}: {} bytes", packed.len());
    std::fs::create_dir_all(archive(name).parent().unwrap()).unwrap();
    std::fs::write(archive(name), packed).unwrap();
}

/// Waits until this is saved, and kills the server.
fn kill_when_saved(server: Server, folder: &Folder, fact: &str) {
    assert!(wait_until(|| has(&folder.data(), "ledger", fact)), "{fact} is not saved");
    server.stop("-KILL");
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

fn lines(numbers: Range<u64>) -> String {
    numbers.map(|number| format!("{{\"n\":{number}}}\n")).collect()
}

fn backlog() {
    let folder = Folder::new();
    let server = start(old(), &folder, BACKLOG);
    assert_eq!(server.post_with_key("first", "{\"n\":0}"), 200);
    (1..20).for_each(|number| post(&server, number));
    assert_eq!(server.post("/ingest/batch/access", &lines(20..60)).0, 200);
    kill_when_saved(server, &folder, "\ncounted 60\n");
    pack(&folder, "backlog");
}

/// A replay is killed while the store keeps it waiting.
fn dead_letters() {
    let folder = Folder::new();
    std::fs::create_dir(folder.data()).unwrap();
    let store = rusqlite::Connection::open(folder.data().join("events.db")).unwrap();
    store.execute_batch(&format!("{TABLE}; {REFUSE}")).unwrap();
    let server = start(old(), &folder, "");
    for body in [r#"{"good":1}"#, r#"{"bad":2}"#, r#"{"bad":3}"#] {
        assert_eq!(server.post("/ingest/event/access", body).0, 200);
    }
    server.wait("forebay_events_dead_total{", |dead| dead == 2);
    assert!(wait_until(|| has(&folder.data(), "ledger", " access 1 2 0\n")));
    store.execute_batch(&format!("drop trigger refuse; {STALL}")).unwrap();
    let mut replay = old();
    let replay = replay.args(["dead", "replay", "--admin", &server.admin.to_string()]);
    let replay = Running(replay.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    assert!(wait_until(|| has(&folder.data().join("replays"), "local", "until ")));
    server.stop("-KILL");
    drop(replay);
    store.execute_batch("drop trigger stall; drop table numbers").unwrap();
    drop(store);
    pack(&folder, "dead-letters");
}

fn events_deferred() {
    let (folder, (receiver, address)) = (Folder::new(), Picky::start(3));
    let server = start(old(), &folder, &deferred(address));
    for number in 0..6 {
        assert_eq!(server.post("/ingest/event/access", &format!("{{\"number\":{number}}}")).0, 200);
    }
    server.wait("forebay_events_set_aside{", |count| count == 1);
    assert!(wait_until(|| receiver.taken() == 5));
    kill_when_saved(server, &folder, " access 5 0 0\n");
    pack(&folder, "set-aside");
}

fn open_windows() {
    let folder = Folder::new();
    let server = start(old(), &folder, &windows());
    let hit = |time: String, status: u64| {
        let body = format!(r#"{{"time":"2026-11-20T{time}Z","status":{status},"bytes":1,"client":"192.0.2.1"}}"#);
        assert_eq!(server.post("/ingest/event/access", &body).0, 200);
    };
    (0..4).for_each(|second| hit(format!("09:58:0{second}"), 200));
    (0..60).for_each(|second| hit(format!("10:00:{second:02}"), 200 + second % 2));
    assert!(wait_until(|| results(&folder.data(), "access.hits").len() == 1));
    server.wait("forebay_aggregate_lag_events{", |lag| lag == 0);
    server.wait_delivered();
    let saves = server.metric("forebay_aggregate_saves_total");
    server.wait("forebay_aggregate_saves_total", |now| now > saves);
    kill_when_saved(server, &folder, " access 64 0 0\n");
    pack(&folder, "windows");
}

/// The archive is missing while an object is written.
fn objects() {
    let folder = Folder::new();
    let server = start(old(), &folder, OBJECTS);
    post(&server, 0);
    server.wait_delivered();
    std::fs::rename(folder.data().join("archive"), folder.data().join("aside")).unwrap();
    assert_eq!(server.post("/ingest/batch/access", &lines(1..10)).0, 200);
    let begun = || has(&folder.data().join("objects"), "archive.0000", "\nrun 2 10\n");
    assert!(wait_until(begun));
    kill_when_saved(server, &folder, "\naccepted access 10\n");
    pack(&folder, "objects");
}

/// The newest segment is lost, and a start has found that.
fn losses() {
    let folder = Folder::new();
    let server = start(old(), &folder, BACKLOG);
    for _ in 0..6 {
        assert_eq!(server.post("/ingest/event/access", &format!("\"{}\"", "x".repeat(900_000))).0, 200);
    }
    kill_when_saved(server, &folder, "\ncounted 6\n");
    let files = std::fs::read_dir(folder.data().join("journal/0000")).unwrap().map(|entry| entry.unwrap().path());
    let newest = files.filter(|path| path.extension().is_some_and(|end| end == "segment")).max().unwrap();
    std::fs::remove_file(newest).unwrap();
    let server = start(old(), &folder, BACKLOG);
    server.wait("forebay_journal_open_losses", |losses| losses > 0);
    server.stop("-KILL");
    pack(&folder, "losses");
}

/// A copy of the data directory is started after the original has claimed the store again.
fn dispute() {
    let folder = Folder::new();
    let server = start(old(), &folder, DISPUTE);
    (0..10).for_each(|number| post(&server, number));
    server.wait_delivered();
    server.stop("-TERM");
    copy(&folder.data(), &folder.path("copy"));
    let server = start(old(), &folder, DISPUTE);
    (10..20).for_each(|number| post(&server, number));
    server.wait_delivered();
    server.stop("-TERM");
    std::fs::remove_dir_all(folder.data()).unwrap();
    std::fs::rename(folder.path("copy"), folder.data()).unwrap();
    let server = start(old(), &folder, DISPUTE);
    wait_stopped(&server);
    (200..206).for_each(|number| post(&server, number));
    kill_when_saved(server, &folder, "\ncounted 16\n");
    pack(&folder, "dispute");
}

#[test]
#[ignore = "writes the fixtures"]
fn write_fixtures() {
    backlog();
    dead_letters();
    events_deferred();
    open_windows();
    objects();
    losses();
    dispute();
}
