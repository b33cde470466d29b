//! Files for future segments: recycled, or zero-filled ahead of need. An fdatasync into existing bytes costs half of
//! one that grows the file. If there is no time to zero-fill a file, the space of its remainder is only allocated. An
//! fdatasync costs more there, but blocks that use up a segment so quickly are large, and writing everything twice
//! would cost them more.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvError, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::disk::{DiskFile, SharedDisk};
use crate::disk_quota::DiskQuota;

const SPARE_PREFIX: &str = "spare-";
/// Recycled files kept for later: they are enough until the next ones are freed, about two seconds.
const RECYCLED_MAX: usize = 4;
/// The shortest useful segment, unless tests create only shorter ones.
const LENGTH_MIN: u64 = 256 * 1024;
/// A new file is filled by this many bytes at a time, each synced: a commit waits for no larger write.
const FILL_BYTES: u64 = 512 * 1024;
/// After each piece the disk is left to others for this many times the duration of the piece.
const REST: u32 = 3;

/// How a new file is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FillMode {
    /// With zeros.
    Zeros,
    /// The committer waits for it: the space that isn't filled yet is only allocated.
    Reserve,
}

/// A file that waits to become a segment.
pub(crate) struct Spare {
    pub(crate) file: Box<dyn DiskFile>,
    pub(crate) path: PathBuf,
    pub(crate) length: u64,
}

/// The purpose of a spare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AllocRequest {
    /// Bytes that it must hold.
    pub(crate) at_least: u64,
    /// Its length if it is new.
    pub(crate) length: u64,
    /// Whether it is created as long as the disk has any space, regardless of what should be left for others.
    pub(crate) needed: bool,
}

/// Whether a file in a shard's directory is a spare: after a crash its content is unknown.
pub(crate) fn is_spare(file_name: &str) -> bool {
    file_name.starts_with(SPARE_PREFIX)
}

/// Creates spares and keeps recycled files; clones share them.
#[derive(Clone)]
pub(crate) struct SegmentPool {
    disk: SharedDisk,
    directory: Arc<Path>,
    next_name: Arc<AtomicU64>,
    recycled: Arc<Mutex<Vec<(PathBuf, u64)>>>,
    /// The disk has too little space left for files that aren't needed now.
    is_thrifty: Arc<AtomicBool>,
    quota: Option<Arc<DiskQuota>>,
}

impl SegmentPool {
    pub(crate) fn new(disk: SharedDisk, directory: &Path) -> Self {
        let next_name = Arc::new(AtomicU64::new(0));
        Self {
            disk,
            directory: directory.into(),
            next_name,
            recycled: Arc::default(),
            is_thrifty: Arc::default(),
            quota: None,
        }
    }

    /// The same, for files that use at most the part of the disk that `quota` allows.
    pub(crate) fn within(self, quota: Option<Arc<DiskQuota>>) -> Self {
        Self { quota, ..self }
    }

    /// No segment for this many bytes can be begun.
    pub(crate) fn refused(&self, bytes: u64) {
        if let Some(quota) = &self.quota {
            quota.note_rejection(bytes.max(LENGTH_MIN));
        }
    }

    /// Begins a segment in this spare; if that isn't allowed, the spare's space is freed.
    pub(crate) fn begin(&self, spare: Spare, needed: bool) -> io::Result<Spare> {
        if self.quota.as_ref().is_none_or(|quota| quota.begin(spare.length, needed)) {
            return Ok(spare);
        }
        self.discard(spare)?;
        Err(nothing_left())
    }

    fn new_path(&self) -> PathBuf {
        let number = self.next_name.fetch_add(1, Ordering::Relaxed);
        self.directory.join(format!("{SPARE_PREFIX}{number}"))
    }

    fn recycled(&self) -> MutexGuard<'_, Vec<(PathBuf, u64)>> {
        self.recycled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether freed segments' files are removed instead of kept, including those already kept.
    ///
    /// # Errors
    /// The file system's error; the next call tries again.
    pub(crate) fn be_thrifty(&self, thrifty: bool) -> io::Result<()> {
        self.is_thrifty.store(thrifty, Ordering::Relaxed);
        let mut recycled = self.recycled();
        while thrifty && let Some((path, _)) = recycled.last() {
            self.disk.remove(path)?;
            recycled.pop();
        }
        Ok(())
    }

    /// Takes over the file of a freed segment; `None` if it isn't wanted. The new name is durable before the file can
    /// be written to: else a crash could leave the old name on new content.
    pub(crate) fn recycle(&self, path: &Path, length: u64) -> Option<io::Result<()>> {
        if self.is_thrifty.load(Ordering::Relaxed) || self.recycled().len() >= RECYCLED_MAX {
            return None;
        }
        let spare = self.new_path();
        let renamed = self.disk.rename(path, &spare).and_then(|()| self.disk.sync_directory(&self.directory));
        Some(renamed.map(|()| self.recycled().push((spare, length))))
    }

    /// A file whose length is durable: a recycled one that is large enough, else a new one of the wanted length. While
    /// freed segments keep pace with new ones the journal doesn't grow, and nothing is filled.
    ///
    /// `rest` is called between the pieces of a new file, with the time that should be left for others.
    pub(crate) fn make(&self, want: AllocRequest, rest: &mut dyn FnMut(Duration) -> FillMode) -> io::Result<Spare> {
        let largest = {
            let mut files = self.recycled();
            let fitting = files.iter().enumerate().filter(|(_, (_, bytes))| *bytes >= want.at_least);
            let largest = fitting.max_by_key(|(_, (_, bytes))| *bytes).map(|(at, _)| at);
            largest.map(|at| files.swap_remove(at))
        };
        let Some((path, length)) = largest else { return self.fill_new(want, rest) };
        let file = self.disk.open(&path)?;
        let spare = Spare { file, path, length };
        if spare.file.length()? >= length {
            return Ok(spare);
        }
        // An external process has truncated it.
        self.discard(spare)?;
        self.fill_new(want, rest)
    }

    /// A new file: of the wanted length, or on a nearly full disk of half of it, and so on.
    fn fill_new(&self, want: AllocRequest, rest: &mut dyn FnMut(Duration) -> FillMode) -> io::Result<Spare> {
        let least = want.at_least.max(LENGTH_MIN);
        let mut length = want.length.max(want.at_least);
        loop {
            match self.zero_filled(length, want.needed, rest) {
                Err(error) if error.kind() == io::ErrorKind::StorageFull && length / 2 >= least => length /= 2,
                made => return made,
            }
        }
    }

    fn discard(&self, spare: Spare) -> io::Result<()> {
        drop(spare.file);
        self.disk.remove(&spare.path)
    }

    fn zero_filled(&self, length: u64, needed: bool, rest: &mut dyn FnMut(Duration) -> FillMode) -> io::Result<Spare> {
        let _filling = match &self.quota {
            Some(quota) if !needed => Some(quota.fill(length).ok_or_else(nothing_left)?),
            _ => None,
        };
        let path = self.new_path();
        let file = self.disk.create(&path)?;
        if let Err(error) = fill(&*file, length, rest) {
            // Half a spare is of no use and occupies space that is missing.
            drop(file);
            self.disk.remove(&path)?;
            return Err(error);
        }
        Ok(Spare { file, path, length })
    }
}

fn nothing_left() -> io::Error {
    io::Error::new(
        io::ErrorKind::StorageFull,
        "the journal has used its share of the disk: free space on it, or use a larger disk",
    )
}

fn fill(file: &dyn DiskFile, length: u64, rest: &mut dyn FnMut(Duration) -> FillMode) -> io::Result<()> {
    let mut start = 0;
    loop {
        let (began, end) = (Instant::now(), length.min(start + FILL_BYTES));
        file.fill_with_zeros(start, end)?;
        file.sync()?;
        if end == length {
            return Ok(());
        }
        if rest(began.elapsed() * REST) == FillMode::Reserve {
            return take_space(file, end, length);
        }
        start = end;
    }
}

fn take_space(file: &dyn DiskFile, start: u64, length: u64) -> io::Result<()> {
    match file.allocate(length) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => file.fill_with_zeros(start, length)?,
        allocated => allocated?,
    }
    file.sync()
}

/// A command to the thread that creates spares.
pub(crate) enum PoolCommand {
    Make(AllocRequest),
    /// The committer waits for the ordered spare.
    Hurry,
}

/// The source of the committer's spares.
pub(crate) enum SegmentSource {
    /// Created when they are needed: in tests and tools, where the order of events must be known.
    Inline(SegmentPool),
    /// Created ahead of need by a thread.
    Ahead { pool: SegmentPool, orders: Sender<PoolCommand>, ready: Receiver<io::Result<Spare>>, ordered: bool },
}

impl SegmentSource {
    pub(crate) const fn inline(pool: SegmentPool) -> Self {
        Self::Inline(pool)
    }

    /// Starts the thread; it ends when this value is dropped.
    pub(crate) fn ahead(pool: SegmentPool) -> io::Result<Self> {
        let (orders, commands) = channel();
        let (made, ready) = channel();
        let maker = pool.clone();
        thread::Builder::new().name("spares".into()).stack_size(128 * 1024).spawn(move || {
            while let Ok(order) = commands.recv() {
                if let PoolCommand::Make(want) = order
                    && made.send(make_with_pauses(&maker, want, &commands)).is_err()
                {
                    break;
                }
            }
        })?;
        Ok(Self::Ahead { pool, orders, ready, ordered: false })
    }

    /// Orders a spare, to be created while there is time.
    pub(crate) fn order(&mut self, want: AllocRequest) {
        if let Self::Ahead { orders, ordered, .. } = self
            && !*ordered
        {
            *ordered = orders.send(PoolCommand::Make(want)).is_ok();
        }
    }

    pub(crate) const fn pool(&self) -> &SegmentPool {
        match self {
            Self::Inline(pool) | Self::Ahead { pool, .. } => pool,
        }
    }

    /// A spare; waits for the ordered one, if that is large enough.
    pub(crate) fn take(&mut self, want: AllocRequest) -> io::Result<Spare> {
        match self {
            Self::Inline(pool) => make_now(pool, want),
            Self::Ahead { pool, orders, ready, ordered } => {
                let made = std::mem::take(ordered).then(|| take_ordered(orders, ready));
                match made {
                    Some(Ok(Ok(spare))) if spare.length >= want.at_least => Ok(spare),
                    Some(Ok(Ok(small))) => {
                        pool.discard(small)?;
                        make_now(pool, want)
                    }
                    _ => make_now(pool, want),
                }
            }
        }
    }
}

fn make_now(pool: &SegmentPool, want: AllocRequest) -> io::Result<Spare> {
    pool.make(want, &mut |_| FillMode::Reserve)
}

/// Creates a spare with pauses, until the committer waits for it.
fn make_with_pauses(pool: &SegmentPool, want: AllocRequest, commands: &Receiver<PoolCommand>) -> io::Result<Spare> {
    pool.make(want, &mut |rest| match commands.recv_timeout(rest) {
        Err(RecvTimeoutError::Timeout) => FillMode::Zeros,
        // An order to hurry, or the committer has ended.
        _ => FillMode::Reserve,
    })
}

fn take_ordered(
    orders: &Sender<PoolCommand>,
    ready: &Receiver<io::Result<Spare>>,
) -> Result<io::Result<Spare>, RecvError> {
    ready.try_recv().or_else(|_| {
        // If the thread has ended, `ready` reports it.
        let _ = orders.send(PoolCommand::Hurry);
        ready.recv()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;
    use crate::simulated_disk::{CutStyle, Operation, SimulatedDisk, SimulatedError};

    const DIRECTORY: &str = "/s";

    fn pool() -> (SimulatedDisk, SegmentPool) {
        let disk = SimulatedDisk::new(1);
        for number in 1..=5 {
            disk.put(format!("/s/old-{number}"), &[1; 8192]).unwrap();
        }
        let pool = SegmentPool::new(Arc::new(disk.clone()), Path::new(DIRECTORY));
        (disk, pool)
    }

    fn names(disk: &SimulatedDisk) -> Vec<String> {
        disk.paths().iter().map(|path| path.file_name().unwrap().to_str().unwrap().into()).collect()
    }

    fn want(at_least: u64, length: u64) -> AllocRequest {
        AllocRequest { at_least, length, needed: false }
    }

    #[test]
    fn few_recycled_files_are_kept_and_reused() {
        let (disk, pool) = pool();
        let old = |number: u32| PathBuf::from(format!("/s/old-{number}"));
        disk.truncate(old(2), 4096).unwrap();
        for (number, length) in [(1, 8192), (2, 4096), (3, 8192), (4, 8192)] {
            pool.recycle(&old(number), length).unwrap().unwrap();
        }
        assert!(pool.recycle(&old(5), 8192).is_none());
        assert_eq!(names(&disk), ["old-5", "spare-0", "spare-1", "spare-2", "spare-3"]);
        let lengths = [want(0, 1), want(8192, 1), want(5000, 9000), want(5000, 9000), want(100, 1), want(4, 3)];
        let spares = lengths.map(|want| make_now(&pool, want).unwrap());
        assert_eq!(spares.each_ref().map(|spare| spare.length), [8192, 8192, 8192, 9000, 4096, 4]);
        assert!(disk.content(&spares[0].path).unwrap() != [0; 8192], "nothing is filled");
        assert_eq!(disk.content(&spares[3].path).unwrap(), [0; 9000]);
    }

    #[test]
    fn a_short_disk_gets_everything_back() {
        let (disk, pool) = pool();
        let old = |number: u32| PathBuf::from(format!("/s/old-{number}"));
        for number in [1, 2] {
            pool.recycle(&old(number), 8192).unwrap().unwrap();
        }
        disk.fail_call(Operation::Remove, 2, SimulatedError::Io);
        assert!(pool.be_thrifty(true).is_err());
        pool.be_thrifty(true).unwrap();
        assert_eq!(names(&disk), ["old-3", "old-4", "old-5"]);
        assert!(pool.recycle(&old(3), 8192).is_none());
        pool.be_thrifty(false).unwrap();
        assert!(pool.recycle(&old(3), 8192).is_some());
    }

    #[test]
    fn truncated_file_is_not_reused() {
        let (disk, pool) = pool();
        disk.truncate("/s/old-1", 5000).unwrap();
        pool.recycle(Path::new("/s/old-1"), 8192).unwrap().unwrap();
        let spare = make_now(&pool, want(100, 8192)).unwrap();
        assert_eq!((disk.content(&spare.path).unwrap().len(), names(&disk).len()), (8192, 5));
    }

    #[test]
    fn new_file_is_filled_in_pieces_with_pauses() {
        let (disk, pool) = pool();
        let mut synced = Vec::new();
        let length = 3 * FILL_BYTES + 1;
        let path = Path::new("/s/spare-0");
        let mut rest = |_| {
            synced.push(disk.content(path).unwrap().len() as u64);
            FillMode::Zeros
        };
        let spare = pool.make(want(1, length), &mut rest).unwrap();
        assert_eq!(synced, [FILL_BYTES, 2 * FILL_BYTES, 3 * FILL_BYTES]);
        assert_eq!(disk.content(&spare.path).unwrap(), vec![0; usize::try_from(length).unwrap()]);
    }

    #[test]
    fn urgent_file_has_its_remainder_allocated() {
        let (disk, pool) = pool();
        let (length, mut rests) = (8 * FILL_BYTES, 0);
        let mut rest = |_| {
            rests += 1;
            if rests < 3 { FillMode::Zeros } else { FillMode::Reserve }
        };
        let spare = pool.make(want(1, length), &mut rest).unwrap();
        let writes_of_a_piece = disk.calls(Operation::WriteAt) / 3;
        assert_eq!(disk.calls(Operation::WriteAt), 3 * writes_of_a_piece);
        assert_eq!((disk.calls(Operation::Allocate), disk.calls(Operation::Sync)), (1, 4));
        disk.sync_directory(Path::new(DIRECTORY)).unwrap();
        disk.power_cut_in_style(CutStyle::LoseAll);
        assert_eq!(disk.content(&spare.path).unwrap(), vec![0; usize::try_from(length).unwrap()], "it is durable");
    }

    #[test]
    fn zeros_are_written_if_allocation_fails() {
        let (disk, pool) = pool();
        disk.fail_call(Operation::Allocate, 1, SimulatedError::Unsupported);
        let spare = make_now(&pool, want(1, 3 * FILL_BYTES)).unwrap();
        assert_eq!(spare.file.length().unwrap(), 3 * FILL_BYTES);
    }

    #[test]
    fn failed_spare_leaves_no_file() {
        let (disk, pool) = pool();
        for operation in [Operation::WriteAt, Operation::Sync, Operation::Allocate] {
            disk.fail_call(operation, 1, SimulatedError::NoSpace);
            assert!(make_now(&pool, want(2 * FILL_BYTES, 1)).is_err());
            assert_eq!(names(&disk).len(), 5, "{operation:?}");
        }
    }

    #[test]
    fn nearly_full_disk_gets_a_shorter_spare() {
        let disk = SimulatedDisk::new(1);
        disk.set_capacity(Some(3 * LENGTH_MIN));
        disk.create_directory(Path::new(DIRECTORY)).unwrap();
        let pool = SegmentPool::new(Arc::new(disk.clone()), Path::new(DIRECTORY));
        assert_eq!(make_now(&pool, want(4096, 16 * LENGTH_MIN)).unwrap().length, 2 * LENGTH_MIN);
        assert_eq!(make_now(&pool, want(4096, 16 * LENGTH_MIN)).unwrap().length, LENGTH_MIN);
        assert!(make_now(&pool, want(4096, 16 * LENGTH_MIN)).is_err());
        assert!(make_now(&pool, want(4 * LENGTH_MIN, 4)).is_err());
    }

    #[test]
    fn ordered_spare_is_used_if_large_enough() {
        let (disk, pool) = pool();
        let mut spares = SegmentSource::ahead(pool).unwrap();
        spares.order(want(0, 4096));
        spares.order(want(0, 4096));
        let spare = spares.take(want(4096, 1)).unwrap();
        assert_eq!((spare.length, names(&disk).len()), (4096, 6));
        spares.order(want(0, 4096));
        let larger = spares.take(want(20_000, 1)).unwrap();
        assert_eq!(disk.content(&larger.path).unwrap().len(), 20_000);
        assert_eq!(names(&disk).len(), 7, "the small one is gone");
    }
}
