//! The file system operations of a directory of objects, so a test can replace them and fail like real ones.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;

use sink::folder::{make_folder, sync_folder};

/// A file system.
pub trait Files: Send + Sync + 'static {
    /// Creates a new file; an existing one is an error.
    ///
    /// # Errors
    /// The file system's error.
    fn create(&self, path: &Path) -> io::Result<Box<dyn NewFile>>;
    /// Opens a file to read it from its beginning.
    ///
    /// # Errors
    /// The file system's error.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read>>;
    /// Renames a file, and replaces an existing file of that name.
    ///
    /// # Errors
    /// The file system's error.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// The file system's error.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Creates a directory and those above it, each durable before it is used; an existing one is fine.
    ///
    /// # Errors
    /// The file system's error.
    fn make_folder(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable: those created, changed and removed before the call.
    ///
    /// # Errors
    /// The file system's error. The operation must be repeated.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
    /// Keeps other writers out of a directory until the value is dropped.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if another one is writing, or else the file system's error.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send>>;
    /// Whether calls may take long, as on a disk: then they run on a separate thread.
    fn may_block(&self) -> bool;
}

/// A file that is being written.
pub trait NewFile: Write {
    /// Makes the written bytes durable.
    ///
    /// # Errors
    /// The file system's error. The file can't be used then.
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
            // Some file systems (NFS) can't lock directories: there the process-internal lock must suffice.
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
