//! Records that are encoded and wait to be put into a block.

use crate::record::{self, DedupKey, Head, JournalRecord};
use crate::type_bits::type_bit;
use event::EventId;
use limits::RECORD_OVERHEAD_BYTES_MAX;

/// Records are kept in pieces of this size. One buffer that doubles would leave gaps in the heap that no later buffer
/// fits: with hundreds of batches at the same time, the gaps were larger than the data in flight.
const PIECE_BYTES: usize = 128 * 1024;

/// The records of one request.
#[derive(Debug, Default)]
pub struct RecordBuffer {
    /// No piece is empty. Each record is in one of them.
    pieces: Vec<Vec<u8>>,
    /// Where in the last piece the last record begins.
    last_at: usize,
    bytes: usize,
    count: u32,
    types: u64,
    /// Pieces of an earlier request, for reuse.
    spare: Vec<Vec<u8>>,
}

impl RecordBuffer {
    /// Adds a record.
    pub fn push(&mut self, record: &JournalRecord<'_>) {
        let (last_at, length) = {
            let piece = self.piece_with_room(record.payload.len() + RECORD_OVERHEAD_BYTES_MAX);
            let last_at = piece.len();
            record::encode(record, piece);
            (last_at, piece.len() - last_at)
        };
        self.last_at = last_at;
        self.bytes += length;
        self.count += 1;
        self.types |= type_bit(record.type_name);
    }

    fn piece_with_room(&mut self, bytes: usize) -> &mut Vec<u8> {
        let has_room = |piece: &Vec<u8>| piece.capacity() - piece.len() >= bytes;
        // The first piece grows as needed: most requests are small.
        let may_grow = |piece: &Vec<u8>| piece.len() + bytes <= PIECE_BYTES;
        if !self.pieces.last().is_some_and(|piece| has_room(piece) || may_grow(piece)) {
            let is_first = self.pieces.is_empty();
            let room = if is_first { bytes } else { bytes.max(PIECE_BYTES) };
            let spare = self.spare.pop().filter(|piece| piece.capacity() >= bytes);
            self.pieces.push(spare.unwrap_or_else(|| Vec::with_capacity(room)));
        }
        self.pieces.last_mut().expect("the first record has added a piece")
    }

    /// Marks the record that was added last as the last of its request.
    pub fn end_request(&mut self) {
        if let Some(piece) = self.pieces.last_mut() {
            record::end_request(&mut piece[self.last_at..]);
        }
    }

    /// Drops records: `keeps` returns for each, by its number from 0, whether it stays. The first and the last that
    /// stay begin and end the request.
    pub fn retain(&mut self, mut keeps: impl FnMut(u32) -> bool) {
        self.rewrite(|number, record, piece| {
            if keeps(number) {
                piece.extend_from_slice(record);
            }
        });
        self.pieces.retain(|piece| !piece.is_empty());
        // Too many types do no harm: a set bit means "may be present".
        if let Some(first) = self.pieces.first_mut() {
            record::start_request(first);
        }
        self.end_request();
    }

    /// Adds the content hash of records whose hash wasn't known when they were added: `is_known` returns for each, by
    /// its number from 0, whether it already has one.
    pub fn set_contents(&mut self, content: u64, mut is_known: impl FnMut(u32) -> bool) {
        self.rewrite(|number, bytes, piece| {
            let start = piece.len();
            piece.extend_from_slice(bytes);
            if !is_known(number) {
                record::set_content(piece, start, content);
            }
        });
    }

    /// Rewrites each piece: `write` gets a record's number from 0, its bytes, and the destination.
    fn rewrite(&mut self, mut write: impl FnMut(u32, &[u8], &mut Vec<u8>)) {
        let mut number = 0;
        (self.bytes, self.count) = (0, 0);
        for piece in &mut self.pieces {
            let all = std::mem::take(piece);
            for bytes in records_in(&all) {
                let start = piece.len();
                write(number, bytes, piece);
                if piece.len() > start {
                    self.last_at = start;
                    self.count += 1;
                }
                number += 1;
            }
            self.bytes += piece.len();
        }
    }

    /// The ids of the records, in their order.
    pub fn ids(&self) -> impl Iterator<Item = EventId> {
        self.pieces.iter().flat_map(|piece| records_in(piece)).map(record::id_of)
    }

    /// The payloads of the records, in their order.
    pub fn payloads(&self) -> impl Iterator<Item = &[u8]> {
        let records = self.pieces.iter().flat_map(|piece| records_in(piece));
        records.map(|bytes| record::decode(bytes).map_or(&[][..], |record| record.payload))
    }

    /// Sets the key of the batch that the records belong to.
    pub fn set_batch(&mut self, batch: DedupKey) {
        if let Some(piece) = self.pieces.last_mut() {
            let before = piece.len();
            record::set_batch(piece, self.last_at, batch);
            self.bytes += piece.len() - before;
        }
    }

    /// The records as in a block, in pieces.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().map(Vec::as_slice)
    }

    /// The types in them, as [`crate::BlockHeader::types`] has them.
    pub(crate) const fn types(&self) -> u64 {
        self.types
    }

    /// How many records there are.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes that the records occupy in a block.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The same memory without the records, for another request.
    #[must_use]
    pub fn emptied(self) -> Self {
        let Self { mut pieces, mut spare, .. } = self;
        pieces.iter_mut().for_each(Vec::clear);
        spare.append(&mut pieces);
        Self { spare, ..Self::default() }
    }

    /// Bytes of memory that they hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.pieces.iter().chain(&self.spare).map(Vec::capacity).sum()
    }
}

/// The records of a piece, with their padding.
fn records_in(piece: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = piece;
    std::iter::from_fn(move || {
        let length = Head::trusted(rest).map_or(rest.len(), Head::padded_length);
        let (record, behind) = rest.split_at(length.min(rest.len()));
        rest = behind;
        (!record.is_empty()).then_some(record)
    })
}

#[cfg(test)]
mod tests {
    use event::EventId;

    use super::*;
    use crate::block::{Block, BlockKind, OpenBlock, Placement};

    fn record(payload: &[u8]) -> JournalRecord<'_> {
        JournalRecord {
            request_start: false,
            request_end: false,
            ..JournalRecord::new(EventId([7; 16]), 1, "event", payload)
        }
    }

    /// Payloads of which some need a separate piece, and some share one.
    fn payloads() -> Vec<Vec<u8>> {
        let sizes = [0, 1, 100_000, PIECE_BYTES - 1, 7, PIECE_BYTES, 300_000, 90_000, 3, 3 * PIECE_BYTES, 1];
        sizes.iter().zip(1..).map(|(size, byte)| vec![byte; *size]).collect()
    }

    fn requests(payloads: &[Vec<u8>]) -> RecordBuffer {
        let mut records = RecordBuffer::default();
        for (number, payload) in payloads.iter().enumerate() {
            records.push(&JournalRecord { request_start: number == 0, ..record(payload) });
        }
        records.end_request();
        records
    }

    fn block(records: &RecordBuffer) -> Block {
        let mut open = OpenBlock::new(1);
        open.append(records);
        assert_eq!(records.bytes(), open.bytes() - crate::block::HEADER_BYTES);
        open.seal(BlockKind::Data, &Placement { generation: 1, seed: 2, number: 3, previous: 4, written_at: 5 })
    }

    fn expect(records: &RecordBuffer, payloads: &[&Vec<u8>], batch: Option<DedupKey>) {
        let block = block(records);
        assert!(block.is_intact(2), "each record's checksums hold");
        let found: Vec<_> = block.records().map(|(_, record)| record).collect();
        assert_eq!(found.len(), payloads.len());
        for (number, (record, payload)) in found.iter().zip(payloads).enumerate() {
            let is_last = number + 1 == payloads.len();
            assert!(record.payload == payload.as_slice(), "payload {number}");
            assert_eq!((record.request_start, record.request_end), (number == 0, is_last), "record {number}");
            assert_eq!(record.batch, batch.filter(|_| is_last));
        }
    }

    #[test]
    fn records_of_all_sizes_keep_their_order() {
        let payloads = payloads();
        let mut records = requests(&payloads);
        expect(&records, &payloads.iter().collect::<Vec<_>>(), None);
        let given = DedupKey { id: EventId([9; 16]), content: 3 };
        records.set_batch(given);
        expect(&records, &payloads.iter().collect::<Vec<_>>(), Some(given));
        let again = records.emptied();
        assert!(again.is_empty() && again.bytes() == 0 && again.capacity() > 0);
    }

    #[test]
    fn a_revision_is_kept() {
        let mut records = RecordBuffer::default();
        [None, Some(0), Some(u64::MAX)].iter().for_each(|revision| {
            records.push(&JournalRecord { revision: *revision, ..record(b"{}") });
        });
        let block = block(&records);
        let found: Vec<_> = block.records().map(|(_, record)| record.revision).collect();
        assert_eq!(found, [None, Some(0), Some(u64::MAX)]);
    }

    #[test]
    fn any_of_them_may_be_dropped() {
        let payloads = payloads();
        for mask in 0..1_u32 << payloads.len() {
            if mask.count_ones() > 2 && mask % 97 != 0 {
                continue;
            }
            let keeps = |number: u32| mask & 1 << number != 0;
            let mut records = requests(&payloads);
            records.retain(keeps);
            let kept: Vec<_> = payloads.iter().zip(0..).filter(|(_, number)| keeps(*number)).map(|(p, _)| p).collect();
            assert_eq!((records.len() as usize, records.is_empty()), (kept.len(), kept.is_empty()));
            expect(&records, &kept, None);
        }
    }

    #[test]
    fn content_hashes_may_be_set_later() {
        let payloads = payloads();
        let mut records = requests(&payloads);
        assert_eq!(records.ids().count(), payloads.len());
        records.set_contents(7, |number| number % 2 == 1);
        records.set_batch(DedupKey { id: EventId([9; 16]), content: 3 });
        assert_eq!(records.ids().collect::<Vec<_>>(), vec![record(b"").id; payloads.len()]);
        expect(&records, &payloads.iter().collect::<Vec<_>>(), Some(DedupKey { id: EventId([9; 16]), content: 3 }));
        let block = block(&records);
        let contents: Vec<_> = block.records().map(|(_, record)| record.content).collect();
        let expected: Vec<_> = (0..payloads.len()).map(|number| (number % 2 == 0).then_some(7)).collect();
        assert_eq!(contents, expected);
    }

    #[test]
    fn reused_buffer_has_only_the_next_request() {
        let payloads = payloads();
        let again = requests(&payloads).emptied();
        let (room, mut records) = (again.capacity(), again);
        let small: Vec<_> = (0..20).map(|byte| vec![byte; 50_000]).collect();
        for (number, payload) in small.iter().enumerate() {
            records.push(&JournalRecord { request_start: number == 0, ..record(payload) });
        }
        records.end_request();
        expect(&records, &small.iter().collect::<Vec<_>>(), None);
        assert!(records.capacity() <= room + 2 * PIECE_BYTES, "{} of {room}", records.capacity());
    }

    #[test]
    fn buffer_takes_little_more_than_its_bytes() {
        let one = requests(&[vec![1; 10]]);
        assert!(one.capacity() < 1024, "{}", one.capacity());
        let many = requests(&vec![vec![1; 1000]; 5000]);
        assert!(many.capacity() < many.bytes() + many.bytes() / 50 + PIECE_BYTES, "{}", many.capacity());
    }
}
