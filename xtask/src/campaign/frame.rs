//! The frame of each campaign: a seed, a server, a folder, and a short form among the tests.

use std::fmt::Display;
use std::path::PathBuf;

use anyhow::{Context, Result};
use random::Random;

use crate::clients::any_seed;
use crate::server::Launch;
use crate::workspace;

/// The options of all campaigns.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct FrameOptions {
    /// Repeats a run: the same inputs and the same faults.
    #[arg(long)]
    seed: Option<u64>,
    /// The server; without it the one that the tests were built with.
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// One run.
pub(super) struct Frame {
    pub(super) seed: u64,
    pub(super) binary: PathBuf,
    /// On the disk of the workspace. A run that fails leaves it.
    pub(super) folder: PathBuf,
}

impl FrameOptions {
    /// The options of a short form.
    pub(super) const fn short() -> Self {
        Self { seed: Some(1), binary: None }
    }

    /// Begins a run. Prints its name with the seed.
    pub(super) fn begin(&self, what: impl Display) -> Result<Frame> {
        let seed = self.seed.unwrap_or_else(any_seed);
        println!("{what}, --seed {seed}");
        let binary = workspace::tested_binary(self.binary.as_deref())?;
        Ok(Frame { seed, binary, folder: workspace::scratch_directory("campaign")? })
    }
}

impl Frame {
    /// A server in the folder. Without a configuration it stores in SQLite.
    pub(super) fn launch(&self, config: Option<&str>) -> Result<Launch> {
        Launch::new(&self.binary, &self.folder, config)
    }

    /// The random numbers of the run.
    pub(super) fn random(&self) -> Random {
        Random::new(self.seed)
    }

    /// Ends a run that found nothing wrong.
    pub(super) fn end(self) -> Result<()> {
        std::fs::remove_dir_all(&self.folder).context("removing what the campaign left")
    }
}

/// Whether all programs are there. If one is missing, reports that a part is skipped.
fn has(programs: &[&str]) -> Result<bool> {
    let missing = programs.iter().find(|program| !workspace::has_program(program));
    if let Some(missing) = missing {
        workspace::skipped(&format!("it needs {missing}, which `cargo xtask services` installs"))?;
    }
    Ok(missing.is_none())
}

/// The same, and whether this process can mount disks.
pub(super) fn can_mount(programs: &[&str]) -> Result<bool> {
    if !rustix::process::geteuid().is_root() {
        workspace::skipped("only root can mount a small disk")?;
        return Ok(false);
    }
    has(&[programs, &["mount", "umount"]].concat())
}

/// Runs a short form, unless a program is missing that it needs.
pub(super) fn short_with(programs: &[&str], run: impl FnOnce() -> Result<()>) -> Result<()> {
    if has(programs)? { run() } else { Ok(()) }
}

/// The same for a form that mounts disks.
pub(super) fn short_as_root(programs: &[&str], run: impl FnOnce() -> Result<()>) -> Result<()> {
    if can_mount(programs)? { run() } else { Ok(()) }
}
