//! `POST /ingest/event` where an event is, or may have to be, acknowledged otherwise than when it is durable: its head asks for that, or
//! its type does. It has a handler of its own, so that what most clients ask for costs nothing more.

use event::limits::EVENT_BYTES_MAX;
use event::{EventId, Position};
use eventlog::{AppendOutcome, WatchRequest};

use crate::ack::Ack;
use crate::acknowledgement::{self, SingleEvent};
use crate::encoder::Envelope;
use crate::event_request::{Appended, Came, Done, append, durable, event_response, other_bytes};
use crate::http1::body::Body;
use crate::http1::response::Response;
use crate::problem::Refused;
use crate::request::Wishes;
use crate::type_cache::Slot;
use crate::worker::Worker;
use crate::{beside, stored};

/// Takes an event: the answer is ready when what was wished for is true of it, or won't be soon.
pub(crate) async fn take(
    worker: &Worker,
    wishes: &Wishes,
    envelope: &Envelope,
    body: &mut Body<'_>,
) -> Result<Response, Refused> {
    let mut permit = worker.permit(worker.sender(envelope));
    let came = body.whole(EVENT_BYTES_MAX, &mut permit, |bytes| append(worker, wishes, envelope, bytes)).await?;
    let done = match came? {
        Came::Done(done) => done,
        Came::Much(slot, bytes) => beside::take(worker, wishes, envelope, (slot, bytes), &mut permit).await?,
    };
    let Appended { taken, id, slot } = match done {
        Done::One(appended) => appended,
        Done::Otherwise(otherwise) => return otherwise.answer(worker, wishes, permit).await,
    };
    let ack = wishes.ack.of_types(std::iter::once(worker.types().get(slot)));
    if ack == Ack::Memory {
        // It is committed with its turn though nobody waits for it.
        return in_memory(worker, &taken, id);
    }
    let (position, duplicate) = durable(worker, taken).await?;
    if ack == Ack::Disk {
        return Ok(event_response(wishes, id, position, duplicate));
    }
    // What is stored isn't in flight any more, however long its client waits.
    drop(permit);
    let asked = asked(worker, slot, position, duplicate.then_some(id)).await;
    let standing = stored::wait(worker, asked).await;
    Ok(acknowledgement::of_event(&SingleEvent { id, position, duplicate }, &standing, wishes.json))
}

fn in_memory(worker: &Worker, taken: &AppendOutcome<'_>, id: EventId) -> Result<Response, Refused> {
    let duplicate = match taken {
        AppendOutcome::Appended(_) => false,
        AppendOutcome::Duplicate(_) => true,
        AppendOutcome::IdConflict | AppendOutcome::Partial | AppendOutcome::RetryAfter(_) | AppendOutcome::Empty => {
            return Err(other_bytes());
        }
    };
    worker.cells().duplicates.add(u64::from(duplicate));
    Ok(acknowledgement::of_event_in_memory(id, duplicate))
}

async fn asked(worker: &Worker, slot: Slot, position: Position, again: Option<EventId>) -> WatchRequest {
    let types = vec![worker.types().get(slot).name.clone()];
    if again.is_none() {
        return WatchRequest { spans: vec![stored::new_span(position, 1)], types };
    }
    let mut asked = WatchRequest { spans: Vec::new(), types };
    stored::add_copies(worker, vec![(position, again)], &mut asked).await;
    asked
}
