//! The real program in a control group with little memory: it is never killed, loses nothing, and reports what it can't accept.
#![allow(clippy::print_stdout, reason = "the figures, and why it is skipped")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Folder, Server, after, wait_until};
use crate::two_services::{BackEnd, gateway};
use testkit::postgres::PostgresServer;
use testkit::proxy::Proxy;
use testkit::redis::RedisServer;

const MIB: usize = 1024 * 1024;
/// How long clients post. `FOREBAY_MEMORY_SECONDS` takes longer.
const SECONDS: u64 = 4;
const CLIENTS: usize = 6;

/// How long the test lasts.
fn duration() -> Duration {
    let seconds = std::env::var("FOREBAY_MEMORY_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(SECONDS))
}

/// A control group; removed when it is dropped.
struct Group {
    folder: PathBuf,
    counts: &'static str,
}

impl Group {
    /// One with this limit, if this machine lets this user create one.
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
        testkit::skipped::report("no control group with a memory limit can be created here");
        None
    }

    fn join_command(&self) -> String {
        format!("echo $$ > {}", self.folder.join("cgroup.procs").display())
    }

    /// The most bytes that it has had.
    fn most_bytes(&self) -> usize {
        let files = ["memory.max_usage_in_bytes", "memory.peak"];
        let texts = files.iter().filter_map(|file| std::fs::read_to_string(self.folder.join(file)).ok());
        texts.filter_map(|text| text.trim().parse().ok()).next().unwrap_or(0)
    }

    /// Processes that the kernel has killed because of their memory.
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

/// Posts with several clients, and returns how many events were accepted and how many requests got a 503. `body` builds the
/// body of a request from its number, and says how many events it has.
fn post(server: &Server, path: &str, body: impl Fn(usize) -> (String, usize) + Sync) -> (usize, usize) {
    let end = Instant::now() + duration();
    let (number, accepted, unavailable) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while Instant::now() < end {
                    let (body, events) = body(number.fetch_add(1, Ordering::Relaxed));
                    match server.post(path, &body) {
                        (200, _) => drop(accepted.fetch_add(events, Ordering::Relaxed)),
                        (503, _) => {
                            unavailable.fetch_add(1, Ordering::Relaxed);
                            thread::sleep(Duration::from_millis(100));
                        }
                        (status, answer) => panic!("{status} {answer}"),
                    }
                }
            });
        }
    });
    (accepted.into_inner(), unavailable.into_inner())
}

/// Accepted events are stored once when the table is fast again, and nothing was killed.
fn check(group: &Group, server: &Server, postgres: &PostgresServer, accepted: usize, unavailable: usize) {
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
    println!("{accepted} events, {unavailable} answers 503, at most {} MiB resident", server.memory("VmHWM") / MIB);
}

#[test]
fn six_clients_with_large_batches_in_64_mib() {
    let (Some(group), Some(postgres)) = (Group::new(64 * MIB), PostgresServer::start()) else { return };
    let folder = Folder::new();
    let server = start(&group, &folder, &postgres);
    let log = || std::fs::read_to_string(folder.path("log")).unwrap();
    let says = || log().contains("memory limit: 64 MiB") && log().contains("instead of 64 MiB");
    assert!(wait_until(says), "{}", log());
    let text = "x".repeat(960);
    let line = |batch: usize, number: usize| format!("{{\"id\":\"{batch}-{number}\",\"text\":\"{text}\"}}\n");
    let (accepted, unavailable) =
        post(&server, "/ingest/batch/a", |batch| ((0..1024).map(|number| line(batch, number)).collect(), 1024));
    check(&group, &server, &postgres, accepted, unavailable);
    // A batch that can never fit doesn't get a 503.
    let lines: String = (0..90_000).map(|number| format!("{{\"id\":\"x{number}\"}}\n")).collect();
    let (status, answer) = server.post("/ingest/batch/a", &lines);
    assert!(status == 413 && answer.contains("of memory"), "{status} {answer}");
}

#[test]
fn single_events_in_32_mib() {
    let (Some(group), Some(postgres)) = (Group::new(32 * MIB), PostgresServer::start()) else { return };
    let folder = Folder::new();
    let server = start(&group, &folder, &postgres);
    let (accepted, unavailable) = post(&server, "/ingest/event/a", |number| {
        (format!("{{\"id\":\"{number}\",\"text\":\"{}\"}}", "x".repeat(1 << (number % 17))), 1)
    });
    check(&group, &server, &postgres, accepted, unavailable);
}

/// Gateways of one writer.
const GATEWAYS: usize = 12;
/// Batches that each of them sends, and their events.
const BATCHES: usize = 3;
const EVENTS: usize = 5;

/// A writer with this limit whose store is at the proxy.
fn start_writer(group: &Group, folder: &Folder, proxy: &Proxy) -> BackEnd {
    let url = format!("redis://{}", proxy.address());
    let configuration = folder.write(
        "writer.toml",
        format!("[sinks.r]\nkind = \"redis\"\nurl = \"{url}\"\nmode = \"stream\"\nkey = \"k\"\ntimeout = \"5s\"\n"),
    );
    let mut command = after(&group.join_command());
    command.args(["writer", "--config", &configuration]);
    BackEnd::start_by(command, &folder.path("writer"), "127.0.0.1:0")
}

#[test]
fn writer_with_hanging_store_in_96_mib() {
    let (Some(group), Some(redis)) = (Group::new(96 * MIB), RedisServer::start()) else { return };
    let folder = Folder::new();
    let proxy = Proxy::start(&redis.socket());
    let writer = start_writer(&group, &folder, &proxy);
    let gateways: Vec<Server> = (0..GATEWAYS)
        .map(|number| {
            let text = format!(
                "[gateway]\nshards = 1\n[upstreams.back]\nservers = [\"{}\"]\n[sinks.r]\nkind = \"writer\"\nupstream = \"back\"\n\
                 store = \"redis\"\n[types.\"*\"]\nroutes = [\"r\"]\n",
                writer.url()
            );
            let configuration = folder.write(&format!("gateway{number}.toml"), text);
            let (data, log) = (folder.path(&format!("gateway{number}")), folder.path(&format!("log{number}")));
            gateway(&data, &["--config", &configuration], &log)
        })
        .collect();
    gateways.iter().for_each(|gateway| assert_eq!(gateway.post("/ingest/event/a", "{}").0, 200));
    gateways.iter().for_each(Server::wait_delivered);
    redis.freeze();
    let line = format!("{{\"text\":\"{}\"}}\n", "x".repeat(900_000));
    let body = line.repeat(EVENTS);
    for gateway in gateways.iter().cycle().take(GATEWAYS * BATCHES) {
        assert_eq!(gateway.post("/ingest/batch/a", &body).0, 200);
    }
    thread::sleep(duration());
    redis.thaw();
    gateways.iter().for_each(Server::wait_delivered);
    let stored = redis.ask(&["XLEN", "k"]).number();
    assert_eq!(stored, (GATEWAYS * (1 + BATCHES * EVENTS)) as u64);
    assert_eq!(group.kills(), 0);
    println!("{stored} events, at most {} MiB in the group", group.most_bytes() / MIB);
    writer.stop();
}
