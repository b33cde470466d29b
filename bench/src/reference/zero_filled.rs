//! A file filled with zeros beforehand, written round and round: an fdatasync into one costs half of one that
//! grows a file, so a reference that grew its file would flatter all that is compared with it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result};

const FILE_BYTES: usize = 256 * 1024 * 1024;
const FILL_BYTES: usize = 1024 * 1024;
const PAGE_BYTES: usize = 4096;

/// An open file without a name: it is gone when the process ends, however it ends.
pub(super) struct ZeroFilled {
    file: File,
    at: usize,
}

impl ZeroFilled {
    pub(super) fn new(directory: &Path) -> Result<Self> {
        let path = directory.join(format!("reference-{}", std::process::id()));
        let file = File::create(&path).with_context(|| format!("making {}", path.display()))?;
        std::fs::remove_file(&path)?;
        let zeros = vec![0; FILL_BYTES];
        for offset in (0..FILE_BYTES).step_by(FILL_BYTES) {
            file.write_all_at(&zeros, offset as u64).context("filling the file")?;
        }
        file.sync_all()?;
        Ok(Self { file, at: 0 })
    }

    /// Makes the first `length` bytes of `buffer` durable, and those after them up to the page's end with them.
    pub(super) fn commit(&mut self, buffer: &[u8], length: usize) -> Result<()> {
        let padded = padded(length);
        if self.at + padded > FILE_BYTES {
            self.at = 0;
        }
        self.file.write_all_at(&buffer[..padded], self.at as u64).context("writing")?;
        self.file.sync_data().context("fdatasync")?;
        self.at += padded;
        Ok(())
    }
}

/// The bytes that a commit of this length writes.
pub(super) fn padded(length: usize) -> usize {
    length.next_multiple_of(PAGE_BYTES)
}
