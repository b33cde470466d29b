//! The lines of an object that are made ahead: while its events are gathered, when nobody knows yet where it ends. Where they are kept
//! until it is written, its events needn't be read from the journal again.

use super::memory_budget::{MemoryBudget, MemoryPermit};
use super::sealed::{BUFFER_BYTES, Sealed};
use super::{Line, ObjectRules, line, line_bytes};
use bytes::Bytes;
use sink::Record;

/// Lines in memory, one behind the other, as long as there is room for them.
#[derive(Debug)]
pub struct Lines {
    line: Line,
    shard: u16,
    /// Bytes at which the object ends.
    bytes_max: usize,
    /// Whole lines each, none is empty.
    pieces: Vec<Bytes>,
    /// The last piece.
    open: Vec<u8>,
    sealed: Sealed,
    room: MemoryBudget,
    /// The bytes of the pieces, and the capacity of the last one.
    used: usize,
    /// For as much at least.
    held: MemoryPermit,
}

impl Lines {
    /// Begins those of an object by these rules, of events of `shard`, if its bytes could be kept as a whole and depend on nothing but its events.
    pub(super) fn new(rules: &ObjectRules, shard: u16, room: &MemoryBudget) -> Option<Self> {
        let bytes_max = Self::bytes_ahead(rules, room)?;
        // Of types that are told apart there are many objects, few of which become whole: they take what they need.
        let held = room.take_ahead(if rules.prefix.tells_types() { 0 } else { bytes_max })?;
        let (line, pieces, open, sealed, room) = (rules.line, Vec::new(), Vec::new(), Sealed::default(), room.clone());
        Some(Self { line, shard, bytes_max, pieces, open, sealed, room, used: 0, held })
    }

    /// How many bytes lines of an object by these rules may come to, if they can be made ahead.
    pub(super) fn bytes_ahead(rules: &ObjectRules, room: &MemoryBudget) -> Option<usize> {
        let bytes_max = usize::try_from(rules.bytes_max).ok().filter(|bytes| *bytes <= room.object_max() as usize);
        // The names of objects that stand apart stand in lines, and are made of the object's.
        bytes_max.filter(|_| rules.apart.is_none() && rules.codec.of_lines().is_some())
    }

    /// Adds the line of a record. Where this says false there is no room for it: then they are no object's lines, and are to be dropped.
    #[must_use]
    pub fn add(&mut self, record: &Record<'_>) -> bool {
        let bytes = line_bytes(self.line, record.type_name, record.source, record.payload);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if self.open.capacity() - self.open.len() < bytes && !self.begin_piece(bytes) {
            return false;
        }
        let (before, capacity) = (self.open.len(), self.open.capacity());
        line::write(&mut self.open, self.line, self.shard, record);
        self.sealed.count(record, self.open.len() - before);
        // A text that is quoted may have become longer than was thought.
        self.hold(self.open.capacity() - capacity)
    }

    /// Begins a piece with room for so many bytes at least.
    fn begin_piece(&mut self, bytes: usize) -> bool {
        self.close_piece();
        let left = self.bytes_max.saturating_sub(self.used);
        let capacity = left.min(BUFFER_BYTES).max(bytes);
        if !self.hold(capacity) {
            return false;
        }
        self.open = Vec::with_capacity(capacity);
        // The allocator may have given more.
        self.hold(self.open.capacity() - capacity)
    }

    /// Ends the last piece, at what it has.
    fn close_piece(&mut self) {
        self.used -= self.open.capacity() - self.open.len();
        if !self.open.is_empty() {
            self.pieces.push(std::mem::take(&mut self.open).into());
        }
    }

    /// Uses so many bytes more, if an object may have as much, and there is room.
    fn hold(&mut self, bytes: usize) -> bool {
        let used = self.used + bytes;
        if used > self.room.object_max() as usize {
            return false;
        }
        let missing = used.saturating_sub(self.held.bytes());
        let more = if missing > 0 { self.room.take_ahead(missing) } else { None };
        let is_held = missing == 0 || more.is_some();
        if let Some(more) = more {
            self.held.join(more);
        }
        self.used = if is_held { used } else { self.used };
        is_held
    }

    /// The lines in pieces that are none of them empty, what they come to but for digests, and the room that they have.
    pub(super) fn into_whole(mut self) -> (Vec<Bytes>, Sealed, MemoryPermit) {
        self.close_piece();
        self.held.shrink_to(self.used);
        (self.pieces, self.sealed, self.held)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use event::EventId;
    use event::limits::{OBJECT_KEPT_BYTES_MAX, OBJECTS_AHEAD_BYTES_MAX};

    use super::*;
    use crate::{Apart, Codec};
    use sink::Write;

    const OBJECT: u64 = OBJECT_KEPT_BYTES_MAX as u64;

    fn rules(bytes_max: u64, prefix: &str) -> ObjectRules {
        let (prefix, age_max) = (prefix.parse().unwrap(), Duration::from_secs(1));
        ObjectRules {
            line: Line::Envelope,
            codec: Codec::None,
            bytes_max,
            records_max: 1,
            age_max,
            prefix,
            apart: None,
        }
    }

    fn record(payload: &[u8]) -> Record<'_> {
        let (id, write) = (EventId([1; 16]), Write::Insert);
        Record { sequence: 1, id, type_name: "a", source: "", received_at: 0, event_time: None, write, payload }
    }

    /// How many records they take.
    fn filled(lines: &mut Lines, payload: &[u8]) -> usize {
        (0..).take_while(|_| lines.add(&record(payload))).count()
    }

    #[test]
    fn an_object_has_as_much_as_may_be_kept_and_gives_back_what_it_did_not_need() {
        let room = MemoryBudget::new();
        // Line breaks are twice as long where they are quoted, and so longer than was thought.
        for payload in [vec![b'7'; 1_000], vec![b'\n'; 1_000], vec![b'7'; 1 << 20]] {
            let mut lines = Lines::new(&rules(OBJECT, ""), 0, &room).unwrap();
            let count = filled(&mut lines, &payload);
            assert!(lines.used <= lines.held.bytes() && lines.held.bytes() <= OBJECT_KEPT_BYTES_MAX as usize);
            assert!(lines.sealed.line_bytes > OBJECT / 2, "{count} records");
        }
        let mut lines = Lines::new(&rules(OBJECT, ""), 0, &room).unwrap();
        assert!(lines.add(&record(b"1")));
        let (pieces, sealed, held) = lines.into_whole();
        let bytes: usize = pieces.iter().map(Bytes::len).sum();
        assert_eq!((bytes, sealed.records), (held.bytes(), 1));
        drop(held);
        assert!(room.has_ahead(OBJECTS_AHEAD_BYTES_MAX));
    }

    #[test]
    fn many_types_have_what_they_need_as_long_as_there_is_room() {
        let room = MemoryBudget::new();
        let mut types: Vec<Lines> = (0..64).map(|_| Lines::new(&rules(OBJECT, "{type}"), 0, &room).unwrap()).collect();
        assert!(types.iter_mut().all(|lines| lines.add(&record(b"1"))));
        let payload = vec![b'7'; 1 << 19];
        let bytes: u64 = types.iter_mut().map(|lines| filled(lines, &payload) as u64 * (1 << 19)).sum();
        assert!(bytes <= OBJECTS_AHEAD_BYTES_MAX as u64 && bytes > OBJECTS_AHEAD_BYTES_MAX as u64 / 2, "{bytes}");
        assert!(Lines::new(&rules(OBJECT, ""), 0, &room).is_none(), "no room for a whole one");
    }

    #[test]
    fn objects_that_are_too_large_or_no_lines_or_have_names_in_them_are_not_made_ahead() {
        let apart = Some(Apart { data: "/a".into(), content_type: None });
        for (rules, is_ahead) in [
            (rules(OBJECT, ""), true),
            (rules(OBJECT + 1, ""), false),
            (ObjectRules { apart, ..rules(OBJECT, "") }, false),
            (ObjectRules { codec: Codec::Parquet, ..rules(OBJECT, "") }, false),
        ] {
            assert_eq!(Lines::new(&rules, 0, &MemoryBudget::new()).is_some(), is_ahead);
        }
    }
}
