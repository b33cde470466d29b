//! The quarantine: rejected events are stored as events of the type that their own type's `refused_to` names.
//!
//! It is done on a best effort. The handler of a request keeps what is stored of an event and adds it to a queue, here. A task of the shard
//! stores it ([`super::quarantine_task`]). No request waits for that, and what is in the queue when the process is killed is lost.

use crate::event_types::{Slot, TypeCache};
use crate::ingest::{Envelope, RecordBuilder};
use crate::problem::Refused;
use crate::refusals::{Capture, QuarantineCounts, RefusedEvent, Rejected};
use crate::shard::ShardContext;

/// Whether rejected events of the type at `slot` are stored.
pub(super) fn wants(types: &TypeCache, slot: Slot) -> bool {
    types.get(slot).rules.refused_to.is_some()
}

/// Adds an event that was rejected, if it is to be stored.
pub(super) fn add(shard: &ShardContext, envelope: &Envelope, problem: &Refused, bytes: &[u8]) {
    let rejected = Rejected { problem, line: None, bytes, received_at: envelope.received_at };
    match RefusedEvent::capture(&shard.rules().types, &rejected) {
        Capture::NotWanted => {}
        Capture::LeftOut => counts(shard).left_out.add(1),
        Capture::Event(event) => queue(shard, *event, envelope),
    }
}

/// Adds what a batch has kept of its rejected records.
pub(super) fn add_of_batch(shard: &ShardContext, builder: &mut RecordBuilder) {
    counts(shard).left_out.add(builder.tally.left_out);
    for event in std::mem::take(&mut builder.tally.events) {
        queue(shard, event, builder.envelope());
    }
}

fn queue(shard: &ShardContext, event: RefusedEvent, envelope: &Envelope) {
    if !shard.refusals.add(event, envelope) {
        counts(shard).left_out.add(1);
    }
}

pub(super) fn counts(shard: &ShardContext) -> &QuarantineCounts {
    &shard.shared.counters.quarantine
}
