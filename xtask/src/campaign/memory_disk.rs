//! A disk in memory, which can be small, become full, or be read-only.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::workspace;

/// A mounted disk, until this is dropped.
pub(super) struct MemoryDisk {
    pub(super) path: PathBuf,
}

impl MemoryDisk {
    /// Creates the folder and mounts a disk on it, with options such as `size=64m`.
    pub(super) fn mount(path: PathBuf, options: &str) -> Result<Self> {
        std::fs::create_dir_all(&path)?;
        mount(&["-t", "tmpfs", "-o", options, "tmpfs"], &path).context("only root can mount a disk")?;
        Ok(Self { path })
    }
}

impl Drop for MemoryDisk {
    fn drop(&mut self) {
        let _ = unmount(&self.path);
    }
}

pub(super) fn mount(options: &[&str], path: &Path) -> Result<()> {
    workspace::run(Command::new("mount").args(options).arg(path).stderr(Stdio::null()))
}

/// Lazily: a process that still has files there, after a failure, keeps them.
pub(super) fn unmount(path: &Path) -> Result<()> {
    workspace::run(Command::new("umount").arg("--lazy").arg(path))
}
