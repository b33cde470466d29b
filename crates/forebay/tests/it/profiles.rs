//! Profiles of a running process: planted work is the widest part, and taking profiles under load loses nothing. `FOREBAY_PROFILED` names
//! another binary to profile, as the static one; `FOREBAY_PROFILES` another number of profiles under load.

use std::env;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use serde_json::Value;

use crate::support::{Folder, Server, exchange, forebay};
use crate::two_services::BackEnd;

/// Requests of a type with these steps spend their time with regular expressions.
const REDACTING: &str = "[types.access]\ntransform = [\n\
    { redact = \"/text\", pattern = '[a-z]+ [a-z]+ [0-9][b-y]' },\n\
    { redact = \"/text\", pattern = '[a-z]+ [a-z]+ [0-9][c-y]' },\n\
    { redact = \"/text\", pattern = '[a-z]+ [a-z]+ [0-9][d-y]' },\n\
    { redact = \"/text\", pattern = '[a-z]+ [a-z]+ [0-9][e-y]' },\n\
    { redact = \"/text\", pattern = '[a-z]+ [a-z]+ [0-9][f-y]' },\n\
    { redact = \"/text\", pattern = '[a-z]+ [a-z]+ [0-9][g-y]' },\n\
    { redact = \"/text\", pattern = '[a-z]+ [a-z]+ [0-9][h-y]' },\n\
    { redact = \"/text\", pattern = '[a-z]+ [a-z]+ [0-9][i-y]' },\n]\n\
    routes = [\"local\"]\n[types.plain]\nroutes = [\"local\"]\n[sinks.local]\nkind = \"sqlite\"\n";

/// The program to profile.
fn profiled() -> Command {
    let mut command = env::var_os("FOREBAY_PROFILED").map_or_else(forebay, Command::new);
    command.env_remove("FOREBAY_PROFILED").env_remove("FOREBAY_PROFILES").arg("serve");
    command
}

fn start(folder: &Folder, configuration: &str) -> Server {
    let mut command = profiled();
    command.args(["--config", &folder.write("forebay.toml", configuration)]);
    command.stderr(std::fs::File::create(folder.path("log")).unwrap());
    Server::start_command(command, &folder.data())
}

fn ask(admin: SocketAddr, method: &str, path: &str) -> (u16, String) {
    exchange(admin, &format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
}

/// The body of a successful answer that needn't be text.
fn profile(admin: SocketAddr, path: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(admin).unwrap();
    write!(stream, "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
    let head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    answer.split_off(head + 4)
}

/// Runs `ask` while three clients post this body.
fn under_load<T>(server: &Server, path: &str, body: &str, ask: impl FnOnce() -> T) -> (T, u64) {
    let (end, accepted) = (AtomicBool::new(false), AtomicU64::new(0));
    let asked = thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !end.load(Ordering::Relaxed) {
                    let (status, text) = server.post(path, body);
                    assert_eq!(status, 200, "{text}");
                    accepted.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let asked = ask();
        end.store(true, Ordering::Relaxed);
        asked
    });
    (asked, accepted.into_inner())
}

/// The weight of lines that fit, and of all lines of these threads.
fn share(folded: &str, thread: &str, fits: impl Fn(&str) -> bool) -> (u64, u64) {
    let weight = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
    let own = || folded.lines().filter(|line| line.starts_with(thread));
    (own().filter(|line| fits(line)).map(weight).sum(), own().map(weight).sum())
}

#[test]
fn transforms_are_below_the_requests_of_their_thread() {
    let folder = Folder::new();
    let server = start(&folder, REDACTING);
    let text = "some words and many other words ".repeat(6000);
    let post = || profile(server.admin, "/debug/profile?seconds=2&format=folded");
    let (folded, _) = under_load(&server, "/ingest/event/access", &format!("{{\"text\":\"{text}\"}}"), post);
    let folded = String::from_utf8(folded).unwrap();
    let (steps, _) = share(&folded, "", |line| line.contains("transform::"));
    let (whole, _) = share(&folded, "", |line| line.contains("process_event;") && line.contains("transform::"));
    assert!(steps > 0 && whole * 10 >= steps * 8, "{whole} of {steps}: {folded}");

    let admin = server.admin.to_string();
    let output = forebay().args(["profile", "--seconds", "1", "--admin", &admin]).output().unwrap();
    let svg = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && svg.starts_with("<?xml") && svg.ends_with("</svg>\n"), "{svg}");
}

#[test]
fn trigger_of_sqlite_is_the_widest_work_of_its_thread() {
    let folder = Folder::new();
    let server = start(&folder, REDACTING);
    assert_eq!(server.post("/ingest/event/plain", "{}").0, 200);
    server.wait_delivered();
    let trigger = "create table sums (sum integer); create trigger busy after insert on events begin insert into sums \
                   with recursive n (n) as (select 1 union all select n + 1 from n where n < 300000) select sum(n) from n; end";
    rusqlite::Connection::open(folder.data().join("events.db")).unwrap().execute_batch(trigger).unwrap();
    let post = || profile(server.admin, "/debug/profile?seconds=2&format=folded");
    let (folded, _) = under_load(&server, "/ingest/event/plain", "{}", post);
    let folded = String::from_utf8(folded).unwrap();
    let (busy, all) = share(&folded, "sqlite;", |line| line.contains(";sqlite3VdbeExec"));
    assert!(all > 20 && busy * 10 > all * 8, "{busy} of {all}: {folded}");
    let (whole, _) =
        share(&folded, "sqlite;", |line| line.contains("sink_sqlite::") && line.contains("sqlite3VdbeExec"));
    assert!(whole * 10 > busy * 8, "{whole} of {busy}: {folded}");
}

#[test]
fn profiles_and_reloads_under_load_lose_nothing() {
    let folder = Folder::new();
    let server = start(&folder, REDACTING);
    let profiles = env::var("FOREBAY_PROFILES").map_or(4, |number| number.parse::<u32>().unwrap());
    let ((), accepted) = under_load(&server, "/ingest/event/plain", "{\"text\":\"x\"}", || {
        for number in 0..profiles {
            let kind = if number % 4 == 3 { "heap" } else { "profile" };
            let format = ["svg", "pprof", "folded"][number as usize % 3];
            let path = format!("/debug/{kind}?seconds=1&format={format}");
            let taken = thread::scope(|scope| {
                let taken = scope.spawn(|| profile(server.admin, &path));
                folder
                    .write("forebay.toml", format!("{REDACTING}# {number}\n[types.t{number}]\nroutes = [\"local\"]\n"));
                assert_eq!(ask(server.admin, "POST", "/api/reload").0, 200);
                taken.join().unwrap()
            });
            assert!(!taken.is_empty(), "{path}");
        }
    });
    server.wait_delivered();
    assert_eq!(server.metric("forebay_events_stored_total{type=\"plain\""), accepted);
    assert_eq!(server.stop("-TERM"), Some(0));
    assert!(!std::fs::read_to_string(folder.path("log")).unwrap().contains("panicked"));
}

#[test]
fn memory_is_shown_by_owner_and_allocations_by_stack() {
    let folder = Folder::new();
    let server = start(&folder, REDACTING);
    let body = format!("{{\"text\":\"{}\"}}", "x".repeat(200_000));
    let post = || profile(server.admin, "/debug/heap?seconds=1&format=folded");
    let (folded, accepted) = under_load(&server, "/ingest/event/plain", &body, post);
    let folded = String::from_utf8(folded).unwrap();
    let (bytes, all) = share(&folded, "shard-", |line| line.contains("gateway::"));
    assert!(accepted > 0 && bytes * 2 > all && bytes > 1 << 20, "{bytes} of {all}: {folded}");

    let (status, text) = ask(server.admin, "GET", "/debug/memory");
    assert_eq!(status, 200, "{text}");
    let memory: Value = serde_json::from_str(&text).unwrap();
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{memory}"));
    assert!(number(&memory["heap"]["used_bytes"]) > 1 << 16 && number(&memory["resident_bytes"]) > 1 << 20);
    let owners = memory["owners"].as_array().unwrap();
    assert!(owners.len() >= 7 && owners.iter().all(|owner| number(&owner["bytes"]) <= number(&owner["max_bytes"])));
    assert!(owners.iter().any(|owner| owner["owner"] == "tail cache"), "{memory}");
    assert_eq!(ask(server.admin, "POST", "/debug/memory").0, 405);
}

#[test]
fn shard_shows_requests_that_are_open_for_long() {
    let folder = Folder::new();
    let server = start(&folder, REDACTING);
    let mut slow = TcpStream::connect(server.intake).unwrap();
    write!(slow, "POST /ingest/event HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{{").unwrap();
    let mut shown = Value::Null;
    let found = crate::support::wait_until(|| {
        let (status, text) = ask(server.admin, "GET", "/debug/shards");
        assert_eq!(status, 200, "{text}");
        shown = serde_json::from_str(&text).unwrap();
        let shards = shown["shards"].as_array().unwrap();
        shards.iter().any(|shard| shard["long_requests"]["arriving"] == 1 && shard["connections"] == 1)
    });
    assert!(found, "{shown}");
}

#[test]
fn writer_has_profiles_and_no_shards() {
    let folder = Folder::new();
    let writer = BackEnd::start_on(&folder.data(), "127.0.0.1:0", &[]);
    let folded = profile(writer.admin, "/debug/profile?seconds=1&format=folded");
    assert!(String::from_utf8(folded).is_ok());
    let (status, text) = ask(writer.admin, "GET", "/debug/memory");
    assert!(status == 200 && text.contains("batches of ") && text.contains("\"reads\""), "{text}");
    assert_eq!(ask(writer.admin, "GET", "/debug/shards").0, 404);
}

#[test]
fn second_profile_is_rejected_until_the_first_ends() {
    let folder = Folder::new();
    let server = start(&folder, REDACTING);
    let open = || {
        let mut first = TcpStream::connect(server.admin).unwrap();
        write!(first, "POST /debug/profile?seconds=60 HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        first
    };
    let mut first = open();
    let second = || ask(server.admin, "POST", "/debug/heap?seconds=1");
    let mut answer = (0, String::new());
    assert!(crate::support::wait_until(|| {
        answer = second();
        // The second may have come first, and then the first was rejected.
        if answer.0 == 200 {
            first = open();
        }
        answer.0 == 409
    }));
    assert!(answer.1.contains("\"code\":\"profile\""), "{}", answer.1);
    // The first ends when its client disconnects.
    drop(first);
    assert!(crate::support::wait_until(|| second().0 == 200));
    for (method, path, wanted) in [
        ("GET", "/debug/profile", 405),
        ("POST", "/debug/profile?seconds=61", 400),
        ("POST", "/debug/heap?format=png", 400),
        ("POST", "/debug/shards", 405),
    ] {
        assert_eq!(ask(server.admin, method, path).0, wanted, "{method} {path}");
    }
}
