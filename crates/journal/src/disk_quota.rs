//! How much of a disk segments may take. What an event takes up in the journal, stores on the same disk take once more, and
//! they must get it before its segment can be freed. So a segment is begun only where there is room for that too: whoever
//! only looks now and then at what is left is too late on a small disk, which is filled between two looks.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use limits::{
    KEEP_FREE_BYTES, KEEP_FREE_BYTES_MIN, KEEP_FREE_PART, KEEP_FREE_PART_MAX, SEGMENT_BYTES_MIN, STORE_BYTES_PER_BYTE,
};

use crate::disk::{SharedDisk, Space};

/// What the journals of all shards may take of their disk; they share it.
pub struct DiskQuota {
    disk: SharedDisk,
    directory: PathBuf,
    state: Mutex<State>,
}

struct State {
    /// Bytes that are kept free; a part of the disk where nobody says how many.
    keep: Option<u64>,
    /// Bytes that stores will take for what was in the journal when somebody measured it.
    owed: u64,
    /// The same for each byte of a segment that is begun.
    owed_per_byte: u64,
    /// Bytes of all segments that were begun, and how many these were when somebody measured.
    begun: u64,
    measured_at: u64,
    /// Bytes of files that are just being made.
    filling: u64,
    /// What a segment lacked that was refused: bytes that are kept free besides until there are so many.
    lacking: u64,
}

/// A file that is being made: until this is dropped its bytes count as taken.
pub(crate) struct QuotaReservation<'a> {
    quota: &'a DiskQuota,
    bytes: u64,
}

/// The bytes of a disk that are kept free: `keep`, or where that isn't said a part of the disk.
#[must_use]
pub fn kept_free(keep: Option<u64>, bytes_all: u64) -> u64 {
    let part = (bytes_all / KEEP_FREE_PART).clamp(KEEP_FREE_BYTES_MIN, KEEP_FREE_BYTES);
    keep.unwrap_or_else(|| part.min(bytes_all / KEEP_FREE_PART_MAX))
}

impl DiskQuota {
    /// Watches the disk of `directory`, of which `keep` bytes stay free, or a part. Until somebody has measured what is owed,
    /// it is taken that one store is on the same disk, that nothing waits for it, and that the next start carries over all.
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

    /// From now on so many bytes are kept free; without a number a part of the disk.
    pub fn keep_free(&self, keep: Option<u64>) {
        self.state().keep = keep;
    }

    /// Bytes of all segments that were begun so far: to be asked before what is owed is measured.
    #[must_use]
    pub fn bytes_begun(&self) -> u64 {
        self.state().begun
    }

    /// Stores on this disk will take `bytes` for what was in the journal when `begun` bytes of segments were begun, and
    /// `per_byte` for each byte of those begun since.
    pub fn reserve(&self, bytes: u64, per_byte: u64, begun: u64) {
        let mut state = self.state();
        (state.owed, state.owed_per_byte, state.measured_at) = (bytes, per_byte, begun);
    }

    /// What the disk has left.
    ///
    /// # Errors
    /// What the file system says.
    pub fn space(&self) -> io::Result<Space> {
        self.disk.space(&self.directory)
    }

    /// Bytes that must stay free: what is kept, with one part in `margin_part` more, what is owed, and what a segment that was
    /// refused has lacked.
    #[must_use]
    pub fn needed(&self, bytes_all: u64, margin_part: Option<u64>) -> u64 {
        let state = self.state();
        let keep = kept_free(state.keep, bytes_all);
        let margin = margin_part.map_or(0, |part| keep / part);
        state.taken(keep.saturating_add(margin)).saturating_add(state.lacking)
    }

    /// Whether a segment was refused for want of space, and nobody has found since that there is enough.
    #[must_use]
    pub fn has_rejected(&self) -> bool {
        self.state().lacking > 0
    }

    /// A segment for so many bytes was refused: until there is room for one, what it lacks is kept free too. One that is larger than
    /// usual says nothing of others.
    pub fn note_rejection(&self, bytes: u64) {
        let mut state = self.state();
        let usual = bytes.min(SEGMENT_BYTES_MIN);
        if !self.allows(&state, usual, usual) {
            state.lacking = usual.saturating_mul(state.owed_per_byte + 1);
        }
    }

    /// There is enough again.
    pub fn clear_rejection(&self) {
        self.state().lacking = 0;
    }

    /// Lets a file of `length` be made for a segment, if that may be begun then.
    pub(crate) fn fill(&self, length: u64) -> Option<QuotaReservation<'_>> {
        let mut state = self.state();
        if !self.allows(&state, length, length) {
            return None;
        }
        state.filling += length;
        Some(QuotaReservation { quota: self, bytes: length })
    }

    /// Begins a segment in a file that is there; `needed` where it must be. Whether that may be.
    pub fn begin(&self, length: u64, needed: bool) -> bool {
        let mut state = self.state();
        let may_begin = needed || self.allows(&state, 0, length);
        if may_begin {
            state.begun += length;
        }
        may_begin
    }

    /// Whether there is room for a file of `added` bytes and for what is owed for a segment of `length`. A disk that doesn't answer
    /// is noticed by whoever writes to it.
    fn allows(&self, state: &State, added: u64, length: u64) -> bool {
        let Ok(space) = self.space() else { return true };
        let taken = state.taken(kept_free(state.keep, space.bytes_all));
        let owed = length.saturating_mul(state.owed_per_byte);
        taken.saturating_add(added).saturating_add(owed) <= space.bytes
    }
}

impl State {
    /// Bytes of the disk that aren't there for a further segment.
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
    fn a_segment_is_begun_where_stores_have_room_for_it_too() {
        let quota = quota(1000 * KIB, 100 * KIB);
        assert!(quota.begin(300 * KIB, false));
        assert!(!quota.begin(KIB, false), "all is owed");
        assert!(quota.begin(KIB, true), "one that must be is");
        quota.reserve(0, 2, quota.bytes_begun());
        assert!(quota.begin(450 * KIB, false), "it was delivered");
        quota.reserve(0, 0, quota.bytes_begun());
        assert!(quota.begin(u64::MAX / 4, false), "stores elsewhere take nothing of this disk");
    }

    #[test]
    fn a_file_needs_room_besides_and_counts_while_it_is_made() {
        let quota = quota(1000 * KIB, 100 * KIB);
        assert!(quota.fill(226 * KIB).is_none());
        let filling = quota.fill(200 * KIB).unwrap();
        assert_eq!(quota.needed(0, None), 300 * KIB);
        assert!(quota.fill(200 * KIB).is_none());
        drop(filling);
        assert!(quota.fill(225 * KIB).is_some());
    }

    #[test]
    fn what_is_begun_while_somebody_measures_is_owed() {
        let quota = quota(1000 * KIB, 0);
        let begun = quota.bytes_begun();
        assert!(quota.begin(200 * KIB, false));
        quota.reserve(10 * KIB, 2, begun);
        assert_eq!(quota.needed(0, None), 410 * KIB, "two bytes for each");
        quota.reserve(10 * KIB, 2, quota.bytes_begun());
        assert_eq!(quota.needed(0, None), 10 * KIB);
    }

    #[test]
    fn what_was_lacking_is_kept_free_until_it_is_there() {
        let quota = quota(100 * KIB, 40 * KIB);
        quota.note_rejection(15 * KIB);
        assert!(!quota.has_rejected(), "there is room for one");
        quota.note_rejection(50 * KIB);
        assert!(quota.has_rejected());
        assert_eq!(quota.needed(0, Some(4)), (40 + 10 + 200) * KIB);
        quota.clear_rejection();
        assert_eq!((quota.needed(0, Some(4)), quota.has_rejected()), (50 * KIB, false));
    }

    #[test]
    fn one_that_is_larger_than_usual_is_refused_for_itself() {
        let quota = quota(4 * SEGMENT_BYTES_MIN, 0);
        assert!(!quota.begin(3 * SEGMENT_BYTES_MIN, false));
        quota.note_rejection(3 * SEGMENT_BYTES_MIN);
        assert!(!quota.has_rejected());
    }

    #[test]
    fn a_twentieth_is_kept_but_no_less_than_a_store_needs_and_no_more_than_a_quarter() {
        const MIB: u64 = KIB * KIB;
        let kept = |mib: u64| kept_free(None, mib * MIB) / MIB;
        assert_eq!([20, 64, 200, 1000, 1_000_000].map(kept), [5, 16, 16, 50, 1024]);
        assert_eq!(kept_free(Some(7), 1), 7);
    }
}
