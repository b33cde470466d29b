//! The real program in a control group with little memory: it is never killed, loses nothing, and says what it can't take.
#![allow(clippy::print_stdout, reason = "the figures, and why it is skipped")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Folder, Server, wait_until};
use testkit::postgres::PostgresServer;

const MIB: usize = 1024 * 1024;
/// How long clients post. `FOREBAY_MEMORY_SECONDS` takes longer.
const SECONDS: u64 = 4;
const CLIENTS: usize = 6;

/// A control group; removed when it is dropped.
struct Group {
    folder: PathBuf,
    counts: &'static str,
}

impl Group {
    /// One with this limit, if this machine lets this user make one.
    fn new(bytes: usize) -> Option<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("forebay-test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let versions = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control"),
            ("/sys/fs/cgroup", "memory.max", "memory.swap.max", "memory.events"),
        ];
        for (root, limit, swap, counts) in versions {
            let group = Self { folder: Path::new(root).join(&name), counts };
            if std::fs::create_dir(&group.folder).is_err() {
                continue;
            }
            if std::fs::write(group.folder.join(limit), bytes.to_string()).is_ok() {
                // Without swap there is nothing to limit.
                let no_swap = if swap == "memory.swap.max" { 0 } else { bytes };
                let _ = std::fs::write(group.folder.join(swap), no_swap.to_string());
                return Some(group);
            }
        }
        testkit::skipped::report("no control group with a memory limit can be made here");
        None
    }

    fn join_command(&self) -> String {
        format!("echo $$ > {}", self.folder.join("cgroup.procs").display())
    }

    /// Processes that the kernel has killed for want of memory.
    fn kills(&self) -> u64 {
        let text = std::fs::read_to_string(self.folder.join(self.counts)).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("oom_kill ")).unwrap();
        line.parse().unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..100 {
            if !self.folder.exists() || std::fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A server with this limit that delivers to a slow table.
fn start(group: &Group, folder: &Folder, postgres: &PostgresServer) -> Server {
    let url = postgres.url();
    let configuration = folder.write(
        "forebay.toml",
        format!("[types.a]\nid = \"/id\"\nroutes = [\"slow\"]\n[sinks.slow]\nkind = \"postgres\"\nurl = \"{url}\"\n"),
    );
    let server =
        Server::start_after(&group.join_command(), &folder.data(), Path::new(&configuration), &folder.path("log"));
    assert_eq!(server.post("/ingest/event/a", "{\"id\":\"first\"}").0, 200);
    server.wait_delivered();
    postgres.psql(
        "create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(0.5); return null; end $$; \
         create trigger slow after insert on events for each statement execute function slow()",
    );
    server
}

/// Posts with several clients, and gives how many events were accepted and how often a client was told to come again. `body` makes the
/// body of a request from its number, and says how many events it has.
fn post(server: &Server, path: &str, body: impl Fn(usize) -> (String, usize) + Sync) -> (usize, usize) {
    let seconds = std::env::var("FOREBAY_MEMORY_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SECONDS);
    let end = Instant::now() + Duration::from_secs(seconds);
    let (number, accepted, refused) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while Instant::now() < end {
                    let (body, events) = body(number.fetch_add(1, Ordering::Relaxed));
                    match server.post(path, &body) {
                        (200, _) => drop(accepted.fetch_add(events, Ordering::Relaxed)),
                        (503, _) => {
                            refused.fetch_add(1, Ordering::Relaxed);
                            thread::sleep(Duration::from_millis(100));
                        }
                        (status, answer) => panic!("{status} {answer}"),
                    }
                }
            });
        }
    });
    (accepted.into_inner(), refused.into_inner())
}

/// What was accepted is stored once when the table is quick again, and nothing was killed.
fn check(group: &Group, server: &Server, postgres: &PostgresServer, (accepted, refused): (usize, usize)) {
    postgres.psql("drop trigger slow on events");
    // However much that is: only a standstill is a fault.
    let mut pending = server.metric("forebay_events_pending{");
    while pending > 0 {
        server.wait("forebay_events_pending{", |now| now < pending);
        pending = server.metric("forebay_events_pending{");
    }
    let rows = postgres.psql("select count(*), count(distinct payload->>'id') from events");
    assert_eq!(rows, format!("{0}|{0}", accepted + 1));
    assert_eq!(group.kills(), 0);
    println!("{accepted} events, {refused} times 503, at most {} MiB resident", server.memory("VmHWM") / MIB);
}

#[test]
fn six_clients_with_large_batches_in_64_mib() {
    let (Some(group), Some(postgres)) = (Group::new(64 * MIB), PostgresServer::start()) else { return };
    let folder = Folder::new();
    let server = start(&group, &folder, &postgres);
    let log = || std::fs::read_to_string(folder.path("log")).unwrap();
    let says = || log().contains("the memory limit is 64 MiB") && log().contains("instead of 64 MiB");
    assert!(wait_until(says), "{}", log());
    let text = "x".repeat(960);
    let line = |batch: usize, number: usize| format!("{{\"id\":\"{batch}-{number}\",\"text\":\"{text}\"}}\n");
    let counts =
        post(&server, "/ingest/batch/a", |batch| ((0..1024).map(|number| line(batch, number)).collect(), 1024));
    check(&group, &server, &postgres, counts);
    // What can never fit is no 503.
    let lines: String = (0..90_000).map(|number| format!("{{\"id\":\"x{number}\"}}\n")).collect();
    let (status, answer) = server.post("/ingest/batch/a", &lines);
    assert!(status == 413 && answer.contains("of memory"), "{status} {answer}");
}

#[test]
fn single_events_in_32_mib() {
    let (Some(group), Some(postgres)) = (Group::new(32 * MIB), PostgresServer::start()) else { return };
    let folder = Folder::new();
    let server = start(&group, &folder, &postgres);
    let counts = post(&server, "/ingest/event/a", |number| {
        (format!("{{\"id\":\"{number}\",\"text\":\"{}\"}}", "x".repeat(1 << (number % 17))), 1)
    });
    check(&group, &server, &postgres, counts);
}
