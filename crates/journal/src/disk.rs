//! The one door to the file system. Everything else in this crate goes through [`Disk`], so that a simulated
//! disk can lose, tear, flip and refuse whatever a real one might.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::FallocateFlags;

/// A disk that threads share.
pub type SharedDisk = Arc<dyn Disk>;

/// What a file system has left for this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes that can be written.
    pub bytes: u64,
    /// Bytes that the file system has in all.
    pub bytes_all: u64,
    /// Files that can be made. `u64::MAX` where there is no limit of its own.
    pub files: u64,
    /// Files that the file system has room for in all.
    pub files_all: u64,
}

/// What the journal needs of a file system. Paths are absolute or relative to the working directory.
pub trait Disk: Send + Sync {
    /// Makes a new file, open for reading and writing; one that exists is an error.
    ///
    /// # Errors
    /// What the file system says.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// What the file system says.
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
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
    /// Makes a directory and those above it; one that exists is fine.
    ///
    /// # Errors
    /// What the file system says.
    fn create_directory(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory in which nothing is.
    ///
    /// # Errors
    /// What the file system says.
    fn remove_directory(&self, path: &Path) -> io::Result<()>;
    /// The names in a directory, in any order. Names that are not UTF-8 are left out: none of ours are.
    ///
    /// # Errors
    /// What the file system says.
    fn list(&self, directory: &Path) -> io::Result<Vec<String>>;
    /// Makes the names in a directory durable: those made, changed and removed before the call.
    ///
    /// # Errors
    /// What the file system says. What it was to make durable must be done again: to repeat the call is not enough.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;
    /// Takes the lock that keeps a second process out, of a file and of the directory that it is in; it is held until the value is
    /// dropped.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where somebody else holds it, else what the file system says.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>>;
    /// What the file system that holds `directory` has left.
    ///
    /// # Errors
    /// What the file system says.
    fn space(&self, directory: &Path) -> io::Result<Space>;
}

/// An open file. Threads may read while one of them writes elsewhere in it.
pub trait DiskFile: Send + Sync {
    /// Reads at most `buffer.len()` bytes; 0 at the file's end.
    ///
    /// # Errors
    /// What the file system says.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes at most `bytes.len()` bytes; it may be fewer.
    ///
    /// # Errors
    /// What the file system says.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Makes written bytes, and the length that is needed to read them, durable (`fdatasync`).
    ///
    /// # Errors
    /// What the file system says. The caller must not use the file again: what it holds is then unknown.
    fn sync(&self) -> io::Result<()>;
    /// The file's length in bytes.
    ///
    /// # Errors
    /// What the file system says.
    fn length(&self) -> io::Result<u64>;
    /// Cuts the file or extends it with zeros.
    ///
    /// # Errors
    /// What the file system says.
    fn set_length(&self, length: u64) -> io::Result<()>;
    /// Extends the file to `length` with bytes that read as zeros, and takes the space for them without writing it
    /// (`fallocate`).
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] where the file system can't, else what it says.
    fn allocate(&self, length: u64) -> io::Result<()>;
}

impl dyn DiskFile + '_ {
    /// Writes all of `bytes`, going on after short writes.
    ///
    /// # Errors
    /// What the file system says; [`io::ErrorKind::WriteZero`] where it takes nothing more.
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
    /// What the file system says.
    pub fn fill_with_zeros(&self, start: u64, end: u64) -> io::Result<()> {
        // A static costs no memory of its own: its pages are never written to.
        static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
        let mut at = start;
        while at < end {
            let part = usize::try_from(end - at).unwrap_or(usize::MAX).min(ZEROS.len());
            self.write_all_at(&ZEROS[..part], at)?;
            at += part as u64;
        }
        Ok(())
    }

    /// Fills as much of `buffer` as the file has from `offset` on, and says how much that is.
    ///
    /// # Errors
    /// What the file system says.
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

/// Payloads and addresses of clients are nobody else's business.
const OWNER_ONLY: u32 = 0o600;
/// Besides, for directories.
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
        // Some file systems make room for files as they go, and say 0.
        let files = |files: u64| if found.f_files == 0 { u64::MAX } else { files };
        Ok(Space {
            bytes: bytes(found.f_bavail),
            bytes_all: bytes(found.f_blocks),
            files: files(found.f_favail),
            files_all: files(found.f_files),
        })
    }
}

/// The operating system's file system, for those who only look: it opens files for reading, and refuses every change.
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

    /// What is only read needs no names to be durable.
    fn sync_directory(&self, _directory: &Path) -> io::Result<()> {
        Ok(())
    }

    /// Takes the lock of a process that writes, without making the file: a copy may have none.
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
    // Who takes the file for a stale one removes it, and a second process would lock another: the directory stays the same one.
    let directory = File::open(path.parent().unwrap_or(path))?;
    match directory.try_lock() {
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        // Some file systems lock no directories (NFS): there the file must do.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Box::new((file, directory))),
    }
}

impl DiskFile for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        FileExt::write_at(self, bytes, offset).map_err(as_full)
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
        rustix::fs::fallocate(self, FallocateFlags::empty(), 0, length).map_err(|error| as_full(error.into()))
    }
}

/// A limit on the size of files (`ulimit -f`) and a quota are full disks: what helps is the same.
fn as_full(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::FileTooLarge | io::ErrorKind::QuotaExceeded => {
            io::Error::new(io::ErrorKind::StorageFull, format!("{error}; raise the limit on the process's files"))
        }
        _ => error,
    }
}
