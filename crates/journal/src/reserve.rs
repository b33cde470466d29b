//! Space reserved on the disk, so cursors and dead letters can be written when it is full: without them nothing could
//! be freed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use limits::RESERVE_BYTES;

use crate::disk::SharedDisk;

const RESERVE_FILE: &str = "reserve";

/// A file that occupies space until it is needed.
pub struct Reserve {
    disk: SharedDisk,
    path: PathBuf,
    held: Mutex<bool>,
}

impl Reserve {
    /// Reserves the space in `directory`, if there is any: a full disk doesn't prevent a start.
    pub(crate) fn open(disk: SharedDisk, directory: &Path) -> Self {
        let reserve = Self { disk, path: directory.join(RESERVE_FILE), held: Mutex::new(false) };
        reserve.restore();
        reserve
    }

    /// Nothing is reserved, for read-only use.
    pub(crate) fn none(disk: SharedDisk, directory: &Path) -> Self {
        Self { disk, path: directory.join(RESERVE_FILE), held: Mutex::new(false) }
    }

    fn held(&self) -> MutexGuard<'_, bool> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the space is reserved now.
    #[must_use]
    pub fn is_held(&self) -> bool {
        *self.held()
    }

    /// Releases the space. Returns whether there was any.
    pub fn release(&self) -> bool {
        let mut held = self.held();
        std::mem::take(&mut *held) && self.disk.remove(&self.path).is_ok()
    }

    /// Calls `write`; if the disk is full, releases the space and calls it once more.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn help<T>(&self, mut write: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        match write() {
            Err(error) if error.kind() == io::ErrorKind::StorageFull && self.release() => write(),
            written => written,
        }
    }

    /// Reserves the space again, if there is enough. Returns whether it is reserved now.
    pub fn restore(&self) -> bool {
        let mut held = self.held();
        *held = *held || self.fill().is_ok();
        if !*held {
            // A file that filled up the disk is of no use. It is fine if there is none.
            let _ = self.disk.remove(&self.path);
        }
        *held
    }

    fn fill(&self) -> io::Result<()> {
        let file = match self.disk.create(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.disk.open(&self.path)?,
            created => created?,
        };
        if file.length()? == RESERVE_BYTES {
            return Ok(());
        }
        file.fill_with_zeros(0, RESERVE_BYTES)?;
        file.set_length(RESERVE_BYTES)?;
        file.sync()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::simulated_disk::SimulatedDisk;

    #[test]
    fn reserve_is_released_on_a_full_disk() {
        let disk = SimulatedDisk::new(1);
        disk.set_capacity(Some(2 * RESERVE_BYTES));
        let reserve = Reserve::open(Arc::new(disk.clone()), Path::new("/"));
        assert!(reserve.is_held());
        let before = disk.bytes_used();
        assert!(reserve.release() && !reserve.release());
        assert!(disk.bytes_used() + RESERVE_BYTES <= before);

        disk.set_capacity(Some(RESERVE_BYTES / 2));
        assert!(!reserve.restore() && !reserve.is_held());
        assert_eq!(disk.bytes_used(), 0);
        disk.set_capacity(None);
        assert!(reserve.restore() && reserve.is_held());
    }
}
