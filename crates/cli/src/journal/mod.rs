//! `forebay journal …`: inspects and repairs the journal of a data directory.

mod accept_loss;
mod dump;
mod export;
mod repair;
mod verify;

use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use journal::DataDirectory;
use journal::disk::OsDisk;

use crate::errors::{at, unusable};
use crate::flags::JournalCommand;

/// The exit code if something is damaged.
const EXIT_DAMAGED: u8 = 1;

/// Runs the command and returns the exit code.
///
/// # Errors
/// The message says what failed.
pub(crate) fn run(command: &JournalCommand) -> anyhow::Result<u8> {
    match command {
        JournalCommand::Verify(place) => verify::run(&look(place.directory())?),
        JournalCommand::Dump(place) => dump::run(&look(place.directory())?),
        JournalCommand::Export { place, output } => export::run(&look(place.directory())?, output.as_deref()),
        JournalCommand::Repair(place) => repair::run(&open(place.directory())?),
        JournalCommand::AcceptLoss(place) => accept_loss::run(&open(place.directory())?),
    }
}

/// Opens the directory for reading only, while no process writes to it.
fn look(path: &Path) -> anyhow::Result<DataDirectory> {
    if !path.is_dir() {
        bail!("there is no data directory {}; name one with --data", path.display());
    }
    DataDirectory::look(path).map_err(unusable)
}

/// Locks the directory against other processes. It never creates a data directory.
fn open(path: &Path) -> anyhow::Result<DataDirectory> {
    drop(look(path)?);
    DataDirectory::open(Arc::new(OsDisk), path).map_err(unusable)
}

/// The shards that the directory has journals of.
fn shards(directory: &DataDirectory) -> anyhow::Result<impl Iterator<Item = u16>> {
    let count = directory.shards_on_disk().map_err(at(directory.path()))?;
    Ok(0..count)
}

/// Visits everything in a shard's journal.
fn inspect(directory: &DataDirectory, shard: u16, visit: &mut dyn FnMut(journal::Inspected<'_>)) -> anyhow::Result<()> {
    let path = directory.shard(shard);
    journal::inspect_shard(directory.disk(), &path, visit).map_err(at(path))
}
