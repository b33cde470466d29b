//! SIGTERMs at random times while clients send: the server ends with 0 each time, no answer is cut, and every
//! acknowledged event is stored once.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::kills::clients::Shared;
use super::kills::oracle::Oracle;
use super::kills::{judge, send_while};
use super::{any_seed, short_with_sqlite3};
use crate::server::{Launch, Server};
use crate::workspace;
use random::Random;

#[derive(clap::Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 50)]
    rounds: u32,
    /// Clients, each with one request at a time.
    #[arg(long, default_value_t = 256)]
    connections: u32,
    /// Repeats a run: the same events, and the same times to stop.
    #[arg(long)]
    seed: Option<u64>,
    /// A server to stop; without it the workspace's own is built.
    #[arg(long)]
    binary: Option<PathBuf>,
}

const READY_LIMIT: Duration = Duration::from_secs(30);
/// A server lives this long at most before it is stopped, once it is ready.
const LIFE_MILLISECONDS_MAX: u64 = 1_000;

/// A few stops of the server that the tests were built with.
pub(crate) fn short() -> Result<()> {
    short_with_sqlite3(|binary| run(&Options { rounds: 5, connections: 64, seed: Some(1), binary }))
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(any_seed);
    println!("stops: {} rounds, {} connections, --seed {seed}", options.rounds, options.connections);
    let binary = workspace::tested_binary(options.binary.as_deref())?;
    let folder = workspace::scratch_directory("campaign")?;
    let launch = Launch::new(&binary, &folder, None)?;
    let shared = Shared::new(launch.intake, seed).with_whole_answers();
    let rounds = |shared: &Shared| stop_rounds(&launch, options.rounds, seed, shared);
    let (known, slowest) = send_while(shared, options.connections, rounds)?;
    println!("{} stops, each with 0 and after {:.0} ms at most", options.rounds, slowest.as_secs_f64() * 1e3);
    judge(&launch.data.join("events.db"), Oracle::new(seed, known), &folder)?;
    std::fs::remove_dir_all(&folder).context("removing what the campaign left")
}

fn stop_rounds(launch: &Launch, rounds: u32, seed: u64, shared: &Shared) -> Result<(Server, Duration)> {
    let mut random = Random::new(seed);
    let mut slowest = Duration::ZERO;
    let mut server = launch.start()?;
    server.wait_ready(READY_LIMIT).context("the first start")?;
    for round in 1..=rounds {
        shared.server_is_up();
        thread::sleep(Duration::from_micros(random.below(LIFE_MILLISECONDS_MAX * 1_000)));
        let asked = Instant::now();
        server.stop().with_context(|| format!("stop {round}"))?;
        slowest = slowest.max(asked.elapsed());
        shared.server_goes_down();
        server = launch.start()?;
        server.wait_ready(READY_LIMIT).with_context(|| format!("the start after stop {round}"))?;
    }
    shared.server_is_up();
    thread::sleep(Duration::from_millis(LIFE_MILLISECONDS_MAX));
    Ok((server, slowest))
}
