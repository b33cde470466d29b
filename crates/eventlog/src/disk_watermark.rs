//! The low watermark of the disk. The journal rejects events while there is still some space left. Delivery needs it:
//! stores, cursors and dead letters on the same disk take space before any segment is freed.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use journal::DiskQuota;
use journal::disk::{SharedDisk, Space};
use limits::{KEEP_FREE_FILES, KEEP_FREE_PART, STORE_BYTES_PER_BYTE};

/// Events are accepted again once this much more than the watermark is free. Without it, each freed segment would let
/// in as many events as were just delivered.
const MARGIN_PART: u64 = 4;

/// Rejects events while the disk is below its watermark, as of the last check.
pub struct DiskGuard {
    /// The space that segments may use. They check it themselves, since much can be written between two checks.
    quota: Arc<DiskQuota>,
    is_short: AtomicBool,
    /// The same, as of the last check.
    was_short: AtomicBool,
    free_bytes: AtomicU64,
    bytes_all: AtomicU64,
}

impl DiskGuard {
    /// Watches the disk of `directory` and keeps `keep_bytes` free, by default a part of the file system
    /// ([`journal::kept_free`]). Of the files (inodes) it keeps a twentieth free, at most a thousand.
    pub(crate) fn new(disk: SharedDisk, directory: PathBuf, keep_bytes: Option<u64>) -> Self {
        Self {
            quota: Arc::new(DiskQuota::new(disk, directory, keep_bytes)),
            is_short: AtomicBool::new(false),
            was_short: AtomicBool::new(false),
            free_bytes: AtomicU64::new(0),
            bytes_all: AtomicU64::new(u64::MAX),
        }
    }

    /// The space of the disk that segments may use.
    pub(crate) const fn quota(&self) -> &Arc<DiskQuota> {
        &self.quota
    }

    /// Whether events are rejected because there is no space.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed)
    }

    /// From the next check on this many bytes are kept free; `None` means a part of the disk, the default.
    pub fn keep_free(&self, keep_bytes: Option<u64>) {
        self.quota.keep_free(keep_bytes);
    }

    /// Bytes of all segments that were begun so far. Read it before measuring what waits for stores.
    #[must_use]
    pub fn bytes_begun(&self) -> u64 {
        self.quota.bytes_begun()
    }

    /// Reserves space for the `stores` on this disk: `waiting` bytes waited for all of them together when `begun` bytes of segments were
    /// begun. `newest` are the bytes of the newest segments: a start that has to copy their last blocks needs space for these.
    pub fn reserve(&self, waiting: u64, newest: u64, stores: u64, begun: u64) {
        let bytes = waiting.saturating_mul(STORE_BYTES_PER_BYTE).saturating_add(newest);
        self.quota.reserve(bytes, stores * STORE_BYTES_PER_BYTE + 1, begun);
    }

    /// Bytes that the disk had left at the last check.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.free_bytes.load(Ordering::Relaxed)
    }

    /// The size of the disk in bytes; the greatest number before the first check.
    #[must_use]
    pub fn bytes_all(&self) -> u64 {
        self.bytes_all.load(Ordering::Relaxed)
    }

    /// Checks the disk; call it several times a second. Also returns whether the result differs from the last one.
    ///
    /// # Errors
    /// The file system's error; then nothing changes.
    pub fn look(&self) -> io::Result<(Space, bool)> {
        let space = self.quota.space()?;
        let is_short = self.leaves_too_little(&space, self.is_short());
        if !is_short {
            self.quota.clear_rejection();
        }
        self.is_short.store(is_short, Ordering::Relaxed);
        self.free_bytes.store(space.bytes, Ordering::Relaxed);
        self.bytes_all.store(space.bytes_all, Ordering::Relaxed);
        Ok((space, self.was_short.swap(is_short, Ordering::Relaxed) != is_short))
    }

    fn leaves_too_little(&self, space: &Space, was_short: bool) -> bool {
        let margin = was_short.then_some(MARGIN_PART);
        let keep_files = KEEP_FREE_FILES.min(space.files_all / KEEP_FREE_PART);
        let keep_files = keep_files + margin.map_or(0, |part| keep_files / part);
        space.bytes < self.quota.needed(space.bytes_all, margin) || space.files < keep_files
    }
}

#[cfg(test)]
mod tests {
    use journal::simulated_disk::SimulatedDisk;
    use limits::KEEP_FREE_BYTES;

    use super::*;

    const MIB: u64 = 1024 * 1024;

    fn guard(keep_bytes: Option<u64>) -> DiskGuard {
        DiskGuard::new(Arc::new(SimulatedDisk::new(1)), "/".into(), keep_bytes)
    }

    fn space(bytes: u64, files: u64) -> Space {
        Space { bytes, bytes_all: 1_000 * MIB, files, files_all: 2_000 }
    }

    #[test]
    fn a_twentieth_of_bytes_and_files_is_kept() {
        let guard = guard(None);
        let is_short = |bytes, files| guard.leaves_too_little(&space(bytes, files), false);
        let kept = 50 * MIB;
        assert_eq!([is_short(kept - 1, 100), is_short(kept, 100), is_short(kept, 99)], [true, false, true]);
        let large = Space { bytes: KEEP_FREE_BYTES, bytes_all: u64::MAX, files: KEEP_FREE_FILES, files_all: u64::MAX };
        assert!(!guard.leaves_too_little(&large, false));
        assert!(guard.leaves_too_little(&Space { bytes: KEEP_FREE_BYTES - 1, ..large }, false));
        assert!(guard.leaves_too_little(&Space { files: KEEP_FREE_FILES - 1, ..large }, false));
    }

    #[test]
    fn space_for_stores_is_kept_too() {
        let guard = guard(Some(1_000));
        let is_short = |bytes| guard.leaves_too_little(&space(bytes, 2_000), false);
        assert!(!is_short(1_000));
        guard.reserve(200, 100, 1, 0);
        assert_eq!([is_short(1_499), is_short(1_500)], [true, false]);
        guard.reserve(u64::MAX, 0, 1, 0);
        assert!(is_short(10_000));
    }

    #[test]
    fn intake_resumes_with_a_margin() {
        let guard = guard(Some(1_000));
        let is_short = |bytes, files| guard.leaves_too_little(&space(bytes, files), true);
        assert_eq!([is_short(1_249, 2_000), is_short(1_250, 2_000), is_short(2_000, 124)], [true, false, true]);
    }

    #[test]
    fn rejected_segment_closes_intake_until_one_fits() {
        let disk = SimulatedDisk::new(1);
        disk.set_capacity(Some(100 * MIB));
        let guard = DiskGuard::new(Arc::new(disk.clone()), "/".into(), Some(0));
        guard.reserve(49 * MIB, 0, 1, 0);
        assert!(!guard.look().unwrap().1, "the reserved space is free");
        guard.quota().note_rejection(2 * MIB);
        assert!(guard.look().unwrap().1 && guard.is_short(), "the space for stores is missing");
        guard.reserve(46 * MIB, 0, 1, 0);
        assert!(guard.look().unwrap().1 && !guard.is_short());
    }

    #[test]
    fn check_reports_whether_the_result_changed() {
        let disk = SimulatedDisk::new(1);
        let guard = DiskGuard::new(Arc::new(disk.clone()), "/".into(), Some(8_192));
        let look = |capacity| {
            disk.set_capacity(Some(capacity));
            let (space, changed) = guard.look().unwrap();
            (space.bytes, changed, guard.is_short())
        };
        assert_eq!(look(8_192), (8_192, false, false));
        assert_eq!(look(4_096), (4_096, true, true));
        assert_eq!(look(8_192), (8_192, false, true));
        assert_eq!(look(12_288), (12_288, true, false));
    }
}
