//! SIGKILLs of PostgreSQL while clients send to a server that delivers into it: nobody is refused meanwhile, the backlog
//! is drained by itself, and each acknowledged event is a row, once.

use std::io::BufReader;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::any_seed;
use super::kills::clients::Shared;
use super::kills::oracle::Oracle;
use super::kills::{judge_rows, send_while};
use crate::postgres::Postgres;
use crate::random::Random;
use crate::server::{Launch, Server};
use crate::workspace;

#[derive(clap::Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 200)]
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
/// So many events at most are stored between a start of PostgreSQL and its end, and acknowledged while it is down.
const STORED_MAX: u64 = 2_000;
const TAKEN_MAX: u64 = 500;
/// What doesn't move for so long doesn't move any more: a lane tries again after a minute at the latest.
const PATIENCE: Duration = Duration::from_secs(150);
/// Events that were stored, as the lanes' cursors tell: cheaper than to count rows.
const STORED: &str = "select coalesce(sum(position), 0)::bigint from forebay_cursors";

/// A few kills with the server that the tests were built with.
pub(crate) fn short() -> Result<()> {
    if !Postgres::is_installed() {
        println!("left out: PostgreSQL is missing, which `cargo xtask services` installs");
        return Ok(());
    }
    let binary = Some(workspace::server_binary(None, "dev")?);
    run(&Options { rounds: 3, connections: 16, seed: Some(1), binary })
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(any_seed);
    println!("postgres-kills: {} rounds, {} connections, --seed {seed}", options.rounds, options.connections);
    let binary = workspace::server_binary(options.binary.as_deref(), "release")?;
    let folder = workspace::scratch_directory("campaign")?;
    let mut postgres = Postgres::start(&["shared_buffers=32MB"])?;
    let launch = Launch::new(&binary, &folder, Some(&configuration(&postgres)))?;
    let shared = Shared::new(launch.intake, seed).with_whole_answers();
    let rounds = |shared: &Shared| kill_rounds(&launch, &mut postgres, options.rounds, seed, shared);
    let (known, down) = send_while(shared, options.connections, rounds)?;
    let mut rows = postgres.rows("select payload from events")?;
    let printed = BufReader::new(rows.stdout.take().context("psql prints rows")?);
    println!("{} kills of PostgreSQL; {down} events were acknowledged while it was down", options.rounds);
    judge_rows(printed, Oracle::new(seed, known), &folder)?;
    if !rows.wait()?.success() {
        bail!("psql couldn't read what is stored");
    }
    std::fs::remove_dir_all(&folder).context("removing what the campaign left")
}

fn configuration(postgres: &Postgres) -> String {
    format!(
        "[types.\"*\"]\nroutes = [\"warehouse\"]\n\n[sinks.warehouse]\nkind = \"postgres\"\nurl = \"{}\"\npayload_type = \"text\"\n",
        postgres.url()
    )
}

/// Kills PostgreSQL when a random number of events was stored, and starts it when one was acknowledged meanwhile. How
/// many those were together.
fn kill_rounds(
    launch: &Launch,
    postgres: &mut Postgres,
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
        // There is no table before the first event.
        let stored = || postgres.number(STORED).unwrap_or(0);
        let wanted = stored() + 1 + random.below(STORED_MAX);
        until("events are stored", || stored() >= wanted).with_context(|| format!("before kill {round}"))?;
        postgres.kill()?;
        let (before, wanted) = (shared.taken(), usize::try_from(1 + random.below(TAKEN_MAX))?);
        until("events are acknowledged without PostgreSQL", || shared.taken() >= before + wanted)
            .with_context(|| format!("after kill {round}"))?;
        down += shared.taken() - before;
        postgres.run()?;
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
