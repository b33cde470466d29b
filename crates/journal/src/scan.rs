//! Walks the blocks of one segment and classifies each place by the table in [`crate::recovery_cases`].

use std::io;

use bytes::Bytes;
use limits::PAGE_BYTES;

use crate::block::{Block, BlockHeader};
use crate::damaged::Damaged;
use crate::disk::DiskFile;
use crate::read_ahead::ReadAhead;
use crate::recovery_cases::{BlockAction, Body, Header, decide};
use crate::segment::{FIRST_BLOCK_AT, SegmentHeader};

/// The content of the next place.
#[derive(Debug)]
pub(crate) enum ScanItem {
    /// An intact block.
    Block(Block),
    /// Damage in the midst of the log.
    Quarantined(Damaged),
    /// Damage at its end.
    Torn(Damaged),
    /// The end of the log.
    End,
}

/// How far the log is known to extend, regardless of this segment's content.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KnownExtent {
    /// The first sequence of the segment after this one, if there is one: this one's blocks from it on are cut off.
    pub(crate) next_segment: Option<u64>,
    /// The last sequence that is known to be durable, 0 if nothing is known.
    pub(crate) durable: u64,
}

impl KnownExtent {
    fn beyond(self, expected: u64) -> Option<u64> {
        let durable = (self.durable >= expected).then_some(self.durable + 1);
        self.next_segment.or(durable)
    }
}

/// A walk over a segment.
pub(crate) struct Scan {
    file: Box<dyn DiskFile>,
    header: SegmentHeader,
    offset: u64,
    expected: u64,
    last_sum: Option<u64>,
    window: ReadAhead,
    /// Blocks up to this sequence were durable when the window was read; the bytes after them may be stale.
    window_durable: u64,
}

impl Scan {
    pub(crate) fn new(file: Box<dyn DiskFile>, header: SegmentHeader) -> Self {
        let (expected, last_sum) = (header.first, Some(header.previous));
        Self {
            file,
            header,
            offset: FIRST_BLOCK_AT,
            expected,
            last_sum,
            window: ReadAhead::default(),
            window_durable: 0,
        }
    }

    /// The sequence that the next block should begin with.
    pub(crate) const fn expected(&self) -> u64 {
        self.expected
    }

    /// The offset of the next block, in bytes.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Skips blocks that end before `sequence` without reading their records.
    pub(crate) fn skip_to(&mut self, sequence: u64, known: KnownExtent) -> io::Result<()> {
        while let Some(header) = self.valid_header(known)?
            && header.end() <= sequence
        {
            self.pass(&header);
        }
        Ok(())
    }

    /// When the next block was written: microseconds since 1970, UTC. `None` at the end, or if its header is damaged.
    pub(crate) fn next_written_at(&mut self, known: KnownExtent) -> io::Result<Option<i64>> {
        Ok(self.valid_header(known)?.map(|header| header.written_at))
    }

    /// Skips blocks that were written before `time`, without reading their records.
    pub(crate) fn skip_before(&mut self, time: i64, known: KnownExtent) -> io::Result<()> {
        while let Some(header) = self.valid_header(known)?
            && header.written_at < time
        {
            self.pass(&header);
        }
        Ok(())
    }

    /// Classifies the next place and advances past it.
    pub(crate) fn step(&mut self, known: KnownExtent) -> io::Result<ScanItem> {
        if known.next_segment.is_some_and(|next| self.expected >= next) {
            return Ok(ScanItem::End);
        }
        match self.valid_header(known)? {
            Some(header) => self.step_over_block(&header, known),
            None => self.step_over_damage(known),
        }
    }

    /// The header at this place, if it is one that belongs here.
    fn valid_header(&mut self, known: KnownExtent) -> io::Result<Option<BlockHeader>> {
        if self.expected > self.window_durable && known.durable > self.window_durable {
            self.window.forget();
            self.window_durable = known.durable;
        }
        let page = self.window.page(&*self.file, self.offset)?;
        let header = BlockHeader::checked(page, self.header.generation, self.header.seed);
        let chained = |header: &BlockHeader| self.last_sum.is_none_or(|sum| sum == header.previous);
        let within = |header: &BlockHeader| known.next_segment.is_none_or(|next| header.first < next);
        Ok(header.filter(|header| header.first == self.expected && chained(header) && within(header)))
    }

    fn pass(&mut self, header: &BlockHeader) {
        self.offset += header.padded_bytes() as u64;
        self.expected = header.end();
        self.last_sum = Some(header.header_sum);
    }

    fn step_over_block(&mut self, header: &BlockHeader, known: KnownExtent) -> io::Result<ScanItem> {
        let offset = self.offset;
        let bytes = self.window.copy(&*self.file, offset, header.padded_bytes())?;
        let block = Block::from_disk(*header, bytes.clone());
        if bytes.len() == header.padded_bytes() && block.is_intact(self.header.seed) {
            self.pass(header);
            return Ok(ScanItem::Block(block));
        }
        let continues = known.beyond(header.end()).is_some() || self.later_block(header.padded_bytes())?.is_some();
        let row = decide(Header::Valid, Body::Damaged, continues);
        self.pass(header);
        let sequences = header.first..header.end();
        let torn = row.verdict == BlockAction::Cut;
        Ok(row.verdict.step(Damaged { case: row.case, torn, offset, sequences, seed: self.header.seed, bytes }))
    }

    fn step_over_damage(&mut self, known: KnownExtent) -> io::Result<ScanItem> {
        let later = self.later_block(PAGE_BYTES)?;
        let beyond = later.as_ref().map(|(_, header)| header.first).or(known.beyond(self.expected));
        let page = self.window.page(&*self.file, self.offset)?;
        let previous = self.last_sum.unwrap_or_default();
        let resembles = BlockHeader::resembles(page, self.header.generation, self.expected, previous);
        let observed = if resembles { Header::Damaged } else { Header::Blank };
        let row = decide(observed, Body::Unknown, beyond.is_some());
        if row.verdict == BlockAction::End {
            return Ok(ScanItem::End);
        }
        let end = later.as_ref().map_or(self.file.length()?, |(offset, _)| *offset);
        let damaged = Damaged {
            case: row.case,
            torn: row.verdict == BlockAction::Cut,
            offset: self.offset,
            sequences: self.expected..beyond.unwrap_or(self.expected),
            seed: self.header.seed,
            bytes: self.read_between(self.offset, end)?,
        };
        // If the newest segment still grows, the block after the damaged one may appear at any later page.
        let grows = later.is_none() && known.next_segment.is_none() && beyond.is_some();
        self.offset = if grows { self.offset + PAGE_BYTES as u64 } else { end };
        self.expected = damaged.sequences.end;
        self.last_sum = None;
        Ok(row.verdict.step(damaged))
    }

    fn read_between(&self, start: u64, end: u64) -> io::Result<Bytes> {
        let length = usize::try_from(end.saturating_sub(start)).unwrap_or_default();
        let mut bytes = vec![0; length];
        let filled = self.file.read_full_at(&mut bytes, start)?;
        bytes.truncate(filled);
        Ok(bytes.into())
    }

    /// The block of this segment with which the log continues, at least `distance` bytes after this place: the one with
    /// the smallest first sequence. A block that should be here but is elsewhere is the last choice: it was moved, and
    /// choosing it would skip those in between.
    fn later_block(&mut self, distance: usize) -> io::Result<Option<(u64, BlockHeader)>> {
        let mut best: Option<(u64, BlockHeader)> = None;
        let place_is_known = self.last_sum.is_some();
        let rank = |header: &BlockHeader, expected: u64| (place_is_known && header.first == expected, header.first);
        let mut offset = self.offset + distance as u64;
        loop {
            let page = self.window.page(&*self.file, offset)?;
            if page.is_empty() {
                return Ok(best);
            }
            let header = BlockHeader::checked(page, self.header.generation, self.header.seed);
            if let Some(header) = header.filter(|header| header.first >= self.expected)
                && best.as_ref().is_none_or(|(_, best)| rank(&header, self.expected) < rank(best, self.expected))
            {
                best = Some((offset, header));
            }
            offset += PAGE_BYTES as u64;
        }
    }
}

impl BlockAction {
    fn step(self, damaged: Damaged) -> ScanItem {
        match self {
            Self::Keep | Self::Quarantine => ScanItem::Quarantined(damaged),
            Self::Cut => ScanItem::Torn(damaged),
            Self::End => ScanItem::End,
        }
    }
}
