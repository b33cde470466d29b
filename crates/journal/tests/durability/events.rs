//! Events whose number decides all of their bytes.

use std::sync::Arc;

use event::EventId;
use journal::{JournalRecord, RecordBuffer};

/// An event that must be read back unchanged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event {
    pub(crate) id: EventId,
    pub(crate) payload: Arc<[u8]>,
}

impl Event {
    /// The event with this number: its payload is a JSON text of `bytes` bytes and a few more.
    pub(crate) fn new(number: u64, bytes: usize) -> Self {
        let text = number.to_string();
        let filler = text.bytes().cycle().take(bytes);
        let payload = b"{\"n\":\"".iter().copied().chain(filler).chain(*b"\"}").collect();
        Self { id: EventId(u128::from(number).to_be_bytes()), payload }
    }

    pub(crate) fn of(record: &JournalRecord<'_>) -> Self {
        Self { id: record.id, payload: record.payload.into() }
    }

    fn record(&self, request_start: bool, request_end: bool) -> JournalRecord<'_> {
        JournalRecord {
            event_time: self.payload.len().is_multiple_of(2).then_some(7),
            client: Some([127, 0, 0, 1].into()),
            request_start,
            request_end,
            ..JournalRecord::new(self.id, 5, "campaign", &self.payload)
        }
    }
}

/// The events of one request, encoded.
pub(crate) fn request(events: &[Event]) -> RecordBuffer {
    let mut records = RecordBuffer::default();
    for (at, event) in events.iter().enumerate() {
        records.push(&event.record(at == 0, at + 1 == events.len()));
    }
    records
}
