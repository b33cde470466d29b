//! The unit that delivery passes to a sink: a run of positions of one lane, and those of its records that the sink has
//! to store. Payloads stay in the journal's blocks, without a copy.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use event::{EventId, Lane, TraceParent, TypeName};

use crate::{Claim, Mark, RejectedRecord, WriteOutcome};

/// How to write a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// A new event: once stored it never changes.
    Insert,
    /// A result that replaces an older revision of the same id, never a newer one.
    Upsert(u64),
}

/// One event as a sink sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its position in the lane's shard.
    pub sequence: u64,
    /// Its id.
    pub id: EventId,
    /// Its type's name.
    pub type_name: &'a str,
    /// Who sent it: a token's name, or empty.
    pub source: &'a str,
    /// When it was received: microseconds since 1970, UTC.
    pub received_at: i64,
    /// When it happened, if its type names a time: microseconds since 1970, UTC.
    pub event_time: Option<i64>,
    /// How to write it.
    pub write: Write,
    /// The JSON text, byte for byte as accepted.
    pub payload: &'a [u8],
}

/// Names are not built from times that are further ahead than this: the client chooses an event's time. A day, in
/// microseconds.
const AHEAD_MAX: i64 = 24 * 3600 * 1_000_000;

/// Why a store does not accept a record with such a type.
const MISNAMED: &str = "its type is not a valid type name, so the store can't use it in a table, index or key name";

impl Record<'_> {
    /// When it happened, or else when it was received: microseconds since 1970, UTC.
    #[must_use]
    pub fn time(&self) -> i64 {
        self.event_time.unwrap_or(self.received_at)
    }

    /// The time for names: the record's, but at most a day after its receipt. Microseconds since 1970, UTC. It is the
    /// same in each resend of the record.
    #[must_use]
    pub fn naming_time(&self) -> i64 {
        self.time().min(self.received_at.saturating_add(AHEAD_MAX))
    }
}

/// Where a text or payload is within its block.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    length: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    block: u32,
    type_name: Span,
    source: Span,
    payload: Span,
    sequence: u64,
    id: EventId,
    received_at: i64,
    event_time: Option<i64>,
    write: Write,
}

/// A run of positions `first..=last` of one lane with the records among them that the sink has to store, in the order
/// of their sequence. Positions without a record need nothing from the store; a batch without any record only moves a
/// transactional store's cursor.
///
/// Cheap to clone: a sink may pass a copy to the thread that owns its store.
#[derive(Clone, Debug)]
pub struct Batch {
    lane: Lane,
    claim: Option<Claim>,
    floor: u64,
    again: u64,
    mark: Option<Mark>,
    first: u64,
    last: u64,
    blocks: Arc<Vec<Bytes>>,
    entries: Arc<Vec<Entry>>,
    /// The traces of records that have one, by their sequences.
    traces: Arc<Vec<(u64, TraceParent)>>,
    payload_bytes: usize,
}

impl Batch {
    /// An empty batch that begins at position `first` of `lane`.
    #[must_use]
    pub fn new(lane: Lane, first: u64) -> Self {
        Self {
            lane,
            claim: None,
            floor: 0,
            again: 0,
            mark: None,
            first,
            last: first.saturating_sub(1),
            blocks: Arc::default(),
            entries: Arc::default(),
            traces: Arc::default(),
            payload_bytes: 0,
        }
    }

    /// The same batch of the process with this claim: a transactional store accepts it only if it holds no other claim
    /// on the lane.
    #[must_use]
    pub fn claimed_by(self, claim: Claim) -> Self {
        Self { claim: Some(claim), ..self }
    }

    /// The same batch with its lane's progress: the store is known to have everything up to `floor`, and positions up
    /// to `again` may have been passed to this sink before.
    #[must_use]
    pub const fn sent_after(mut self, floor: u64, again: u64) -> Self {
        (self.floor, self.again) = (floor, again);
        self
    }

    /// The same batch for the store with this mark, if one is given: another store accepts nothing of it.
    #[must_use]
    pub fn for_store(self, mark: Option<Mark>) -> Self {
        Self { mark, ..self }
    }

    /// Adds a record whose texts and payload are slices of `block`. Its sequence must be greater than that of
    /// the record before it.
    ///
    /// # Panics
    /// If a slice is not part of `block`: that is a bug of the caller.
    pub fn push(&mut self, block: &Bytes, record: &Record<'_>) {
        if self.blocks.last().is_none_or(|last| last.as_ptr() != block.as_ptr() || last.len() != block.len()) {
            Arc::make_mut(&mut self.blocks).push(block.clone());
        }
        debug_assert!(self.entries.last().is_none_or(|last| last.sequence < record.sequence), "records in order");
        self.payload_bytes += record.payload.len();
        Arc::make_mut(&mut self.entries).push(Entry {
            block: index(self.blocks.len() - 1),
            type_name: span(block, record.type_name.as_bytes()),
            source: span(block, record.source.as_bytes()),
            payload: span(block, record.payload),
            sequence: record.sequence,
            id: record.id,
            received_at: record.received_at,
            event_time: record.event_time,
            write: record.write,
        });
        self.cover(record.sequence);
    }

    /// Notes the trace of the record that was added last, or of one after those that have one.
    pub fn trace(&mut self, sequence: u64, trace: Option<TraceParent>) {
        if let Some(trace) = trace {
            Arc::make_mut(&mut self.traces).push((sequence, trace));
        }
    }

    /// The traces of its records that have one, with their sequences. A part of a batch may have those of other records too.
    #[must_use]
    pub fn traces(&self) -> &[(u64, TraceParent)] {
        &self.traces
    }

    /// The trace of the record with this sequence.
    #[must_use]
    pub fn trace_of(&self, sequence: u64) -> Option<TraceParent> {
        let found = self.traces.binary_search_by_key(&sequence, |(sequence, _)| *sequence);
        found.ok().and_then(|index| self.traces.get(index)).map(|(_, trace)| *trace)
    }

    /// Extends the run of positions to `last`, of which the newest need nothing from this sink.
    pub fn cover(&mut self, last: u64) {
        self.last = self.last.max(last);
    }

    /// The lane that the batch belongs to.
    #[must_use]
    pub const fn lane(&self) -> &Lane {
        &self.lane
    }

    /// The claim of the process that sends it.
    #[must_use]
    pub const fn claim(&self) -> Option<Claim> {
        self.claim
    }

    /// The position up to which the lane knows its events to be stored. A transactional store compares it with its
    /// cursor in the batch's transaction: a store whose cursor is lower has lost some of them, and accepts nothing. 0
    /// if the lane knows nothing.
    #[must_use]
    pub const fn floor(&self) -> u64 {
        self.floor
    }

    /// The highest position that was ever passed to this sink before this attempt: a record at or below it may be
    /// stored already.
    #[must_use]
    pub const fn again(&self) -> u64 {
        self.again
    }

    /// The mark of the store that it is for; `None` if any store will do.
    #[must_use]
    pub const fn mark(&self) -> Option<Mark> {
        self.mark
    }

    /// The first position that the batch covers.
    #[must_use]
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// The last position that the batch covers: the lane's cursor once the batch is stored.
    #[must_use]
    pub const fn last(&self) -> u64 {
        self.last
    }

    /// How many records the sink has to store.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the sink has nothing to store but a cursor.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The sum of the payloads' bytes.
    #[must_use]
    pub const fn payload_bytes(&self) -> usize {
        self.payload_bytes
    }

    /// The records in the order of their sequence.
    pub fn records(&self) -> impl ExactSizeIterator<Item = Record<'_>> {
        self.entries.iter().map(|entry| self.record(entry))
    }

    /// The sequence, type and receipt of each record, in the order of their sequence.
    pub fn receipts(&self) -> impl Iterator<Item = (u64, &str, i64)> {
        self.entries.iter().map(|entry| (entry.sequence, self.text(entry.block, entry.type_name), entry.received_at))
    }

    /// The record at `index`, counted from 0.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Record<'_>> {
        self.entries.get(index).map(|entry| self.record(entry))
    }

    /// Whether it has an id twice: a store that takes several records together must have the first before it tries the
    /// second.
    pub fn has_repetitions(&self) -> bool {
        let mut ids = HashSet::with_capacity(self.len());
        !self.entries.iter().all(|entry| ids.insert(entry.id))
    }

    /// The rejection of records whose type is not a valid type name; `None` if all are valid. A store that uses the
    /// type in a key, a subject, a path or an index calls this before it writes, because the text could address
    /// something else. A gateway accepts no such event, so only a forged or damaged batch has one.
    #[must_use]
    pub fn misnamed(&self) -> Option<WriteOutcome> {
        let misnamed = |(_, record): &(usize, Record<'_>)| TypeName::check(record.type_name).is_err();
        let refused = self.records().enumerate().filter(misnamed);
        let refused: Vec<_> = refused.map(|(index, _)| RejectedRecord { index, reason: MISNAMED.into() }).collect();
        (!refused.is_empty()).then_some(WriteOutcome::Rejected { refused })
    }

    /// The same run of positions without the records at `left_out`, which must ascend.
    #[must_use]
    pub fn without(&self, left_out: &[usize]) -> Self {
        let mut left_out = left_out.iter().peekable();
        let is_kept = |(at, _): &(usize, &Entry)| left_out.next_if(|out| **out == *at).is_none();
        self.with(self.entries.iter().enumerate().filter(is_kept).map(|(_, entry)| *entry).collect())
    }

    fn with(&self, entries: Vec<Entry>) -> Self {
        let payload_bytes = entries.iter().map(|entry| entry.payload.length as usize).sum();
        Self { entries: Arc::new(entries), payload_bytes, ..self.clone() }
    }

    /// The run of positions up to the last of the first `count` records, at least one.
    #[must_use]
    pub fn first_records(&self, count: usize) -> Self {
        let entries: Vec<Entry> = self.entries.iter().take(count.max(1)).copied().collect();
        let last = entries.last().map_or(self.last, |entry| entry.sequence);
        Self { last, ..self.with(entries) }
    }

    fn text(&self, block: u32, span: Span) -> &str {
        let bytes = &self.blocks[block as usize][span.start as usize..][..span.length as usize];
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    fn record(&self, entry: &Entry) -> Record<'_> {
        let block = &self.blocks[entry.block as usize];
        let bytes = |span: Span| &block[span.start as usize..][..span.length as usize];
        let text = |span| self.text(entry.block, span);
        Record {
            sequence: entry.sequence,
            id: entry.id,
            type_name: text(entry.type_name),
            source: text(entry.source),
            received_at: entry.received_at,
            event_time: entry.event_time,
            write: entry.write,
            payload: bytes(entry.payload),
        }
    }
}

/// Where `part` is within `block`; an empty part may come from anywhere.
fn span(block: &Bytes, part: &[u8]) -> Span {
    if part.is_empty() {
        return Span { start: 0, length: 0 };
    }
    let start = (part.as_ptr() as usize).wrapping_sub(block.as_ptr() as usize);
    assert!(start < block.len() && part.len() <= block.len() - start, "BUG: a record's bytes lie outside its block");
    Span { start: index(start), length: index(part.len()) }
}

/// Blocks are far below 4 GiB (`limits::BLOCK_BYTES_MAX`).
fn index(value: usize) -> u32 {
    u32::try_from(value).expect("an offset within a block fits 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_use_the_event_time_unless_far_ahead() {
        let record = Record {
            sequence: 1,
            id: EventId([1; 16]),
            type_name: "access",
            source: "",
            received_at: 5,
            event_time: None,
            write: Write::Insert,
            payload: b"1",
        };
        assert_eq!(record.naming_time(), 5);
        assert_eq!(Record { event_time: Some(-7), ..record }.naming_time(), -7);
        assert_eq!(Record { event_time: Some(i64::MAX), ..record }.naming_time(), 5 + 24 * 3600 * 1_000_000);
    }

    #[test]
    fn records_without_a_types_name_are_rejected() {
        let batch = |types: &[&'static str]| {
            let mut batch = Batch::new(Lane { origin: event::Origin([1; 16]), shard: 0, sink: "s".into() }, 1);
            for (sequence, type_name) in (1..).zip(types) {
                let block = Bytes::from_static(type_name.as_bytes());
                let type_name = std::str::from_utf8(&block).unwrap();
                let (id, write) = (EventId([0; 16]), Write::Insert);
                let (source, payload) = ("", &block[..0]);
                let record =
                    Record { sequence, id, type_name, source, received_at: 0, event_time: None, write, payload };
                batch.push(&block, &record);
            }
            batch
        };
        assert_eq!(batch(&["a", "a.b-c_d"]).misnamed(), None);
        let Some(WriteOutcome::Rejected { refused }) = batch(&["a", "a/../b", "b", "forebay:x"]).misnamed() else {
            panic!("two of them have no type's name")
        };
        assert_eq!(refused.iter().map(|refusal| refusal.index).collect::<Vec<_>>(), [1, 3]);
    }
}
