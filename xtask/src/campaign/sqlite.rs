//! The embedded store, read with SQLite's own program, which shares no code with the server.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace;

/// The rows of a query, one a line, with columns between bars.
pub(super) fn select(database: &Path, query: &str) -> Result<String> {
    workspace::output(&mut sqlite3(database, query)).context("reading the store")
}

/// The stored payloads, one a line. They are in a file of `folder`.
pub(crate) fn payloads(database: &Path, folder: &Path) -> Result<BufReader<File>> {
    let path = folder.join("rows");
    write_payloads(database, File::create(&path).with_context(|| format!("writing {}", path.display()))?)?;
    Ok(BufReader::new(File::open(path)?))
}

/// Writes the stored payloads, one a line.
pub(super) fn write_payloads(database: &Path, out: File) -> Result<()> {
    workspace::run(sqlite3(database, "select payload from events").stdout(out)).context("reading the store")
}

fn sqlite3(database: &Path, query: &str) -> Command {
    let mut sqlite = Command::new("sqlite3");
    sqlite.arg("-readonly").arg(database).args(["-cmd", ".timeout 10000", query]);
    sqlite
}
