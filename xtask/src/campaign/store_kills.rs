//! SIGKILLs of a store while clients send to a server that delivers into it: no request is rejected, the backlog
//! is drained automatically, and each acknowledged event is stored, once.

use std::time::Instant;

use anyhow::{Context, Result};

use super::frame::FrameOptions;
use super::kills::clients::Shared;
use super::kills::oracle::Oracle;
use super::kills::{SHOWN_EACH, judge_rows, send_while};
use crate::server::{Launch, PATIENCE, Server};
use crate::store::{CampaignStore, StoreServer};
use crate::wait::until;
use random::Random;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How often the store is killed.
    #[arg(long, visible_alias = "kills", default_value_t = 200)]
    rounds: u32,
    /// Clients, each with one request at a time.
    #[arg(long, default_value_t = 64)]
    connections: u32,
    #[command(flatten)]
    frame: FrameOptions,
}

/// So many events at most are stored between a start of the store and its end, and acknowledged while it is down.
const STORED_MAX: u64 = 2_000;
const TAKEN_MAX: u64 = 500;

/// A few kills with the server that the tests were built with.
pub(crate) fn short<S: CampaignStore>() -> Result<()> {
    let Some(store) = S::start_or_skip()? else { return Ok(()) };
    kill_again_and_again(store, &Options { rounds: 3, connections: 16, frame: FrameOptions::short() })
}

pub(crate) fn run<S: CampaignStore>(options: &Options) -> Result<()> {
    kill_again_and_again(S::require()?, options)
}

fn kill_again_and_again<S: CampaignStore>(mut store: S, options: &Options) -> Result<()> {
    let Options { rounds, connections, .. } = *options;
    let frame = options.frame.begin(format!("kills of {}: {rounds} rounds, {connections} connections", S::NAME))?;
    let configuration = format!("[types.\"*\"]\nroutes = [\"store\"]\n\n[sinks.store]\n{}", store.sink());
    let launch = frame.launch(Some(&configuration))?;
    let shared = Shared::new(launch.intake, frame.seed).with_whole_answers();
    let kill = |shared: &Shared| kill_rounds(&launch, &mut store, rounds, frame.random(), shared);
    let (known, down) = send_while(&shared, connections, kill)?;
    println!("{rounds} kills of {}; {down} events were acknowledged while it was down", S::NAME);
    judge_rows(store.payloads(&frame.folder)?, Oracle::new(frame.seed, known), &frame.folder)?;
    frame.end()
}

/// Kills the store when a random number of events was stored, and starts it when some were acknowledged in the meantime. Returns the
/// number of those.
fn kill_rounds(
    launch: &Launch,
    store: &mut impl StoreServer,
    rounds: u32,
    mut random: Random,
    shared: &Shared,
) -> Result<(Server, usize)> {
    let server = launch.ready()?;
    shared.server_is_up();
    let (mut down, mut shown) = (0, Instant::now());
    for round in 1..=rounds {
        let wanted = store.stored() + 1 + random.below(STORED_MAX);
        until("events are stored", PATIENCE, || Ok(store.stored() >= wanted))
            .with_context(|| format!("before kill {round}"))?;
        store.kill()?;
        let (before, wanted) = (shared.taken(), usize::try_from(1 + random.below(TAKEN_MAX))?);
        until("events are acknowledged without the store", PATIENCE, || Ok(shared.taken() >= before + wanted))
            .with_context(|| format!("after kill {round}"))?;
        down += shared.taken() - before;
        store.run()?;
        if shown.elapsed() > SHOWN_EACH {
            println!("{round} kills, {} events acknowledged", shared.taken());
            shown = Instant::now();
        }
    }
    Ok((server, down))
}
