//! A record of the journal of dead letters: an event, and its outcome at its sink. The journal keeps the outcome as
//! fields that only this crate reads and writes.

use eventlog::{Appender, JournalRecord, LogChunk, fields, push_field};

const TAG_SEQUENCE: u8 = 6;
const TAG_REASON: u8 = 7;
const TAG_SHARD: u8 = 8;
const TAG_KIND: u8 = 11;
const TAG_FIRST_WRITTEN_AT: u8 = 14;

/// The time of a record whose block is damaged.
const NO_TIME: i64 = i64::MIN;

/// What a record says of its event. Of several records of one event the last counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// It is a dead letter: the store rejected it for the reason that is given.
    DeadLetter,
    /// It was a dead letter; the store accepted it when it was sent again.
    Replayed,
    /// It was a dead letter; the operator discarded it.
    Dropped,
    /// It is deferred: the store rejects it for now, and its lane sends it again.
    Deferred,
    /// It was deferred, and the store has it.
    Stored,
    /// It was deferred; its lane sends it in order, or its route was discarded.
    Released,
}

/// The codes of the kinds other than a dead letter, which has none.
const CODES: [(RecordKind, u8); 5] = [
    (RecordKind::Replayed, 1),
    (RecordKind::Dropped, 2),
    (RecordKind::Deferred, 3),
    (RecordKind::Stored, 4),
    (RecordKind::Released, 5),
];

/// An event, and its outcome at its sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeadRecord<'a> {
    /// The event. Ends have no payload.
    pub(crate) event: JournalRecord<'a>,
    /// The shard that the event came from.
    pub(crate) shard: u16,
    /// The event's position in its shard.
    pub(crate) sequence: u64,
    pub(crate) kind: RecordKind,
    /// The store's error message; empty in an end.
    pub(crate) reason: &'a str,
    /// The time of the dead letter's first record, in microseconds since 1970, UTC. On disk only in a record that
    /// replaces another; [`all_in`](Self::all_in) sets it in all. [`NO_TIME`] if it isn't known.
    pub(crate) first_written_at: Option<i64>,
}

impl<'a> DeadRecord<'a> {
    /// `None` for a record that isn't one, or of a kind that this version doesn't know.
    pub(crate) fn of(event: JournalRecord<'a>) -> Option<Self> {
        let (mut sequence, mut shard, mut kind, mut reason) = (None, 0, RecordKind::DeadLetter, None);
        let mut first_written_at = None;
        for (tag, value) in fields(event.owner_fields) {
            match tag {
                TAG_SEQUENCE => sequence = Some(u64::from_le_bytes(value.try_into().ok()?)),
                TAG_SHARD => shard = u16::from_le_bytes(value.try_into().ok()?),
                TAG_KIND => kind = CODES.iter().find(|(_, code)| [*code] == *value)?.0,
                TAG_REASON => reason = Some(std::str::from_utf8(value).ok()?),
                TAG_FIRST_WRITTEN_AT => first_written_at = Some(i64::from_le_bytes(value.try_into().ok()?)),
                _ => {}
            }
        }
        Some(Self { event, shard, sequence: sequence?, kind, reason: reason?, first_written_at })
    }

    /// The records of a chunk, with their positions in the journal. Dead letters have the time of their first record: if one of them is
    /// written again, it keeps that time.
    pub(crate) fn all_in(chunk: &LogChunk) -> impl Iterator<Item = (u64, DeadRecord<'_>)> {
        let written_at = written_at(chunk).unwrap_or(NO_TIME);
        chunk.records().filter_map(move |(at, record)| {
            let record = DeadRecord::of(record)?;
            let is_dead_letter = record.kind == RecordKind::DeadLetter;
            let first_written_at = is_dead_letter.then(|| record.first_written_at.unwrap_or(written_at));
            Some((at, DeadRecord { first_written_at, ..record }))
        })
    }

    /// The time of its first record, if that is known.
    pub(crate) fn known_first_time(&self) -> Option<i64> {
        self.first_written_at.filter(|at| *at != NO_TIME)
    }

    /// What ends the event in the journal.
    pub(crate) fn end(&self, kind: RecordKind) -> Self {
        Self { event: JournalRecord { payload: &[], ..self.event }, kind, reason: "", first_written_at: None, ..*self }
    }

    /// Appends it to the open block of a journal.
    pub(crate) fn append_to(&self, appender: &mut Appender) {
        appender.push(&JournalRecord { owner_fields: &self.fields(), ..self.event });
    }

    fn fields(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        push_field(&mut fields, TAG_SEQUENCE, &self.sequence.to_le_bytes());
        push_field(&mut fields, TAG_SHARD, &self.shard.to_le_bytes());
        if let Some((_, code)) = CODES.iter().find(|(kind, _)| *kind == self.kind) {
            push_field(&mut fields, TAG_KIND, &[*code]);
        }
        if let Some(time) = self.first_written_at {
            push_field(&mut fields, TAG_FIRST_WRITTEN_AT, &time.to_le_bytes());
        }
        push_field(&mut fields, TAG_REASON, self.reason.as_bytes());
        fields
    }
}

/// When a part of the journal was written; `None` if its block is damaged.
pub(crate) fn written_at(chunk: &LogChunk) -> Option<i64> {
    match chunk {
        LogChunk::Block(block) => Some(block.header().written_at),
        LogChunk::Damaged(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use event::EventId;

    use super::*;

    const EVENT: JournalRecord<'_> = JournalRecord::new(EventId([1; 16]), 1, "job", b"{}");

    const LETTER: DeadRecord<'_> = DeadRecord {
        event: EVENT,
        shard: 0x0301,
        sequence: 0x16,
        kind: RecordKind::DeadLetter,
        reason: "no",
        first_written_at: None,
    };

    /// Journals of earlier versions have these bytes, and earlier versions read them.
    #[test]
    fn fields_have_the_bytes_of_format_1() {
        let place = [6, 8, 0, 0, 0, 0x16, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 0, 1, 3];
        let reason = [7, 2, 0, 0, 0, b'n', b'o'];
        assert_eq!(LETTER.fields(), [&place[..], &reason].concat());
        for (kind, code) in CODES {
            let record = DeadRecord { kind, ..LETTER };
            assert_eq!(record.fields(), [&place[..], &[11, 1, 0, 0, 0, code], &reason].concat(), "{kind:?}");
        }
        assert_eq!(CODES.map(|(_, code)| code), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn written_records_are_read() {
        let kinds = CODES.map(|(kind, _)| (kind, None)).into_iter();
        let dead_letters = [None, Some(5), Some(NO_TIME)].map(|time| (RecordKind::DeadLetter, time));
        for (kind, first_written_at) in kinds.chain(dead_letters) {
            let record = DeadRecord { kind, first_written_at, ..LETTER };
            let fields = record.fields();
            let event = JournalRecord { owner_fields: &fields, ..EVENT };
            assert_eq!(DeadRecord::of(event), Some(DeadRecord { event, ..record }), "{kind:?}");
        }
    }

    #[test]
    fn invalid_records_are_ignored() {
        let with = |fields: &[u8]| DeadRecord::of(JournalRecord { owner_fields: fields, ..EVENT }).is_some();
        let fields = LETTER.fields();
        assert!(with(&fields));
        assert!(!with(&[]), "an event");
        assert!(!with(&fields[..fields.len() - 1]), "no whole reason");
        assert!(!with(&[&fields[..], &[11, 1, 0, 0, 0, 6]].concat()), "a kind of a later version");
        assert!(with(&[&fields[..], &[99, 0, 0, 0, 0]].concat()), "a field of a later version");
    }
}
