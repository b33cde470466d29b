//! Packages of others under `target/senders`, installed again only if their pinned versions change.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::npm;
use crate::workspace::{root, target_directory};

/// The folder of a language's packages.
pub(super) fn folder(language: &str) -> Result<PathBuf> {
    Ok(target_directory()?.join("senders").join(language))
}

/// Installs into the folder of a language, unless it has these versions.
pub(super) fn ensure(language: &str, pins: &str, install: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let folder = folder(language)?;
    npm::ensure(&folder, pins, install)?;
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
