//! DuckDB, by which tests read tables of Parquet: a reader that isn't ours.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::{empty_directory, run, target_directory};

/// It stays the same until somebody raises it here.
const PACKAGE: &str = "duckdb==2.0.0";

/// Where `PYTHONPATH` of the tests leads.
fn folder() -> Result<PathBuf> {
    Ok(target_directory()?.join("tools/duckdb"))
}

/// Whether it is there.
pub(crate) fn is_there() -> bool {
    folder().is_ok_and(|folder| folder.is_dir())
}

/// Fetches it with pip.
pub(crate) fn fetch() -> Result<()> {
    let folder = folder()?;
    let making = folder.with_extension("making");
    empty_directory(&making)?;
    let mut pip = Command::new("pip3");
    pip.args(["install", "--quiet", "--no-deps", "--target"]).arg(&making).arg(PACKAGE);
    run(&mut pip).context("DuckDB is fetched with pip")?;
    // Last: it is what says that all is there.
    fs::rename(&making, &folder).with_context(|| format!("moving {} to {}", making.display(), folder.display()))
}
