//! The browser of Debian. The driver's own isn't downloaded.

use std::path::PathBuf;

use anyhow::{Context, Result};

/// Its program.
pub(crate) const PROGRAM: &str = "chromium";

/// The path of the program.
pub(crate) fn path() -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(PROGRAM)).find(|program| program.is_file());
    found.context("chromium isn't in the PATH: install the package chromium, or run cargo xtask services")
}
