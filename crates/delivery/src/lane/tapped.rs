//! Dead letters of a lane, for those who watch.

use dead_letters::NewDeadLetter;
use tap::{Passing, Point, Taps};

/// These events are dead letters.
#[cold]
pub(super) fn dead(taps: &Taps, lane: &event::Lane, events: &[NewDeadLetter<'_>]) {
    for NewDeadLetter { sequence, record, reason } in events {
        let passing = Passing {
            type_name: record.type_name,
            source: record.source,
            sink: &lane.sink,
            id: Some(record.id),
            position: Some((lane.shard, *sequence)),
            received_at: record.received_at,
            bytes: record.payload.len(),
            payload: Some(record.payload),
            reason,
            ..Passing::default()
        };
        taps.offer(Point::Dead, &passing);
    }
}
