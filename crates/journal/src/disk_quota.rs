//! How much of a disk segments may use. An event's bytes in the journal are needed once more by stores on the same
//! disk, and stores must get that space before the event's segment can be freed. So a segment is begun only if there is
//! space for that too. Checking the free space from time to time would be too late: a small disk fills up between two
//! checks.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use limits::{
    KEEP_FREE_BYTES, KEEP_FREE_BYTES_MIN, KEEP_FREE_PART, KEEP_FREE_PART_MAX, SEGMENT_BYTES_MIN, STORE_BYTES_PER_BYTE,
};

use crate::disk::{SharedDisk, Space};

/// The part of the disk that the journals of all shards may use; they share it.
pub struct DiskQuota {
    disk: SharedDisk,
    directory: PathBuf,
    state: Mutex<State>,
}

struct State {
    /// Bytes that are kept free; `None` means a part of the disk.
    keep: Option<u64>,
    /// Bytes that stores needed at the last measurement for the events in the journal.
    owed: u64,
    /// The bytes that stores need for each byte of a segment that is begun.
    owed_per_byte: u64,
    /// Bytes of all segments that were begun, and how many these were at the last measurement.
    begun: u64,
    measured_at: u64,
    /// Bytes of files that are being created.
    filling: u64,
    /// The missing bytes of a segment that was rejected: they are kept free too, until they are there.
    lacking: u64,
}

/// A file that is being created: until this is dropped its bytes count as used.
pub(crate) struct QuotaReservation<'a> {
    quota: &'a DiskQuota,
    bytes: u64,
}

/// The bytes of a disk that are kept free: `keep`, or a part of the disk by default.
#[must_use]
pub fn kept_free(keep: Option<u64>, bytes_all: u64) -> u64 {
    let part = (bytes_all / KEEP_FREE_PART).clamp(KEEP_FREE_BYTES_MIN, KEEP_FREE_BYTES);
    keep.unwrap_or_else(|| part.min(bytes_all / KEEP_FREE_PART_MAX))
}

impl DiskQuota {
    /// Watches the disk of `directory`, of which `keep` bytes stay free, or a part. Until the first measurement it
    /// assumes that one store is on the same disk, that nothing waits for it, and that the next start carries over
    /// everything.
    #[must_use]
    pub fn new(disk: SharedDisk, directory: PathBuf, keep: Option<u64>) -> Self {
        let state = State {
            keep,
            owed: 0,
            owed_per_byte: STORE_BYTES_PER_BYTE + 1,
            begun: 0,
            measured_at: 0,
            filling: 0,
            lacking: 0,
        };
        Self { disk, directory, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on this many bytes are kept free; `None` means a part of the disk.
    pub fn keep_free(&self, keep: Option<u64>) {
        self.state().keep = keep;
    }

    /// Bytes of all segments that were begun so far. Read it before the measurement of what stores need.
    #[must_use]
    pub fn bytes_begun(&self) -> u64 {
        self.state().begun
    }

    /// Stores on this disk need `bytes` for the events in the journal when `begun` bytes of segments were begun, and
    /// `per_byte` for each byte begun since.
    pub fn reserve(&self, bytes: u64, per_byte: u64, begun: u64) {
        let mut state = self.state();
        (state.owed, state.owed_per_byte, state.measured_at) = (bytes, per_byte, begun);
    }

    /// The space that the disk has left.
    ///
    /// # Errors
    /// The file system's error.
    pub fn space(&self) -> io::Result<Space> {
        self.disk.space(&self.directory)
    }

    /// Bytes that must stay free: `keep` with one part in `margin_part` more, the space that stores need, and the
    /// missing bytes of a rejected segment.
    #[must_use]
    pub fn needed(&self, bytes_all: u64, margin_part: Option<u64>) -> u64 {
        let state = self.state();
        let keep = kept_free(state.keep, bytes_all);
        let margin = margin_part.map_or(0, |part| keep / part);
        state.taken(keep.saturating_add(margin)).saturating_add(state.lacking)
    }

    /// Whether a segment was rejected because there was no space, and there still isn't enough.
    #[must_use]
    pub fn has_rejected(&self) -> bool {
        self.state().lacking > 0
    }

    /// A segment for this many bytes was rejected: until there is space for one, its missing bytes are kept free too.
    /// One that is larger than usual doesn't count.
    pub fn note_rejection(&self, bytes: u64) {
        let mut state = self.state();
        let usual = bytes.min(SEGMENT_BYTES_MIN);
        if !self.allows(&state, usual, usual) {
            state.lacking = usual.saturating_mul(state.owed_per_byte + 1);
        }
    }

    /// There is enough space again.
    pub fn clear_rejection(&self) {
        self.state().lacking = 0;
    }

    /// Allows a file of `length` to be created for a segment, if the segment may be begun then.
    pub(crate) fn fill(&self, length: u64) -> Option<QuotaReservation<'_>> {
        let mut state = self.state();
        if !self.allows(&state, length, length) {
            return None;
        }
        state.filling += length;
        Some(QuotaReservation { quota: self, bytes: length })
    }

    /// Begins a segment in an existing file; `needed` if it must be begun. Returns whether it may.
    pub fn begin(&self, length: u64, needed: bool) -> bool {
        let mut state = self.state();
        let may_begin = needed || self.allows(&state, 0, length);
        if may_begin {
            state.begun += length;
        }
        may_begin
    }

    /// Whether there is space for a file of `added` bytes and for the stores' share of a segment of `length`. If the
    /// disk doesn't answer, the next write fails.
    fn allows(&self, state: &State, added: u64, length: u64) -> bool {
        let Ok(space) = self.space() else { return true };
        let taken = state.taken(kept_free(state.keep, space.bytes_all));
        let owed = length.saturating_mul(state.owed_per_byte);
        taken.saturating_add(added).saturating_add(owed) <= space.bytes
    }
}

impl State {
    /// Bytes of the disk that are missing for a further segment.
    fn taken(&self, keep: u64) -> u64 {
        let since = self.begun.saturating_sub(self.measured_at).saturating_mul(self.owed_per_byte);
        [self.owed, since, self.filling].iter().fold(keep, |sum, bytes| sum.saturating_add(*bytes))
    }
}

impl Drop for QuotaReservation<'_> {
    fn drop(&mut self) {
        self.quota.state().filling -= self.bytes;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::simulated_disk::SimulatedDisk;

    const KIB: u64 = 1024;

    fn quota(capacity: u64, keep: u64) -> DiskQuota {
        let disk = SimulatedDisk::new(1);
        disk.set_capacity(Some(capacity));
        DiskQuota::new(Arc::new(disk), "/".into(), Some(keep))
    }

    #[test]
    fn segment_begins_if_stores_have_space_too() {
        let quota = quota(1000 * KIB, 100 * KIB);
        assert!(quota.begin(300 * KIB, false));
        assert!(!quota.begin(KIB, false), "all is owed");
        assert!(quota.begin(KIB, true), "a needed one is begun");
        quota.reserve(0, 2, quota.bytes_begun());
        assert!(quota.begin(450 * KIB, false), "it was delivered");
        quota.reserve(0, 0, quota.bytes_begun());
        assert!(quota.begin(u64::MAX / 4, false), "stores on other disks need nothing here");
    }

    #[test]
    fn new_file_counts_while_it_is_filled() {
        let quota = quota(1000 * KIB, 100 * KIB);
        assert!(quota.fill(226 * KIB).is_none());
        let filling = quota.fill(200 * KIB).unwrap();
        assert_eq!(quota.needed(0, None), 300 * KIB);
        assert!(quota.fill(200 * KIB).is_none());
        drop(filling);
        assert!(quota.fill(225 * KIB).is_some());
    }

    #[test]
    fn bytes_begun_during_a_measurement_are_reserved() {
        let quota = quota(1000 * KIB, 0);
        let begun = quota.bytes_begun();
        assert!(quota.begin(200 * KIB, false));
        quota.reserve(10 * KIB, 2, begun);
        assert_eq!(quota.needed(0, None), 410 * KIB, "two bytes for each");
        quota.reserve(10 * KIB, 2, quota.bytes_begun());
        assert_eq!(quota.needed(0, None), 10 * KIB);
    }

    #[test]
    fn missing_bytes_are_kept_free_until_available() {
        let quota = quota(100 * KIB, 40 * KIB);
        quota.note_rejection(15 * KIB);
        assert!(!quota.has_rejected(), "there is space for one");
        quota.note_rejection(50 * KIB);
        assert!(quota.has_rejected());
        assert_eq!(quota.needed(0, Some(4)), (40 + 10 + 200) * KIB);
        quota.clear_rejection();
        assert_eq!((quota.needed(0, Some(4)), quota.has_rejected()), (50 * KIB, false));
    }

    #[test]
    fn rejected_large_segment_does_not_affect_others() {
        let quota = quota(4 * SEGMENT_BYTES_MIN, 0);
        assert!(!quota.begin(3 * SEGMENT_BYTES_MIN, false));
        quota.note_rejection(3 * SEGMENT_BYTES_MIN);
        assert!(!quota.has_rejected());
    }

    #[test]
    fn kept_bytes_are_a_twentieth_within_bounds() {
        const MIB: u64 = KIB * KIB;
        let kept = |mib: u64| kept_free(None, mib * MIB) / MIB;
        assert_eq!([20, 64, 200, 1000, 1_000_000].map(kept), [5, 16, 16, 50, 1024]);
        assert_eq!(kept_free(Some(7), 1), 7);
    }
}
