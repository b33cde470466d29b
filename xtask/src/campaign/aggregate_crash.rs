//! SIGKILLs in the middle of windows: the results of aggregates are those that SQL computes over the stored events, as if nobody
//! had killed anything.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::{any_seed, short_with_sqlite3};
use crate::http::{self, Connection};
use crate::metrics;
use crate::server::{Launch, Server};
use crate::workspace;
use random::Random;

#[derive(clap::Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 100)]
    rounds: u32,
    /// Clients, each with one request at a time.
    #[arg(long, default_value_t = 32)]
    connections: u64,
    /// Repeats a run: the same events, and the same times to kill.
    #[arg(long)]
    seed: Option<u64>,
    /// A server to kill; without it the workspace's own is built.
    #[arg(long)]
    binary: Option<PathBuf>,
}

const READY_LIMIT: Duration = Duration::from_secs(30);
/// A server lives this long at most before it is killed, once it is ready.
const LIFE_MILLISECONDS_MAX: u64 = 600;
/// What takes longer hangs.
const HANGS: Duration = Duration::from_secs(120);
/// When the first event happens: 2026-11-20T00:00:00Z, in seconds. Each is some milliseconds after the one before, or some before it.
const BEGIN: u64 = 1_795_132_800;
const STEP_MILLISECONDS: u64 = 20;
const JITTER_MILLISECONDS: u64 = 5_000;
/// Connections that are open together at the end, so that each shard has some.
const CLOSERS: u64 = 16;

/// Two shards, also where one would do. Lateness and quiet are such that no event is ever late: what that does is for other tests.
const CONFIG: &str = r#"[gateway]
shards = 2
[types.hit]
time = "/time"
routes = ["local"]
[types.hit.aggregate.minutes]
window = "1m"
group_by = ["/group"]
measures = { n = "count", sum = "sum:/v", least = "min:/v", most = "max:/v" }
lateness = "1h"
quiet = "1day"
routes = ["local"]
[types.hit.aggregate.sliding]
window = "1m every 20s"
measures = { n = "count", sum = "sum:/v" }
lateness = "1h"
quiet = "1day"
early = "10s"
routes = ["local"]
[sinks.local]
kind = "sqlite"
"#;

/// What the clients share.
struct Shared {
    server: std::net::SocketAddr,
    stop: AtomicBool,
    /// Events that were begun, and that were acknowledged.
    next: AtomicU64,
    acknowledged: AtomicU64,
}

/// A few kills of the server that the tests were built with.
pub(crate) fn short() -> Result<()> {
    short_with_sqlite3(|binary| run(&Options { rounds: 5, connections: 16, seed: Some(1), binary }))
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(any_seed);
    println!("windows: {} rounds, {} connections, --seed {seed}", options.rounds, options.connections);
    let binary = workspace::tested_binary(options.binary.as_deref())?;
    let folder = workspace::scratch_directory("campaign")?;
    let launch = Launch::new(&binary, &folder, Some(CONFIG))?;
    let shared = Arc::new(Shared {
        server: launch.intake,
        stop: AtomicBool::new(false),
        next: AtomicU64::new(0),
        acknowledged: AtomicU64::new(0),
    });
    let clients: Vec<_> = (0..options.connections)
        .map(|client| {
            let (shared, random) = (shared.clone(), Random::new(seed ^ (client + 1)));
            thread::spawn(move || send(&shared, random))
        })
        .collect();
    let server = kill_rounds(&launch, options.rounds, seed);
    shared.stop.store(true, Ordering::SeqCst);
    for client in clients {
        client.join().map_err(|_| anyhow!("a client panicked"))??;
    }
    let server = server?;
    let sent = shared.acknowledged.load(Ordering::SeqCst);
    close_windows(&shared)?;
    wait_folded(&server, 2 * (sent + CLOSERS))?;
    let results = check_until_equal(&launch.data.join("events.db"), sent)?;
    check_counts(&server)?;
    server.stop()?;
    println!("{sent} events, {} kills: {results} results are those of SQL over the stored events", options.rounds);
    std::fs::remove_dir_all(&folder).context("removing what the campaign left")
}

fn kill_rounds(launch: &Launch, rounds: u32, seed: u64) -> Result<Server> {
    let mut random = Random::new(seed);
    let mut server = launch.start()?;
    server.wait_ready(READY_LIMIT).context("the first start")?;
    for round in 1..=rounds {
        thread::sleep(Duration::from_micros(random.below(LIFE_MILLISECONDS_MAX * 1_000)));
        server.kill()?;
        server = launch.start()?;
        server.wait_ready(READY_LIMIT).with_context(|| format!("the start after kill {round}"))?;
    }
    thread::sleep(Duration::from_millis(LIFE_MILLISECONDS_MAX));
    Ok(server)
}

/// Sends events until it is told to stop, each until it is acknowledged.
fn send(shared: &Shared, mut random: Random) -> Result<()> {
    let mut connection = None;
    while !shared.stop.load(Ordering::SeqCst) {
        let number = shared.next.fetch_add(1, Ordering::SeqCst);
        let milliseconds = BEGIN * 1_000 + number * STEP_MILLISECONDS - random.below(JITTER_MILLISECONDS);
        let (group, value) = (random.below(5), random.below(1_000));
        let body = event(milliseconds, number, group, value);
        deliver(shared, &mut connection, &format!("Idempotency-Key: {number}"), &body)?;
        shared.acknowledged.fetch_add(1, Ordering::SeqCst);
    }
    Ok(())
}

fn event(milliseconds: u64, number: u64, group: u64, value: u64) -> String {
    let time = humantime::format_rfc3339_millis(std::time::UNIX_EPOCH + Duration::from_millis(milliseconds));
    format!(r#"{{"time":"{time}","at":{milliseconds},"number":{number},"group":{group},"v":{value}}}"#)
}

fn deliver(shared: &Shared, connection: &mut Option<Connection>, key: &str, body: &str) -> Result<()> {
    let request = http::post("/ingest/event/hit", &[key], body.as_bytes());
    let begun = Instant::now();
    loop {
        if connection.is_none() {
            *connection = Connection::open(shared.server).ok();
        }
        match connection.as_mut().map(|connection| connection.send(&request)) {
            Some(Ok(answer)) if answer.status == 200 => return Ok(()),
            Some(Ok(answer)) if answer.status < 500 => {
                bail!("{} to {body}: {}", answer.status, String::from_utf8_lossy(&answer.body))
            }
            _ => *connection = None,
        }
        if begun.elapsed() > HANGS {
            bail!("no answer to {body}");
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Events long after all others, in each shard: the windows before them end.
fn close_windows(shared: &Shared) -> Result<()> {
    let last = shared.next.load(Ordering::SeqCst) * STEP_MILLISECONDS;
    let far = BEGIN * 1_000 + last + 3_600_000;
    let mut open: Vec<Option<Connection>> = Vec::new();
    for _ in 0..CLOSERS {
        open.push(Some(Connection::open(shared.server).context("connecting once more")?));
    }
    for (number, connection) in (0..).zip(&mut open) {
        deliver(shared, connection, &format!("Idempotency-Key: close-{number}"), &event(far, u64::MAX - number, 9, 0))?;
    }
    Ok(())
}

/// Waits until the aggregates have taken so many events together.
fn wait_folded(server: &Server, events: u64) -> Result<()> {
    let begun = Instant::now();
    loop {
        let taken = metrics::sum(&server.metrics()?, "forebay_aggregate_events_total");
        if (taken - events as f64).abs() < 0.5 {
            return Ok(());
        }
        if begun.elapsed() > HANGS {
            bail!("the aggregates have taken {taken} events, and {events} were acknowledged");
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn check_counts(server: &Server) -> Result<()> {
    let text = server.metrics()?;
    for name in ["forebay_aggregate_late_total", "forebay_aggregate_misdated_total", "forebay_ledger_errors_total"] {
        let found = metrics::sum(&text, name);
        if !metrics::has(&text, name) || found > 0.0 {
            bail!("{name} is {found}");
        }
    }
    Ok(())
}

/// Results with their windows, by SQL over the events, but for those of the closing events.
const BY_SQL: &str = "
with recursive hop(n) as (select 0 union all select n + 1 from hop where n < 2),
hits as (select payload ->> '$.at' / 1000 as s, payload ->> '$.group' as g, payload ->> '$.v' as v from events where type = 'hit'),
minutes as (select 'hit.minutes' as t, s / 60 * 60 as w, g, count(*) as n, sum(v), min(v), max(v) from hits where g < 9 group by w, g),
sliding as (select 'hit.sliding' as t, s / 20 * 20 - hop.n * 20 as w, null as g, count(*) as n, sum(v), null, null
  from hits, hop where g < 9 group by w)
select * from minutes union all select * from sliding order by 1, 2, 3;";
const RESULTS: &str = "
select type, cast(strftime('%s', payload ->> '$.window.start') as integer) as w, payload ->> '$.group.\"/group\"',
  payload ->> '$.n', payload ->> '$.sum', payload ->> '$.least', payload ->> '$.most'
from events where type in ('hit.minutes', 'hit.sliding') and w < (select min(payload ->> '$.at') / 1000 - 120 from events
  where type = 'hit' and payload ->> '$.group' = 9) order by 1, 2, 3;";

/// Waits until the results are those of SQL, and says how many there are.
fn check_until_equal(database: &Path, sent: u64) -> Result<usize> {
    let begun = Instant::now();
    loop {
        let stored = query(database, "select count(*) from events where type = 'hit';")?;
        let (wanted, found) = (query(database, BY_SQL)?, query(database, RESULTS)?);
        if wanted == found && stored.trim() == (sent + CLOSERS).to_string() {
            return if sent > 0 { Ok(found.lines().count()) } else { Err(anyhow!("nothing was sent")) };
        }
        if begun.elapsed() > HANGS {
            let differ = wanted.lines().zip(found.lines()).find(|(wanted, found)| wanted != found);
            bail!(
                "{} results, {} by SQL; {} events stored of {sent}; the first that differs, by SQL and found: {differ:?}; see {}",
                found.lines().count(),
                wanted.lines().count(),
                stored.trim(),
                database.display()
            );
        }
        thread::sleep(Duration::from_millis(200));
    }
}

/// Reads with SQLite's own program, which shares no code with the server.
fn query(database: &Path, select: &str) -> Result<String> {
    let mut sqlite = Command::new("sqlite3");
    let output = sqlite.arg("-readonly").arg(database).args(["-cmd", ".timeout 10000", select]).output();
    let output = output.context("sqlite3 reads what is stored: `cargo xtask services` installs it")?;
    if !output.status.success() {
        bail!("sqlite3 couldn't read {}: {}", database.display(), String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}
