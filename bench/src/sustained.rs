//! Millions of events accepted and stored in SQLite, against SQLite's own `.import` of the same rows into the
//! same table.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::Setup;
use super::batch::{self, Until};
use super::records::Records;
use crate::reference::check_loop::Piece;
use harness::report::{Bar, Row};
use harness::workspace;

#[derive(clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    records: Records,
    #[arg(long, default_value_t = 5_000_000)]
    events: u64,
    /// Connections that send batches side by side.
    #[arg(long, default_value_t = 4)]
    connections: u32,
}

pub(super) fn run(setup: &Setup, options: &Options) -> Result<Vec<Row>> {
    let pieces = options.records.pieces()?;
    let rows_file = setup.folder.join("rows.ascii");
    write_rows(&rows_file, &pieces, options.events)?;
    let mut rounds = Vec::new();
    for round in 1..=setup.rounds {
        let (server, schema) = measure_server(setup, &pieces, options)?;
        let reference = measure_import(setup, &schema, &rows_file, options.events)?;
        println!("round {round}: server {server:.0} rows/s, .import {reference:.0} rows/s");
        rounds.push((server, reference));
    }
    let what = format!("{} events accepted and stored", options.events);
    Ok(vec![Row::alternating(&what, "events/s", &rounds, Bar::AtLeast(1.3))])
}

/// Events a second from the first byte sent until nothing is pending, and the table that they are in.
fn measure_server(setup: &Setup, pieces: &[Piece], options: &Options) -> Result<(f64, String)> {
    let launch = setup.fresh_server(None)?;
    let server = launch.ready()?;
    let begun = Instant::now();
    let until = Until::Sent(options.events);
    let sent = batch::send(launch.intake, &batch::batches(pieces), options.connections, until)?;
    server.wait_stored()?;
    let elapsed = begun.elapsed();
    server.stop()?;
    let database = launch.data.join("events.db");
    expect_rows(&database, sent.events)?;
    let schema = workspace::output(Command::new("sqlite3").arg(&database).arg(".schema events"))?;
    Ok((sent.events / elapsed.as_secs_f64(), schema))
}

fn measure_import(setup: &Setup, schema: &str, rows: &Path, events: u64) -> Result<f64> {
    let folder = setup.folder.join("import");
    workspace::empty_directory(&folder)?;
    let database = folder.join("events.db");
    let script = format!(
        "pragma journal_mode = wal;\npragma synchronous = full;\n{schema}\n.mode ascii\n.import {} events\n",
        rows.display()
    );
    let begun = Instant::now();
    let mut sqlite = Command::new("sqlite3").arg(&database).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    sqlite.stdin.take().context("sqlite3 reads its script")?.write_all(script.as_bytes())?;
    let status = sqlite.wait()?;
    let elapsed = begun.elapsed();
    if !status.success() {
        bail!("sqlite3 .import failed: {status}");
    }
    let events = events as f64;
    expect_rows(&database, events)?;
    workspace::empty_directory(&folder)?;
    Ok(events / elapsed.as_secs_f64())
}

fn expect_rows(database: &Path, expected: f64) -> Result<()> {
    let counted = workspace::output(Command::new("sqlite3").arg(database).arg("select count(*) from events"))?;
    let counted: f64 = counted.trim().parse().context("sqlite3 counts the rows")?;
    if (counted - expected).abs() > 0.5 {
        bail!("{} holds {counted} rows instead of {expected}", database.display());
    }
    Ok(())
}

/// Rows as `sqlite3` reads them in its ASCII mode. Ids have 16 bytes and grow, as the server's own do: random
/// ones would cost the import a factor of three and more.
fn write_rows(path: &Path, pieces: &[Piece], events: u64) -> Result<()> {
    const FIELD_END: char = '\x1f';
    const ROW_END: char = '\x1e';
    let mut file = BufWriter::new(File::create(path).with_context(|| format!("making {}", path.display()))?);
    let lines = pieces.iter().flat_map(|piece| piece.bytes.split(|byte| *byte == b'\n'));
    let lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
    for (number, line) in (0..events).zip(lines.iter().cycle()) {
        let received = 1_800_000_000_000_000 + number;
        write!(file, "{number:016}{FIELD_END}event{FIELD_END}{FIELD_END}{received}{FIELD_END}")?;
        file.write_all(line)?;
        write!(file, "{ROW_END}")?;
    }
    file.flush().context("writing the rows to import")
}
