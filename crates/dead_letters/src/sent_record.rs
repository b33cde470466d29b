//! A record of the log in the form that a sink gets.

use eventlog::JournalRecord;
use sink::Write;

/// An event in the form that a sink gets, under this sequence.
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
