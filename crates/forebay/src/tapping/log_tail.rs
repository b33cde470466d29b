//! The durable events of all shards as they come: a tap reads them from the log, as lanes do, so shards do nothing for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use event::TypeName;
use eventlog::{JournalRecord, LogReader, Shard};
use tap::Passing;

/// A tap that reads for longer than this continues with the newest events.
const READ_MAX: Duration = Duration::from_millis(25);

/// The place of a tap in each shard's log.
pub(super) struct LogTail(Vec<(Arc<Shard>, LogReader)>);

impl LogTail {
    /// After the events that are durable now.
    pub(super) fn new(shards: &[Arc<Shard>]) -> Self {
        Self(shards.iter().map(|shard| (shard.clone(), shard.reader(shard.durable()))).collect())
    }

    /// Visits the new events. Returns how many were skipped, because there are too many or they can't be read.
    pub(super) fn read(&mut self, mut visit: impl FnMut(&Passing<'_>)) -> u64 {
        let (begun, mut skipped) = (Instant::now(), 0);
        for (shard, reader) in &mut self.0 {
            while reader.next() <= reader.durable() {
                let next = reader.next();
                let chunk = (begun.elapsed() < READ_MAX).then(|| reader.read().ok().flatten()).flatten();
                let Some(chunk) = chunk else {
                    let durable = shard.durable();
                    skipped += durable.saturating_sub(next - 1);
                    *reader = shard.reader(durable);
                    break;
                };
                let new = chunk.records().filter(|(sequence, _)| *sequence >= next);
                // A tick of an aggregate is no event, and has no valid type.
                let events = new.filter(|(_, record)| TypeName::check(record.type_name).is_ok());
                events.for_each(|(sequence, record)| visit(&passing(shard.number(), sequence, &record)));
            }
        }
        skipped
    }
}

fn passing<'a>(shard: u16, sequence: u64, record: &JournalRecord<'a>) -> Passing<'a> {
    Passing {
        type_name: record.type_name,
        source: record.source,
        id: Some(record.id),
        position: Some((shard, sequence)),
        received_at: record.received_at,
        bytes: record.payload.len(),
        payload: Some(record.payload),
        ..Passing::default()
    }
}
