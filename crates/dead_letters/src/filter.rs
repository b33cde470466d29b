//! Which dead letters a request asks for, and what it shows of them.

use std::net::IpAddr;

use event::{EventId, Position};
use ledger::{Condition, SinkName};

use crate::chosen_ids::ChosenIds;
use crate::cursor::DeadCursor;
use crate::dead_record::DeadRecord;
use crate::reason_group::group_reason;

/// A choice of dead letters: those that match all fields that are set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadFilter {
    /// Rejected by this sink.
    pub sink: Option<String>,
    /// Of this type.
    pub type_name: Option<String>,
    /// With one of these ids.
    pub ids: Option<ChosenIds>,
    /// Received at this time or later: microseconds since 1970, UTC.
    pub since: Option<i64>,
    /// Received before this time: microseconds since 1970, UTC.
    pub until: Option<i64>,
    /// Rejected for a reason that contains this text.
    pub reason: Option<String>,
    /// Of the group with this [reason](crate::DeadGroup::reason).
    pub reason_group: Option<String>,
    /// With a payload for which this is true. If it is undecided, the dead letter does not match.
    pub condition: Option<Condition>,
}

impl DeadFilter {
    /// Whether it matches dead letters of `sink`.
    pub(crate) fn names(&self, sink: &str) -> bool {
        self.sink.as_deref().is_none_or(|wanted| wanted == sink)
    }

    /// Whether only the sink and the type decide: the index has their counts.
    pub(crate) fn is_of_index(&self) -> bool {
        let Self { sink: _, type_name: _, ids, since, until, reason, reason_group, condition } = self;
        ids.is_none()
            && since.is_none()
            && until.is_none()
            && reason.is_none()
            && reason_group.is_none()
            && condition.is_none()
    }

    /// Whether it matches this dead letter, regardless of the sink.
    pub(crate) fn takes(&self, record: &DeadRecord<'_>) -> bool {
        let DeadRecord { event, reason, .. } = record;
        self.type_name.as_deref().is_none_or(|wanted| wanted == event.type_name)
            && self.ids.as_ref().is_none_or(|ids| ids.contains(event.id))
            && self.since.is_none_or(|since| event.received_at >= since)
            && self.until.is_none_or(|until| event.received_at < until)
            && self.reason.as_deref().is_none_or(|part| reason.contains(part))
            && self.reason_group.as_deref().is_none_or(|group| group_reason(reason) == group)
            && self.condition.as_ref().is_none_or(|condition| condition.holds(event.payload).unwrap_or(false))
    }
}

/// A dead letter as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The sink that rejected it.
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
    /// Its position in the event log.
    pub position: Position,
    /// Why the sink rejected it.
    pub reason: String,
    /// The JSON text; empty in a list.
    pub payload: Vec<u8>,
}

impl DeadLetter {
    pub(crate) fn of(sink: &SinkName, record: &DeadRecord<'_>, with_payload: bool) -> Self {
        let DeadRecord { event, shard, sequence, reason, .. } = *record;
        Self {
            sink: sink.clone(),
            id: event.id,
            type_name: event.type_name.to_owned(),
            source: event.source.to_owned(),
            client: event.client,
            received_at: event.received_at,
            event_time: event.event_time,
            position: Position { shard, sequence },
            reason: reason.to_owned(),
            payload: if with_payload { event.payload.to_vec() } else { Vec::new() },
        }
    }
}

/// Dead letters that were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadList {
    /// By sink, then in the order of their last rejections, or in the reverse order.
    pub letters: Vec<DeadLetter>,
    /// Whether there are more than were asked for.
    pub more: bool,
    /// Lost positions of these journals, with the dead letters on them.
    pub lost: u64,
    /// The position of the last one in its sink's journal.
    last: u64,
}

impl DeadList {
    /// Adds the dead letter at a position of its journal if there is room; returns whether there was.
    pub(crate) fn add(&mut self, limit: usize, at: u64, dead_letter: impl FnOnce() -> DeadLetter) -> bool {
        self.more = self.letters.len() >= limit;
        if !self.more {
            self.letters.push(dead_letter());
            self.last = at;
        }
        !self.more
    }

    /// The beginning of the next page; `None` if this is the last one.
    #[must_use]
    pub fn next(&self) -> Option<DeadCursor> {
        let last = self.letters.last().filter(|_| self.more)?;
        Some(DeadCursor { sink: last.sink.to_string(), at: self.last })
    }
}
