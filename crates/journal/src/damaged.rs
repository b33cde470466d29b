//! A damaged place of the log: the records that are kept, and those that are lost.

use std::ops::Range;

use bytes::Bytes;

use crate::block;
use crate::record::JournalRecord;

/// A place that should have a block but has none, or a damaged one.
#[derive(Clone, Debug)]
pub(crate) struct Damaged {
    pub(crate) case: char,
    /// Whether it is the end of the log: then only whole requests are kept, because the others may never have been
    /// answered.
    pub(crate) torn: bool,
    pub(crate) offset: u64,
    /// The sequences of the place. For a torn tail without a valid header the end is unknown: it is then the first
    /// sequence again.
    pub(crate) sequences: Range<u64>,
    pub(crate) seed: u64,
    /// The bytes from the block's header on.
    pub(crate) bytes: Bytes,
}

impl Damaged {
    /// The records that are kept, with their sequences.
    pub(crate) fn survivors(&self) -> Vec<(u64, JournalRecord<'_>)> {
        let undamaged = self.undamaged();
        if self.torn { whole_requests(&undamaged) } else { undamaged }
    }

    fn undamaged(&self) -> Vec<(u64, JournalRecord<'_>)> {
        let body = self.bytes.get(block::HEADER_BYTES..).unwrap_or_default();
        let found = block::salvage(body, self.seed, self.sequences.start);
        found.into_iter().map(|(index, record)| (self.sequences.start + u64::from(index), record)).collect()
    }

    /// The sequences whose records are not kept, if they are known.
    pub(crate) fn lost(&self) -> Vec<Range<u64>> {
        let known_end = self.undamaged().last().map_or(0, |(sequence, _)| sequence + 1).max(self.sequences.end);
        let mut lost = Vec::new();
        let mut next = self.sequences.start;
        for (sequence, _) in self.survivors() {
            if sequence > next {
                lost.push(next..sequence);
            }
            next = sequence + 1;
        }
        if known_end > next {
            lost.push(next..known_end);
        }
        lost
    }
}

/// The records that belong to requests of which nothing is missing.
fn whole_requests<'a>(records: &[(u64, JournalRecord<'a>)]) -> Vec<(u64, JournalRecord<'a>)> {
    let adjacent = |a: &(u64, JournalRecord<'_>), b: &(u64, JournalRecord<'_>)| b.0 == a.0 + 1 && !b.1.request_start;
    let whole = |request: &&[(u64, JournalRecord<'_>)]| {
        request.first().is_some_and(|(_, record)| record.request_start)
            && request.last().is_some_and(|(_, record)| record.request_end)
    };
    records.chunk_by(adjacent).filter(whole).flatten().copied().collect()
}
