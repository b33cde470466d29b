//! Reads blocks back, from any sequence up to the last durable one. Each reader opens the files itself.

use std::io;
use std::ops::Range;

use bytes::Bytes;

use crate::block::Block;
use crate::damaged::Damaged;
use crate::record::JournalRecord;
use crate::recovery_report::Finding;
use crate::scan::{KnownExtent, Scan, ScanItem};
use crate::segments::Segments;

/// A chunk of the log.
#[derive(Clone, Debug)]
pub enum LogChunk {
    /// An intact block.
    Block(Block),
    /// A damaged place: its remaining records, and the lost ones.
    Damaged(DamagedChunk),
}

/// A damaged place of the log.
#[derive(Clone, Debug)]
pub struct DamagedChunk {
    damaged: Damaged,
    finding: Finding,
}

impl DamagedChunk {
    pub(crate) fn new(generation: u64, damaged: Damaged) -> Self {
        let finding = Finding::of(generation, &damaged, None);
        Self { damaged, finding }
    }

    /// The sequences that the place held.
    #[must_use]
    pub fn sequences(&self) -> Range<u64> {
        self.damaged.sequences.clone()
    }

    /// The records that are kept, with their sequences: all undamaged ones, or of a torn last block those of whole
    /// requests.
    #[must_use]
    pub fn survivors(&self) -> Vec<(u64, JournalRecord<'_>)> {
        self.damaged.survivors()
    }

    /// The bytes that the kept records are slices of.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        &self.damaged.bytes
    }

    /// The finding to report.
    #[must_use]
    pub const fn finding(&self) -> &Finding {
        &self.finding
    }
}

impl LogChunk {
    /// The sequence that follows the chunk.
    #[must_use]
    pub fn end(&self) -> u64 {
        match self {
            Self::Block(block) => block.header().end(),
            Self::Damaged(damaged) => damaged.damaged.sequences.end,
        }
    }

    /// The bytes that its records are slices of.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        match self {
            Self::Block(block) => block.bytes(),
            Self::Damaged(damaged) => damaged.bytes(),
        }
    }

    /// Every record that can be read, with its sequence.
    pub fn records(&self) -> impl Iterator<Item = (u64, JournalRecord<'_>)> {
        let (block, damaged) = match self {
            Self::Block(block) => (Some(block.records()), None),
            Self::Damaged(damaged) => (None, Some(damaged.survivors())),
        };
        block.into_iter().flatten().chain(damaged.into_iter().flatten())
    }

    /// Visits every record that can be read, with its sequence.
    pub fn for_each_record(&self, mut visit: impl FnMut(u64, &JournalRecord<'_>)) {
        self.records().for_each(|(at, record)| visit(at, &record));
    }

    /// The finding to report for the chunk, if it is damaged.
    #[must_use]
    pub const fn finding(&self) -> Option<&Finding> {
        match self {
            Self::Block(_) => None,
            Self::Damaged(damaged) => Some(damaged.finding()),
        }
    }
}

/// Reads a shard's log in order.
pub struct Reader {
    segments: Segments,
    next: u64,
    scan: Option<(u64, Scan)>,
}

impl Reader {
    /// Begins with the event at `next`, or with the oldest that is retained.
    #[must_use]
    pub const fn new(segments: Segments, next: u64) -> Self {
        Self { segments, next, scan: None }
    }

    /// The sequence that the next chunk begins with or holds.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// The next chunk of the log, or `None` once everything up to `durable`, the last durable sequence, was read.
    ///
    /// # Errors
    /// The file system's error. The next call tries the same chunk again.
    pub fn read(&mut self, durable: u64) -> io::Result<Option<LogChunk>> {
        while self.next <= durable {
            // Damage before the reader's first position is not reported.
            if let Some(chunk) = self.step(durable).inspect_err(|_| self.scan = None)?
                && chunk.end() > self.next
            {
                self.next = chunk.end();
                return Ok(Some(chunk));
            }
        }
        Ok(None)
    }

    fn step(&mut self, durable: u64) -> io::Result<Option<LogChunk>> {
        let (generation, mut scan) = match self.scan.take() {
            Some(scan) => scan,
            None => self.open_scan(durable)?,
        };
        let known = self.known(generation, durable);
        let step = scan.step(known)?;
        let expected = scan.expected();
        if !matches!(step, ScanItem::End) {
            self.scan = Some((generation, scan));
        } else if self.next < expected {
            self.next = expected;
        } else if let Some(next) = self.segments.after(generation) {
            self.next = self.next.max(next.first);
        }
        Ok(match step {
            ScanItem::Block(block) if block.header().span == 0 => None,
            ScanItem::Block(block) => Some(LogChunk::Block(block)),
            ScanItem::Quarantined(damaged) | ScanItem::Torn(damaged) => {
                Some(LogChunk::Damaged(DamagedChunk::new(generation, damaged)))
            }
            ScanItem::End => None,
        })
    }

    fn known(&self, generation: u64, durable: u64) -> KnownExtent {
        KnownExtent { next_segment: self.segments.after(generation).map(|header| header.first), durable }
    }

    fn open_scan(&mut self, durable: u64) -> io::Result<(u64, Scan)> {
        let header = self.segments.holding(self.next).ok_or(io::ErrorKind::NotFound)?;
        let mut scan = Scan::new(self.segments.open(&header)?, header);
        scan.skip_to(self.next, self.known(header.generation, durable))?;
        Ok((header.generation, scan))
    }
}
