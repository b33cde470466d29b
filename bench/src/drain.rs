//! A journaled backlog drained into a store, against the store's own bulk tool with the same data: as fast, and for how much CPU.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::Setup;
use super::batch::{self, Until};
use super::records::Records;
use crate::reference::check_loop::{Piece, pieces_of_file};
use harness::report::{Bar, Row};
use harness::server::{Launch, children_cpu};
use harness::store::BulkLoaded;

#[derive(clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    records: Records,
    /// Events of the backlog. [default: as many as take the store some seconds]
    #[arg(long)]
    events: Option<u64>,
    /// Connections that send batches side by side, before anything is measured.
    #[arg(long, default_value_t = 4)]
    connections: u32,
}

/// An amount, and the cost of storing it.
struct Stored {
    amount: f64,
    time: Duration,
    cpu: Duration,
}

impl Stored {
    fn rate(&self) -> f64 {
        self.amount / self.time.as_secs_f64()
    }

    fn cpu_each(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.amount
    }
}

pub(super) fn run<S: BulkLoaded>(setup: &Setup, options: &Options) -> Result<Vec<Row>> {
    let mut rows = vec![measure::<S>(setup, options, "records", &options.records.pieces()?)?];
    let folder = std::env::var_os("FOREBAY_TEST_RECORDS").map(PathBuf::from);
    if let Some(file) = folder.map(|folder| folder.join("access.ndjson")).filter(|file| file.exists()) {
        rows.push(measure::<S>(setup, options, "access.ndjson", &pieces_of_file(&file)?)?);
    }
    Ok(rows)
}

fn measure<S: BulkLoaded>(setup: &Setup, options: &Options, name: &str, pieces: &[Piece]) -> Result<Row> {
    let mut store = S::start_large()?;
    let saved = store.folder().join("saved");
    let mut amount = 0.0;
    let mut rounds = Vec::new();
    for round in 1..=setup.rounds {
        let ours = drain(setup, options, &mut store, pieces)?;
        if round == 1 {
            store.save(&saved)?;
            amount = ours.amount;
        }
        let theirs = load(&mut store, &saved)?;
        if (theirs.amount - amount).abs() > 1e-3 {
            bail!("{} stored {} of {amount}", S::TOOL, theirs.amount);
        }
        println!(
            "{name}, round {round}: server {:.0} {rate} and {:.1} µs of CPU for each, {} {:.0} {rate} and {:.1} µs",
            ours.rate(),
            ours.cpu_each(),
            S::TOOL,
            theirs.rate(),
            theirs.cpu_each(),
            rate = S::RATE,
        );
        rounds.push((ours.rate(), theirs.rate()));
    }
    Ok(Row::alternating(&format!("backlog of {name} into {}", S::NAME), S::RATE, &rounds, Bar::AtLeast(S::BAR)))
}

/// From the start of a server that finds a backlog in its journal until nothing is pending.
fn drain<S: BulkLoaded>(setup: &Setup, options: &Options, store: &mut S, pieces: &[Piece]) -> Result<Stored> {
    let configuration = format!("[types.\"*\"]\nroutes = [\"store\"]\n\n[sinks.store]\n{}", store.usual_sink());
    let launch = setup.fresh_server(Some(&configuration))?;
    store.empty()?;
    store.kill()?;
    let events = take(&launch, options.events.unwrap_or(S::EVENTS), options.connections, pieces)?;
    store.run()?;
    store.settle()?;
    let begun = Instant::now();
    let server = launch.ready()?;
    server.wait_stored()?;
    let (time, cpu) = (begun.elapsed(), server.process.cpu()?);
    server.stop()?;
    let stored = store.events()?;
    if (stored - events).abs() > 0.5 {
        bail!("{stored} events are stored instead of {events}");
    }
    Ok(Stored { amount: store.amount()?, time, cpu })
}

/// Has a server take events that it can't store, and ends it.
fn take(launch: &Launch, events: u64, connections: u32, pieces: &[Piece]) -> Result<f64> {
    let server = launch.ready()?;
    let sent = batch::send(launch.intake, &batch::batches(pieces), connections, Until::Sent(events))?;
    let pending = server.pending()?;
    // Not a stop, which would wait for the store.
    server.kill()?;
    if (pending - sent.events).abs() > 0.5 {
        bail!("{pending} of {} events are pending: the backlog isn't whole", sent.events);
    }
    Ok(sent.events)
}

/// The same by the store's tool, into another table or stream that exists already.
fn load<S: BulkLoaded>(store: &mut S, saved: &Path) -> Result<Stored> {
    store.before_load()?;
    let (begun, before) = (Instant::now(), children_cpu()?);
    store.load(saved)?;
    let (time, cpu) = (begun.elapsed(), children_cpu()? - before);
    Ok(Stored { amount: store.loaded()?, time, cpu })
}
