//! `POST /ingest/event`: one payload, one event.

use std::borrow::Cow;

use event::limits::EVENT_BYTES_MAX;
use event::{EventId, KeyedIds, Position};
use eventlog::{AppendError, AppendOutcome, Record};
use pipeline::Values;
use pipeline::json::{self, JsonErrorKind};

use crate::code::Code;
use crate::effort::{self, Much, Work};
use crate::encoder::{Envelope, own_id, type_of};
use crate::http1::body::Body;
use crate::http1::response::Response;
use crate::problem::{Problem, Refused};
use crate::request::Wishes;
use crate::stepped::{self, Otherwise};
use crate::type_cache::Slot;
use crate::type_table::{Known, TypeTable};
use crate::worker::Worker;
use crate::{answer, beside};

/// Takes an event: the answer is ready when it is durable.
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
        Came::Much(slot, bytes) => Box::pin(beside::take(worker, wishes, envelope, (slot, bytes), &mut permit)).await?,
    };
    let Appended { taken, id, .. } = match done {
        Done::One(appended) => appended,
        Done::Otherwise(otherwise) => return Box::pin(otherwise.answer(worker, wishes, permit)).await,
    };
    let (position, duplicate) = durable(worker, taken).await?;
    Ok(event_response(wishes, id, position, duplicate))
}

/// The answer to an event that is durable.
pub(crate) fn event_response(wishes: &Wishes, id: EventId, position: Position, duplicate: bool) -> Response {
    if wishes.json { answer::of_event_as_json(id, position, duplicate) } else { Response::ok() }
}

/// Waits until an event, or its first copy, is durable. Says where it stands and whether it came before.
pub(crate) async fn durable(worker: &Worker, taken: AppendOutcome<'_>) -> Result<(Position, bool), Refused> {
    let (result, duplicate) = match taken {
        AppendOutcome::Appended(append) => {
            let position = append.position();
            (append.await.map(|()| position), false)
        }
        AppendOutcome::Duplicate(earlier) => (earlier.durable().await, true),
        AppendOutcome::IdConflict | AppendOutcome::Partial | AppendOutcome::RetryAfter(_) | AppendOutcome::Empty => {
            return Err(other_bytes());
        }
    };
    let position = result.map_err(|error| of_append(worker, error))?;
    if duplicate {
        worker.cells().duplicates.add(1);
    }
    Ok((position, duplicate))
}

/// What is to be done with an event that came.
pub(crate) enum Came<'w> {
    Done(Done<'w>),
    /// It is much work: its type, unless it is that already to know it, and a copy of it.
    Much(Option<Slot>, Vec<u8>),
}

/// What an event has come to.
pub(crate) enum Done<'w> {
    One(Appended<'w>),
    /// Its type's steps made none of it, or several.
    Otherwise(Otherwise),
}

/// An event that was appended, or came before.
pub(crate) struct Appended<'w> {
    pub(crate) taken: AppendOutcome<'w>,
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
) -> Result<Came<'w>, Refused> {
    let mut types = worker.types();
    wishes.check_reading(&types)?;
    if let Some(slot) = wishes.slot.filter(|slot| types.get(*slot).is_much_work(bytes.len())) {
        types.get(slot).check()?;
        wishes.ack.check(types.get(slot))?;
        return Ok(Came::Much(Some(slot), bytes.to_vec()));
    }
    let mut work = Work::inline();
    if wishes.slot.is_none() && effort::is_much_by_size(bytes.len()) {
        return Ok(Came::Much(None, bytes.to_vec()));
    }
    let (payload, fault) = checked(bytes, types.table())?;
    let payload = &*payload;
    let slot = match wishes.slot {
        Some(slot) => slot,
        None => match type_of(&mut types, payload, &mut work) {
            Ok(slot) => slot?,
            Err(Much) => return Ok(Came::Much(None, bytes.to_vec())),
        },
    };
    let known = types.get(slot);
    known.check()?;
    known.check_mended(fault)?;
    wishes.ack.check(known)?;
    if wishes.slot.is_none() && known.is_much_work(bytes.len()) {
        return Ok(Came::Much(Some(slot), bytes.to_vec()));
    }
    drop(types);
    let mut values = worker.values();
    let came = append_checked(worker, wishes, envelope, (slot, payload, bytes), (&mut values, &mut work));
    values.forget();
    came
}

/// Appends an event that may be taken, if it is what its type's schema wants.
fn append_checked<'w>(
    worker: &'w Worker,
    wishes: &Wishes,
    envelope: &Envelope,
    (slot, payload, bytes): (Slot, &str, &[u8]),
    (values, work): (&mut Values, &mut Work),
) -> Result<Came<'w>, Refused> {
    let types = worker.types();
    let known = types.get(slot);
    let Ok(checked) = known.check_payload(payload, values, work) else {
        return Ok(Came::Much(Some(slot), bytes.to_vec()));
    };
    let payload = checked?;
    if let Some(steps) = known.rules.steps.clone() {
        drop(types);
        return stepped::append(worker, wishes, envelope, slot, (&steps, payload, bytes), work);
    }
    let payload = known.storable(payload.payload())?;
    let given = given_id(wishes, envelope, known, &payload)?;
    let time = known.time_of(&payload)?;
    let id = given.unwrap_or_else(|| worker.new_id(envelope.received_at));
    let content = given.map(|_| worker.content_hash().of(bytes));
    let record = Record { content, ..envelope.record(known, (id, time), &payload) };
    let taken = worker.log().append_one(&record, known.id).map_err(|error| of_append(worker, error))?;
    Ok(Came::Done(Done::One(Appended { taken, id, slot })))
}

/// The JSON that came as these bytes, of whatever type; mended, where some type's payloads are, and then what was at fault.
pub(crate) fn checked<'b>(bytes: &'b [u8], table: &TypeTable) -> Result<(Cow<'b, str>, Option<Problem>), Refused> {
    match json::check(bytes) {
        Ok(payload) => Ok((Cow::Borrowed(payload), None)),
        Err(error) if error.kind == JsonErrorKind::Surrogate && table.repairs => {
            Ok((Cow::Owned(json::mend(bytes)), Some(*Problem::of_json(error))))
        }
        Err(error) => Err(Problem::of_json(error)),
    }
}

/// The id that a client gave an event: its own, or that of the request's key.
pub(crate) fn given_id(
    wishes: &Wishes,
    envelope: &Envelope,
    known: &Known,
    payload: &str,
) -> Result<Option<EventId>, Problem> {
    Ok(own_id(&envelope.source, known, payload)?.or_else(|| key_id(wishes, envelope, known)))
}

/// The id that the request's key gives its only event.
pub(crate) fn key_id(wishes: &Wishes, envelope: &Envelope, known: &Known) -> Option<EventId> {
    wishes.key.as_ref().map(|key| KeyedIds::new(&envelope.source, &known.name, key).id(0))
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
