//! A read-ahead over a file, so that walking many small blocks doesn't cost a system call for each.

use std::io;

use event::limits::PAGE_BYTES;

use crate::disk::DiskFile;

const WINDOW_BYTES: usize = 256 * 1024;

/// The part of a file that was read last.
#[derive(Debug, Default)]
pub(crate) struct Window {
    bytes: Vec<u8>,
    start: u64,
}

impl Window {
    /// Forgets what was read: the file may have changed since.
    pub(crate) fn forget(&mut self) {
        self.bytes.clear();
    }

    /// The page at `offset`; shorter, perhaps empty, at the file's end.
    pub(crate) fn page(&mut self, file: &dyn DiskFile, offset: u64) -> io::Result<&[u8]> {
        self.slice(file, offset, PAGE_BYTES)
    }

    /// `length` bytes at `offset`, or as many as the file has.
    pub(crate) fn slice(&mut self, file: &dyn DiskFile, offset: u64, length: usize) -> io::Result<&[u8]> {
        if self.position(offset).is_none_or(|at| self.bytes.len() - at < length) {
            self.bytes.resize(length.max(WINDOW_BYTES), 0);
            let filled = file.read_full_at(&mut self.bytes, offset).inspect_err(|_| self.bytes.clear())?;
            self.bytes.truncate(filled);
            self.start = offset;
        }
        let at = self.position(offset).unwrap_or(self.bytes.len());
        Ok(&self.bytes[at..self.bytes.len().min(at + length)])
    }

    fn position(&self, offset: u64) -> Option<usize> {
        let at = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        (at <= self.bytes.len()).then_some(at)
    }
}
