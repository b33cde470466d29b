//! Parts of a batch: what is sent, and what remains of it.

use std::collections::BTreeSet;

use sink::{Batch, RejectedRecord, Retry};

/// The most records of a sample, from both ends of the batch.
const SAMPLE_RECORDS: usize = 64;

/// The indices of the records that the store hasn't accepted.
pub(crate) fn left(rejected: &[RejectedRecord], retry: &[Retry]) -> BTreeSet<usize> {
    rejected.iter().map(|rejected| rejected.index).chain(retry.iter().map(|retry| retry.index)).collect()
}

/// The sequences of the records at these indices.
pub(super) fn sequences(batch: &Batch, indices: impl Iterator<Item = usize>) -> BTreeSet<u64> {
    indices.filter_map(|index| Some(batch.get(index)?.sequence)).collect()
}

/// Enough records of a batch to see whether the store accepts anything.
pub(super) fn sample(batch: &Batch) -> Batch {
    let (count, half) = (batch.len(), SAMPLE_RECORDS / 2);
    if count <= SAMPLE_RECORDS {
        return batch.clone();
    }
    batch.without(&(half..count - half).collect::<Vec<_>>())
}

/// The records of a batch that remain after `part` was sent: those of `part` have ended, except `again`.
pub(super) fn rest(batch: &Batch, part: &Batch, again: &[Retry]) -> Batch {
    let again = sequences(part, again.iter().map(|retry| retry.index));
    let ended = part.records().map(|record| record.sequence).filter(|sequence| !again.contains(sequence));
    without(batch, &ended.collect())
}

/// The records of a batch without those that the store rejected in `part`.
pub(super) fn without_rejected(batch: &Batch, part: &Batch, rejected: &[RejectedRecord]) -> Batch {
    without(batch, &sequences(part, rejected.iter().map(|rejected| rejected.index)))
}

/// The larger batch `all` without the records that had ended when `open` remained of it.
pub(super) fn grown(open: &Batch, all: &Batch) -> Batch {
    let left: BTreeSet<u64> = open.records().map(|record| record.sequence).collect();
    let earlier = all.records().map(|record| record.sequence).take_while(|sequence| *sequence <= open.last());
    without(all, &earlier.filter(|sequence| !left.contains(sequence)).collect())
}

fn without(batch: &Batch, ended: &BTreeSet<u64>) -> Batch {
    let records = batch.records().enumerate().filter(|(_, record)| ended.contains(&record.sequence));
    batch.without(&records.map(|(index, _)| index).collect::<Vec<_>>())
}

/// The beginning of the reason of a record that can't be deferred.
pub(super) const NO_ROOM: &str = "the limit of deferred events is reached, and the store rejects another one";

/// A record that cannot be deferred, with the reason.
pub(super) fn without_room(retry: Retry) -> Retry {
    let reason = format!("{NO_ROOM}: {}", retry.reason);
    Retry { reason: reason.into(), ..retry }
}
