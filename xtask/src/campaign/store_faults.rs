//! Stores that fail repeatedly under load, by real faults of the kinds that their crates list. These are full disks, I/O errors, read-only
//! files, and servers that are full or accept nothing. No event becomes a dead letter, and each acknowledged event is stored once.

mod disk;
mod local;
mod receiver;
mod sent;
mod tablespace;

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::metrics;
use crate::server::{Launch, Server};
use crate::store::{FaultyStore, NatsStore, OpenSearchStore, RedisStore, SwiftStore};
use crate::workspace;
use local::{DirectoryOnDisk, SqliteOnDisk};
use receiver::Receiver;
use sent::Load;
use tablespace::TablespacePostgres;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How often SQLite and `directory` meet each of their faults.
    #[arg(long, default_value_t = 50)]
    rounds: u32,
    /// How often each other store does.
    #[arg(long, default_value_t = 3)]
    other_rounds: u32,
    /// Only the store of this name, as in `--store sqlite`.
    #[arg(long)]
    store: Option<String>,
    /// A server to test; without it the workspace's own is built.
    #[arg(long)]
    binary: Option<PathBuf>,
}

const READY_LIMIT: Duration = Duration::from_secs(30);
/// A delivery without progress for this long has stopped: a lane retries after a minute at the latest.
const PATIENCE: Duration = Duration::from_secs(150);
const SHORT_ROUNDS: u32 = 2;

/// Two rounds of the embedded stores with the server that the tests were built with.
pub(crate) fn short() -> Result<()> {
    if !disk::can_mount()? {
        return Ok(());
    }
    let binary = workspace::tested_binary(None)?;
    let options = Options { rounds: SHORT_ROUNDS, other_rounds: 0, store: None, binary: Some(binary.clone()) };
    meet_faults::<SqliteOnDisk>(&binary, &options, SHORT_ROUNDS)?;
    meet_faults::<DirectoryOnDisk>(&binary, &options, SHORT_ROUNDS)
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let binary = workspace::tested_binary(options.binary.as_deref())?;
    let (local, other) = (options.rounds, options.other_rounds);
    meet_faults::<SqliteOnDisk>(&binary, options, local)?;
    meet_faults::<DirectoryOnDisk>(&binary, options, local)?;
    meet_faults::<Receiver>(&binary, options, other)?;
    meet_faults::<TablespacePostgres>(&binary, options, other)?;
    meet_faults::<RedisStore>(&binary, options, other)?;
    meet_faults::<NatsStore>(&binary, options, other)?;
    meet_faults::<OpenSearchStore>(&binary, options, other)?;
    meet_faults::<SwiftStore>(&binary, options, other)
}

/// Lets one store meet each of its faults so many times.
fn meet_faults<S: FaultyStore>(binary: &Path, options: &Options, rounds: u32) -> Result<()> {
    let name = S::NAME.to_lowercase();
    if rounds == 0 || options.store.as_ref().is_some_and(|wanted| *wanted != name) {
        return Ok(());
    }
    let Some(mut store) = S::start().with_context(|| format!("starting {name}"))? else {
        return workspace::skipped(&format!("{name} is missing, which `cargo xtask services` installs"));
    };
    let began = Instant::now();
    let folder = workspace::scratch_directory("store-faults")?;
    let types = "[gateway]\nshards = 1\n[types.\"*\"]\nroutes = [\"store\"]\n";
    let launch = Launch::new(binary, &folder, Some(&format!("{types}[sinks.store]\n{}", store.sink())))?;
    let mut server = launch.start()?;
    server.wait_ready(READY_LIMIT)?;
    let load = Load::start(launch.intake, S::REST);
    let met = meet_each(&mut store, &server, &load, rounds).with_context(|| name.clone());
    let acknowledged = load.stop();
    met?;
    let acknowledged = acknowledged?;
    server.wait_stored()?;
    check_ledger(&server)?;
    server.stop()?;
    store.read_payloads(&folder, |payloads| sent::judge(payloads, &acknowledged)).context(S::NAME)?;
    println!(
        "{name}: {} faults, {rounds} times each, {} events, no dead letter, each stored once ({:.0} s)",
        S::FAULTS.len(),
        acknowledged.events(),
        began.elapsed().as_secs_f64()
    );
    std::fs::remove_dir_all(&folder).context("removing what the campaign left")
}

fn meet_each<S: FaultyStore>(store: &mut S, server: &Server, load: &Load, rounds: u32) -> Result<()> {
    for round in 1..=rounds {
        for fault in S::FAULTS {
            let begun = Instant::now();
            let what = || format!("{fault}, round {round}");
            wait_for_store(server).with_context(what)?;
            let failed = retries(server)?;
            store.begin(fault, round, server).with_context(what)?;
            load.burst()?;
            let noticed =
                until("attempts fail", || Ok(retries(server)? >= failed + f64::from(S::FAILURES))).with_context(what);
            // The fault ends first: what it has mounted or traced must not outlive the campaign.
            store.end(fault).with_context(what)?;
            noticed?;
            check_ledger(server).with_context(what)?;
            if round <= 3 {
                println!("{}: {}, {:.1} s", S::NAME, what(), begun.elapsed().as_secs_f64());
            }
        }
    }
    Ok(())
}

/// Waits until the store has all that is accepted by now.
fn wait_for_store(server: &Server) -> Result<()> {
    let counted = |name: &str| Ok::<f64, anyhow::Error>(metrics::sum(&server.metrics()?, name));
    let accepted = counted("forebay_events_accepted_total")?.max(1.0);
    until("the store has caught up", || Ok(counted("forebay_events_stored_total")? >= accepted))
}

fn retries(server: &Server) -> Result<f64> {
    Ok(metrics::sum(&server.metrics()?, "forebay_lane_retries_total"))
}

/// Nothing has become a dead letter.
fn check_ledger(server: &Server) -> Result<()> {
    let dead = metrics::sum(&server.metrics()?, "forebay_events_dead_total");
    if dead > 0.0 {
        let routes = String::from_utf8_lossy(&server.admin_get("/api/dead?limit=3")?).into_owned();
        bail!("{dead} events became dead letters: {routes}");
    }
    Ok(())
}

fn until(what: &str, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !holds()? {
        if begun.elapsed() > PATIENCE {
            bail!("waited {PATIENCE:?} until {what}");
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
