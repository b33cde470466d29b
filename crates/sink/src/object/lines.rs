//! The lines of an object that are made ahead: while its events are gathered, when nobody knows yet where it ends. Where they are kept
//! until it is written, its events needn't be read from the journal again.

use bytes::Bytes;
use event::limits::OBJECT_KEPT_BYTES_MAX;

use super::content::{BUFFER_BYTES, Sealed};
use super::room::{Held, Room};
use super::{Line, ObjectRules, line, line_bytes};
use crate::Record;

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
    room: Room,
    /// For the bytes of the pieces, and the capacity of the last one.
    held: Held,
}

impl Lines {
    /// Begins those of an object by these rules, of events of `shard`, if its bytes could be kept as a whole and depend on nothing but its events.
    pub(super) fn new(rules: &ObjectRules, shard: u16, room: &Room) -> Option<Self> {
        let bytes_max = usize::try_from(rules.bytes_max).ok().filter(|bytes| *bytes <= OBJECT_KEPT_BYTES_MAX as usize)?;
        // The names of objects that stand apart stand in lines, and are made of the object's.
        if rules.apart.is_some() {
            return None;
        }
        let (pieces, open, sealed, held) = (Vec::new(), Vec::new(), Sealed::default(), room.take_ahead(0)?);
        Some(Self { line: rules.line, shard, bytes_max, pieces, open, sealed, room: room.clone(), held })
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
        let left = self.bytes_max.saturating_sub(self.held.bytes());
        let capacity = left.min(BUFFER_BYTES).max(bytes);
        if capacity > OBJECT_KEPT_BYTES_MAX as usize || !self.hold(capacity) {
            return false;
        }
        self.open = Vec::with_capacity(capacity);
        // The allocator may have given more.
        self.hold(self.open.capacity() - capacity)
    }

    /// Ends the last piece, and gives back the room that it didn't need.
    fn close_piece(&mut self) {
        let unused = self.open.capacity() - self.open.len();
        self.held.shrink_to(self.held.bytes() - unused);
        if !self.open.is_empty() {
            self.pieces.push(std::mem::take(&mut self.open).into());
        }
    }

    /// Takes room for so many bytes more, if an object may have as much, and there is as much.
    fn hold(&mut self, bytes: usize) -> bool {
        if bytes == 0 {
            return true;
        }
        if self.held.bytes() + bytes > OBJECT_KEPT_BYTES_MAX as usize {
            return false;
        }
        let more = self.room.take_ahead(bytes);
        more.map(|more| self.held.join(more)).is_some()
    }

    /// The lines in pieces that are none of them empty, what they come to but for digests, and the room that they have.
    pub(super) fn into_whole(mut self) -> (Vec<Bytes>, Sealed, Held) {
        self.close_piece();
        (self.pieces, self.sealed, self.held)
    }
}
