//! `forebay journal …`: looks into the journal of a data directory, for people.

mod accept_loss;
mod dump;
mod export;
mod repair;
mod verify;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journal::disk::OsDisk;
use journal::{DataDirectory, DirectoryError};

use crate::cli::JournalCommand;

/// What a journal command exits with when something is damaged.
const EXIT_DAMAGED: u8 = 1;

/// Why a journal command can't do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    /// There is no such directory.
    #[error("there is no data directory {0}; name one with --data")]
    Missing(PathBuf),
    /// It can't be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// A journal can't be recovered.
    #[error(transparent)]
    Open(#[from] journal::OpenError),
    /// Something can't be read or written.
    #[error("{path}: {source}")]
    Io {
        /// What was read or written.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

/// Runs the command and gives the process's exit code.
///
/// # Errors
/// [`JournalError`] says what stands in the way.
pub(crate) fn run(command: &JournalCommand) -> Result<u8, JournalError> {
    match command {
        JournalCommand::Verify(data) => verify::run(&look(&data.directory)?),
        JournalCommand::Dump(data) => dump::run(&look(&data.directory)?),
        JournalCommand::Export { data, output } => export::run(&look(&data.directory)?, output.as_deref()),
        JournalCommand::Repair(data) => repair::run(&open(&data.directory)?),
        JournalCommand::AcceptLoss(data) => accept_loss::run(&open(&data.directory)?),
    }
}

/// Opens the directory for reading only, while no process writes to it.
fn look(path: &Path) -> Result<DataDirectory, JournalError> {
    if !path.is_dir() {
        return Err(JournalError::Missing(path.into()));
    }
    Ok(DataDirectory::look(path)?)
}

/// Takes the directory's lock, so that no other process has it. It never makes a data directory.
fn open(path: &Path) -> Result<DataDirectory, JournalError> {
    drop(look(path)?);
    Ok(DataDirectory::open(Arc::new(OsDisk), path)?)
}

/// The shards that the directory has journals of.
fn shards(directory: &DataDirectory) -> Result<impl Iterator<Item = u16>, JournalError> {
    let count =
        directory.shards_on_disk().map_err(|source| JournalError::Io { path: directory.path().into(), source })?;
    Ok(0..count)
}

/// Visits everything in a shard's journal.
fn inspect(
    directory: &DataDirectory,
    shard: u16,
    visit: &mut dyn FnMut(journal::Inspected<'_>),
) -> Result<(), JournalError> {
    let path = directory.shard(shard);
    journal::inspect_shard(directory.disk(), &path, visit).map_err(|source| JournalError::Io { path, source })
}

fn output_error(source: io::Error) -> JournalError {
    JournalError::Io { path: "standard output".into(), source }
}
