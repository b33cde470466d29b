//! Tests of the decisions: each result of a step in each state against a table, and histories against a model of a store. Both must find
//! planted errors.

mod histories;
mod mutants;
mod schedule;
mod store;
mod table;
mod world;

use std::time::Duration;

use bytes::Bytes;
use event::{EventId, Origin};
use sink::{Batch, Claim, Record, Write};

use super::Policy;

/// The claim of the lane under test.
const CLAIM: Claim = Claim([1; 16]);
const ALONE_MAX: Duration = Duration::from_secs(60);

const fn policy(fenced: bool) -> Policy {
    Policy { claim: CLAIM, fenced, defers: !fenced, alone_max: ALONE_MAX }
}

/// A batch of the positions `first..=last` with records at these.
fn batch(first: u64, last: u64, sequences: impl IntoIterator<Item = u64>) -> Batch {
    let block = Bytes::from_static(b"t");
    let lane = event::Lane { origin: Origin([0; 16]), shard: 0, sink: "s".into() };
    let mut batch = Batch::new(lane, first).claimed_by(CLAIM);
    for sequence in sequences {
        let (type_name, payload) = (std::str::from_utf8(&block).unwrap(), &block[..]);
        let (id, write) = (EventId(u128::from(sequence).to_be_bytes()), Write::Insert);
        batch.push(
            &block,
            &Record { sequence, id, type_name, source: "", received_at: 0, event_time: None, write, payload },
        );
    }
    batch.cover(last);
    batch
}

fn sequences(batch: &Batch) -> Vec<u64> {
    batch.records().map(|record| record.sequence).collect()
}
