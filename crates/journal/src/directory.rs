//! The data directory: one process at a time, one origin for ever.

use std::io;
use std::path::{Path, PathBuf};

use event::Origin;

use crate::disk::SharedDisk;
use crate::state_file::StateFile;

const LOCK_FILE: &str = "lock";
const JOURNAL_DIRECTORY: &str = "journal";
const ORIGIN_FILE: &str = "origin";

/// A data directory that this process holds. The lock is given back when the value is dropped.
pub struct DataDirectory {
    disk: SharedDisk,
    path: PathBuf,
    origin: Origin,
    _lock: Box<dyn Send + Sync>,
}

/// Why a data directory can't be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// Another process has it.
    #[error("{0} is in use by another Forebay; stop it, or choose another directory with --data")]
    InUse(PathBuf),
    /// The file system failed.
    #[error("can't use the data directory {path}: {source}")]
    Io {
        /// The directory.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// Neither copy of the origin can be read, though the directory has one.
    #[error(
        "{0} has lost its origin: both copies of the file `origin` are damaged; restore one of them, or move the directory away to begin anew"
    )]
    OriginDamaged(PathBuf),
}

impl DataDirectory {
    /// Opens a data directory, making it if it is missing.
    ///
    /// # Errors
    /// [`DirectoryError`] says what stands in the way.
    pub fn open(disk: SharedDisk, path: &Path) -> Result<Self, DirectoryError> {
        let io_error = |source| DirectoryError::Io { path: path.into(), source };
        disk.create_directory(path).map_err(io_error)?;
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            disk.sync_directory(parent).map_err(io_error)?;
        }
        let lock = disk.lock(&path.join(LOCK_FILE)).map_err(|source| match source.kind() {
            io::ErrorKind::WouldBlock => DirectoryError::InUse(path.into()),
            _ => io_error(source),
        })?;
        let origin = read_or_make_origin(&disk, path)?;
        Ok(Self { disk, path: path.into(), origin, _lock: lock })
    }

    /// The directory's origin.
    #[must_use]
    pub const fn origin(&self) -> Origin {
        self.origin
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The disk that it is on.
    #[must_use]
    pub const fn disk(&self) -> &SharedDisk {
        &self.disk
    }

    /// How many shards the directory has journals of: the greatest number and one.
    ///
    /// # Errors
    /// What the file system says.
    pub fn shards_on_disk(&self) -> io::Result<u16> {
        match self.disk.list(&self.path.join(JOURNAL_DIRECTORY)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            names => {
                Ok(names?.iter().filter_map(|name| name.parse::<u16>().ok()).map(|last| last + 1).max().unwrap_or(0))
            }
        }
    }

    /// Where the journal of a shard lies.
    #[must_use]
    pub fn shard(&self, shard: u16) -> PathBuf {
        shard_directory(&self.path, shard)
    }
}

/// Where the journal of a shard lies in a data directory.
#[must_use]
pub fn shard_directory(data_directory: &Path, shard: u16) -> PathBuf {
    data_directory.join(JOURNAL_DIRECTORY).join(format!("{shard:04}"))
}

fn read_or_make_origin(disk: &SharedDisk, path: &Path) -> Result<Origin, DirectoryError> {
    let io_error = |source| DirectoryError::Io { path: path.into(), source };
    let (mut file, state) = StateFile::open(disk.clone(), path, ORIGIN_FILE).map_err(io_error)?;
    if let Some(origin) = state.content.and_then(|content| content.try_into().ok()) {
        return Ok(Origin(origin));
    }
    if !state.damaged.is_empty() {
        return Err(DirectoryError::OriginDamaged(path.into()));
    }
    let mut origin = [0; 16];
    getrandom::fill(&mut origin).map_err(|error| io_error(error.into()))?;
    // Twice, so that there are two copies from the start.
    file.write(&origin).and_then(|()| file.write(&origin)).map_err(io_error)?;
    Ok(Origin(origin))
}
