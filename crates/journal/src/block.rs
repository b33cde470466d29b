//! A block is one commit: a header, then the records of all requests that were committed together.
//! `docs/internals/journal-format.md` has the layout.

use bytes::Bytes;
use limits::PAGE_BYTES;

use crate::checksum;
use crate::endian::{get_i64, get_u32, get_u64, length_field, put, round_up};
use crate::record::{self, HEAD_BYTES, Head, JournalRecord};
use crate::record_buffer::RecordBuffer;
use crate::type_bits::type_bit;

/// Bytes of a block's header; the records follow directly.
pub(crate) const HEADER_BYTES: usize = 80;
const MAGIC: [u8; 4] = *b"FBLK";

const AT_MAGIC: usize = 0;
const AT_KIND: usize = 4;
const AT_GENERATION: usize = 8;
const AT_NUMBER: usize = 16;
const AT_FIRST: usize = 24;
const AT_SPAN: usize = 32;
const AT_BODY_BYTES: usize = 36;
const AT_TYPES: usize = 40;
const AT_PREVIOUS: usize = 48;
const AT_WRITTEN: usize = 56;
const AT_BODY_SUM: usize = 64;
const AT_HEADER_SUM: usize = 72;

/// The kind of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// It holds records.
    Data,
    /// It ends a journal that was closed in an orderly way: everything before it was complete.
    Seal,
}

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// The kind of the block.
    pub kind: BlockKind,
    /// The generation of the segment that it was written to.
    pub generation: u64,
    /// Its number among the blocks of all shards of the process.
    pub number: u64,
    /// The sequence of its first record.
    pub first: u64,
    /// How many sequences it covers. A block that recovery wrote may have fewer records than that: sequences without a
    /// record are then unused.
    pub span: u32,
    /// Bytes of its records.
    pub body_bytes: u32,
    /// The set of its records' types: one bit for each, by [`type_bit`].
    pub types: u64,
    /// The header checksum of the block before it, 0 for a journal's first.
    pub previous: u64,
    /// When it was written: microseconds since 1970, UTC. For operators only; nothing is decided by it.
    pub written_at: i64,
    /// A checksum over the heads of its records, and so over the records' own checksums.
    pub body_sum: u64,
    /// The checksum over all of the above under the segment's seed.
    pub header_sum: u64,
}

impl BlockHeader {
    /// The sequence that follows the block.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.first + u64::from(self.span)
    }

    /// Bytes that the block occupies in its segment: whole pages.
    #[must_use]
    pub fn padded_bytes(&self) -> usize {
        round_up(HEADER_BYTES + self.body_bytes as usize, PAGE_BYTES)
    }

    /// Reads the header at the start of `bytes`; `None` unless it is one of this generation and seed.
    pub(crate) fn checked(bytes: &[u8], generation: u64, seed: u64) -> Option<Self> {
        let bytes = bytes.get(..HEADER_BYTES)?;
        let kind = match bytes[AT_KIND] {
            1 => BlockKind::Data,
            2 => BlockKind::Seal,
            _ => return None,
        };
        let header = Self {
            kind,
            generation: get_u64(bytes, AT_GENERATION),
            number: get_u64(bytes, AT_NUMBER),
            first: get_u64(bytes, AT_FIRST),
            span: get_u32(bytes, AT_SPAN),
            body_bytes: get_u32(bytes, AT_BODY_BYTES),
            types: get_u64(bytes, AT_TYPES),
            previous: get_u64(bytes, AT_PREVIOUS),
            written_at: get_i64(bytes, AT_WRITTEN),
            body_sum: get_u64(bytes, AT_BODY_SUM),
            header_sum: get_u64(bytes, AT_HEADER_SUM),
        };
        let ours = bytes[AT_MAGIC..AT_KIND] == MAGIC && header.generation == generation;
        (ours && header.header_sum == checksum::seeded(seed, &bytes[..AT_HEADER_SUM])).then_some(header)
    }

    /// Whether bytes that are no valid header were once a header of this generation, at this place of the log. The
    /// field that only such a header has must still be there, or two of the three that others have too.
    pub(crate) fn resembles(bytes: &[u8], generation: u64, first: u64, previous: u64) -> bool {
        let Some(bytes) = bytes.get(..HEADER_BYTES) else { return false };
        let traces = [
            bytes[AT_MAGIC..AT_KIND] == MAGIC,
            get_u64(bytes, AT_GENERATION) == generation,
            get_u64(bytes, AT_FIRST) == first,
        ];
        let chained = previous != 0 && get_u64(bytes, AT_PREVIOUS) == previous;
        chained || traces.into_iter().filter(|trace| *trace).count() >= 2
    }

    fn encode(&self, seed: u64, bytes: &mut [u8]) -> u64 {
        put(bytes, AT_MAGIC, &MAGIC);
        bytes[AT_KIND] = if self.kind == BlockKind::Data { 1 } else { 2 };
        put(bytes, AT_GENERATION, &self.generation.to_le_bytes());
        put(bytes, AT_NUMBER, &self.number.to_le_bytes());
        put(bytes, AT_FIRST, &self.first.to_le_bytes());
        put(bytes, AT_SPAN, &self.span.to_le_bytes());
        put(bytes, AT_BODY_BYTES, &self.body_bytes.to_le_bytes());
        put(bytes, AT_TYPES, &self.types.to_le_bytes());
        put(bytes, AT_PREVIOUS, &self.previous.to_le_bytes());
        put(bytes, AT_WRITTEN, &self.written_at.to_le_bytes());
        put(bytes, AT_BODY_SUM, &self.body_sum.to_le_bytes());
        let sum = checksum::seeded(seed, &bytes[..AT_HEADER_SUM]);
        put(bytes, AT_HEADER_SUM, &sum.to_le_bytes());
        sum
    }
}

/// Facts of a block that are known only when it is committed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    pub(crate) generation: u64,
    pub(crate) seed: u64,
    pub(crate) number: u64,
    pub(crate) previous: u64,
    pub(crate) written_at: i64,
}

/// A block that still accepts records.
#[derive(Debug)]
pub struct OpenBlock {
    bytes: Vec<u8>,
    first: u64,
    span: u32,
    types: u64,
    /// The records' indices if they don't count up from 0: only in blocks that recovery writes.
    indices: Vec<u32>,
    is_needed: bool,
}

impl OpenBlock {
    pub(crate) fn new(first: u64) -> Self {
        Self { bytes: Vec::new(), first, span: 0, types: 0, indices: Vec::new(), is_needed: false }
    }

    /// Whether it is written as long as the disk has any space, since without it nothing would be freed.
    #[must_use]
    pub const fn is_needed(&self) -> bool {
        self.is_needed
    }

    pub(crate) const fn need(&mut self) {
        self.is_needed = true;
    }

    /// A block with room for `bytes` before it has to grow.
    pub(crate) fn with_room(first: u64, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ..Self::new(first) }
    }

    /// Bytes of its header and records so far, without padding.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// A block that holds only the given records, in ascending order, at their original sequences; the other sequences
    /// of its span are unused.
    pub(crate) fn carried<'a>(first: u64, span: u32, records: impl Iterator<Item = (u64, JournalRecord<'a>)>) -> Self {
        let mut block = Self::new(first);
        block.begin();
        for (sequence, record) in records {
            let index = u32::try_from(sequence - first).expect("a record's index is below its block's span");
            debug_assert!(index < span, "a record lies within its block");
            record::encode(&record, &mut block.bytes);
            block.types |= type_bit(record.type_name);
            block.indices.push(index);
        }
        block.span = span;
        block
    }

    /// The sequence of its first record.
    #[must_use]
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// The sequence that follows its last record.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.first + u64::from(self.span)
    }

    /// Whether it holds no record.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.span == 0
    }

    /// Bytes that it would occupy in a segment if it were committed now.
    #[must_use]
    pub const fn padded_bytes(&self) -> usize {
        let bytes = if self.bytes.is_empty() { HEADER_BYTES } else { self.bytes.len() };
        round_up(bytes, PAGE_BYTES)
    }

    pub(crate) fn push(&mut self, record: &JournalRecord<'_>) -> u64 {
        self.begin();
        record::encode(record, &mut self.bytes);
        self.types |= type_bit(record.type_name);
        self.advance(1)
    }

    pub(crate) fn append(&mut self, records: &RecordBuffer) -> u64 {
        self.begin();
        records.pieces().for_each(|piece| self.bytes.extend_from_slice(piece));
        self.types |= records.types();
        self.advance(records.len())
    }

    fn begin(&mut self) {
        if self.bytes.is_empty() {
            self.bytes.resize(HEADER_BYTES, 0);
        }
    }

    fn advance(&mut self, count: u32) -> u64 {
        let sequence = self.end();
        self.span += count;
        sequence
    }

    /// Fills in the header and the records' heads, and pads the block to whole pages.
    pub(crate) fn seal(mut self, kind: BlockKind, placement: &Placement) -> Block {
        self.begin();
        let body = &mut self.bytes[HEADER_BYTES..];
        let body_bytes = body.len();
        let body_sum = seal_records(body, record_seed(placement.seed, self.first), &self.indices);
        let mut header = BlockHeader {
            kind,
            generation: placement.generation,
            number: placement.number,
            first: self.first,
            span: self.span,
            body_bytes: length_field(body_bytes),
            types: self.types,
            previous: placement.previous,
            written_at: placement.written_at,
            body_sum,
            header_sum: 0,
        };
        self.bytes.resize(header.padded_bytes(), 0);
        header.header_sum = header.encode(placement.seed, &mut self.bytes);
        Block { header, bytes: self.bytes.into() }
    }
}

/// Fills in index and check of each record and returns the checksum over all heads: each head's checksum is the
/// seed of the next.
fn seal_records(body: &mut [u8], seed: u64, indices: &[u32]) -> u64 {
    let (mut at, mut sum) = (0, seed);
    for count in 0.. {
        if at == body.len() {
            break;
        }
        let index = indices.get(count).copied().unwrap_or_else(|| length_field(count));
        let padded = record::seal(&mut body[at..], index, seed);
        sum = checksum::seeded(sum, &body[at..at + HEAD_BYTES]);
        at += padded;
    }
    sum
}

/// A sealed block: in memory exactly as on disk. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Block {
    header: BlockHeader,
    bytes: Bytes,
}

impl Block {
    /// A block read from disk whose header has been checked. [`Block::is_intact`] checks its records.
    pub(crate) const fn from_disk(header: BlockHeader, bytes: Bytes) -> Self {
        Self { header, bytes }
    }

    /// The block's header.
    #[must_use]
    pub const fn header(&self) -> &BlockHeader {
        &self.header
    }

    /// The whole block, padding included. Records are slices of it.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    fn body(&self) -> &[u8] {
        &self.bytes[HEADER_BYTES..HEADER_BYTES + self.header.body_bytes as usize]
    }

    /// Its records with their sequences, without any check: for blocks that were never on disk, and those that a reader
    /// has found intact.
    pub fn records(&self) -> impl Iterator<Item = (u64, JournalRecord<'_>)> {
        self.records_from(self.header.first)
    }

    /// As [`Block::records`], from `sequence` on: of the records before it only the heads are read.
    pub fn records_from(&self, sequence: u64) -> impl Iterator<Item = (u64, JournalRecord<'_>)> {
        let mut rest = self.body();
        std::iter::from_fn(move || {
            loop {
                let head = Head::trusted(rest)?;
                let bytes = rest;
                rest = rest.get(head.padded_length()..).unwrap_or_default();
                let at = self.header.first + u64::from(head.index);
                if at >= sequence {
                    return Some((at, record::decode(bytes)?));
                }
            }
        })
    }

    /// Whether all of its records are intact.
    pub(crate) fn is_intact(&self, seed: u64) -> bool {
        let seed = record_seed(seed, self.header.first);
        let (mut rest, mut sum) = (self.body(), seed);
        while !rest.is_empty() {
            let Some(head) = Head::checked(rest, seed) else { return false };
            if !head.body_is_intact(rest) || record::decode(rest).is_none() {
                return false;
            }
            sum = checksum::seeded(sum, &rest[..HEAD_BYTES]);
            rest = rest.get(head.padded_length()..).unwrap_or_default();
        }
        sum == self.header.body_sum || cfg!(feature = "mutant-no-checksum")
    }
}

/// The seed of the checks of a block's record heads. It includes the block's place, so a record can't be mistaken for
/// one of another block.
const fn record_seed(seed: u64, first: u64) -> u64 {
    seed ^ first
}

/// The undamaged records among `body`, which follows the header of the block that begins at sequence `first`. Each
/// comes with its index. After a damaged head, every place where the next one can be is tried. Clients can't forge a
/// record without the segment's seed.
pub(crate) fn salvage(body: &[u8], seed: u64, first: u64) -> Vec<(u32, JournalRecord<'_>)> {
    let seed = record_seed(seed, first);
    let mut found: Vec<(u32, JournalRecord<'_>)> = Vec::new();
    let mut at = 0;
    while at + HEAD_BYTES <= body.len() {
        let rest = &body[at..];
        let expected = found.last().map_or(0, |(index, _)| index + 1);
        let head = Head::checked(rest, seed).filter(|head| head.index >= expected);
        if let Some(head) = head
            && head.body_is_intact(rest)
            && let Some(record) = record::decode(rest)
        {
            found.push((head.index, record));
        }
        at += head.map_or(record::ALIGNMENT, Head::padded_length);
    }
    found
}
