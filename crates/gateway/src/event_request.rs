//! `POST /ingest/event`: one payload, one event.

use event::limits::EVENT_BYTES_MAX;
use event::{EventId, KeyedIds, Position};
use eventlog::{AppendError, Record, Taken};
use pipeline::json;

use crate::answer;
use crate::code::Code;
use crate::encoder::{Envelope, own_id, type_of};
use crate::http1::body::Body;
use crate::http1::response::Response;
use crate::problem::{Problem, Refused};
use crate::request::Wishes;
use crate::type_cache::Slot;
use crate::worker::Worker;

/// Takes an event: the answer is ready when it is durable.
pub(crate) async fn take(
    worker: &Worker,
    wishes: &Wishes,
    envelope: &Envelope,
    body: &mut Body<'_>,
) -> Result<Response, Refused> {
    let mut permit = worker.permit(worker.sender(envelope));
    let appended = body.whole(EVENT_BYTES_MAX, &mut permit, |bytes| append(worker, wishes, envelope, bytes)).await?;
    let Appended { taken, id, .. } = appended?;
    let (position, duplicate) = durable(worker, taken).await?;
    Ok(if wishes.json { answer::of_event_as_json(id, position, duplicate) } else { Response::ok() })
}

/// Waits until an event, or its first copy, is durable. Says where it stands and whether it came before.
pub(crate) async fn durable(worker: &Worker, taken: Taken<'_>) -> Result<(Position, bool), Refused> {
    let (result, duplicate) = match taken {
        Taken::New(append) => {
            let position = append.position();
            (append.await.map(|()| position), false)
        }
        Taken::Again(earlier) => (earlier.durable().await, true),
        Taken::OtherBytes | Taken::Nothing => return Err(other_bytes()),
    };
    let position = result.map_err(|error| of_append(worker, error))?;
    if duplicate {
        worker.cells().duplicates.add(1);
    }
    Ok((position, duplicate))
}

/// An event that was appended, or came before.
pub(crate) struct Appended<'w> {
    pub(crate) taken: Taken<'w>,
    pub(crate) id: EventId,
    /// Its type.
    pub(crate) slot: Slot,
}

/// Checks an event and appends it.
pub(crate) fn append<'w>(
    worker: &'w Worker,
    wishes: &Wishes,
    envelope: &Envelope,
    bytes: &[u8],
) -> Result<Appended<'w>, Refused> {
    let payload = json::check(bytes).map_err(Problem::of_json)?;
    let mut types = worker.types();
    let slot = match wishes.slot {
        Some(slot) => slot,
        None => type_of(&mut types, payload)?,
    };
    let known = types.get(slot);
    known.check()?;
    wishes.ack.check(known)?;
    known.check_payload(payload)?;
    let key = || wishes.key.as_ref().map(|key| KeyedIds::new(&envelope.source, &known.name, key).id(0));
    let given = own_id(&envelope.source, known, payload)?.or_else(key);
    let id = given.unwrap_or_else(|| worker.new_id(envelope.received_at));
    let content = given.map(|_| worker.content_hash().of(bytes));
    let record = Record { content, ..envelope.record(known, id, payload.as_bytes()) };
    let taken = worker.log().append_one(&record, known.id).map_err(|error| of_append(worker, error))?;
    Ok(Appended { taken, id, slot })
}

/// An id may not be used for two events.
pub(crate) fn other_bytes() -> Refused {
    Problem::boxed(Code::IdReused, "the id or the key came before with other bytes; give this one another")
}

/// Why an append isn't durable, as its client sees it.
pub(crate) fn of_append(worker: &Worker, error: AppendError) -> Refused {
    let code = match error {
        AppendError::Busy => Code::Overload,
        AppendError::NoSpace => Code::DiskFull,
        AppendError::Failed => {
            worker.readiness().fail();
            Code::JournalFailed
        }
    };
    Problem::boxed(code, error.to_string())
}
