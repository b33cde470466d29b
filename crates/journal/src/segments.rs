//! The segments of one shard, oldest first: the committer adds to them, readers look places up, and those
//! that nobody needs are freed.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{DiskFile, SharedDisk};
use crate::segment::{self, SegmentHeader};
use crate::spares::SparePool;

/// A handle on a shard's segments; clones share them.
#[derive(Clone)]
pub struct Segments {
    disk: SharedDisk,
    directory: Arc<Path>,
    headers: Arc<Mutex<VecDeque<SegmentHeader>>>,
    spares: SparePool,
}

impl Segments {
    pub(crate) fn new(disk: SharedDisk, directory: &Path, headers: VecDeque<SegmentHeader>, spares: SparePool) -> Self {
        Self { disk, directory: directory.into(), headers: Arc::new(Mutex::new(headers)), spares }
    }

    fn headers(&self) -> MutexGuard<'_, VecDeque<SegmentHeader>> {
        self.headers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, header: SegmentHeader) {
        self.headers().push_back(header);
    }

    /// The header of the segment that holds `sequence`, or the first one behind it.
    pub(crate) fn holding(&self, sequence: u64) -> Option<SegmentHeader> {
        let headers = self.headers();
        let behind = headers.partition_point(|header| header.first <= sequence);
        headers.get(behind.saturating_sub(1)).copied()
    }

    /// The segment that follows the one of this generation.
    pub(crate) fn after(&self, generation: u64) -> Option<SegmentHeader> {
        let headers = self.headers();
        headers.get(headers.partition_point(|header| header.generation <= generation)).copied()
    }

    /// The headers of all segments, oldest first.
    pub(crate) fn headers_now(&self) -> Vec<SegmentHeader> {
        self.headers().iter().copied().collect()
    }

    /// The first sequence that is still retained.
    #[must_use]
    pub fn oldest(&self) -> Option<u64> {
        self.headers().front().map(|header| header.first)
    }

    /// Bytes of all segments.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.headers().iter().map(|header| header.length).sum()
    }

    /// How many segments there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.headers().len()
    }

    pub(crate) fn open(&self, header: &SegmentHeader) -> io::Result<Box<dyn DiskFile>> {
        self.disk.open(&self.path(header.generation))
    }

    fn path(&self, generation: u64) -> PathBuf {
        segment::path(&self.directory, generation)
    }

    /// Frees every segment whose events all stand at or before `sequence`; the newest always stays. Call it only
    /// once the cursors that allow it are durable. Returns how many were freed.
    ///
    /// # Errors
    /// What the file system says; the segments freed until then are gone, the others are still there.
    pub fn free_up_to(&self, sequence: u64) -> io::Result<usize> {
        let mut freed = 0;
        while let Some(header) = self.take_oldest(sequence) {
            self.free(&header)?;
            freed += 1;
        }
        if freed > 0 {
            self.disk.sync_directory(&self.directory)?;
        }
        Ok(freed)
    }

    fn take_oldest(&self, sequence: u64) -> Option<SegmentHeader> {
        let mut headers = self.headers();
        let ends_before = headers.get(1)?.first;
        if ends_before > sequence.saturating_add(1) {
            return None;
        }
        headers.pop_front()
    }

    /// Keeps the file for the next segment, or removes it. A removal that a crash undoes does no harm: the
    /// segment's events stand before every cursor.
    fn free(&self, header: &SegmentHeader) -> io::Result<()> {
        let path = self.path(header.generation);
        match self.spares.recycle(&path, header.length) {
            Some(result) => result,
            None => self.disk.remove(&path),
        }
    }
}
