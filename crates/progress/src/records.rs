//! A file of the last records: fixed slots, the oldest of which is overwritten. Damaged records are ignored.

use std::io;
use std::path::Path;

use journal::disk::DiskFile;

use crate::files::Files;
use crate::page::{sum_of, word};

/// Bytes of a slot.
const SLOT_BYTES: usize = 512;
const HEAD_BYTES: usize = 18;
/// The greatest length of a record.
pub(crate) const RECORD_BYTES_MAX: usize = SLOT_BYTES - HEAD_BYTES;

/// A file of records.
#[derive(Clone, Copy)]
pub(crate) struct RecordFile<'a> {
    pub(crate) files: &'a Files,
    pub(crate) path: &'a Path,
    /// How many it keeps.
    pub(crate) slots: u64,
}

impl RecordFile<'_> {
    /// Its records with their numbers, the oldest first. None if it can't be read.
    pub(crate) fn read(&self) -> Vec<(u64, Vec<u8>)> {
        let read = |file: &dyn DiskFile| {
            let length = usize::try_from(file.length()?.min(self.slots * SLOT_BYTES as u64)).unwrap_or(0);
            let mut bytes = vec![0; length];
            let filled = file.read_full_at(&mut bytes, 0)?;
            bytes.truncate(filled);
            io::Result::Ok(bytes)
        };
        let bytes = self.files.look(self.path).and_then(|file| read(&*file).ok()).unwrap_or_default();
        let records = (0..).zip(bytes.chunks(SLOT_BYTES)).filter_map(|(slot, bytes)| {
            let (number, record) = decode(bytes)?;
            (number % self.slots == slot).then(|| (number, record.to_vec()))
        });
        let mut records: Vec<_> = records.collect();
        records.sort_unstable_by_key(|(number, _)| *number);
        records
    }

    /// Writes the record with this number, over the one that is too old.
    ///
    /// # Errors
    /// The file system's error, or [`io::ErrorKind::InvalidInput`] if the record is too long.
    pub(crate) fn write(&self, number: u64, record: &[u8]) -> io::Result<()> {
        let slot = encode(number, record).ok_or(io::ErrorKind::InvalidInput)?;
        let file = self.files.open(self.path)?;
        if file.length()? > self.slots * SLOT_BYTES as u64 {
            file.set_length(0)?;
        }
        file.write_all_at(&slot, number % self.slots * SLOT_BYTES as u64)
    }
}

fn encode(number: u64, record: &[u8]) -> Option<Vec<u8>> {
    let length = u16::try_from(record.len()).ok().filter(|_| record.len() <= RECORD_BYTES_MAX)?;
    let mut bytes = vec![0; 8];
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(record);
    let sum = sum_of(&bytes[8..]);
    bytes[..8].copy_from_slice(&sum.to_le_bytes());
    bytes.resize(SLOT_BYTES, 0);
    Some(bytes)
}

fn decode(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let head = bytes.get(..HEAD_BYTES)?;
    let length = usize::from(u16::from_le_bytes([head[16], head[17]]));
    let record = bytes.get(HEAD_BYTES..HEAD_BYTES + length)?;
    (word(head, 0) == sum_of(&bytes[8..HEAD_BYTES + length])).then(|| (word(head, 8), record))
}

/// Adds a text with its length.
pub(crate) fn push_text(bytes: &mut Vec<u8>, text: &str) {
    let text = shortened(text, usize::from(u16::MAX));
    bytes.extend_from_slice(&u16::try_from(text.len()).unwrap_or(0).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

/// Reads what [`push_text`] added, and returns the bytes after it.
pub(crate) fn take_text(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (text, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    Some((std::str::from_utf8(text).ok()?, rest))
}

/// The beginning of a text, at most so many bytes and whole characters.
pub(crate) fn shortened(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
