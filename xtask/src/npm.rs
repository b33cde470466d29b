//! Packages of npm, installed into folders of `target` by a description with pinned versions.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::{copy, empty_directory, run};

/// The file that says which versions a folder has. It is written last.
const PINS: &str = "installed";

/// Fills a folder with `install`, unless it was filled for the same `pins`.
pub(crate) fn ensure(folder: &Path, pins: &str, install: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let marker = folder.join(PINS);
    if fs::read_to_string(&marker).is_ok_and(|installed| installed == pins) {
        return Ok(());
    }
    println!("installing into {}", folder.display());
    empty_directory(folder)?;
    install(folder)?;
    fs::write(&marker, pins).with_context(|| format!("writing {}", marker.display()))
}

/// Installs the packages of a description. Their install scripts don't run.
pub(crate) fn install(folder: &Path, description: &Path) -> Result<()> {
    copy(description, &folder.join("package.json"))?;
    let mut npm = Command::new("npm");
    npm.arg("--prefix").arg(folder).args(["install", "--silent", "--no-audit", "--no-fund", "--no-package-lock"]);
    run(npm.arg("--ignore-scripts"))
}

/// Installs the packages of a description, unless the folder has these versions.
pub(crate) fn ensure_installed(folder: &Path, description: &Path) -> Result<()> {
    let pins = fs::read_to_string(description).with_context(|| format!("reading {}", description.display()))?;
    ensure(folder, &pins, |folder| install(folder, description))
}

/// Installs the packages of `package-lock.json` next to a description, unless the folder has these versions.
pub(crate) fn ensure_locked(folder: &Path, source: &Path) -> Result<()> {
    let lock = source.join("package-lock.json");
    let pins = fs::read_to_string(&lock).with_context(|| format!("reading {}", lock.display()))?;
    ensure(folder, &pins, |folder| {
        copy(&lock, &folder.join("package-lock.json"))?;
        copy(&source.join("package.json"), &folder.join("package.json"))?;
        let mut npm = Command::new("npm");
        npm.arg("--prefix").arg(folder).args(["ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]);
        run(&mut npm)
    })
}
