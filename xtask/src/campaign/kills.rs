//! SIGKILLs at random times while clients send: every acknowledged event is stored once, every other once or
//! never, and the server is ready again soon.
//!
//! A SIGKILL leaves the page cache alone, so this proves nothing about fsync: the power cuts do that.

pub(super) mod clients;
pub(super) mod oracle;

use std::io::BufRead;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::frame::{FrameOptions, short_with};
use super::sqlite;
use crate::clients::with_clients;
use crate::server::{Launch, READY_LIMIT, Server};
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
    /// Most milliseconds until a killed server is ready again.
    #[arg(long, default_value_t = 1_000)]
    ready: u64,
    #[command(flatten)]
    frame: FrameOptions,
}

/// A server lives this long at most before it is killed, once it is ready.
const LIFE_MILLISECONDS_MAX: u64 = 400;
const FAULTS_SHOWN: usize = 20;
/// Progress is printed once in this time.
pub(super) const SHOWN_EACH: Duration = Duration::from_secs(10);

/// A few kills of the server that the tests were built with. How soon it is ready is measured but not judged: a
/// test doesn't depend on the machine's speed.
pub(crate) fn short() -> Result<()> {
    let ready = u64::try_from(READY_LIMIT.as_millis())?;
    let options = Options { rounds: 10, connections: 256, ready, frame: FrameOptions::short() };
    short_with(&["sqlite3"], || run(&options))
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let Options { rounds, connections, .. } = *options;
    let frame = options.frame.begin(format!("kills: {rounds} rounds, {connections} connections"))?;
    let launch = frame.launch(None)?;
    let kill = |shared: &Shared| kill_rounds(&launch, rounds, frame.random(), shared);
    let (known, kills) = send_while(&Shared::new(launch.intake, frame.seed), connections, kill)?;
    kills.print();
    judge(&launch.data.join("events.db"), Oracle::new(frame.seed, known), &frame.folder)?;
    if kills.slowest_ready() > Duration::from_millis(options.ready) {
        bail!("ready again after {:?}, at most {} ms are allowed", kills.slowest_ready(), options.ready);
    }
    frame.end()
}

/// The counts of the kills' effects.
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

/// Does the rounds while clients send, lets the server that they end with store everything, and stops it. Returns the acknowledged
/// events, and the counts of the rounds.
pub(super) fn send_while<T>(
    shared: &Shared,
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
    shared: &Shared,
    connections: u32,
    rounds: impl FnOnce(&Shared) -> Result<T>,
) -> Result<(Vec<Acknowledged>, T)> {
    with_clients(connections, |client| clients::run(shared, client), || rounds(shared), || shared.stop())
}

fn kill_rounds(launch: &Launch, rounds: u32, mut random: Random, shared: &Shared) -> Result<(Server, Kills)> {
    let mut kills = Kills::default();
    let mut server = launch.ready().context("the first start")?;
    let mut shown = Instant::now();
    for round in 1..=rounds {
        shared.server_is_up();
        thread::sleep(Duration::from_micros(random.below(LIFE_MILLISECONDS_MAX * 1_000)));
        kills.in_flight.push(shared.server_goes_down());
        server.kill()?;
        let took;
        (server, took) = launch.ready_after().with_context(|| format!("the start after kill {round}"))?;
        kills.ready.push(took);
        if shown.elapsed() > SHOWN_EACH {
            println!("{round} kills");
            shown = Instant::now();
        }
    }
    shared.server_is_up();
    thread::sleep(Duration::from_millis(LIFE_MILLISECONDS_MAX));
    Ok((server, kills))
}

/// Compares the contents of `database` with the clients' records.
pub(super) fn judge(database: &Path, oracle: Oracle, folder: &Path) -> Result<()> {
    judge_rows(sqlite::payloads(database, folder)?, oracle, folder)
}

/// The same with stored payloads, one a line.
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
        bail!("{} faults; the files are in {}", faults.len(), folder.display());
    }
    if acknowledged == 0 {
        bail!("no event was acknowledged: nothing was checked");
    }
    Ok(())
}
