//! Ticks: the time that an idle shard has reached, as a record of its journal. The journal and not the clock decides
//! when an idle window ends, so a second reading ends it at the same position.

use event::{EventId, TypeName};
use eventlog::{JournalRecord, RecordBuffer};

/// The type of a tick. No event has it, since it is not a valid type name: no route matches it, and nothing counts it.
const TICK: &str = "+tick";

/// A tick of an aggregate, ready to be appended.
pub(crate) fn records(aggregate: &TypeName, time: i64, now: i64) -> RecordBuffer {
    let mut records = RecordBuffer::default();
    records.push(&JournalRecord {
        event_time: Some(time),
        source: aggregate.as_str(),
        ..JournalRecord::new(EventId([0; 16]), now, TICK, b"null")
    });
    records
}

/// The time of a tick of this aggregate, if the record is one.
pub(crate) fn time_of(record: &JournalRecord<'_>, aggregate: &TypeName) -> Option<i64> {
    record.event_time.filter(|_| record.type_name == TICK && record.source == aggregate.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_event_is_parsed_as_a_tick() {
        assert!(TypeName::new(TICK).is_err());
    }
}
