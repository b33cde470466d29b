//! A journaled backlog drained into PostgreSQL, against `psql`'s `\copy` of the same rows into an equal table with its
//! primary key.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, bail};

use super::batch::{self, Until};
use super::records::Records;
use super::report::{Bar, Row};
use super::{READY_LIMIT, Setup};
use crate::reference::check_loop::{Piece, pieces_of_file};
use crate::server::Launch;
use crate::store::{Postgres, Store as _};

#[derive(clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    records: Records,
    /// Events of the backlog.
    #[arg(long, default_value_t = 1_000_000)]
    events: u64,
    /// Connections that send batches side by side, before anything is measured.
    #[arg(long, default_value_t = 4)]
    connections: u32,
}

/// As a server is set up that is to be filled: the rest is its own default, so it waits for its disk.
const SETTINGS: &[&str] = &["max_wal_size=4GB", "shared_buffers=256MB"];

pub(super) fn run(setup: &Setup, options: &Options) -> Result<Vec<Row>> {
    let mut rows = vec![measure(setup, options, "records", &options.records.pieces()?)?];
    let folder = std::env::var_os("FOREBAY_TEST_RECORDS").map(PathBuf::from);
    if let Some(file) = folder.map(|folder| folder.join("access.ndjson")).filter(|file| file.exists()) {
        rows.push(measure(setup, options, "access.ndjson", &pieces_of_file(&file)?)?);
    }
    Ok(rows)
}

fn measure(setup: &Setup, options: &Options, name: &str, pieces: &[Piece]) -> Result<Row> {
    let mut postgres = Postgres::start_with(SETTINGS)?;
    let file = postgres.folder().join("rows");
    let mut turns = Vec::new();
    for round in 1..=setup.rounds {
        let server = drain(setup, options, &mut postgres, pieces)?;
        if round == 1 {
            postgres.psql(&format!("\\copy events to '{}'", file.display()))?;
        }
        let reference = copy(&postgres, &file)?;
        println!("{name}, round {round}: server {server:.0} rows/s, \\copy {reference:.0} rows/s");
        turns.push((server, reference));
    }
    Ok(Row::in_turn(&format!("backlog of {name} into PostgreSQL"), "rows/s", &turns, Bar::AtLeast(0.8)))
}

/// Rows a second from the start of a server that finds a backlog in its journal until nothing is pending.
fn drain(setup: &Setup, options: &Options, postgres: &mut Postgres, pieces: &[Piece]) -> Result<f64> {
    let configuration = format!(
        "[types.\"*\"]\nroutes = [\"warehouse\"]\n\n[sinks.warehouse]\nkind = \"postgres\"\nurl = \"{}\"\n",
        postgres.url()
    );
    let launch = setup.fresh_server(Some(&configuration))?;
    postgres.psql("drop table if exists events, copied, forebay_cursors, forebay_revisions")?;
    postgres.kill()?;
    let events = take(&launch, options, pieces)?;
    postgres.run()?;
    postgres.psql("checkpoint")?;
    let begun = Instant::now();
    let mut server = launch.start()?;
    server.wait_ready(READY_LIMIT)?;
    server.wait_stored()?;
    let elapsed = begun.elapsed();
    server.stop()?;
    let rows = postgres.number("select count(*) from events")? as f64;
    if (rows - events).abs() > 0.5 {
        bail!("{rows} rows instead of {events}");
    }
    Ok(events / elapsed.as_secs_f64())
}

/// Has a server take events that it can't store, and ends it.
fn take(launch: &Launch, options: &Options, pieces: &[Piece]) -> Result<f64> {
    let mut server = launch.start()?;
    server.wait_ready(READY_LIMIT)?;
    let until = Until::Sent(options.events);
    let sent = batch::send(launch.intake, &batch::batches(pieces), options.connections, until)?;
    let pending = server.pending()?;
    // Not a stop, which would wait for the store.
    server.kill()?;
    if (pending - sent.events).abs() > 0.5 {
        bail!("{pending} of {} events are pending: the backlog isn't whole", sent.events);
    }
    Ok(sent.events)
}

fn copy(postgres: &Postgres, file: &Path) -> Result<f64> {
    postgres.psql("drop table if exists copied; create table copied (like events including all); checkpoint")?;
    let begun = Instant::now();
    postgres.psql(&format!("\\copy copied from '{}'", file.display()))?;
    let elapsed = begun.elapsed();
    let rows = postgres.number("select count(*) from copied")?;
    Ok(rows as f64 / elapsed.as_secs_f64())
}
