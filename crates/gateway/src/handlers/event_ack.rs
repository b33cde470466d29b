//! `POST /ingest/event` with an acknowledgement that may differ from the default: the request or its type asks for it. A separate handler
//! keeps it free for the default.

use ::event::{EventId, Position};
use eventlog::WatchRequest;

use super::event::{self, COMMIT, INGEST, Ingested, end_step, ingest};
use crate::ack::response::{self as ack_response, SingleEvent};
use crate::ack::{commit_wait, until_delivered};
use crate::admission::Body;
use crate::append::{AppendedEvent, PendingCommit};
use crate::event_types::Slot;
use crate::ingest::{AckMode, Envelope, IngestParams};
use crate::problem::Refused;
use crate::shard::ShardContext;
use http1::Response;

/// Accepts an event. The response is ready when the event is acknowledged as asked, or won't be soon.
pub(crate) async fn handle(
    shard: &ShardContext,
    params: &IngestParams,
    envelope: &Envelope,
    body: &mut Body<'_>,
) -> Result<Response, Refused> {
    let mut permit = shard.permit(shard.client(envelope));
    let mut steps = shard.steps(envelope);
    let ingested = ingest(shard, params, envelope, body, &mut permit).await?;
    end_step(&mut steps, INGEST);
    let AppendedEvent { commit, id, slot } = match ingested {
        Ingested::One(appended) => appended,
        Ingested::Otherwise(outcome) => return outcome.respond(shard, params, permit).await,
    };
    let ack = params.ack.of_types(std::iter::once(shard.types().get(slot)));
    if ack == AckMode::Memory {
        // It is committed with the next block although no handler waits for it.
        return Ok(in_memory(shard, &commit, id));
    }
    let (position, duplicate) = commit_wait::wait(shard, commit).await?;
    end_step(&mut steps, COMMIT);
    if ack == AckMode::Disk {
        return Ok(event::respond(params, id, position, duplicate));
    }
    // A durable event is no longer in flight, however long its client waits.
    drop(permit);
    let asked = asked(shard, slot, position, duplicate.then_some(id)).await;
    let status = until_delivered::wait(shard, asked).await;
    Ok(ack_response::of_event(&SingleEvent { id, position, duplicate }, &status, params.json))
}

fn in_memory(shard: &ShardContext, commit: &PendingCommit<'_>, id: EventId) -> Response {
    let duplicate = matches!(commit, PendingCommit::Original(_));
    shard.cells().duplicates.add(u64::from(duplicate));
    ack_response::of_event_in_memory(id, duplicate)
}

async fn asked(shard: &ShardContext, slot: Slot, position: Position, duplicate_id: Option<EventId>) -> WatchRequest {
    let types = vec![shard.types().get(slot).name.clone()];
    if duplicate_id.is_none() {
        return WatchRequest { spans: vec![until_delivered::new_span(position, 1)], types };
    }
    let mut asked = WatchRequest { spans: Vec::new(), types };
    until_delivered::add_copies(shard, vec![(position, duplicate_id)], &mut asked).await;
    asked
}
