//! SIGKILLs at random times while clients send: every acknowledged event is stored once, every other once or
//! never, and the server is ready again at once.
//!
//! A SIGKILL leaves the page cache alone, so this proves nothing about fsync: the power cuts do that.

pub(super) mod clients;
pub(super) mod oracle;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{any_seed, short_with_sqlite3};
use crate::server::{Launch, Server};
use crate::workspace;
use clients::Shared;
use oracle::{Account, Acknowledged, Oracle};
use random::Random;

#[derive(clap::Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 300)]
    rounds: u32,
    /// Clients, each with one request at a time.
    #[arg(long, default_value_t = 256)]
    connections: u32,
    /// Repeats a run: the same events, and the same times to kill.
    #[arg(long)]
    seed: Option<u64>,
    /// A server to kill; without it the workspace's own is built.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Most milliseconds until a killed server is ready again.
    #[arg(long, default_value_t = 1_000)]
    ready: u64,
}

/// A server that never gets ready must not hang the campaign.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// A server lives this long at most before it is killed, once it is ready.
const LIFE_MILLISECONDS_MAX: u64 = 400;
const FAULTS_SHOWN: usize = 20;

/// A few kills of the server that the tests were built with. How soon it is ready is measured but not judged: a
/// test doesn't depend on the machine's speed.
pub(crate) fn short() -> Result<()> {
    let ready = u64::try_from(READY_LIMIT.as_millis())?;
    short_with_sqlite3(|binary| run(&Options { rounds: 10, connections: 256, seed: Some(1), binary, ready }))
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(any_seed);
    println!("kills: {} rounds, {} connections, --seed {seed}", options.rounds, options.connections);
    let binary = workspace::tested_binary(options.binary.as_deref())?;
    let folder = workspace::scratch_directory("campaign")?;
    let launch = Launch::new(&binary, &folder, None)?;
    let rounds = |shared: &Shared| kill_rounds(&launch, options.rounds, seed, shared);
    let (known, kills) = send_while(Shared::new(launch.intake, seed), options.connections, rounds)?;
    kills.print();
    judge(&launch.data.join("events.db"), Oracle::new(seed, known), &folder)?;
    if kills.slowest_ready() > Duration::from_millis(options.ready) {
        bail!("ready again after {:?}, at most {} ms are allowed", kills.slowest_ready(), options.ready);
    }
    std::fs::remove_dir_all(&folder).context("removing what the campaign left")
}

/// What the kills met.
#[derive(Default)]
struct Kills {
    ready: Vec<Duration>,
    in_flight: Vec<usize>,
}

impl Kills {
    fn slowest_ready(&self) -> Duration {
        self.ready.iter().max().copied().unwrap_or_default()
    }

    fn print(&self) {
        let mut in_flight = self.in_flight.clone();
        in_flight.sort_unstable();
        let median = in_flight.get(in_flight.len() / 2).copied().unwrap_or(0);
        let least = in_flight.first().copied().unwrap_or(0);
        println!("in flight at a kill: {median} in the median, {least} at least");
        println!("ready again after {:.0} ms at most", self.slowest_ready().as_secs_f64() * 1e3);
    }
}

/// Does the rounds while clients send, lets the server that they end with store everything, and stops it. Says what was
/// acknowledged, and what the rounds met.
pub(super) fn send_while<T>(
    shared: Shared,
    connections: u32,
    rounds: impl FnOnce(&Shared) -> Result<(Server, T)>,
) -> Result<(Vec<Acknowledged>, T)> {
    let (known, (server, met)) = acknowledged_while(shared, connections, rounds)?;
    server.wait_stored()?;
    server.stop()?;
    Ok((known, met))
}

/// Runs the rounds while clients send. Returns the acknowledged events and the result of the rounds.
pub(super) fn acknowledged_while<T>(
    shared: Shared,
    connections: u32,
    rounds: impl FnOnce(&Shared) -> Result<T>,
) -> Result<(Vec<Acknowledged>, T)> {
    let shared = Arc::new(shared);
    let spawned: Result<Vec<_>> = (0..connections).map(|client| clients::spawn(&shared, client)).collect();
    let outcome = spawned.and_then(|clients| {
        let met = rounds(&shared);
        shared.stop();
        let known: Result<Vec<_>> = clients.into_iter().map(clients::join).collect();
        // An error of the rounds comes first: it may be the cause of the clients' errors.
        let met = met?;
        Ok((known?, met))
    });
    shared.stop();
    outcome
}

fn kill_rounds(launch: &Launch, rounds: u32, seed: u64, shared: &Shared) -> Result<(Server, Kills)> {
    let mut random = Random::new(seed);
    let mut kills = Kills::default();
    let mut server = launch.start()?;
    server.wait_ready(READY_LIMIT).context("the first start")?;
    let mut shown = Instant::now();
    for round in 1..=rounds {
        shared.server_is_up();
        thread::sleep(Duration::from_micros(random.below(LIFE_MILLISECONDS_MAX * 1_000)));
        kills.in_flight.push(shared.server_goes_down());
        server.kill()?;
        server = launch.start()?;
        kills.ready.push(server.wait_ready(READY_LIMIT).with_context(|| format!("the start after kill {round}"))?);
        if shown.elapsed() > Duration::from_secs(10) {
            println!("{round} kills");
            shown = Instant::now();
        }
    }
    shared.server_is_up();
    thread::sleep(Duration::from_millis(LIFE_MILLISECONDS_MAX));
    Ok((server, kills))
}

/// Holds what is stored in `database` against what the clients know, and fails where anything is wrong.
pub(super) fn judge(database: &Path, oracle: Oracle, folder: &Path) -> Result<()> {
    // SQLite's own program, which shares no code with the server.
    let mut sqlite = Command::new("sqlite3");
    sqlite.arg("-readonly").arg(database).arg("select payload from events").stdout(Stdio::piped());
    let mut sqlite = sqlite.spawn().context("sqlite3 reads what is stored: `cargo xtask services` installs it")?;
    let rows = BufReader::new(sqlite.stdout.take().context("sqlite3 prints rows")?);
    judge_rows(rows, oracle, folder)?;
    let status = sqlite.wait()?;
    if !status.success() {
        bail!("sqlite3 couldn't read {}: {status}", database.display());
    }
    Ok(())
}

/// The same with stored payloads as somebody else has read them, one a line.
pub(super) fn judge_rows(rows: impl BufRead, mut oracle: Oracle, folder: &Path) -> Result<()> {
    for row in rows.lines() {
        oracle.stored(&row.context("reading what is stored")?);
    }
    let Account { acknowledged, unacknowledged_stored, unacknowledged_missing, faults } = oracle.account();
    println!(
        "{acknowledged} events acknowledged; of the others {unacknowledged_stored} stored, {unacknowledged_missing} not"
    );
    for fault in faults.iter().take(FAULTS_SHOWN) {
        println!("{fault}");
    }
    if !faults.is_empty() {
        bail!("{} faults; what is left stands in {}", faults.len(), folder.display());
    }
    if acknowledged == 0 {
        bail!("no event was acknowledged: nothing was checked");
    }
    Ok(())
}
