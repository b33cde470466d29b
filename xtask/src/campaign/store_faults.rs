//! Stores that fail repeatedly under load, by real faults of the kinds that their crates list. These are full disks, I/O errors, read-only
//! files, and servers that are full or accept nothing. No event becomes a dead letter, and each acknowledged event is stored once.

mod disk;
mod load;
mod local;
mod receiver;
mod tablespace;

use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::frame::{FrameOptions, short_as_root};
use super::keyed_batches::{events, judge};
use crate::metrics;
use crate::server::{PATIENCE, Server};
use crate::store::{FaultyStore, NatsStore, OpenSearchStore, RedisStore, SwiftStore};
use crate::wait::until;
use load::Load;
use local::{DirectoryOnDisk, SqliteOnDisk};
use receiver::Receiver;
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
    #[command(flatten)]
    frame: FrameOptions,
}

const SHORT_ROUNDS: u32 = 2;

/// Two rounds of the embedded stores with the server that the tests were built with.
pub(crate) fn short() -> Result<()> {
    short_as_root(disk::PROGRAMS, || {
        let frame = FrameOptions::short();
        run(&Options { rounds: SHORT_ROUNDS, other_rounds: 0, store: None, frame })
    })
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let (local, other) = (options.rounds, options.other_rounds);
    meet_faults::<SqliteOnDisk>(options, local)?;
    meet_faults::<DirectoryOnDisk>(options, local)?;
    meet_faults::<Receiver>(options, other)?;
    meet_faults::<TablespacePostgres>(options, other)?;
    meet_faults::<RedisStore>(options, other)?;
    meet_faults::<NatsStore>(options, other)?;
    meet_faults::<OpenSearchStore>(options, other)?;
    meet_faults::<SwiftStore>(options, other)
}

/// Lets one store meet each of its faults so many times.
fn meet_faults<S: FaultyStore>(options: &Options, rounds: u32) -> Result<()> {
    let name = S::NAME.to_lowercase();
    if rounds == 0 || options.store.as_ref().is_some_and(|wanted| *wanted != name) {
        return Ok(());
    }
    let Some(mut store) = S::start_or_skip()? else { return Ok(()) };
    let began = Instant::now();
    let frame = options.frame.begin(format!("faults of {name}: {rounds} rounds"))?;
    let types = "[gateway]\nshards = 1\n[types.\"*\"]\nroutes = [\"store\"]\n";
    let launch = frame.launch(Some(&format!("{types}[sinks.store]\n{}", store.sink())))?;
    let server = launch.ready()?;
    let acknowledged = Load::run(launch.intake, S::REST, |load| meet_each(&mut store, &server, load, rounds));
    let acknowledged = acknowledged.with_context(|| name.clone())?;
    server.wait_stored()?;
    check_ledger(&server)?;
    server.stop()?;
    judge(store.payloads(&frame.folder)?, &acknowledged).context(S::NAME)?;
    println!(
        "{name}: {} faults, {rounds} times each, {} events, no dead letter, each stored once ({:.0} s)",
        S::FAULTS.len(),
        events(&acknowledged),
        began.elapsed().as_secs_f64()
    );
    frame.end()
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
            let wanted = failed + f64::from(S::FAILURES);
            let noticed = until("attempts fail", PATIENCE, || Ok(retries(server)? >= wanted)).with_context(what);
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
    until("the store has caught up", PATIENCE, || Ok(counted("forebay_events_stored_total")? >= accepted))
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
