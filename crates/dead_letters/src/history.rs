//! What became of one event at a sink that rejected it, for operators.

use std::time::{Duration, Instant};

use event::Position;
use eventlog::LogChunk;

use crate::dead_record::{DeadRecord, RecordKind};
use crate::reader::DeadLetterReader;
use crate::service::{DeadError, DeadLetterService};

/// A search ends after this time: a journal with many large dead letters is not read to its end for one of them.
const SEARCH_MAX: Duration = Duration::from_millis(50);

/// What a record says of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadStepKind {
    /// It became a dead letter, or it was rejected once more, or it was edited.
    DeadLetter,
    /// The sink stored it on a replay.
    Replayed,
    /// The operator has discarded it.
    Dropped,
    /// It was deferred: its lane sends it again.
    Deferred,
    /// It was deferred, and the sink has stored it.
    Stored,
    /// It was deferred, and its lane sends it in order again, or its route was discarded.
    Released,
}

/// A change of an event that a sink has rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadStep {
    /// What happened.
    pub kind: DeadStepKind,
    /// When it was written: microseconds since 1970, UTC. `None` if its block is damaged.
    pub at: Option<i64>,
    /// The store's error message; empty at an end.
    pub reason: String,
    /// Whether its payload differs from the one in the step before: an operator has edited it.
    pub is_edited: bool,
}

/// The changes of an event that a sink has rejected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadHistory {
    /// The oldest first. Earlier ones may have been freed.
    pub steps: Vec<DeadStep>,
    /// Whether the journal was not read to its end: there may be later steps.
    pub is_partial: bool,
}

impl DeadLetterService {
    /// What became of the event at `position` at a sink, by the records that the sink's journal still has. None if it
    /// never was a dead letter or deferred. Reads the disk for at most 50 ms: call it where that may block.
    ///
    /// # Errors
    /// [`DeadError`] if the journal can't be read.
    pub fn history(&self, sink: &str, position: Position) -> Result<DeadHistory, DeadError> {
        let mut history = DeadHistory::default();
        let Some(queue) = self.find(sink) else { return Ok(history) };
        let failed = |reason: String| DeadError { sink: queue.dead.sink().clone(), reason };
        let reading = DeadLetterReader::from(&queue.dead, 1).map_err(|error| failed(error.to_string()))?;
        let Some(mut reading) = reading else { return Ok(history) };
        let (begun, mut payload) = (Instant::now(), None);
        while let Some(chunk) = reading.read().map_err(|error| failed(error.to_string()))? {
            let of_event =
                |record: &DeadRecord<'_>| (record.shard, record.sequence) == (position.shard, position.sequence);
            for (_, record) in DeadRecord::all_in(&chunk).filter(|(_, record)| of_event(record)) {
                history.steps.push(step(&record, &chunk, &mut payload));
            }
            if begun.elapsed() > SEARCH_MAX {
                history.is_partial = true;
                break;
            }
        }
        Ok(history)
    }
}

fn step(record: &DeadRecord<'_>, chunk: &LogChunk, payload: &mut Option<Vec<u8>>) -> DeadStep {
    let kind = match record.kind {
        RecordKind::DeadLetter => DeadStepKind::DeadLetter,
        RecordKind::Replayed => DeadStepKind::Replayed,
        RecordKind::Dropped => DeadStepKind::Dropped,
        RecordKind::Deferred => DeadStepKind::Deferred,
        RecordKind::Stored => DeadStepKind::Stored,
        RecordKind::Released => DeadStepKind::Released,
    };
    let at = match chunk {
        LogChunk::Block(block) => Some(block.header().written_at),
        LogChunk::Damaged(_) => None,
    };
    // Ends have no payload.
    let has_payload = matches!(record.kind, RecordKind::DeadLetter | RecordKind::Deferred);
    let is_edited = has_payload && payload.as_deref().is_some_and(|before| before != record.event.payload);
    if has_payload {
        *payload = Some(record.event.payload.to_vec());
    }
    DeadStep { kind, at, reason: record.reason.to_owned(), is_edited }
}
