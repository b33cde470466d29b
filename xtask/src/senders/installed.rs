//! Packages of others under `target/senders`, installed again only if their pinned versions change.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::workspace::{empty_directory, root, target_directory};

/// The file that says which versions a folder has. It is written last.
const PINS: &str = "installed";

/// The folder of a language's packages.
pub(super) fn folder(language: &str) -> Result<PathBuf> {
    Ok(target_directory()?.join("senders").join(language))
}

/// Installs into the folder of a language, unless it has these versions.
pub(super) fn ensure(language: &str, pins: &str, install: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let folder = folder(language)?;
    let marker = folder.join(PINS);
    if fs::read_to_string(&marker).is_ok_and(|installed| installed == pins) {
        return Ok(folder);
    }
    println!("installing into {}", folder.display());
    empty_directory(&folder)?;
    install(&folder)?;
    fs::write(&marker, pins).with_context(|| format!("writing {}", marker.display()))?;
    Ok(folder)
}

/// A file of `xtask/senders`.
pub(super) fn source(name: &str) -> Result<PathBuf> {
    Ok(root()?.join("xtask").join("senders").join(name))
}

/// The text of a file of `xtask/senders`.
pub(super) fn text(name: &str) -> Result<String> {
    let path = source(name)?;
    fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
}
