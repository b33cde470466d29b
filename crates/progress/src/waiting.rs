//! Records that a lane has reported and that the next sample writes.

use std::io;

use crate::records::RecordFile;

/// Records that may wait. The oldest are left out.
const WAITING_MAX: usize = 64;

/// Records for one file of a lane.
#[derive(Default)]
pub(crate) struct WaitingRecords(Vec<Vec<u8>>);

impl WaitingRecords {
    pub(crate) fn push(&mut self, record: Vec<u8>) {
        if self.0.len() >= WAITING_MAX {
            self.0.remove(0);
        }
        self.0.push(record);
    }

    /// Removes and returns the waiting records. Pass the unwritten ones to [`WaitingRecords::restore`].
    pub(crate) fn take(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.0)
    }

    /// Puts unwritten records before those that were reported since.
    pub(crate) fn restore(&mut self, mut unwritten: Vec<Vec<u8>>) {
        if unwritten.is_empty() {
            return;
        }
        unwritten.append(&mut self.0);
        unwritten.drain(..unwritten.len().saturating_sub(WAITING_MAX));
        self.0 = unwritten;
    }
}

/// Appends records to one file of a lane.
#[derive(Default)]
pub(crate) struct RecordAppender {
    /// The number of the next record in the file, if it is known.
    next: Option<u64>,
}

impl RecordAppender {
    /// Writes the records to the file, and removes those that are written.
    ///
    /// # Errors
    /// The file system's error. The rest of the records remain.
    pub(crate) fn append(&mut self, file: RecordFile<'_>, records: &mut Vec<Vec<u8>>) -> io::Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        let mut number = self.next.unwrap_or_else(|| file.read().last().map_or(0, |(number, _)| number + 1));
        while let Some(record) = records.first() {
            file.write(number, record)?;
            number += 1;
            self.next = Some(number);
            records.remove(0);
        }
        Ok(())
    }
}
