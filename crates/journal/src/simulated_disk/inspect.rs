//! Inspection and damage by tests, outside of the [`Disk`] interface: none of this counts as an operation, and no fault
//! affects it.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::SimulatedDisk;
use super::state::file_offset;

impl SimulatedDisk {
    /// The paths of all files, in order, from `/` on.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        self.state().names.files().into_iter().map(|(path, _)| path).collect()
    }

    /// A file's bytes as a process sees them, but for stale reads.
    ///
    /// # Errors
    /// No file has this path.
    pub fn content(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        let state = self.state();
        Ok(state.file(state.names.file(path.as_ref())?).visible().to_vec())
    }

    /// Makes everything durable, regardless of failed syncs, like a machine at rest.
    pub fn settle(&self) {
        self.state().settle();
    }

    /// Creates a file of these bytes, with its parent directories, or replaces an existing file's bytes. This calls
    /// [`SimulatedDisk::settle`].
    ///
    /// # Errors
    /// The path is a directory's, or goes through a file.
    pub fn put(&self, path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
        self.state().put(path.as_ref(), bytes)
    }

    /// Cuts or extends a file, in bytes. This calls [`SimulatedDisk::settle`].
    ///
    /// # Errors
    /// No file has this path, or the length is unreasonable.
    pub fn truncate(&self, path: impl AsRef<Path>, length: u64) -> io::Result<()> {
        let mut state = self.state();
        let file = state.names.file(path.as_ref())?;
        state.set_length(file, length)?;
        state.settle();
        Ok(())
    }

    /// Removes a file. This calls [`SimulatedDisk::settle`].
    ///
    /// # Errors
    /// No file has this path.
    pub fn erase(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let mut state = self.state();
        state.remove(path.as_ref())?;
        state.settle();
        Ok(())
    }

    /// Inverts a bit on the medium, for all reads from now on: bit 0 is the lowest of the first byte. A write to its
    /// sector that isn't durable yet may still heal it.
    ///
    /// # Errors
    /// No file has this path, or it ends before this bit.
    pub fn flip_bit(&self, path: impl AsRef<Path>, bit: u64) -> io::Result<()> {
        let mut state = self.state();
        let file = state.names.file(path.as_ref())?;
        let byte = file_offset(bit / 8)?;
        if byte >= state.file(file).visible().length() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("the file ends before bit {bit}")));
        }
        state.file_mut(file).flip_bit(byte, 1 << (bit % 8));
        Ok(())
    }

    /// Serves the previous content of these 512-byte sectors of a file, counted from its beginning: like a disk that
    /// lost a write. It lasts over power cuts.
    ///
    /// # Errors
    /// No file has this path, or the sectors are unreasonable.
    pub fn serve_stale(&self, path: impl AsRef<Path>, sectors: Range<u64>) -> io::Result<()> {
        let mut state = self.state();
        let file = state.names.file(path.as_ref())?;
        let sectors = file_offset(sectors.start)?..file_offset(sectors.end)?;
        state.file_mut(file).serve_stale(sectors);
        Ok(())
    }

    /// Ends the stale reads of a file.
    ///
    /// # Errors
    /// No file has this path.
    pub fn serve_fresh(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let mut state = self.state();
        let file = state.names.file(path.as_ref())?;
        state.file_mut(file).serve_fresh();
        Ok(())
    }
}
