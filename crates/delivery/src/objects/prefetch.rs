//! The lines of what is gathered, made as it is read: where a backlog is worked off its objects needn't be read from the journal twice.
//!
//! They are let go where a lane has caught up, since then an object may wait long for its last events, and where there is no room. Then
//! its events are read again when it is written, as after a crash.

use std::collections::BTreeMap;

use objects::Lines;
use objects::ObjectSink;
use sink::Record;

/// Lines of a run of positions.
pub(crate) struct PrefetchedLines {
    shard: u16,
    /// By object: the slot of its type where types are told apart. `None` when they were let go.
    lines: Option<BTreeMap<usize, Lines>>,
}

impl PrefetchedLines {
    /// Of events of `shard`.
    pub(crate) const fn new(shard: u16) -> Self {
        Self { shard, lines: Some(BTreeMap::new()) }
    }

    /// Adds the line of a record to those of an object, if there is room.
    pub(crate) fn add(&mut self, object: usize, record: &Record<'_>, store: &ObjectSink) {
        let Some(lines) = &mut self.lines else { return };
        if !Self::is_added(lines, (object, self.shard), record, store) {
            self.let_go();
        }
    }

    fn is_added(
        lines: &mut BTreeMap<usize, Lines>,
        (object, shard): (usize, u16),
        record: &Record<'_>,
        store: &ObjectSink,
    ) -> bool {
        if let Some(lines) = lines.get_mut(&object) {
            return lines.add(record);
        }
        store.lines(shard).is_some_and(|begun| lines.entry(object).or_insert(begun).add(record))
    }

    /// Frees the memory: the events are read again.
    pub(crate) fn let_go(&mut self) {
        self.lines = None;
    }

    /// The lines of each object, by slot, unless they were let go.
    pub(crate) fn into_lines(self) -> Option<Vec<Lines>> {
        Some(self.lines?.into_values().collect())
    }
}
