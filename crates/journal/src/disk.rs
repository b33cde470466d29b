//! The only access to the file system. Everything else in this crate uses [`Disk`], so a simulated disk can lose, tear,
//! flip and reject anything that a real one might.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::FallocateFlags;

/// A disk that threads share.
pub type SharedDisk = Arc<dyn Disk>;

/// The space that a file system has left for this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes that can be written.
    pub bytes: u64,
    /// The size of the file system in bytes.
    pub bytes_all: u64,
    /// Files that can be created. `u64::MAX` if the file system has no limit.
    pub files: u64,
    /// The greatest number of files of the file system.
    pub files_all: u64,
}

/// The file system operations that the journal needs. Paths are absolute or relative to the working directory.
pub trait Disk: Send + Sync {
    /// Creates a new file, open for reading and writing; one that exists is an error.
    ///
    /// # Errors
    /// The file system's error.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// The file system's error.
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Gives a file another name; one that has that name already is replaced.
    ///
    /// # Errors
    /// The file system's error.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// The file system's error.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Creates a directory and its parents; one that exists is fine.
    ///
    /// # Errors
    /// The file system's error.
    fn create_directory(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    ///
    /// # Errors
    /// The file system's error.
    fn remove_directory(&self, path: &Path) -> io::Result<()>;
    /// The names in a directory, in any order. Names that are not UTF-8 are left out: Forebay creates none.
    ///
    /// # Errors
    /// The file system's error.
    fn list(&self, directory: &Path) -> io::Result<Vec<String>>;
    /// Makes the names in a directory durable: those created, changed and removed before the call.
    ///
    /// # Errors
    /// The file system's error. The changes that aren't durable must be done again: repeating the call is not
    /// enough.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;
    /// Takes the lock that keeps a second process out, of a file and of the directory that it is in; it is held until the value is
    /// dropped.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if another process holds it, else the file system's error.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>>;
    /// The space that the file system of `directory` has left.
    ///
    /// # Errors
    /// The file system's error.
    fn space(&self, directory: &Path) -> io::Result<Space>;
}

/// An open file. Threads may read while one of them writes elsewhere in it.
pub trait DiskFile: Send + Sync {
    /// Reads at most `buffer.len()` bytes; 0 at the file's end.
    ///
    /// # Errors
    /// The file system's error.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes at most `bytes.len()` bytes; it may be fewer.
    ///
    /// # Errors
    /// The file system's error.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Makes written bytes, and the length that is needed to read them, durable (`fdatasync`).
    ///
    /// # Errors
    /// The file system's error. The caller must not use the file again: its content is then unknown.
    fn sync(&self) -> io::Result<()>;
    /// The file's length in bytes.
    ///
    /// # Errors
    /// The file system's error.
    fn length(&self) -> io::Result<u64>;
    /// Cuts the file or extends it with zeros.
    ///
    /// # Errors
    /// The file system's error.
    fn set_length(&self, length: u64) -> io::Result<()>;
    /// Extends the file to `length` with bytes that read as zeros, and allocates the space for them without writing it
    /// (`fallocate`).
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] if the file system can't, else its error.
    fn allocate(&self, length: u64) -> io::Result<()>;
}

impl dyn DiskFile + '_ {
    /// Writes all of `bytes`, continuing after short writes.
    ///
    /// # Errors
    /// The file system's error; [`io::ErrorKind::WriteZero`] if it accepts no bytes.
    pub fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write_at(bytes, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    bytes = &bytes[written..];
                    offset += written as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes zeros from `start` up to `end`.
    ///
    /// # Errors
    /// The file system's error.
    pub fn fill_with_zeros(&self, start: u64, end: u64) -> io::Result<()> {
        // A static needs no extra memory: its pages are never written to.
        static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
        let mut at = start;
        while at < end {
            let part = usize::try_from(end - at).unwrap_or(usize::MAX).min(ZEROS.len());
            self.write_all_at(&ZEROS[..part], at)?;
            at += part as u64;
        }
        Ok(())
    }

    /// Fills as much of `buffer` as the file has from `offset` on, and returns how much that is.
    ///
    /// # Errors
    /// The file system's error.
    pub fn read_full_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

/// Payloads and clients' addresses are private to the owner.
const OWNER_ONLY: u32 = 0o600;
/// In addition, for directories.
const OWNER_ENTERS: u32 = 0o100;

/// The operating system's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsDisk;

impl Disk for OsDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OpenOptions::new().read(true).write(true).create_new(true).mode(OWNER_ONLY).open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OpenOptions::new().read(true).write(true).open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(OWNER_ONLY | OWNER_ENTERS).create(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_dir(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let names = std::fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        names.filter_map(Result::transpose).collect()
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        File::open(directory)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).mode(OWNER_ONLY).open(path)?;
        lock_files(file, path)
    }

    fn space(&self, directory: &Path) -> io::Result<Space> {
        let found = rustix::fs::statvfs(directory)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        // Some file systems create inodes as needed, and report 0.
        let files = |files: u64| if found.f_files == 0 { u64::MAX } else { files };
        Ok(Space {
            bytes: bytes(found.f_bavail),
            bytes_all: bytes(found.f_blocks),
            files: files(found.f_favail),
            files_all: files(found.f_files),
        })
    }
}

/// The operating system's file system for read-only use: it opens files for reading, and rejects every change.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOnlyDisk;

impl Disk for ReadOnlyDisk {
    fn create(&self, _path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(File::open(path)?))
    }

    fn rename(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn remove(&self, _path: &Path) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn create_directory(&self, _path: &Path) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn remove_directory(&self, _path: &Path) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        OsDisk.list(directory)
    }

    /// Reading doesn't need durable names.
    fn sync_directory(&self, _directory: &Path) -> io::Result<()> {
        Ok(())
    }

    /// Takes the lock of a process that writes, without creating the file: a copy may have none.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Box::new(())),
            opened => lock_files(opened?, path),
        }
    }

    fn space(&self, directory: &Path) -> io::Result<Space> {
        OsDisk.space(directory)
    }
}

fn lock_files(file: File, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
    file.try_lock().map_err(io::Error::from)?;
    // If the file is removed as stale, a second process would lock another file: the directory stays the same one.
    let directory = File::open(path.parent().unwrap_or(path))?;
    match directory.try_lock() {
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        // Some file systems lock no directories (NFS): there the file must be enough.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Box::new((file, directory))),
    }
}

impl DiskFile for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        uninterrupted(|| FileExt::read_at(self, buffer, offset))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        uninterrupted(|| FileExt::write_at(self, bytes, offset)).map_err(as_full)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.set_len(length).map_err(as_full)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        uninterrupted(|| Ok(rustix::fs::fallocate(self, FallocateFlags::empty(), 0, length)?)).map_err(as_full)
    }
}

/// Repeats a system call that a signal has interrupted, as the timer of a CPU profile.
fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// A limit on the size of files (`ulimit -f`) and a quota count as full disks: the remedy is the same.
fn as_full(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::FileTooLarge | io::ErrorKind::QuotaExceeded => io::Error::new(
            io::ErrorKind::StorageFull,
            format!("{error}: raise the limit of file sizes (ulimit -f) or the disk quota"),
        ),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupted_call_is_repeated() {
        let mut answers = [Err(io::ErrorKind::Interrupted.into()), Ok(7), Ok(8)].into_iter();
        assert_eq!(uninterrupted(|| answers.next().unwrap()).unwrap(), 7);
        assert!(uninterrupted(|| Err::<(), _>(io::ErrorKind::StorageFull.into())).is_err());
    }
}
