//! Space kept back on the disk, so that cursors and dead letters can be written when it is full: without them
//! nothing could be freed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use limits::RESERVE_BYTES;

use crate::disk::SharedDisk;

const RESERVE_FILE: &str = "reserve";

/// A file that takes up space until somebody needs it.
pub struct Reserve {
    disk: SharedDisk,
    path: PathBuf,
    held: Mutex<bool>,
}

impl Reserve {
    /// Keeps the space back in `directory`, if there is any: a full disk is no reason not to start.
    pub(crate) fn open(disk: SharedDisk, directory: &Path) -> Self {
        let reserve = Self { disk, path: directory.join(RESERVE_FILE), held: Mutex::new(false) };
        reserve.restore();
        reserve
    }

    /// Nothing is kept back, for those who only look.
    pub(crate) fn none(disk: SharedDisk, directory: &Path) -> Self {
        Self { disk, path: directory.join(RESERVE_FILE), held: Mutex::new(false) }
    }

    fn held(&self) -> MutexGuard<'_, bool> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the space is kept back now.
    #[must_use]
    pub fn is_held(&self) -> bool {
        *self.held()
    }

    /// Gives the space to whoever needs it. Whether there was any to give.
    pub fn release(&self) -> bool {
        let mut held = self.held();
        std::mem::take(&mut *held) && self.disk.remove(&self.path).is_ok()
    }

    /// Calls `write`, and where the disk is full once more with the space that was kept back.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn help<T>(&self, mut write: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        match write() {
            Err(error) if error.kind() == io::ErrorKind::StorageFull && self.release() => write(),
            written => written,
        }
    }

    /// Keeps the space back again, if there is enough. Whether it is kept back now.
    pub fn restore(&self) -> bool {
        let mut held = self.held();
        *held = *held || self.fill().is_ok();
        if !*held {
            // What was written until the disk was full is of no use. That there is none is fine.
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
    fn the_space_is_given_on_a_full_disk_and_taken_back_when_there_is_some() {
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
