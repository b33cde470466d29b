//! SIGTERMs at random times while clients send: the server ends with 0 each time, no answer is cut, and every
//! acknowledged event is stored once.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::frame::{FrameOptions, short_with};
use super::kills::clients::Shared;
use super::kills::oracle::Oracle;
use super::kills::{judge, send_while};
use crate::server::{Launch, Server};
use random::Random;

#[derive(clap::Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 50)]
    rounds: u32,
    /// Clients, each with one request at a time.
    #[arg(long, default_value_t = 256)]
    connections: u32,
    #[command(flatten)]
    frame: FrameOptions,
}

/// A server lives this long at most before it is stopped, once it is ready.
const LIFE_MILLISECONDS_MAX: u64 = 1_000;

/// A few stops of the server that the tests were built with.
pub(crate) fn short() -> Result<()> {
    short_with(&["sqlite3"], || run(&Options { rounds: 5, connections: 64, frame: FrameOptions::short() }))
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let Options { rounds, connections, .. } = *options;
    let frame = options.frame.begin(format!("stops: {rounds} rounds, {connections} connections"))?;
    let launch = frame.launch(None)?;
    let shared = Shared::new(launch.intake, frame.seed).with_whole_answers();
    let stop = |shared: &Shared| stop_rounds(&launch, rounds, frame.random(), shared);
    let (known, slowest) = send_while(&shared, connections, stop)?;
    println!("{rounds} stops, each with 0 and after {:.0} ms at most", slowest.as_secs_f64() * 1e3);
    judge(&launch.data.join("events.db"), Oracle::new(frame.seed, known), &frame.folder)?;
    frame.end()
}

fn stop_rounds(launch: &Launch, rounds: u32, mut random: Random, shared: &Shared) -> Result<(Server, Duration)> {
    let mut slowest = Duration::ZERO;
    let mut server = launch.ready().context("the first start")?;
    for round in 1..=rounds {
        shared.server_is_up();
        thread::sleep(Duration::from_micros(random.below(LIFE_MILLISECONDS_MAX * 1_000)));
        let asked = Instant::now();
        server.stop().with_context(|| format!("stop {round}"))?;
        slowest = slowest.max(asked.elapsed());
        shared.server_goes_down();
        server = launch.ready().with_context(|| format!("the start after stop {round}"))?;
    }
    shared.server_is_up();
    thread::sleep(Duration::from_millis(LIFE_MILLISECONDS_MAX));
    Ok((server, slowest))
}
