//! The ids of clients in a chunk of the log.
//!
//! The last record of a batch has the key of all its records. If damage lost one of them, the batch is indexed as a
//! partial one, and each remaining record gets a separate entry: a retry of the client then appends the missing
//! records.

use std::io;

use clock::unix_microseconds;
use event::EventId;
use journal::{DedupKey, JournalRecord, LogChunk, Reader};

use super::id_file::{Frame, StoredId};
use crate::committed_log::CommittedLog;

/// Ids that are read and written as a unit: 2 MiB.
pub(super) const FRAME_IDS_MAX: usize = 65_536;

/// The ids of durable events after `after`, up to [`FRAME_IDS_MAX`] and the rest of a block.
pub(super) fn read_frame(log: &CommittedLog, after: u64) -> io::Result<Frame> {
    let durable = log.durable();
    let mut frame =
        Frame { shard: log.number(), after, up_to: after, written_at: unix_microseconds(), ids: Vec::new() };
    if log.has_keyed_after(after) {
        let mut reader = Reader::new(log.segments().clone(), after + 1);
        while frame.ids.len() < FRAME_IDS_MAX {
            let Some(chunk) = reader.read(durable)? else { break };
            let is_new = |known: &StoredId| known.sequence > after && known.sequence <= durable;
            frame.ids.extend(ids_in(&chunk).into_iter().filter(is_new));
            frame.up_to = frame.up_to.max(chunk.end() - 1).min(durable);
        }
    }
    if frame.ids.len() < FRAME_IDS_MAX {
        frame.up_to = durable;
    }
    Ok(frame)
}

/// The ids of the events of a chunk, and of the batches that end in it.
fn ids_in(chunk: &LogChunk) -> Vec<StoredId> {
    let mut ids = Vec::new();
    let mut is_incomplete = false;
    let mut request = Whole::default();
    chunk.for_each_record(|sequence, record| {
        let is_whole = request.continues(sequence, record);
        let own = record.content.map(|content| DedupKey { id: record.id, content });
        let batch = record.batch.map(|batch| if is_whole { batch } else { partial_key(batch) });
        is_incomplete |= batch.is_some() && !is_whole;
        let keys = own.into_iter().chain(batch);
        ids.extend(keys.map(|DedupKey { id, content }| StoredId { id, content, sequence }));
    });
    if is_incomplete {
        ids.extend(rest_of_batches(chunk));
    }
    ids
}

/// The key of a batch that was accepted in part. The content hash is the same.
pub(super) fn partial_key(key: DedupKey) -> DedupKey {
    DedupKey { id: key.id.in_part(), content: key.content }
}

/// Whether a request is complete so far.
#[derive(Default)]
struct Whole {
    /// The sequence that must follow.
    next: Option<u64>,
}

impl Whole {
    fn continues(&mut self, sequence: u64, record: &JournalRecord<'_>) -> bool {
        let is_whole = record.request_start || self.next == Some(sequence);
        self.next = (is_whole && !record.request_end).then_some(sequence + 1);
        is_whole
    }
}

/// The records without content hashes in incomplete batches, with the hash of the batch.
fn rest_of_batches(chunk: &LogChunk) -> Vec<StoredId> {
    let mut left = Vec::new();
    let mut whole = Whole::default();
    let mut request = Rest::default();
    chunk.for_each_record(|sequence, record| {
        request.add(sequence, record);
        let is_whole = whole.continues(sequence, record);
        if let Some(batch) = record.batch.filter(|_| !is_whole) {
            left.extend(request.of_batch(batch));
        }
        if record.request_end {
            request = Rest::default();
        }
    });
    left
}

/// The remaining records of a request.
#[derive(Default)]
struct Rest {
    records: Vec<(u64, EventId)>,
    /// This many of them may be of an earlier request, whose end is lost too.
    doubtful: usize,
    last: u64,
}

impl Rest {
    fn add(&mut self, sequence: u64, record: &JournalRecord<'_>) {
        if record.request_start {
            *self = Self::default();
        }
        // If a single record is missing after one that ends no request, both sides are of one request.
        if sequence > self.last + 2 {
            self.doubtful = self.records.len();
        }
        self.last = sequence;
        if record.content.is_none() {
            self.records.push((sequence, record.id));
        }
    }

    fn of_batch(&self, batch: DedupKey) -> impl Iterator<Item = StoredId> {
        let is_of_it = move |at: usize, id: EventId| at >= self.doubtful || id.in_part() == batch.id.in_part();
        let of_it = self.records.iter().enumerate().filter(move |(at, (_, id))| is_of_it(*at, *id));
        of_it.map(move |(_, (sequence, id))| StoredId { id: *id, content: batch.content, sequence: *sequence })
    }
}
