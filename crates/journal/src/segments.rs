//! The segments of one shard, oldest first: the committer adds to them, readers find places in them, and those that are
//! no longer needed are freed.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{DiskFile, SharedDisk};
use crate::segment::{self, SegmentHeader};
use crate::segment_pool::SegmentPool;

/// A handle on a shard's segments; clones share them.
#[derive(Clone)]
pub struct Segments {
    disk: SharedDisk,
    directory: Arc<Path>,
    headers: Arc<Mutex<VecDeque<SegmentHeader>>>,
    spares: SegmentPool,
    /// Bytes of the newest segment that blocks occupy.
    newest_used: Arc<AtomicU64>,
}

impl Segments {
    pub(crate) fn new(
        disk: SharedDisk,
        directory: &Path,
        headers: VecDeque<SegmentHeader>,
        spares: SegmentPool,
    ) -> Self {
        let (headers, newest_used) = (Arc::new(Mutex::new(headers)), Arc::default());
        Self { disk, directory: directory.into(), headers, spares, newest_used }
    }

    fn headers(&self) -> MutexGuard<'_, VecDeque<SegmentHeader>> {
        self.headers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_newest_used(&self, bytes: u64) {
        self.newest_used.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, header: SegmentHeader) {
        self.headers().push_back(header);
    }

    /// The header of the segment that holds `sequence`, or the first one after it.
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

    /// The first sequence of the segment that holds `sequence`. `None` if that segment was freed.
    #[must_use]
    pub fn first_of(&self, sequence: u64) -> Option<u64> {
        self.holding(sequence).map(|header| header.first).filter(|first| *first <= sequence)
    }

    /// Bytes of all segments.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.headers().iter().map(|header| header.length).sum()
    }

    /// About how many bytes the events after `sequence` occupy; `durable` is the last one. In the segment of
    /// `sequence`, all events are assumed to have the same size.
    #[must_use]
    pub fn bytes_after(&self, sequence: u64, durable: u64) -> u64 {
        let headers = self.headers();
        let newest = headers.len().saturating_sub(1);
        let part = |(at, header): (usize, &SegmentHeader)| {
            let end = headers.get(at + 1).map_or(durable + 1, |next| next.first);
            let bytes = if at == newest { self.newest_used.load(Ordering::Relaxed) } else { header.length };
            let events = u128::from(end.saturating_sub(header.first).max(1));
            let behind = u128::from(end.saturating_sub(header.first.max(sequence.saturating_add(1))));
            u64::try_from(u128::from(bytes) * behind / events).unwrap_or(u64::MAX)
        };
        headers.iter().enumerate().map(part).sum()
    }

    /// Bytes of the newest segment.
    #[must_use]
    pub fn newest_bytes(&self) -> u64 {
        self.headers().back().map_or(0, |header| header.length)
    }

    /// Bytes of the newest segment without a block.
    #[must_use]
    pub fn newest_free(&self) -> u64 {
        self.newest_bytes().saturating_sub(self.newest_used.load(Ordering::Relaxed))
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

    /// Whether the files of freed segments are removed, including those kept for later, instead of kept for new
    /// segments: if little space is left, others need it.
    ///
    /// # Errors
    /// The file system's error; the next call tries again.
    pub fn be_thrifty(&self, thrifty: bool) -> io::Result<()> {
        self.spares.be_thrifty(thrifty)
    }

    /// Frees every segment whose events are all at or before `sequence`; the newest always stays. Call it only after
    /// the cursors that allow it are durable. Returns how many were freed.
    ///
    /// # Errors
    /// The file system's error; the segments freed until then are gone, the others still exist.
    pub fn free_up_to(&self, sequence: u64) -> io::Result<usize> {
        let mut freed = 0;
        while let Some(header) = self.take_oldest(sequence) {
            self.free(&header).inspect_err(|_| self.headers().push_front(header))?;
            freed += 1;
        }
        Ok(freed)
    }

    /// Whether [`Self::free_up_to`] would free a segment.
    #[must_use]
    pub fn can_free_up_to(&self, sequence: u64) -> bool {
        self.headers().get(1).is_some_and(|second| second.first <= sequence.saturating_add(1))
    }

    fn take_oldest(&self, sequence: u64) -> Option<SegmentHeader> {
        let mut headers = self.headers();
        let ends_before = headers.get(1)?.first;
        if ends_before > sequence.saturating_add(1) {
            return None;
        }
        headers.pop_front()
    }

    /// Keeps the file for the next segment, or removes it. Each is durable before the next is freed: else a crash could
    /// leave a gap in the log. A free that a crash undoes does no harm: the segment's events are before every cursor.
    fn free(&self, header: &SegmentHeader) -> io::Result<()> {
        let path = self.path(header.generation);
        match self.spares.recycle(&path, header.length).unwrap_or_else(|| self.disk.remove(&path)) {
            // An earlier attempt that failed has freed it already.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            freed => freed?,
        }
        self.disk.sync_directory(&self.directory)
    }
}

#[cfg(test)]
mod tests {
    use event::Origin;

    use super::*;
    use crate::simulated_disk::SimulatedDisk;

    /// Segments 1, 2 … that begin at these sequences.
    fn segments(firsts: &[u64]) -> Segments {
        let disk: SharedDisk = Arc::new(SimulatedDisk::new(1));
        let directory = Path::new("/s");
        disk.create_directory(directory).unwrap();
        let header = |(generation, first): (u64, &u64)| {
            drop(disk.create(&segment::path(directory, generation)).unwrap());
            SegmentHeader {
                shard: 0,
                origin: Origin([0; 16]),
                seed: 0,
                generation,
                first: *first,
                previous: 0,
                length: 10,
            }
        };
        let headers = (1..).zip(firsts).map(header).collect();
        Segments::new(disk.clone(), directory, headers, SegmentPool::new(disk.clone(), directory))
    }

    #[test]
    fn sequence_is_in_the_last_segment_before_it() {
        // An empty segment begins where the next one does.
        let segments = segments(&[5, 10, 10, 20]);
        let holding = |sequence| segments.holding(sequence).map(|header| header.generation);
        assert_eq!([0, 4, 5, 9, 10, 19, 20, 99].map(holding), [1, 1, 1, 1, 3, 3, 4, 4].map(Some));
        let after = |generation| segments.after(generation).map(|header| header.generation);
        assert_eq!([0, 1, 3, 4].map(after), [Some(1), Some(2), Some(4), None]);
        assert_eq!((segments.oldest(), segments.bytes(), segments.count()), (Some(5), 40, 4));
    }

    #[test]
    fn segment_is_freed_after_all_its_events() {
        let segments = segments(&[1, 10, 20]);
        assert!(!segments.can_free_up_to(8));
        assert_eq!(segments.free_up_to(8).unwrap(), 0);
        assert!(segments.can_free_up_to(9));
        assert_eq!(segments.free_up_to(9).unwrap(), 1);
        assert_eq!(segments.oldest(), Some(10));
        assert_eq!(segments.free_up_to(u64::MAX).unwrap(), 1);
        assert!(!segments.can_free_up_to(u64::MAX));
        let names = segments.disk.list(&segments.directory).unwrap();
        assert_eq!(names.iter().filter(|name| segment::generation_of(name).is_some()).count(), 1);
        assert_eq!(names.len(), 3, "the files are kept for later");
    }

    #[test]
    fn bytes_after_a_sequence_are_measured() {
        let segments = segments(&[1, 11, 21]);
        segments.set_newest_used(5);
        let behind = |sequence| segments.bytes_after(sequence, 25);
        assert_eq!([0, 5, 10, 15, 20, 23, 25, 99].map(behind), [25, 20, 15, 10, 5, 2, 0, 0]);
    }
}
