//! SIGKILLs in the middle of windows: the results of aggregates are those that SQL computes over the stored events, as if
//! no process had been killed.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::frame::{FrameOptions, short_with};
use super::{ledger, sqlite};
use crate::clients::with_clients;
use crate::http::{self, Client};
use crate::metrics;
use crate::server::{Launch, Server};
use crate::wait::until;
use random::Random;

#[derive(clap::Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 100)]
    rounds: u32,
    /// Clients, each with one request at a time.
    #[arg(long, default_value_t = 32)]
    connections: u32,
    #[command(flatten)]
    frame: FrameOptions,
}

/// A server lives this long at most before it is killed, once it is ready.
const LIFE_MILLISECONDS_MAX: u64 = 600;
/// A longer wait hangs.
const HANGS: Duration = Duration::from_secs(120);
/// When the first event happens: 2026-11-20T00:00:00Z, in seconds. Each is some milliseconds after the one before, or some before it.
const BEGIN: u64 = 1_795_132_800;
const STEP_MILLISECONDS: u64 = 20;
const JITTER_MILLISECONDS: u64 = 5_000;
/// Connections that are open together at the end: each shard should have some.
const CLOSERS: u64 = 16;

/// Two shards, also if one would do. Lateness and idle timeout are such that no event is ever late: other tests cover that.
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
idle_timeout = "1day"
routes = ["local"]
[types.hit.aggregate.sliding]
window = "1m every 20s"
measures = { n = "count", sum = "sum:/v" }
lateness = "1h"
idle_timeout = "1day"
early = "10s"
routes = ["local"]
[sinks.local]
kind = "sqlite"
"#;

/// The state that the clients share.
struct Shared {
    server: SocketAddr,
    stop: AtomicBool,
    /// Events that were begun, and that were acknowledged.
    next: AtomicU64,
    acknowledged: AtomicU64,
}

/// A few kills of the server that the tests were built with.
pub(crate) fn short() -> Result<()> {
    short_with(&["sqlite3"], || run(&Options { rounds: 5, connections: 16, frame: FrameOptions::short() }))
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let Options { rounds, connections, .. } = *options;
    let frame = options.frame.begin(format!("aggregate crash: {rounds} rounds, {connections} connections"))?;
    let launch = frame.launch(Some(CONFIG))?;
    let [next, acknowledged] = [0; 2].map(AtomicU64::new);
    let shared = Shared { server: launch.intake, stop: AtomicBool::new(false), next, acknowledged };
    let client = |client| send(&shared, Random::new(frame.seed ^ (u64::from(client) + 1)));
    let kill = || kill_rounds(&launch, rounds, frame.random());
    let (_, server) = with_clients(connections, client, kill, || shared.stop.store(true, Ordering::SeqCst))?;
    let sent = shared.acknowledged.load(Ordering::SeqCst);
    close_windows(&shared)?;
    wait_folded(&server, 2 * (sent + CLOSERS))?;
    let results = check_until_equal(&launch.data.join("events.db"), sent)?;
    let of_faults = ["forebay_aggregate_late_total", "forebay_aggregate_misdated_total", "forebay_ledger_errors_total"];
    ledger::expect(&server, &of_faults.map(|name| (name, 0.0)))?;
    server.stop()?;
    println!("{sent} events, {rounds} kills: {results} results are those of SQL over the stored events");
    frame.end()
}

fn kill_rounds(launch: &Launch, rounds: u32, mut random: Random) -> Result<Server> {
    let mut server = launch.ready().context("the first start")?;
    for round in 1..=rounds {
        thread::sleep(Duration::from_micros(random.below(LIFE_MILLISECONDS_MAX * 1_000)));
        server.kill()?;
        server = launch.ready().with_context(|| format!("the start after kill {round}"))?;
    }
    thread::sleep(Duration::from_millis(LIFE_MILLISECONDS_MAX));
    Ok(server)
}

/// Sends events until it has to stop, each until it is acknowledged.
fn send(shared: &Shared, mut random: Random) -> Result<()> {
    let mut client = Client::new(shared.server);
    while !shared.stop.load(Ordering::SeqCst) {
        let number = shared.next.fetch_add(1, Ordering::SeqCst);
        let milliseconds = BEGIN * 1_000 + number * STEP_MILLISECONDS - random.below(JITTER_MILLISECONDS);
        let (group, value) = (random.below(5), random.below(1_000));
        let body = event(milliseconds, number, group, value);
        deliver(&mut client, &format!("Idempotency-Key: {number}"), &body)?;
        shared.acknowledged.fetch_add(1, Ordering::SeqCst);
    }
    Ok(())
}

fn event(milliseconds: u64, number: u64, group: u64, value: u64) -> String {
    let time = humantime::format_rfc3339_millis(std::time::UNIX_EPOCH + Duration::from_millis(milliseconds));
    format!(r#"{{"time":"{time}","at":{milliseconds},"number":{number},"group":{group},"v":{value}}}"#)
}

fn deliver(client: &mut Client, key: &str, body: &str) -> Result<()> {
    let request = http::post("/ingest/event/hit", &[key], body.as_bytes());
    until("an event is acknowledged", HANGS, || match client.send(&request) {
        Ok(answer) if answer.status == 200 => Ok(true),
        Ok(answer) if answer.status < 500 => {
            bail!("{} to {body}: {}", answer.status, String::from_utf8_lossy(&answer.body))
        }
        _ => {
            client.disconnect();
            Ok(false)
        }
    })
}

/// Events long after all others, in each shard: the windows before them end.
fn close_windows(shared: &Shared) -> Result<()> {
    let last = shared.next.load(Ordering::SeqCst) * STEP_MILLISECONDS;
    let far = BEGIN * 1_000 + last + 3_600_000;
    let mut clients: Vec<Client> = (0..CLOSERS).map(|_| Client::new(shared.server)).collect();
    for client in &mut clients {
        client.connect().context("connecting once more")?;
    }
    for (number, client) in (0..).zip(&mut clients) {
        deliver(client, &format!("Idempotency-Key: close-{number}"), &event(far, u64::MAX - number, 9, 0))?;
    }
    Ok(())
}

/// Waits until the aggregates have read so many events together.
fn wait_folded(server: &Server, events: u64) -> Result<()> {
    until("the aggregates have read all acknowledged events", HANGS, || {
        let taken = metrics::sum(&server.metrics()?, "forebay_aggregate_events_total");
        Ok((taken - events as f64).abs() < 0.5)
    })
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
        let stored = sqlite::select(database, "select count(*) from events where type = 'hit';")?;
        let (wanted, found) = (sqlite::select(database, BY_SQL)?, sqlite::select(database, RESULTS)?);
        if wanted == found && stored.trim() == (sent + CLOSERS).to_string() {
            ensure!(sent > 0, "nothing was sent");
            return Ok(found.lines().count());
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
