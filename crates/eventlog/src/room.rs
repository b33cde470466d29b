//! Whether the disk has room for more events. The journal takes none while there is still some left: what is in it must
//! be delivered, and stores, cursors and dead letters on the same disk need space for that, before any segment is freed.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use event::limits::{KEEP_FREE_BYTES, KEEP_FREE_FILES, KEEP_FREE_PART};
use journal::disk::{SharedDisk, Space};

/// What is kept free is passed by this part before events are taken again: else each freed segment would let in as many
/// as were just written away.
const MARGIN_PART: u64 = 4;
/// More than any disk has: a part of the disk is kept free.
const BY_PART: u64 = u64::MAX;

/// What was found the last time that somebody looked.
pub struct Room {
    disk: SharedDisk,
    directory: PathBuf,
    /// [`BY_PART`] where nobody says how much.
    keep_bytes: AtomicU64,
    /// What the stores on this disk will take for what is in the journal already.
    owed_bytes: AtomicU64,
    is_short: AtomicBool,
    free_bytes: AtomicU64,
    bytes_all: AtomicU64,
}

impl Room {
    /// Watches the disk of `directory`. `keep_bytes` are kept free; by default a twentieth of the file system, a GiB at
    /// most. Of files, too, a twentieth is kept, a thousand at most.
    pub(crate) fn new(disk: SharedDisk, directory: PathBuf, keep_bytes: Option<u64>) -> Self {
        Self {
            disk,
            directory,
            keep_bytes: AtomicU64::new(keep_bytes.unwrap_or(BY_PART)),
            owed_bytes: AtomicU64::new(0),
            is_short: AtomicBool::new(false),
            free_bytes: AtomicU64::new(0),
            bytes_all: AtomicU64::new(u64::MAX),
        }
    }

    /// Whether no events are taken, for want of space.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed)
    }

    /// From the next look on so many bytes are kept free; without a number a part of the disk, as by default.
    pub fn keep_free(&self, keep_bytes: Option<u64>) {
        self.keep_bytes.store(keep_bytes.unwrap_or(BY_PART), Ordering::Relaxed);
    }

    /// From the next look on so many bytes are kept free besides: stores on this disk will take them for what waits for them.
    pub fn owe(&self, bytes: u64) {
        self.owed_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Bytes that the disk had left the last time that somebody looked.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.free_bytes.load(Ordering::Relaxed)
    }

    /// Bytes that the disk has in all; as many as can be before somebody has looked.
    #[must_use]
    pub fn bytes_all(&self) -> u64 {
        self.bytes_all.load(Ordering::Relaxed)
    }

    /// Looks at the disk, to be called several times a second. Also says whether the answer is another one than before.
    ///
    /// # Errors
    /// What the file system says; then all stays as it was.
    pub fn look(&self) -> io::Result<(Space, bool)> {
        let space = self.disk.space(&self.directory)?;
        let was_short = self.is_short();
        let is_short = self.leaves_too_little(&space, was_short);
        self.is_short.store(is_short, Ordering::Relaxed);
        self.free_bytes.store(space.bytes, Ordering::Relaxed);
        self.bytes_all.store(space.bytes_all, Ordering::Relaxed);
        Ok((space, is_short != was_short))
    }

    fn leaves_too_little(&self, space: &Space, was_short: bool) -> bool {
        let with_margin = |keep: u64| if was_short { keep.saturating_add(keep / MARGIN_PART) } else { keep };
        let keep_bytes = match self.keep_bytes.load(Ordering::Relaxed) {
            BY_PART => KEEP_FREE_BYTES.min(space.bytes_all / KEEP_FREE_PART),
            bytes => bytes,
        };
        let owed_bytes = self.owed_bytes.load(Ordering::Relaxed);
        let keep_files = KEEP_FREE_FILES.min(space.files_all / KEEP_FREE_PART);
        space.bytes < with_margin(keep_bytes).saturating_add(owed_bytes) || space.files < with_margin(keep_files)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use journal::simulated_disk::SimulatedDisk;

    use super::*;

    fn room(keep_bytes: Option<u64>) -> Room {
        Room::new(Arc::new(SimulatedDisk::new(1)), "/".into(), keep_bytes)
    }

    fn space(bytes: u64, files: u64) -> Space {
        Space { bytes, bytes_all: 10_000, files, files_all: 2_000 }
    }

    #[test]
    fn a_twentieth_is_kept_of_bytes_and_of_files() {
        let room = room(None);
        let is_short = |bytes, files| room.leaves_too_little(&space(bytes, files), false);
        assert_eq!([is_short(499, 100), is_short(500, 100), is_short(500, 99)], [true, false, true]);
        let large = Space { bytes: KEEP_FREE_BYTES, bytes_all: u64::MAX, files: KEEP_FREE_FILES, files_all: u64::MAX };
        assert!(!room.leaves_too_little(&large, false));
        assert!(room.leaves_too_little(&Space { bytes: KEEP_FREE_BYTES - 1, ..large }, false));
        assert!(room.leaves_too_little(&Space { files: KEEP_FREE_FILES - 1, ..large }, false));
    }

    #[test]
    fn what_stores_will_take_is_kept_besides() {
        let room = room(Some(1_000));
        let is_short = |bytes| room.leaves_too_little(&space(bytes, 2_000), false);
        assert!(!is_short(1_000));
        room.owe(500);
        assert_eq!([is_short(1_499), is_short(1_500)], [true, false]);
        room.owe(u64::MAX);
        assert!(is_short(10_000));
    }

    #[test]
    fn events_are_taken_again_with_some_more() {
        let room = room(Some(1_000));
        let is_short = |bytes, files| room.leaves_too_little(&space(bytes, files), true);
        assert_eq!([is_short(1_249, 2_000), is_short(1_250, 2_000), is_short(2_000, 124)], [true, false, true]);
    }

    #[test]
    fn a_look_tells_what_has_changed() {
        let disk = SimulatedDisk::new(1);
        let room = Room::new(Arc::new(disk.clone()), "/".into(), Some(8_192));
        let look = |capacity| {
            disk.set_capacity(Some(capacity));
            let (space, changed) = room.look().unwrap();
            (space.bytes, changed, room.is_short())
        };
        assert_eq!(look(8_192), (8_192, false, false));
        assert_eq!(look(4_096), (4_096, true, true));
        assert_eq!(look(8_192), (8_192, false, true));
        assert_eq!(look(12_288), (12_288, true, false));
    }
}
