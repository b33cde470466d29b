//! SIGKILLs of a store while clients send to a server that delivers into it: nobody is refused meanwhile, the backlog
//! is drained by itself, and each acknowledged event is stored, once.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::any_seed;
use super::kills::clients::Shared;
use super::kills::oracle::Oracle;
use super::kills::{judge_rows, send_while};
use crate::server::{Launch, Server};
use crate::store::CampaignStore;
use crate::workspace;
use random::Random;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How often the store is killed.
    #[arg(long, visible_alias = "kills", default_value_t = 200)]
    rounds: u32,
    /// Clients, each with one request at a time.
    #[arg(long, default_value_t = 64)]
    connections: u32,
    /// Repeats a run: the same events, and the same numbers of them between the kills.
    #[arg(long)]
    seed: Option<u64>,
    /// A server to deliver with; without it the workspace's own is built.
    #[arg(long)]
    binary: Option<PathBuf>,
}

const READY_LIMIT: Duration = Duration::from_secs(30);
/// So many events at most are stored between a start of the store and its end, and acknowledged while it is down.
const STORED_MAX: u64 = 2_000;
const TAKEN_MAX: u64 = 500;
/// What doesn't move for so long doesn't move any more: a lane tries again after a minute at the latest.
const PATIENCE: Duration = Duration::from_secs(150);

/// A few kills with the server that the tests were built with.
pub(crate) fn short<S: CampaignStore>() -> Result<()> {
    let Some(store) = S::start()? else {
        workspace::skipped(&format!("{} is missing, which `cargo xtask services` installs", S::NAME))?;
        return Ok(());
    };
    let binary = Some(workspace::tested_binary(None)?);
    kill_again_and_again(store, &Options { rounds: 3, connections: 16, seed: Some(1), binary })
}

pub(crate) fn run<S: CampaignStore>(options: &Options) -> Result<()> {
    let missing = || anyhow!("{} is missing: `cargo xtask services` installs it", S::NAME);
    kill_again_and_again(S::start()?.ok_or_else(missing)?, options)
}

fn kill_again_and_again<S: CampaignStore>(mut store: S, options: &Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(any_seed);
    println!("kills of {}: {} rounds, {} connections, --seed {seed}", S::NAME, options.rounds, options.connections);
    let binary = workspace::tested_binary(options.binary.as_deref())?;
    let folder = workspace::scratch_directory("campaign")?;
    let configuration = format!("[types.\"*\"]\nroutes = [\"store\"]\n\n[sinks.store]\n{}", store.sink());
    let launch = Launch::new(&binary, &folder, Some(&configuration))?;
    let shared = Shared::new(launch.intake, seed).with_whole_answers();
    let rounds = |shared: &Shared| kill_rounds(&launch, &mut store, options.rounds, seed, shared);
    let (known, down) = send_while(shared, options.connections, rounds)?;
    println!("{} kills of {}; {down} events were acknowledged while it was down", options.rounds, S::NAME);
    store.read_payloads(&folder, |payloads| judge_rows(payloads, Oracle::new(seed, known), &folder))?;
    std::fs::remove_dir_all(&folder).context("removing what the campaign left")
}

/// Kills the store when a random number of events was stored, and starts it when some were acknowledged meanwhile. How
/// many those were together.
fn kill_rounds(
    launch: &Launch,
    store: &mut impl CampaignStore,
    rounds: u32,
    seed: u64,
    shared: &Shared,
) -> Result<(Server, usize)> {
    let mut random = Random::new(seed);
    let mut server = launch.start()?;
    server.wait_ready(READY_LIMIT)?;
    shared.server_is_up();
    let (mut down, mut shown) = (0, Instant::now());
    for round in 1..=rounds {
        let wanted = store.stored() + 1 + random.below(STORED_MAX);
        until("events are stored", || store.stored() >= wanted).with_context(|| format!("before kill {round}"))?;
        store.kill()?;
        let (before, wanted) = (shared.taken(), usize::try_from(1 + random.below(TAKEN_MAX))?);
        until("events are acknowledged without the store", || shared.taken() >= before + wanted)
            .with_context(|| format!("after kill {round}"))?;
        down += shared.taken() - before;
        store.run()?;
        if shown.elapsed() > Duration::from_secs(10) {
            println!("{round} kills, {} events acknowledged", shared.taken());
            shown = Instant::now();
        }
    }
    Ok((server, down))
}

fn until(what: &str, mut holds: impl FnMut() -> bool) -> Result<()> {
    let begun = Instant::now();
    while !holds() {
        if begun.elapsed() > PATIENCE {
            bail!("waited {PATIENCE:?} until {what}");
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
