//! Records of the log, and how a sink gets them.

use eventlog::{JournalRecord, LogChunk};
use sink::Write;

/// The records of a chunk at these sequences, which ascend.
pub(crate) fn records_at<'s>(chunk: &'s LogChunk, sequences: &[u64]) -> Vec<(u64, JournalRecord<'s>)> {
    chunk.records().filter(|(at, _)| sequences.binary_search(at).is_ok()).collect()
}

/// An event as a sink gets it, known by this sequence.
pub(crate) fn as_sent<'a>(record: &JournalRecord<'a>, sequence: u64) -> sink::Record<'a> {
    sink::Record {
        sequence,
        id: record.id,
        type_name: record.type_name,
        source: record.source,
        received_at: record.received_at,
        event_time: record.event_time,
        write: record.revision.map_or(Write::Insert, Write::Upsert),
        payload: record.payload,
    }
}
