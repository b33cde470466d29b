//! What tests see and damage, past the door: none of this counts as an operation, and no fault meets it.

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

    /// Makes everything durable, whatever syncs have failed, as a machine at rest has it.
    pub fn settle(&self) {
        self.state().settle();
    }

    /// Makes a file of these bytes, with the directories above it, or gives one that is there these bytes.
    /// The disk is settled by it ([`SimulatedDisk::settle`]).
    ///
    /// # Errors
    /// The path is a directory's, or leads through a file.
    pub fn put(&self, path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
        self.state().put(path.as_ref(), bytes)
    }

    /// Cuts or extends a file, in bytes. The disk is settled by it ([`SimulatedDisk::settle`]).
    ///
    /// # Errors
    /// No file has this path, or the length is beyond all reason.
    pub fn truncate(&self, path: impl AsRef<Path>, length: u64) -> io::Result<()> {
        let mut state = self.state();
        let file = state.names.file(path.as_ref())?;
        state.set_length(file, length)?;
        state.settle();
        Ok(())
    }

    /// Removes a file. The disk is settled by it ([`SimulatedDisk::settle`]).
    ///
    /// # Errors
    /// No file has this path.
    pub fn erase(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let mut state = self.state();
        state.remove(path.as_ref())?;
        state.settle();
        Ok(())
    }

    /// Inverts a bit on the medium, where it is read from now on: bit 0 is the lowest of the first byte. A
    /// write to its sector that isn't durable yet may still heal it.
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

    /// Serves these 512-byte sectors of a file, counted from its beginning, as they were before the last write
    /// to each of them: as a disk does that lost a write. It lasts over power cuts.
    ///
    /// # Errors
    /// No file has this path, or the sectors are beyond all reason.
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
