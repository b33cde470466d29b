//! The task of a shard that stores rejected events: it takes each through the ingest pipeline of the other type, and appends it.

use super::event::{Ingested, ingest_bytes};
use super::quarantine::counts;
use crate::error_code::ErrorCode;
use crate::ingest::{Envelope, IngestParams};
use crate::problem::Refused;
use crate::refusals::RefusedEvent;
use crate::shard::ShardContext;

/// Stores what is added, for as long as the shard runs.
pub(crate) async fn follow(shard: &ShardContext) {
    loop {
        let (event, envelope) = shard.refusals.next().await;
        store(shard, &event, &envelope).await;
    }
}

/// Stores what is left when the shard ends.
pub(crate) async fn finish(shard: &ShardContext) {
    while let Some((event, envelope)) = shard.refusals.take() {
        store(shard, &event, &envelope).await;
    }
}

async fn store(shard: &ShardContext, event: &RefusedEvent, envelope: &Envelope) {
    match try_store(shard, event, envelope).await {
        Ok(()) => counts(shard).stored.add(1),
        // It was rejected at another time, or for another reason: what is stored stays.
        Err(problem) if problem.code == ErrorCode::IdReused => counts(shard).repeated.add(1),
        Err(_) => counts(shard).left_out.add(1),
    }
}

async fn try_store(shard: &ShardContext, event: &RefusedEvent, envelope: &Envelope) -> Result<(), Refused> {
    let params = {
        let mut types = shard.types();
        let slot = types.find_again(event.to().as_str())?;
        types.get(slot).check()?;
        IngestParams::of_own_event(&types, slot, event.key())
    };
    let mut permit = shard.permit(shard.client(envelope));
    let document = event.document(&envelope.source, envelope.received_at);
    permit.admit(document.len())?;
    match ingest_bytes(shard, &params, envelope, &document, &mut permit).await? {
        Ingested::One(_) => Ok(()),
        Ingested::Otherwise(outcome) => outcome.respond(shard, &params, permit).await.map(drop),
    }
}
