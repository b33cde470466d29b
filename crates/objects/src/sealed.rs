//! The size, digest and statistics of a finished object.

use std::collections::BTreeMap;

use event::EventId;
use sink::Record;

/// Bytes that are buffered before they are written.
pub(super) const BUFFER_BYTES: usize = 64 * 1024;

/// An event at the beginning or the end of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) id: EventId,
    pub(super) sequence: u64,
    pub(super) received_at: i64,
}

/// The size, digest and statistics of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sealed {
    pub(super) records: u64,
    pub(super) by_type: BTreeMap<String, u64>,
    pub(super) edges: Option<(Edge, Edge)>,
    pub(super) line_bytes: u64,
    pub(super) bytes: u64,
    pub(super) sha256: [u8; 32],
}

impl Sealed {
    pub(super) fn count(&mut self, record: &Record<'_>, line_bytes: usize) {
        self.records += 1;
        self.line_bytes += line_bytes as u64;
        match self.by_type.get_mut(record.type_name) {
            Some(records) => *records += 1,
            None => drop(self.by_type.insert(record.type_name.to_owned(), 1)),
        }
        let edge = Edge { id: record.id, sequence: record.sequence, received_at: record.received_at };
        let first = self.edges.map_or(edge, |(first, _)| first);
        self.edges = Some((first, edge));
    }
}
