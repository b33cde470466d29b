//! Finds an event in the journal while its segment is there: by its position, or by the time in its id. Reads the disk.

use std::sync::Arc;

use event::{EventId, Position, TypeName};
use eventlog::{JournalRecord, LogChunk, Reader, Shard};
use limits::BATCH_RECORDS_MAX;

use super::known::{KnownEvent, created_at};

/// A block is written after its events are received. The clock of a shard's ids may be this much ahead of that of blocks, in microseconds.
const CLOCK_SLACK: i64 = 50_000;
/// An event is durable this long after its receipt at most, unless its batch arrives slowly; in microseconds.
const DURABLE_WITHIN: i64 = 60_000_000;
/// Bytes of a shard that a search by time reads at most.
const SEARCH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// An event of the journal, and its block.
#[derive(Debug)]
pub(super) struct Journaled {
    pub(super) event: KnownEvent,
    pub(super) position: Position,
    /// Microseconds since 1970, UTC. `None` if the block is damaged.
    pub(super) durable_at: Option<i64>,
    pub(super) events_in_block: Option<u64>,
}

impl Journaled {
    fn of(shard: u16, chunk: &LogChunk, sequence: u64, record: &JournalRecord<'_>) -> Self {
        let header = match chunk {
            LogChunk::Block(block) => Some(block.header()),
            LogChunk::Damaged(_) => None,
        };
        Self {
            event: record.into(),
            position: Position { shard, sequence },
            durable_at: header.map(|header| header.written_at),
            events_in_block: header.map(|header| u64::from(header.span)),
        }
    }
}

/// The event at a position; with an id the event with it in the same request, of which the position is the first.
pub(super) fn at(shards: &[Arc<Shard>], position: Position, id: Option<EventId>) -> Option<Journaled> {
    let shard = shards.get(usize::from(position.shard))?;
    let durable = shard.durable();
    let mut reader = Reader::new(shard.segments().clone(), position.sequence);
    let last = position.sequence.saturating_add(BATCH_RECORDS_MAX as u64);
    // A segment may be freed at any time, and damage is reported by the lanes: neither has the event.
    while let Some(chunk) = reader.read(durable).ok().flatten() {
        for (sequence, record) in chunk.records().filter(|(sequence, _)| *sequence >= position.sequence) {
            if sequence > position.sequence && id.is_none() {
                return None;
            }
            if id.is_none_or(|id| id == record.id) {
                // A tick of an aggregate is no event, and has no valid type.
                let is_event = TypeName::check(record.type_name).is_ok();
                return is_event.then(|| Journaled::of(position.shard, &chunk, sequence, &record));
            }
            if record.request_end {
                return None;
            }
        }
        if chunk.end() > last {
            return None;
        }
    }
    None
}

/// The event with an id that Forebay created, by the time in it.
pub(super) fn by_time(shards: &[Arc<Shard>], id: EventId) -> Option<Journaled> {
    let time = created_at(id)?;
    shards.iter().find_map(|shard| in_shard(shard, id, time))
}

fn in_shard(shard: &Shard, id: EventId, time: i64) -> Option<Journaled> {
    let (durable, segments) = (shard.durable(), shard.segments());
    let first = segments.written_since(time.saturating_sub(CLOCK_SLACK), durable).ok()?;
    let (mut reader, mut bytes) = (Reader::new(segments.clone(), first), 0);
    while bytes < SEARCH_BYTES_MAX {
        let chunk = reader.read(durable).ok().flatten()?;
        if let Some((sequence, record)) = chunk.records().find(|(_, record)| record.id == id) {
            return Some(Journaled::of(shard.number(), &chunk, sequence, &record));
        }
        let is_late = |written: i64| written > time.saturating_add(DURABLE_WITHIN);
        if matches!(&chunk, LogChunk::Block(block) if is_late(block.header().written_at)) {
            return None;
        }
        bytes += chunk.bytes().len();
    }
    None
}
