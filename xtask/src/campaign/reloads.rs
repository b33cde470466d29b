//! Configurations that are read again under load, some of them wrong: no connection is dropped and no answer cut, the
//! wrong ones change nothing, and every acknowledged event is stored once where it belongs.

mod plan;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::{any_seed, short_with_sqlite3};
use crate::http::{self, Connection};
use crate::metrics;
use crate::server::{Launch, Server};
use crate::workspace;
use plan::{ConfigFault, Plan};
use random::Random;

#[derive(clap::Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 200)]
    reloads: u32,
    /// Clients, each with one request at a time.
    #[arg(long, default_value_t = 64)]
    connections: u32,
    /// Repeats a run: the same configurations one after the other.
    #[arg(long)]
    seed: Option<u64>,
    /// A server to use; without it the workspace's own is built.
    #[arg(long)]
    binary: Option<PathBuf>,
}

const READY_LIMIT: Duration = Duration::from_secs(30);
/// A reload that takes longer hangs.
const RELOAD_LIMIT: Duration = Duration::from_secs(60);
/// Between two reloads, at most.
const PAUSE_MILLISECONDS_MAX: u64 = 100;
/// One request in so many is a batch, and of events one in so many has the type that comes and goes.
const BATCH_EVERY: u64 = 8;
const BATCH_EVENTS: u64 = 3;
const FLEETING_EVERY: u64 = 3;

/// A few reloads of the server that the tests were built with.
pub(crate) fn short() -> Result<()> {
    short_with_sqlite3(|binary| run(&Options { reloads: 20, connections: 16, seed: Some(1), binary }))
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(any_seed);
    println!("reloads: {} of them, {} connections, --seed {seed}", options.reloads, options.connections);
    let binary = workspace::tested_binary(options.binary.as_deref())?;
    let folder = workspace::scratch_directory("campaign")?;
    let launch = Launch::new(&binary, &folder, Some(&Plan::everything().text()))?;
    std::fs::create_dir_all(launch.data.join("folder")).context("making what is no database")?;
    let mut server = launch.start()?;
    server.wait_ready(READY_LIMIT)?;
    let stop = Arc::new(AtomicBool::new(false));
    let client = |number| {
        let (server, stop) = (launch.intake, stop.clone());
        thread::spawn(move || send(&mut Connection::open(server)?, number, Random::new(seed ^ number), &stop))
    };
    let clients: Vec<_> = (1..=u64::from(options.connections)).map(client).collect();
    let wrong = reload_rounds(&launch, &server, options.reloads, seed, &clients);
    stop.store(true, Ordering::SeqCst);
    let mut known = Known::default();
    for client in clients {
        known.add(client.join().map_err(|_| anyhow!("a client panicked"))??);
    }
    let wrong = wrong?;
    // With all routes, so that what was held is stored too.
    apply(&launch, &server, &Plan::everything(), None)?;
    server.wait_stored()?;
    check_ledger(&server, &known)?;
    server.stop()?;
    check_stores(&launch.data.join("events.db"), &known)?;
    println!(
        "{} reloads, {wrong} of them wrong; {} events acknowledged, {} of them of the type that came and went ({} times \
         it was unknown)",
        options.reloads,
        known.kept.len() + known.fleeting.len(),
        known.fleeting.len(),
        known.unknown
    );
    if known.fleeting.is_empty() || known.unknown == 0 || wrong == 0 {
        bail!("the type never came or never went, or nothing was wrong: nothing was checked");
    }
    std::fs::remove_dir_all(&folder).context("removing what the campaign left")
}

/// Reloads again and again, and says how many of the configurations were wrong.
fn reload_rounds<T>(
    launch: &Launch,
    server: &Server,
    rounds: u32,
    seed: u64,
    clients: &[JoinHandle<T>],
) -> Result<u32> {
    let mut random = Random::new(seed);
    let mut now = Plan::everything();
    let mut wrong_ones = 0;
    for round in 1..=rounds {
        thread::sleep(Duration::from_millis(random.below(PAUSE_MILLISECONDS_MAX)));
        if clients.iter().any(JoinHandle::is_finished) {
            bail!("a client has ended before reload {round}");
        }
        let next = Plan::any(&mut random);
        let wrong = ConfigFault::any(&mut random);
        apply(launch, server, &next, wrong).with_context(|| format!("reload {round}: {next:?}, {wrong:?}"))?;
        match wrong {
            Some(_) => wrong_ones += 1,
            None => now = next.clone(),
        }
        check_routes(server, &now).with_context(|| format!("after reload {round}: {next:?}, {wrong:?}"))?;
    }
    Ok(wrong_ones)
}

/// Writes the configuration and sends SIGHUP; waits until the server says that it holds, or that nothing has changed.
fn apply(launch: &Launch, server: &Server, plan: &Plan, wrong: Option<ConfigFault>) -> Result<()> {
    let before = results(server)?;
    launch.write_config(&wrong.map_or_else(|| plan.text(), |wrong| wrong.poison(plan)))?;
    server.hang_up()?;
    let asked = Instant::now();
    loop {
        let now = results(server)?;
        if now != before {
            let expected = if wrong.is_some() { (before.0, before.1 + 1) } else { (before.0 + 1, before.1) };
            return if now == expected { Ok(()) } else { bail!("(applied, refused) went from {before:?} to {now:?}") };
        }
        if asked.elapsed() > RELOAD_LIMIT {
            bail!("nothing came of it in {RELOAD_LIMIT:?}");
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// How many configurations held, and how many were refused.
fn results(server: &Server) -> Result<(u64, u64)> {
    let text = server.metrics()?;
    let of = |result: &str| {
        let line =
            text.lines().find_map(|line| line.strip_prefix(&format!("forebay_reloads_total{{result=\"{result}\"}} ")));
        line.and_then(|value| value.parse().ok())
            .with_context(|| format!("/metrics doesn't say how many were {result}"))
    };
    Ok((of("applied")?, of("refused")?))
}

/// The server has the routes of the plan, and no others.
fn check_routes(server: &Server, plan: &Plan) -> Result<()> {
    let answer: serde_json::Value = serde_json::from_slice(&server.admin_get("/api/routes")?)?;
    let routes = answer["routes"].as_array().context("no list of routes")?;
    let active = routes.iter().filter(|route| route["state"] == "active" || route["state"] == "waiting");
    let mut found: Vec<String> =
        active.map(|route| format!("{} {}", text_of(&route["type"]), text_of(&route["sink"]))).collect();
    found.sort();
    let expected = plan.routes();
    if found != expected {
        bail!("the routes are {found:?}, they should be {expected:?}");
    }
    Ok(())
}

fn text_of(value: &serde_json::Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// What was acknowledged.
#[derive(Default)]
struct Known {
    kept: Vec<String>,
    fleeting: Vec<String>,
    /// Times that the fleeting type was unknown.
    unknown: u64,
}

impl Known {
    fn add(&mut self, other: Self) {
        self.kept.extend(other.kept);
        self.fleeting.extend(other.fleeting);
        self.unknown += other.unknown;
    }
}

/// One client on one connection, which must hold to the end.
fn send(connection: &mut Connection, client: u64, mut random: Random, stop: &AtomicBool) -> Result<Known> {
    let mut known = Known::default();
    let mut next = 0;
    while !stop.load(Ordering::SeqCst) {
        let is_batch = random.below(BATCH_EVERY) == 0;
        let is_fleeting = random.below(FLEETING_EVERY) == 0;
        let count = if is_batch { BATCH_EVENTS } else { 1 };
        let events: Vec<String> = (next..next + count).map(|number| format!("\"{client}-{number}\"")).collect();
        next += count;
        let route = if is_batch { "batch" } else { "event" };
        let type_name = if is_fleeting { plan::FLEETING } else { plan::KEPT };
        let request = http::post(&format!("/ingest/{route}/{type_name}"), &[], events.join("\n").as_bytes());
        let answer =
            connection.send(&request).with_context(|| format!("client {client}: the connection was dropped"))?;
        match answer.status {
            200 if is_fleeting => known.fleeting.extend(events),
            200 => known.kept.extend(events),
            404 if is_fleeting => known.unknown += 1,
            503 => {}
            status => bail!("client {client}: answered {status}: {}", String::from_utf8_lossy(&answer.body)),
        }
    }
    Ok(known)
}

/// As many events were accepted as were acknowledged, and the ledger adds up.
fn check_ledger(server: &Server, known: &Known) -> Result<()> {
    let text = server.metrics()?;
    let accepted = metrics::sum(&text, "forebay_events_accepted_total");
    let acknowledged = (known.kept.len() + known.fleeting.len()) as f64;
    if (accepted - acknowledged).abs() > 0.5 {
        bail!("{acknowledged} events were acknowledged, {accepted} accepted");
    }
    if metrics::sum(&text, "forebay_ledger_errors_total") > 0.0 {
        bail!("the ledger didn't add up");
    }
    Ok(())
}

/// Nothing is stored twice in one table. What was kept is in the first, the others are in one of the two at least.
fn check_stores(database: &Path, known: &Known) -> Result<()> {
    let main = stored(database, plan::MAIN_TABLE)?;
    let side = stored(database, plan::SIDE_TABLE)?;
    for event in &known.kept {
        if !main.contains(event) {
            bail!("{event} was acknowledged and isn't stored");
        }
    }
    for event in &known.fleeting {
        if !main.contains(event) && !side.contains(event) {
            bail!("{event} was acknowledged and isn't stored, neither here nor there");
        }
    }
    let sent = known.kept.len() + known.fleeting.len();
    if main.len() > sent || side.len() > sent {
        bail!("{} and {} events are stored, of {sent} that were acknowledged", main.len(), side.len());
    }
    Ok(())
}

/// The payloads of a table, none of which may be there twice.
fn stored(database: &Path, table: &str) -> Result<BTreeSet<String>> {
    let mut sqlite = Command::new("sqlite3");
    sqlite.arg("-readonly").arg(database).arg(format!("select payload from {table}"));
    let printed = workspace::output(&mut sqlite).context("sqlite3 reads what is stored")?;
    let mut found = BTreeSet::new();
    for payload in printed.lines() {
        if !found.insert(payload.to_owned()) {
            bail!("{payload} is stored twice in {table}");
        }
    }
    Ok(found)
}
