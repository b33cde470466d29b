//! What a sink's dead letters say of one event: its newest record, also if it has ended.

use std::sync::Arc;

use event::{EventId, Position};
use eventlog::LogChunk;

use crate::DeadLetters;
use crate::blocked::Blocked;
use crate::dead_record::{DeadRecord, written_at};
use crate::filter::DeadLetter;
use crate::reader::DeadLetterReader;
use crate::state::DeadLetterState;

/// Bytes that a search by id reads at most.
const SEARCH_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The outcome of an event that is or was a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracedOutcome {
    /// It waits for the operator.
    Held,
    /// The sink stored it on a replay.
    Replayed,
    /// The operator has discarded it.
    Dropped,
}

/// An event that is or was a dead letter of a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadTrace {
    /// The newest outcome.
    pub outcome: TracedOutcome,
    /// When it was written: microseconds since 1970, UTC. Of a held dead letter, when its first record was: an edit or
    /// another rejection doesn't change it. `None` if its block is damaged.
    pub at: Option<i64>,
    /// The dead letter. One that has ended has neither payload nor reason.
    pub letter: DeadLetter,
}

impl DeadLetters {
    /// The newest record of an event: of the one at `position`, if it is known and the id is that of its record, or of the one with this id.
    /// Reads the disk: call it from a thread that may block.
    ///
    /// # Errors
    /// The journal can't be read, or it is too large to be searched without the position.
    pub fn trace(
        self: &Arc<Self>,
        id: Option<EventId>,
        position: Option<Position>,
    ) -> Result<Option<DeadTrace>, Blocked> {
        if !self.was_used() {
            return Ok(None);
        }
        match (position, id) {
            (Some(position), _) => self.trace_at(id, position),
            (None, Some(id)) => self.trace_id(id),
            (None, None) => Ok(None),
        }
    }

    fn trace_at(self: &Arc<Self>, id: Option<EventId>, position: Position) -> Result<Option<DeadTrace>, Blocked> {
        let Position { shard, sequence } = position;
        let entry = self.with_existing(|journal| journal.index.entry(shard, sequence))?.flatten();
        let Some(entry) = entry else { return Ok(None) };
        let of_id = |record: &DeadRecord<'_>| id.is_none_or(|id| id == record.event.id);
        let found = self.record_at(entry.at, |chunk, record| self.found(chunk, record).filter(|_| of_id(record)))?;
        Ok(found.flatten())
    }

    /// Why the store rejected a deferred event, as its record says: of the event with this id, only the one at `position` if that
    /// is known. `None` if it isn't deferred. Reads the disk: call it from a thread that may block.
    ///
    /// # Errors
    /// The journal can't be read.
    pub fn deferred_reason(
        self: &Arc<Self>,
        id: Option<EventId>,
        position: Option<Position>,
    ) -> Result<Option<String>, Blocked> {
        let Some(at) = self.deferred_at(id, position) else { return Ok(None) };
        self.record_at(at, |_, record| record.reason.to_owned())
    }

    /// Applies `of` to the record at this position of the journal of dead letters; `None` if there is none.
    fn record_at<T>(
        self: &Arc<Self>,
        at: u64,
        of: impl FnOnce(&LogChunk, &DeadRecord<'_>) -> T,
    ) -> Result<Option<T>, Blocked> {
        let Some(mut reader) = DeadLetterReader::from(self, at)? else { return Ok(None) };
        let Some(chunk) = reader.read().map_err(crate::later)? else { return Ok(None) };
        let record = DeadRecord::all_in(&chunk).find(|(found, _)| *found == at);
        Ok(record.map(|(_, record)| of(&chunk, &record)))
    }

    /// The index has no ids, so this reads the journal. The last record of the event counts.
    fn trace_id(self: &Arc<Self>, id: EventId) -> Result<Option<DeadTrace>, Blocked> {
        let first = self.with_existing(|journal| journal.index.first_needed())?.flatten();
        let Some(first) = first else { return Ok(None) };
        let Some(mut reader) = DeadLetterReader::from(self, first)? else { return Ok(None) };
        let (mut found, mut bytes) = (None, 0);
        while let Some(chunk) = reader.read().map_err(crate::later)? {
            bytes += chunk.bytes().len();
            if bytes > SEARCH_BYTES_MAX {
                return Err(Blocked::Retry(
                    "the sink has too many dead letters to search them by id: add position=".into(),
                ));
            }
            for (_, record) in DeadRecord::all_in(&chunk).filter(|(_, record)| record.event.id == id) {
                if DeadLetterState::of(record.kind).is_some() {
                    found = self.found(&chunk, &record);
                }
            }
        }
        Ok(found)
    }

    fn found(&self, chunk: &LogChunk, record: &DeadRecord<'_>) -> Option<DeadTrace> {
        let (outcome, at) = match DeadLetterState::of(record.kind)? {
            DeadLetterState::Held => (TracedOutcome::Held, record.known_first_time()),
            DeadLetterState::Replayed => (TracedOutcome::Replayed, written_at(chunk)),
            DeadLetterState::Dropped => (TracedOutcome::Dropped, written_at(chunk)),
        };
        Some(DeadTrace { outcome, at, letter: DeadLetter::of(self.sink(), record, true) })
    }
}
