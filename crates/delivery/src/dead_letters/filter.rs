//! Which dead letters somebody asks for, and what is shown of them.

use std::net::IpAddr;

use event::{EventId, Position};
use eventlog::JournalRecord;
use ledger::{Condition, SinkName};


/// A choice of dead letters: those that fit all that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadFilter {
    /// Refused by this sink.
    pub sink: Option<String>,
    /// Of this type.
    pub type_name: Option<String>,
    /// With this id.
    pub id: Option<EventId>,
    /// Received at this time or later: microseconds since 1970, UTC.
    pub since: Option<i64>,
    /// Received before this time: microseconds since 1970, UTC.
    pub until: Option<i64>,
    /// Refused for a reason that has this in it.
    pub reason: Option<String>,
    /// With a payload on which this is true; where it is neither true nor false the letter isn't meant.
    pub condition: Option<Condition>,
}

impl DeadFilter {
    /// Whether it takes letters of `sink`.
    pub(crate) fn names(&self, sink: &str) -> bool {
        self.sink.as_deref().is_none_or(|wanted| wanted == sink)
    }

    /// Whether it takes this letter, the sink aside.
    pub(crate) fn takes(&self, record: &JournalRecord<'_>) -> bool {
        self.type_name.as_deref().is_none_or(|wanted| wanted == record.type_name)
            && self.id.is_none_or(|wanted| wanted == record.id)
            && self.since.is_none_or(|since| record.received_at >= since)
            && self.until.is_none_or(|until| record.received_at < until)
            && self.reason.as_deref().is_none_or(|part| record.dead.is_some_and(|dead| dead.reason.contains(part)))
            && self.condition.as_ref().is_none_or(|condition| condition.holds(record.payload).unwrap_or(false))
    }
}

/// A dead letter as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The sink that refused it.
    pub sink: SinkName,
    /// The event's id.
    pub id: EventId,
    /// Its type's name.
    pub type_name: String,
    /// Who sent it, or empty.
    pub source: String,
    /// The address that it came from.
    pub client: Option<IpAddr>,
    /// When it was received: microseconds since 1970, UTC.
    pub received_at: i64,
    /// When it happened, if its type names a time: microseconds since 1970, UTC.
    pub event_time: Option<i64>,
    /// Where it stands in the event log.
    pub position: Position,
    /// Why the sink refused it.
    pub reason: String,
    /// The JSON text; empty in a list.
    pub payload: Vec<u8>,
}

impl DeadLetter {
    /// The letter in `record`, if it is one.
    pub(crate) fn of(sink: &SinkName, record: &JournalRecord<'_>, with_payload: bool) -> Option<Self> {
        let dead = record.dead?;
        Some(Self {
            sink: sink.clone(),
            id: record.id,
            type_name: record.type_name.to_owned(),
            source: record.source.to_owned(),
            client: record.client,
            received_at: record.received_at,
            event_time: record.event_time,
            position: Position { shard: dead.shard, sequence: dead.sequence },
            reason: dead.reason.to_owned(),
            payload: if with_payload { record.payload.to_vec() } else { Vec::new() },
        })
    }
}

/// Dead letters that were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadList {
    /// By sink, then in the order in which they were refused last.
    pub letters: Vec<DeadLetter>,
    /// Whether there are more than were asked for.
    pub more: bool,
    /// Positions of these journals that are lost, with the letters on them.
    pub lost: u64,
}

impl DeadList {
    /// Takes in a letter while there is room; whether there was.
    pub(crate) fn add(&mut self, limit: usize, letter: impl FnOnce() -> Option<DeadLetter>) -> bool {
        self.more = self.letters.len() >= limit;
        if !self.more {
            self.letters.extend(letter());
        }
        !self.more
    }
}
