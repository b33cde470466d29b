//! Gives records their sequences and gathers them in the open block.

use crate::block::OpenBlock;
use crate::record::JournalRecord;
use crate::record_buffer::RecordBuffer;

/// A new block gets as much capacity as the one before it used, up to this: else it would grow step by step.
const ROOM_BYTES_MAX: usize = 256 * 1024;

/// The head of a journal: events appended here are durable once the committer has committed their block.
#[derive(Debug)]
pub struct Appender {
    open: OpenBlock,
}

impl Appender {
    pub(crate) fn new(next: u64) -> Self {
        Self { open: OpenBlock::new(next) }
    }

    /// Adds a request's only record and returns its sequence.
    pub fn push(&mut self, record: &JournalRecord<'_>) -> u64 {
        self.open.push(record)
    }

    /// Adds all records of a request and returns the sequence of the first.
    pub fn append(&mut self, records: &RecordBuffer) -> u64 {
        self.open.append(records)
    }

    /// Adds records without which nothing would be freed: their block is written as long as the disk has any space.
    pub fn append_needed(&mut self, records: &RecordBuffer) -> u64 {
        self.open.need();
        self.open.append(records)
    }

    /// The open block.
    #[must_use]
    pub const fn open_block(&self) -> &OpenBlock {
        &self.open
    }

    /// Takes the open block to be committed; records appended from now on go to the next.
    pub fn take(&mut self) -> OpenBlock {
        let next = OpenBlock::with_room(self.open.end(), self.open.bytes().min(ROOM_BYTES_MAX));
        std::mem::replace(&mut self.open, next)
    }

    /// Releases the sequences from `first` on: a block that began there couldn't be written, and neither it nor any
    /// later block will be.
    pub fn rewind(&mut self, first: u64) {
        debug_assert!(first <= self.open.first(), "only appended sequences can be released");
        self.open = OpenBlock::new(first);
    }
}
