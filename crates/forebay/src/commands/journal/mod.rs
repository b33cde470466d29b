//! `forebay journal …`: looks into the journal of a data directory, for people.

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

use crate::cli::JournalCommand;
use crate::errors::at;

/// What a journal command exits with when something is damaged.
const EXIT_DAMAGED: u8 = 1;

/// Runs the command and gives the process's exit code.
///
/// # Errors
/// The message says what stands in the way.
pub(crate) fn run(command: &JournalCommand) -> anyhow::Result<u8> {
    match command {
        JournalCommand::Verify(data) => verify::run(&look(&data.directory)?),
        JournalCommand::Dump(data) => dump::run(&look(&data.directory)?),
        JournalCommand::Export { data, output } => export::run(&look(&data.directory)?, output.as_deref()),
        JournalCommand::Repair(data) => repair::run(&open(&data.directory)?),
        JournalCommand::AcceptLoss(data) => accept_loss::run(&open(&data.directory)?),
    }
}

/// Opens the directory for reading only, while no process writes to it.
fn look(path: &Path) -> anyhow::Result<DataDirectory> {
    if !path.is_dir() {
        bail!("there is no data directory {}; name one with --data", path.display());
    }
    Ok(DataDirectory::look(path)?)
}

/// Takes the directory's lock, so that no other process has it. It never makes a data directory.
fn open(path: &Path) -> anyhow::Result<DataDirectory> {
    drop(look(path)?);
    Ok(DataDirectory::open(Arc::new(OsDisk), path)?)
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
