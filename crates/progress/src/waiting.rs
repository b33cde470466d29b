//! Records that a lane has reported and that the next sample writes.

use std::io;
use std::path::Path;

use crate::files::Files;
use crate::records::RecordFile;

/// Records that may wait. The oldest are left out.
const WAITING_MAX: usize = 64;

/// Records of one file of a lane.
#[derive(Default)]
pub(crate) struct WaitingRecords {
    records: Vec<Vec<u8>>,
    /// The number of the next record in the file, if it is known.
    next: Option<u64>,
}

impl WaitingRecords {
    pub(crate) fn push(&mut self, record: Vec<u8>) {
        if self.records.len() >= WAITING_MAX {
            self.records.remove(0);
        }
        self.records.push(record);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Writes them to the file at `path`, which keeps the last `slots`.
    ///
    /// # Errors
    /// The file system's error. The next call tries again.
    pub(crate) fn save(&mut self, files: &Files, path: &Path, slots: u64) -> io::Result<()> {
        if self.records.is_empty() {
            return Ok(());
        }
        let file = RecordFile { files, path, slots };
        let mut number = self.next.unwrap_or_else(|| file.read().last().map_or(0, |(number, _)| number + 1));
        while let Some(record) = self.records.first() {
            file.write(number, record)?;
            number += 1;
            self.next = Some(number);
            self.records.remove(0);
        }
        self.records = Vec::new();
        Ok(())
    }
}
