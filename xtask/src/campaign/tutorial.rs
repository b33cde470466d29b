//! `docs/start/tutorial.md`, run as a reader types it: with the archive and the Debian package, on a machine with systemd.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::frame::{Frame, FrameOptions, short_with};
use crate::dist::{Compression, Release, VERSION};
use crate::docs::{TUTORIAL as PAGE, run_page_in};
use crate::machine::{Machine, Network};
use crate::workspace;

const PROGRAMS: &[&str] = &["curl", "sqlite3", "psql", "script", "ss"];

/// The tutorial with the server that the tests were built with.
pub(crate) fn short() -> Result<()> {
    if let Some(obstacle) = Machine::obstacle() {
        return workspace::skipped(&format!("a machine with systemd for the tutorial: {obstacle}"));
    }
    short_with(PROGRAMS, || run(&FrameOptions::short()))
}

pub(crate) fn run(options: &FrameOptions) -> Result<()> {
    let frame = options.begin("tutorial")?;
    let Frame { binary, folder, .. } = &frame;
    let [place, share] = ["machine", "share"].map(|name| folder.join(name));
    [&place, &share].into_iter().try_for_each(|path| workspace::empty_directory(path))?;
    pack(binary, &share.join("work"))?;
    let machine = Machine::boot(&place, &share, Network::Separate)?;
    // Nothing can be downloaded: to apt, what is installed is the newest.
    machine.run("sh", &["-c", "rm -rf /var/lib/apt/lists/*"])?;
    let blocks = run_page_in(&machine, &workspace::root()?.join(PAGE), &share)?;
    ensure!(blocks > 0, "{PAGE} has no marked blocks");
    drop(machine);
    frame.end()
}

/// The archive and the package are where a reader has downloaded them.
fn pack(binary: &Path, folder: &Path) -> Result<()> {
    workspace::empty_directory(folder)?;
    let release = Release { binary, version: VERSION, compression: Compression::Quick, html: None };
    release.pack(folder).context("packing the archive and the package").map(drop)
}
