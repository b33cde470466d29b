//! Events that a store has, for those who watch.

use std::collections::BTreeSet;

use tap::{Passing, Point, Taps};

use crate::{Batch, WriteOutcome};

/// Offers the records of a batch that the store of this sink has after its answer. Call it only if a tap wants them.
#[cold]
pub fn offer_stored(taps: &Taps, sink: &str, batch: &Batch, outcome: &WriteOutcome) {
    let left: BTreeSet<usize> = match outcome {
        WriteOutcome::Committed => BTreeSet::new(),
        WriteOutcome::Partial { refused, retry } => {
            refused.iter().map(|refused| refused.index).chain(retry.iter().map(|retry| retry.index)).collect()
        }
        WriteOutcome::Rejected { .. } => return,
    };
    for (_, record) in batch.records().enumerate().filter(|(index, _)| !left.contains(index)) {
        let passing = Passing {
            type_name: record.type_name,
            source: record.source,
            sink,
            id: Some(record.id),
            position: Some((batch.lane().shard, record.sequence)),
            received_at: record.received_at,
            bytes: record.payload.len(),
            payload: Some(record.payload),
            ..Passing::default()
        };
        taps.offer(Point::Stored, &passing);
    }
}
