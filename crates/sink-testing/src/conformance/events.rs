//! Events and batches of the suite.

use bytes::Bytes;
use event::{EventId, Lane, Origin};

use super::suite::Suite;
use sink::{Batch, Record, Write};

/// The type of the suite's events.
pub(super) const TYPE_NAME: &str = "suite";
/// The receive time of a hypothetical event at position 0.
pub(super) const RECEIVED_AT: i64 = 1_760_000_000_000_000;

/// An event of the suite.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) id: EventId,
    pub(super) payload: String,
    pub(super) write: Write,
}

impl Event {
    /// The insert number `number`, with its own id and payload.
    pub(super) fn new(number: u32) -> Self {
        let mut id = [0x80; 16];
        id[12..].copy_from_slice(&number.to_be_bytes());
        Self { id: EventId(id), payload: format!(r#"{{"number": {number}}}"#), write: Write::Insert }
    }

    /// The same id with another payload.
    pub(super) fn with_payload(self, payload: &str) -> Self {
        Self { payload: payload.to_owned(), ..self }
    }

    /// The same id and payload as a result of this revision.
    pub(super) fn with_revision(self, revision: u64) -> Self {
        Self { write: Write::Upsert(revision), ..self }
    }

    /// The event's time: the same in each duplicate, as if it was in the payload.
    fn time(&self) -> i64 {
        let number = self.id.0.last_chunk().map_or(0, |number| u32::from_be_bytes(*number));
        RECEIVED_AT - i64::from(number)
    }

    /// The expected row in the store.
    pub(super) fn row(&self, suite: Suite) -> (EventId, Vec<u8>) {
        (self.id, (suite.as_kept)(self.payload.as_bytes()))
    }
}

/// The events `first..=last`, each at the position of its number.
pub(super) fn numbered(first: u32, last: u32) -> Vec<Event> {
    (first..=last).map(Event::new).collect()
}

/// The suite's lane of this shard.
pub(super) fn lane(shard: u16) -> Lane {
    Lane { origin: Origin([7; 16]), shard, sink: "suite".into() }
}

/// The batch with these records at `first` and the following positions.
pub(super) fn batch(lane: &Lane, first: u64, events: &[Event]) -> Batch {
    sparse(lane, first, (first..).zip(events.iter().cloned().map(Some)))
}

/// The batch from `first` on; some of its positions may have no record.
pub(super) fn sparse(lane: &Lane, first: u64, events: impl Iterator<Item = (u64, Option<Event>)>) -> Batch {
    let mut batch = Batch::new(lane.clone(), first);
    for (sequence, event) in events {
        batch.cover(sequence);
        let Some(event) = event else { continue };
        let block = Bytes::from(format!("suiteclient{}", event.payload));
        let text = std::str::from_utf8(&block).expect("made of texts");
        let record = Record {
            sequence,
            id: event.id,
            type_name: &text[..5],
            source: &text[5..11],
            received_at: RECEIVED_AT + sequence.cast_signed(),
            event_time: Some(event.time()),
            write: event.write,
            payload: &block[11..],
        };
        batch.push(&block, &record);
    }
    batch
}
