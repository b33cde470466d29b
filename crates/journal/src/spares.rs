//! Files for segments to come: zero-filled ahead of need, or recycled. Writing into bytes that the file already
//! has costs an fdatasync half of what growing the file costs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::disk::{DiskFile, SharedDisk};

const SPARE_PREFIX: &str = "spare-";
/// Recycled files kept for later: one is in use soon, one more bridges a burst.
const RECYCLED_MAX: usize = 2;
const FILL_BYTES: usize = 1024 * 1024;

/// A file that waits to become a segment.
pub(crate) struct Spare {
    pub(crate) file: Box<dyn DiskFile>,
    pub(crate) path: PathBuf,
    pub(crate) length: u64,
}

/// Whether a file in a shard's directory is a spare: after a crash its content is unknown.
pub(crate) fn is_spare(file_name: &str) -> bool {
    file_name.starts_with(SPARE_PREFIX)
}

/// Makes spares and keeps recycled files; clones share them.
#[derive(Clone)]
pub(crate) struct SparePool {
    disk: SharedDisk,
    directory: Arc<Path>,
    /// The length of the files that are worth keeping: that of all segments once the first ones have grown.
    recycled_length: u64,
    next_name: Arc<AtomicU64>,
    recycled: Arc<Mutex<Vec<(PathBuf, u64)>>>,
}

impl SparePool {
    pub(crate) fn new(disk: SharedDisk, directory: &Path, recycled_length: u64) -> Self {
        let next_name = Arc::new(AtomicU64::new(0));
        Self { disk, directory: directory.into(), recycled_length, next_name, recycled: Arc::default() }
    }

    fn new_path(&self) -> PathBuf {
        let number = self.next_name.fetch_add(1, Ordering::Relaxed);
        self.directory.join(format!("{SPARE_PREFIX}{number}"))
    }

    fn recycled(&self) -> MutexGuard<'_, Vec<(PathBuf, u64)>> {
        self.recycled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over the file of a freed segment; `None` where it isn't wanted. The new name is durable before the
    /// file can be written to: else a crash could leave the old name on new content.
    pub(crate) fn recycle(&self, path: &Path, length: u64) -> Option<io::Result<()>> {
        if length != self.recycled_length || self.recycled().len() >= RECYCLED_MAX {
            return None;
        }
        let spare = self.new_path();
        let renamed = self.disk.rename(path, &spare).and_then(|()| self.disk.sync_directory(&self.directory));
        Some(renamed.map(|()| self.recycled().push((spare, length))))
    }

    /// A file of at least `length` bytes whose length is durable.
    pub(crate) fn make(&self, length: u64) -> io::Result<Spare> {
        let recycled = {
            let mut files = self.recycled();
            files.iter().position(|(_, bytes)| *bytes >= length).map(|at| files.swap_remove(at))
        };
        match recycled {
            Some((path, length)) => Ok(Spare { file: self.disk.open(&path)?, path, length }),
            None => self.zero_filled(length),
        }
    }

    fn discard(&self, spare: Spare) -> io::Result<()> {
        drop(spare.file);
        self.disk.remove(&spare.path)
    }

    fn zero_filled(&self, length: u64) -> io::Result<Spare> {
        let path = self.new_path();
        let file = self.disk.create(&path)?;
        let filled = fill(&*file, length).and_then(|()| file.sync());
        if let Err(error) = filled {
            // Half a spare is of no use and takes up space that is missing.
            drop(file);
            self.disk.remove(&path)?;
            return Err(error);
        }
        Ok(Spare { file, path, length })
    }
}

fn fill(file: &dyn DiskFile, length: u64) -> io::Result<()> {
    let zeros = vec![0; FILL_BYTES.min(usize::try_from(length).unwrap_or(FILL_BYTES))];
    let mut at = 0;
    while at < length {
        let part = usize::try_from(length - at).unwrap_or(usize::MAX).min(zeros.len());
        file.write_all_at(&zeros[..part], at)?;
        at += part as u64;
    }
    Ok(())
}

/// Where the committer gets its spares from.
pub(crate) enum Spares {
    /// Made when they are needed: in tests and tools, where the order of events must be known.
    Inline(SparePool),
    /// Made ahead of need by a thread.
    Ahead { pool: SparePool, wanted: Sender<u64>, ready: Receiver<io::Result<Spare>>, ordered: bool },
}

impl Spares {
    pub(crate) const fn inline(pool: SparePool) -> Self {
        Self::Inline(pool)
    }

    /// Starts the thread; it ends when this value is dropped.
    pub(crate) fn ahead(pool: SparePool) -> io::Result<Self> {
        let (wanted, orders) = channel();
        let (made, ready) = channel();
        let maker = pool.clone();
        thread::Builder::new().name("spares".into()).stack_size(128 * 1024).spawn(move || {
            while let Ok(length) = orders.recv() {
                if made.send(maker.make(length)).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self::Ahead { pool, wanted, ready, ordered: false })
    }

    /// Asks for a spare of `length` bytes to be made while there is time.
    pub(crate) fn order(&mut self, length: u64) {
        if let Self::Ahead { wanted, ordered, .. } = self
            && !*ordered
        {
            *ordered = wanted.send(length).is_ok();
        }
    }

    /// A spare of at least `length` bytes, made now.
    pub(crate) fn make(&self, length: u64) -> io::Result<Spare> {
        match self {
            Self::Inline(pool) | Self::Ahead { pool, .. } => pool.make(length),
        }
    }

    /// A spare of at least `length` bytes; waits for the one that was ordered.
    pub(crate) fn take(&mut self, length: u64) -> io::Result<Spare> {
        match self {
            Self::Inline(pool) => pool.make(length),
            Self::Ahead { pool, ready, ordered, .. } => {
                let made = std::mem::take(ordered).then(|| ready.recv());
                match made {
                    Some(Ok(Ok(spare))) if spare.length >= length => Ok(spare),
                    Some(Ok(Ok(small))) => {
                        pool.discard(small)?;
                        pool.make(length)
                    }
                    _ => pool.make(length),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated_disk::{Failure, Operation, SimulatedDisk};

    const DIRECTORY: &str = "/s";

    fn pool() -> (SimulatedDisk, SparePool) {
        let disk = SimulatedDisk::new(1);
        disk.put("/s/old-1", &[1; 8192]).unwrap();
        disk.put("/s/old-2", &[2; 8192]).unwrap();
        disk.put("/s/old-3", &[3; 8192]).unwrap();
        let pool = SparePool::new(Arc::new(disk.clone()), Path::new(DIRECTORY), 8192);
        (disk, pool)
    }

    fn names(disk: &SimulatedDisk) -> Vec<String> {
        disk.paths().iter().map(|path| path.file_name().unwrap().to_str().unwrap().into()).collect()
    }

    #[test]
    fn two_files_of_the_right_length_are_kept_and_used_again() {
        let (disk, pool) = pool();
        let old = |number: u32| PathBuf::from(format!("/s/old-{number}"));
        assert!(pool.recycle(&old(1), 4096).is_none());
        pool.recycle(&old(1), 8192).unwrap().unwrap();
        pool.recycle(&old(2), 8192).unwrap().unwrap();
        assert!(pool.recycle(&old(3), 8192).is_none());
        assert_eq!(names(&disk), ["old-3", "spare-0", "spare-1"]);
        let (one, other, third) = (pool.make(100).unwrap(), pool.make(8192).unwrap(), pool.make(8192).unwrap());
        assert_eq!([one.length, other.length, third.length], [8192; 3]);
        assert!(disk.content(&one.path).unwrap() != [0; 8192] && disk.content(&other.path).unwrap() != [0; 8192]);
        assert_eq!(disk.content(&third.path).unwrap(), [0; 8192]);
    }

    #[test]
    fn a_spare_that_can_t_be_made_leaves_no_file() {
        let (disk, pool) = pool();
        for operation in [Operation::WriteAt, Operation::Sync] {
            disk.fail_call(operation, 1, Failure::NoSpace);
            assert!(pool.make(8192).is_err());
            assert_eq!(names(&disk).len(), 3, "{operation:?}");
        }
    }

    #[test]
    fn a_spare_that_was_made_ahead_is_taken_unless_it_is_too_small() {
        let (disk, pool) = pool();
        let mut spares = Spares::ahead(pool).unwrap();
        spares.order(4096);
        spares.order(4096);
        let spare = spares.take(4096).unwrap();
        assert_eq!((spare.length, names(&disk).len()), (4096, 4));
        spares.order(4096);
        let larger = spares.take(20_000).unwrap();
        assert_eq!(disk.content(&larger.path).unwrap().len(), 20_000);
        assert_eq!(names(&disk).len(), 5, "the small one is gone");
    }
}
