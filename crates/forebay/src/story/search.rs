//! Finds an event in the journal and in the deduplication window. Reads the disk.

use event::{EventId, Position};
use eventlog::EventLog;

use super::journaled::{self, Journaled};
use super::query::StoryQuery;

/// What the log knows of an event.
#[derive(Debug, Default)]
pub(super) struct InLog {
    /// While its segment is there.
    pub(super) journaled: Option<Journaled>,
    /// Its position, or the first one of its batch.
    pub(super) position: Option<Position>,
    /// Whether the position is that of the event itself.
    pub(super) is_exact: bool,
    /// Whether the deduplication window has its id or its key.
    pub(super) is_remembered: bool,
    /// The ids that it may have, the likeliest first.
    pub(super) ids: Vec<EventId>,
    /// The position of the query has another event.
    pub(super) is_elsewhere: bool,
}

impl InLog {
    pub(super) fn search(log: &EventLog, query: &StoryQuery) -> Self {
        let (shards, mut ids) = (log.shards(), query.ids());
        let Some(any) = shards.first() else { return Self::default() };
        let remembered = query.remembered_as().into_iter().find_map(|id| Some((id, any.position_of(id)?)));
        let of_event = remembered.filter(|(id, _)| ids.contains(id)).map(|(id, _)| id);
        // The key of a batch finds its first event, regardless of its id.
        let wanted = if remembered.is_some() { of_event } else { ids.first().copied() };
        let asked = query.position.filter(|position| any.has_durable(*position));
        let position = remembered.map(|(_, position)| position).or(asked);
        let mut journaled = position.and_then(|position| journaled::at(shards, position, wanted));
        let is_there = |position: Position| {
            let shard = shards.get(usize::from(position.shard));
            shard.and_then(|shard| shard.segments().oldest()).is_some_and(|oldest| position.sequence >= oldest)
        };
        let is_elsewhere = journaled.is_none() && remembered.is_none() && asked.is_some_and(is_there);
        if journaled.is_none() && (position.is_none() || is_elsewhere) {
            journaled = wanted.and_then(|id| journaled::by_time(shards, id));
        }
        if let Some(found) = &journaled {
            ids = vec![found.event.id];
        } else if remembered.is_some() && of_event.is_none() {
            // The events of a batch are numbered from 1.
            ids.rotate_left(1);
        }
        let known = journaled.as_ref().map(|found| found.position);
        let is_exact = known.is_some() || of_event.is_some() || (ids.is_empty() && asked.is_some());
        Self {
            position: known.or(position.filter(|_| !is_elsewhere)),
            is_exact,
            is_remembered: remembered.is_some(),
            ids,
            is_elsewhere,
            journaled,
        }
    }

    /// The position for a search that needs the event's own.
    pub(super) fn exact_position(&self) -> Option<Position> {
        self.position.filter(|_| self.is_exact)
    }
}
