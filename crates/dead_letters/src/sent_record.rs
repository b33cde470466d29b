//! A record of the log as a sink gets it.

use eventlog::JournalRecord;
use sink::Write;

/// An event as a sink gets it, known by this sequence.
pub fn as_sent<'a>(record: &JournalRecord<'a>, sequence: u64) -> sink::Record<'a> {
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
