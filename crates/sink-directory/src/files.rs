//! What a directory of objects needs of a file system, so that a test's can stand in and fail as real ones do.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;

use sink::folder::{make_folder, sync_folder};

/// A file system.
pub trait Files: Send + Sync + 'static {
    /// Makes a new file; one that exists is an error.
    ///
    /// # Errors
    /// What the file system says.
    fn create(&self, path: &Path) -> io::Result<Box<dyn NewFile>>;
    /// Opens a file to read it from its beginning.
    ///
    /// # Errors
    /// What the file system says.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read>>;
    /// Gives a file another name; one that has that name already is replaced.
    ///
    /// # Errors
    /// What the file system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// What the file system says.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes a directory and those above it, each durable before it is used; one that exists is fine.
    ///
    /// # Errors
    /// What the file system says.
    fn make_folder(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable: those made, changed and removed before the call.
    ///
    /// # Errors
    /// What the file system says. What it was to make durable must be done again.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
    /// Keeps other writers out of a directory until the value is dropped.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where one is at work, else what the file system says.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send>>;
    /// Whether calls may take long, as a disk does: then they are made on a thread of their own.
    fn may_block(&self) -> bool;
}

/// A file that is being written.
pub trait NewFile: Write {
    /// Makes what was written durable.
    ///
    /// # Errors
    /// What the file system says. The file is of no use then.
    fn sync(&mut self) -> io::Result<()>;
}

/// The operating system's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsFiles;

impl Files for OsFiles {
    fn create(&self, path: &Path) -> io::Result<Box<dyn NewFile>> {
        Ok(Box::new(OpenOptions::new().write(true).create_new(true).open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        Ok(Box::new(File::open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        make_folder(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        sync_folder(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send>> {
        let folder = File::open(path)?;
        match folder.try_lock() {
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            // Some file systems lock no directories (NFS): there a driver's own turns must do.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Box::new(folder)),
        }
    }

    fn may_block(&self) -> bool {
        true
    }
}

impl NewFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}
