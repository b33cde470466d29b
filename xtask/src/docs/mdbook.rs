//! mdBook, installed once below `target/tools`. No crate of the workspace depends on it.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::workspace::{cargo, empty_directory, run, target_directory};

/// Raising it changes the theme, and may change the list of licences.
pub(super) const VERSION: &str = "0.5.4";

/// The folder of the program, which is built first if it isn't there.
pub(super) fn fetch() -> Result<PathBuf> {
    let folder = target_directory()?.join("tools").join(format!("mdbook-{VERSION}"));
    if folder.is_dir() {
        return Ok(folder);
    }
    let making = folder.with_extension("making");
    empty_directory(&making)?;
    println!("building mdBook {VERSION}, which takes some minutes once");
    let mut install = cargo();
    install.args(["install", "mdbook", "--version", VERSION, "--locked", "--quiet"]);
    install.args(["--no-default-features", "--features", "search", "--root"]).arg(&making);
    run(&mut install).context("mdBook is fetched from crates.io")?;
    // The rename is last, because the folder's existence means that it is complete.
    fs::rename(&making, &folder).with_context(|| format!("moving {}", making.display()))?;
    Ok(folder)
}
