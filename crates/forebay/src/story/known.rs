//! An event as one of its sources has it.

use std::net::IpAddr;

use dead_letters::DeadLetter;
use event::read::{Payload, StoredEvent};
use event::{EventId, TraceParent};
use eventlog::JournalRecord;

/// What is known of an event itself. Times are microseconds since 1970, UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownEvent {
    pub(super) id: EventId,
    pub(super) type_name: String,
    pub(super) source: String,
    pub(super) received_at: i64,
    pub(super) event_time: Option<i64>,
    pub(super) client: Option<IpAddr>,
    pub(super) trace: Option<TraceParent>,
    /// After the steps of its type.
    pub(super) payload: Option<Payload>,
}

impl From<&JournalRecord<'_>> for KnownEvent {
    fn from(record: &JournalRecord<'_>) -> Self {
        Self {
            id: record.id,
            type_name: record.type_name.to_owned(),
            source: record.source.to_owned(),
            received_at: record.received_at,
            event_time: record.event_time,
            client: record.client,
            trace: record.trace,
            payload: Some(Payload::of(record.payload)),
        }
    }
}

impl From<StoredEvent> for KnownEvent {
    fn from(event: StoredEvent) -> Self {
        let StoredEvent { id, type_name, source, received_at, payload } = event;
        let (event_time, client, trace) = (None, None, None);
        Self { id, type_name, source, received_at, event_time, client, trace, payload: Some(payload) }
    }
}

impl From<&DeadLetter> for KnownEvent {
    fn from(letter: &DeadLetter) -> Self {
        Self {
            id: letter.id,
            type_name: letter.type_name.clone(),
            source: letter.source.clone(),
            received_at: letter.received_at,
            event_time: letter.event_time,
            client: letter.client,
            trace: None,
            payload: Some(&letter.payload).filter(|payload| !payload.is_empty()).map(|payload| Payload::of(payload)),
        }
    }
}

impl KnownEvent {
    /// The payload, unless it isn't kept.
    pub(super) fn payload_text(&self) -> Option<&[u8]> {
        match &self.payload {
            Some(Payload::Whole(text)) => Some(text),
            Some(Payload::Omitted { .. }) | None => None,
        }
    }

    /// Adds what another source knows more of the same event.
    pub(super) fn add(&mut self, other: Self) {
        self.event_time = self.event_time.or(other.event_time);
        self.client = self.client.or(other.client);
        self.trace = self.trace.or(other.trace);
        if self.payload.is_none() {
            self.payload = other.payload;
        }
    }
}

/// The time in an id that Forebay created, in microseconds since 1970, UTC. `None` for ids of keys and contents.
pub(super) fn created_at(id: EventId) -> Option<i64> {
    const VERSION_OF_TIMES: u8 = 7;
    let [a, b, c, d, e, f, version, ..] = id.0;
    let milliseconds = i64::from_be_bytes([0, 0, a, b, c, d, e, f]);
    (version >> 4 == VERSION_OF_TIMES).then_some(milliseconds * 1_000)
}

#[cfg(test)]
mod tests {
    use event::IdGenerator;

    use super::*;

    #[test]
    fn created_id_has_its_time() {
        assert_eq!(created_at(IdGenerator::new(7).request(1_795_000_000_123)), Some(1_795_000_000_123_000));
        assert_eq!(created_at(EventId([0x80; 16])), None);
    }
}
