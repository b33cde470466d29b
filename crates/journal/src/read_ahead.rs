//! A read-ahead over a file: walking many small blocks doesn't cost a system call for each.

use std::io;

use bytes::Bytes;
use limits::PAGE_BYTES;

use crate::disk::DiskFile;

const READ_AHEAD_BYTES: usize = 256 * 1024;

/// The part of a file that was read last.
#[derive(Debug, Default)]
pub(crate) struct ReadAhead {
    bytes: Vec<u8>,
    start: u64,
}

impl ReadAhead {
    /// Forgets the window: the file may have changed since.
    pub(crate) fn forget(&mut self) {
        self.bytes.clear();
    }

    /// The page at `offset`; shorter, or empty, at the file's end.
    pub(crate) fn page(&mut self, file: &dyn DiskFile, offset: u64) -> io::Result<&[u8]> {
        self.slice(file, offset, PAGE_BYTES)
    }

    /// `length` bytes at `offset`, or as many as the file has.
    pub(crate) fn slice(&mut self, file: &dyn DiskFile, offset: u64, length: usize) -> io::Result<&[u8]> {
        if self.position(offset).is_none_or(|at| self.bytes.len() - at < length) {
            self.bytes.resize(length.max(READ_AHEAD_BYTES), 0);
            let filled = file.read_full_at(&mut self.bytes, offset).inspect_err(|_| self.bytes.clear())?;
            self.bytes.truncate(filled);
            self.start = offset;
        }
        let at = self.position(offset).unwrap_or(self.bytes.len());
        Ok(&self.bytes[at..self.bytes.len().min(at + length)])
    }

    /// The same as an owned copy. Of a large range, the bytes that the window doesn't have are read directly into the
    /// copy.
    pub(crate) fn copy(&mut self, file: &dyn DiskFile, offset: u64, length: usize) -> io::Result<Bytes> {
        if length <= READ_AHEAD_BYTES {
            return Ok(Bytes::copy_from_slice(self.slice(file, offset, length)?));
        }
        let held = self.position(offset).map_or(&[][..], |at| &self.bytes[at..]);
        let held = &held[..held.len().min(length)];
        let mut bytes = vec![0; length];
        bytes[..held.len()].copy_from_slice(held);
        let filled = file.read_full_at(&mut bytes[held.len()..], offset + held.len() as u64)?;
        bytes.truncate(held.len() + filled);
        Ok(bytes.into())
    }

    fn position(&self, offset: u64) -> Option<usize> {
        let at = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        (at <= self.bytes.len()).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;
    use crate::simulated_disk::{Operation, SimulatedDisk};

    #[test]
    fn slices_equal_the_bytes_of_the_file() {
        let content: Vec<u8> = (0..600_000_u32).map(|at| (at % 251) as u8).collect();
        let disk = SimulatedDisk::new(1);
        disk.put("/f", &content).unwrap();
        let file = disk.open(std::path::Path::new("/f")).unwrap();
        let mut window = ReadAhead::default();
        for (start, length) in [
            (0, 10),
            (4096, 300_000),
            (262_000, 500),
            (0, 1),
            (599_990, 100),
            (300_000, 299_000),
            (200_000, 500_000),
            (700_000, 5),
        ] {
            let expected = &content[start.min(600_000)..(start + length).min(600_000)];
            assert_eq!(window.slice(&*file, start as u64, length).unwrap(), expected, "{length} bytes at {start}");
            assert_eq!(window.copy(&*file, start as u64, length).unwrap(), expected, "{length} bytes at {start}");
        }
    }

    #[test]
    fn bytes_are_read_once_until_forgotten() {
        let disk = SimulatedDisk::new(1);
        disk.put("/f", &[1; 2 * PAGE_BYTES]).unwrap();
        let file = disk.open(std::path::Path::new("/f")).unwrap();
        let mut window = ReadAhead::default();
        assert_eq!(window.page(&*file, 0).unwrap(), [1; PAGE_BYTES]);
        let calls = disk.calls(Operation::ReadAt);
        file.write_all_at(&[2; PAGE_BYTES], PAGE_BYTES as u64).unwrap();
        assert_eq!(window.page(&*file, PAGE_BYTES as u64).unwrap(), [1; PAGE_BYTES]);
        assert_eq!(disk.calls(Operation::ReadAt), calls);
        window.forget();
        assert_eq!(window.page(&*file, PAGE_BYTES as u64).unwrap(), [2; PAGE_BYTES]);
    }
}
