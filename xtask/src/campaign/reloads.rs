//! Configurations that are read again under load, some of them wrong: no connection is dropped and no answer cut, the
//! wrong ones change nothing, and every acknowledged event is stored once where it belongs.

mod plan;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::frame::{FrameOptions, short_with};
use super::{ledger, sqlite};
use crate::clients::with_clients;
use crate::http::{self, Connection};
use crate::server::{Launch, Server};
use plan::{ConfigFault, Plan};
use random::Random;

#[derive(clap::Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 200)]
    reloads: u32,
    /// Clients, each with one request at a time.
    #[arg(long, default_value_t = 64)]
    connections: u32,
    #[command(flatten)]
    frame: FrameOptions,
}

/// A reload that takes longer hangs.
const RELOAD_LIMIT: Duration = Duration::from_secs(60);
/// Between two reloads, at most.
const PAUSE_MILLISECONDS_MAX: u64 = 100;
/// One request in so many is a batch, and of events one in so many has the type that is added and removed.
const BATCH_EVERY: u64 = 8;
const BATCH_EVENTS: u64 = 3;
const FLEETING_EVERY: u64 = 3;

/// A few reloads of the server that the tests were built with.
pub(crate) fn short() -> Result<()> {
    short_with(&["sqlite3"], || run(&Options { reloads: 20, connections: 16, frame: FrameOptions::short() }))
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let Options { reloads, connections, .. } = *options;
    let frame = options.frame.begin(format!("reloads: {reloads} of them, {connections} connections"))?;
    let launch = frame.launch(Some(&Plan::everything().text()))?;
    std::fs::create_dir_all(launch.data.join("folder")).context("creating a file that is not a database")?;
    let server = launch.ready()?;
    let (stop, has_ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let client = |number| {
        let number = u64::from(number) + 1;
        let sent = Connection::open(launch.intake)
            .context("connecting")
            .and_then(|mut connection| send(&mut connection, number, Random::new(frame.seed ^ number), &stop));
        has_ended.store(true, Ordering::SeqCst);
        sent
    };
    let reload = || reload_rounds(&launch, &server, reloads, frame.random(), &has_ended);
    let (clients, wrong) = with_clients(connections, client, reload, || stop.store(true, Ordering::SeqCst))?;
    let mut known = Known::default();
    clients.into_iter().for_each(|client| known.add(client));
    // With all routes, to store held events too.
    apply(&launch, &server, &Plan::everything(), None)?;
    server.wait_stored()?;
    let acknowledged = (known.kept.len() + known.fleeting.len()) as f64;
    ledger::expect(&server, &[("forebay_events_accepted_total", acknowledged), ("forebay_ledger_errors_total", 0.0)])?;
    server.stop()?;
    check_stores(&launch.data.join("events.db"), &known)?;
    println!(
        "{reloads} reloads, {wrong} of them wrong; {acknowledged} events acknowledged, {} of them of the changing type ({} \
         times it was unknown)",
        known.fleeting.len(),
        known.unknown
    );
    if known.fleeting.is_empty() || known.unknown == 0 || wrong == 0 {
        bail!("the type was never added or removed, or no configuration was wrong: nothing was checked");
    }
    frame.end()
}

/// Reloads again and again, and says how many of the configurations were wrong.
fn reload_rounds(
    launch: &Launch,
    server: &Server,
    rounds: u32,
    mut random: Random,
    has_ended: &AtomicBool,
) -> Result<u32> {
    let mut now = Plan::everything();
    let mut wrong_ones = 0;
    for round in 1..=rounds {
        thread::sleep(Duration::from_millis(random.below(PAUSE_MILLISECONDS_MAX)));
        if has_ended.load(Ordering::SeqCst) {
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

/// Writes the configuration and sends SIGHUP; waits until the server reports that it is in use, or that nothing has changed.
fn apply(launch: &Launch, server: &Server, plan: &Plan, wrong: Option<ConfigFault>) -> Result<()> {
    let before = results(server)?;
    launch.write_config(&wrong.map_or_else(|| plan.text(), |wrong| wrong.poison(plan)))?;
    server.hang_up()?;
    let asked = Instant::now();
    loop {
        let now = results(server)?;
        if now != before {
            let expected = if wrong.is_some() { (before.0, before.1 + 1) } else { (before.0 + 1, before.1) };
            return if now == expected { Ok(()) } else { bail!("(applied, rejected) went from {before:?} to {now:?}") };
        }
        if asked.elapsed() > RELOAD_LIMIT {
            bail!("the reload had no result in {RELOAD_LIMIT:?}");
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// How many configurations were applied, and how many were rejected.
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

/// The acknowledged events.
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

/// Nothing is stored twice in one table. Held events are in the first, the others are in one of the two at least.
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
    let printed = sqlite::select(database, &format!("select payload from {table}"))?;
    let mut found = BTreeSet::new();
    for payload in printed.lines() {
        if !found.insert(payload.to_owned()) {
            bail!("{payload} is stored twice in {table}");
        }
    }
    Ok(found)
}
