//! The data directory: one process at a time, and one gateway id (the file `origin`) forever.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use event::Origin;

use crate::disk::{Disk, ReadOnlyDisk, SharedDisk};
use crate::reserve::Reserve;
use crate::segment::{self, HeaderPage};
use crate::state_file::StateFile;

const LOCK_FILE: &str = "lock";
const JOURNAL_DIRECTORY: &str = "journal";
const ORIGIN_FILE: &str = "origin";
/// Each version of a state file is a copy, up to two.
const ORIGIN_COPIES: u64 = 2;

/// A data directory that this process holds. The lock is released when the value is dropped.
pub struct DataDirectory {
    disk: SharedDisk,
    path: PathBuf,
    origin: Origin,
    reserve: Arc<Reserve>,
    _lock: Box<dyn Send + Sync>,
}

/// Why a data directory can't be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// Another process uses it.
    #[error("{0} is in use by another Forebay: stop that process, or choose another directory with --data")]
    InUse(PathBuf),
    /// The file system failed.
    #[error(
        "cannot use the data directory {path}: {source}. Check its disk and permissions, or choose another directory \
         with --data"
    )]
    Io {
        /// The directory.
        path: PathBuf,
        /// The file system's error.
        source: io::Error,
    },
    /// It has no file of a data directory.
    #[error(
        "{0} is not a data directory of Forebay: it has no file `origin.0` or `origin.1`. Set --data to the right one"
    )]
    NoDirectory(PathBuf),
    /// No copy of the gateway id can be read, though the directory has copies.
    #[error(
        "{0} has lost its gateway id: `origin.0` and `origin.1` are damaged. Restore one of them, or move the directory away to start with an empty one"
    )]
    OriginDamaged(PathBuf),
}

impl DataDirectory {
    /// Opens a data directory, creating it if it is missing.
    ///
    /// # Errors
    /// [`DirectoryError`]: the directory can't be used.
    pub fn open(disk: SharedDisk, path: &Path) -> Result<Self, DirectoryError> {
        let io_error = |source| DirectoryError::Io { path: path.into(), source };
        make_directory(&*disk, path).map_err(io_error)?;
        let lock = lock(&*disk, path)?;
        let origin = read_or_make_origin(&disk, path)?;
        let reserve = Arc::new(Reserve::open(disk.clone(), path));
        Ok(Self { disk, path: path.into(), origin, reserve, _lock: lock })
    }

    /// Opens a data directory for reading only: nothing in it is changed, created or removed, so it may be on a file
    /// system that is mounted read-only. No process may have it open for writing.
    ///
    /// # Errors
    /// [`DirectoryError`]: the directory can't be used.
    pub fn look(path: &Path) -> Result<Self, DirectoryError> {
        let io_error = |source| DirectoryError::Io { path: path.into(), source };
        let disk: SharedDisk = Arc::new(ReadOnlyDisk);
        let (_, state) = StateFile::open(disk.clone(), path, ORIGIN_FILE).map_err(io_error)?;
        let is_damaged = !state.damaged.is_empty();
        let origin = state.content.and_then(|content| content.try_into().ok()).map(Origin);
        let origin = origin.ok_or_else(|| match is_damaged {
            true => DirectoryError::OriginDamaged(path.into()),
            false => DirectoryError::NoDirectory(path.into()),
        })?;
        let lock = lock(&*disk, path)?;
        let reserve = Arc::new(Reserve::none(disk.clone(), path));
        Ok(Self { disk, path: path.into(), origin, reserve, _lock: lock })
    }

    /// The space that is reserved for when the disk is full.
    #[must_use]
    pub const fn reserve(&self) -> &Arc<Reserve> {
        &self.reserve
    }

    /// The directory's gateway id.
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

    /// How many shards the directory has journals of: the greatest number and one. A directory is a shard's if its name is the
    /// next number, or if a segment in it says that it is this shard's.
    ///
    /// # Errors
    /// The file system's error.
    pub fn shards_on_disk(&self) -> io::Result<u16> {
        let mut numbers: Vec<u16> = self.names_in_journal()?.iter().filter_map(|name| shard_of(name)).collect();
        numbers.sort_unstable();
        let mut shards = 0;
        for number in numbers {
            if number == shards || self.has_segment_of(number)? {
                shards = number + 1;
            }
        }
        Ok(shards)
    }

    /// The entries among the journals of `shards` shards that belong to none of them. They are left alone.
    ///
    /// # Errors
    /// The file system's error.
    pub fn strays(&self, shards: u16) -> io::Result<Vec<PathBuf>> {
        let mut names = self.names_in_journal()?;
        names.sort_unstable();
        let strays = names.into_iter().filter(|name| shard_of(name).is_none_or(|number| number >= shards));
        Ok(strays.map(|name| self.path.join(JOURNAL_DIRECTORY).join(name)).collect())
    }

    fn names_in_journal(&self) -> io::Result<Vec<String>> {
        match self.disk.list(&self.path.join(JOURNAL_DIRECTORY)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            names => names,
        }
    }

    fn has_segment_of(&self, shard: u16) -> io::Result<bool> {
        let directory = self.shard(shard);
        let names = match self.disk.list(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Vec::new(),
            names => names?,
        };
        for name in names.iter().filter(|name| segment::generation_of(name).is_some()) {
            if let HeaderPage::Valid { header, .. } = segment::read_header(&self.disk, &directory.join(name))?
                && (header.shard, header.origin) == (shard, self.origin)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Bytes of the segments of all shards: about as many as wait for stores, or more.
    ///
    /// # Errors
    /// The file system's error.
    pub fn segment_bytes(&self) -> io::Result<u64> {
        let mut bytes = 0;
        for shard in 0..self.shards_on_disk()? {
            let directory = self.shard(shard);
            let names = match self.disk.list(&directory) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
                names => names?,
            };
            for name in names.iter().filter(|name| segment::generation_of(name).is_some()) {
                bytes += self.disk.open(&directory.join(name))?.length()?;
            }
        }
        Ok(bytes)
    }

    /// The directory of a shard's journal.
    #[must_use]
    pub fn shard(&self, shard: u16) -> PathBuf {
        shard_directory(&self.path, shard)
    }
}

/// The gateway id of a data directory that another process may use; `None` if there is none. Changes nothing.
///
/// # Errors
/// The file system's error.
pub fn origin_of(disk: SharedDisk, path: &Path) -> io::Result<Option<Origin>> {
    let (_, state) = StateFile::open(disk, path, ORIGIN_FILE)?;
    Ok(state.content.and_then(|content| content.try_into().ok()).map(Origin))
}

fn lock(disk: &dyn Disk, path: &Path) -> Result<Box<dyn Send + Sync>, DirectoryError> {
    disk.lock(&path.join(LOCK_FILE)).map_err(|source| match source.kind() {
        io::ErrorKind::WouldBlock => DirectoryError::InUse(path.into()),
        _ => DirectoryError::Io { path: path.into(), source },
    })
}

/// The shard whose directory has this name. Other spellings of its number are no shard's, and the greatest number has
/// no successor.
fn shard_of(name: &str) -> Option<u16> {
    let number = name.parse().ok().filter(|number| *number < u16::MAX)?;
    (format!("{number:04}") == name).then_some(number)
}

/// The directory of a shard's journal in a data directory.
#[must_use]
pub fn shard_directory(data_directory: &Path, shard: u16) -> PathBuf {
    data_directory.join(JOURNAL_DIRECTORY).join(format!("{shard:04}"))
}

/// Creates a directory and its parents, and makes their names durable: also those of existing directories, because the
/// process that created them may have ended before it did so.
///
/// # Errors
/// The file system's error. If a new directory's name can't be synced, the directory is removed: a later sync
/// might succeed without effect, so the next attempt must create it again.
pub fn make_directory(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    let is_missing = |path: &&Path| {
        !path.as_os_str().is_empty() && disk.list(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
    let made = disk.create_directory(path).and_then(|()| sync_names_above(disk, path));
    if made.is_err() {
        let _ = missing.into_iter().try_for_each(|made| disk.remove_directory(made));
    }
    made
}

/// The names in a directory; none if it isn't there.
///
/// # Errors
/// The file system's error.
pub fn list_directory(disk: &dyn Disk, path: &Path) -> io::Result<Vec<String>> {
    match disk.list(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        names => names,
    }
}

fn sync_names_above(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    for above in path.ancestors().skip(1) {
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        match disk.sync_directory(above) {
            // In a directory that we may not open, nothing was created by us.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => break,
            synced => synced?,
        }
    }
    Ok(())
}

fn read_or_make_origin(disk: &SharedDisk, path: &Path) -> Result<Origin, DirectoryError> {
    let io_error = |source| DirectoryError::Io { path: path.into(), source };
    let (mut file, state) = StateFile::open(disk.clone(), path, ORIGIN_FILE).map_err(io_error)?;
    let found: Option<[u8; 16]> = state.content.and_then(|content| content.try_into().ok());
    if let Some(origin) = found {
        if !state.damaged.is_empty() || file.version() < ORIGIN_COPIES {
            // One copy is enough for now; if there is no space, the next start tries again.
            drop(file.write(&origin));
        }
        return Ok(Origin(origin));
    }
    if !state.damaged.is_empty() {
        return Err(DirectoryError::OriginDamaged(path.into()));
    }
    let mut origin = [0; 16];
    getrandom::fill(&mut origin).map_err(|error| io_error(error.into()))?;
    // Written twice, so there are two copies from the start.
    file.write(&origin).and_then(|()| file.write(&origin)).map_err(io_error)?;
    Ok(Origin(origin))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::segment::SegmentHeader;
    use crate::simulated_disk::{CutStyle, SimulatedDisk};

    #[test]
    fn directory_has_one_process_and_origin() {
        let disk = SimulatedDisk::new(1);
        let shared: SharedDisk = Arc::new(disk.clone());
        let first = DataDirectory::open(shared.clone(), Path::new("a/b/data")).unwrap();
        let origin = first.origin();
        let second = DataDirectory::open(shared.clone(), Path::new("a/b/data")).map(drop);
        assert!(matches!(second, Err(DirectoryError::InUse(_))));
        assert_eq!(origin_of(shared.clone(), Path::new("a/b/data")).unwrap(), Some(origin));
        drop(first);
        disk.power_cut_in_style(CutStyle::LoseAll);
        let again = DataDirectory::open(shared.clone(), Path::new("a/b/data")).unwrap();
        assert_eq!((again.origin(), again.shards_on_disk().unwrap()), (origin, 0));
        disk.put(again.shard(0).join("x"), b"").unwrap();
        disk.put(again.shard(1).join("x"), b"").unwrap();
        assert_eq!(again.shards_on_disk().unwrap(), 2);
    }

    #[test]
    fn unrelated_directory_is_left_alone() {
        let disk = SimulatedDisk::new(1);
        let directory = DataDirectory::open(Arc::new(disk.clone()), Path::new("/data")).unwrap();
        let segment = |shard, origin| {
            let header = SegmentHeader { shard, origin, seed: 1, generation: 1, first: 1, previous: 0, length: 65_536 };
            header.encode()
        };
        let put = |name: &str, bytes: &[u8]| {
            disk.put(Path::new("/data/journal").join(name).join("0000000000000001.segment"), bytes).unwrap();
        };
        put("0000", &[]);
        put("0002", &segment(2, directory.origin()));
        for stray in ["2026", "300", "+1", "65535", "0009"] {
            put(stray, &segment(0, directory.origin()));
        }
        put("0010", &segment(10, Origin([9; 16])));
        assert_eq!(directory.shards_on_disk().unwrap(), 3, "shard 1 was lost, those after it count");
        let strays = directory.strays(3).unwrap();
        let names: Vec<_> = strays.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["+1", "0009", "0010", "2026", "300", "65535"]);
        assert!(directory.segment_bytes().is_ok());
    }

    #[test]
    fn damaged_origin_is_never_recreated() {
        let disk = SimulatedDisk::new(1);
        let shared: SharedDisk = Arc::new(disk.clone());
        drop(DataDirectory::open(shared.clone(), Path::new("/data")).unwrap());
        disk.put("/data/origin.0", b"rot").unwrap();
        disk.put("/data/origin.1", b"rot").unwrap();
        let opened = DataDirectory::open(shared, Path::new("/data")).map(drop);
        assert!(matches!(opened, Err(DirectoryError::OriginDamaged(_))));
    }
}
