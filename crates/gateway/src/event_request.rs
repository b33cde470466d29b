//! `POST /ingest/event`: one payload, one event.

use bytes::Bytes;
use event::{EventId, Position};
use eventlog::{Append, AppendError};
use http_body_util::Full;
use hyper::Response;
use hyper::header::HeaderValue;
use pipeline::json;

use crate::answer;
use crate::body::RequestBody;
use crate::code::Code;
use crate::encoder::{Envelope, Ids, own_id, type_of};
use crate::problem::{Problem, Refused};
use crate::request::Wishes;
use crate::type_cache::Slot;
use crate::worker::Worker;

/// Takes an event: the answer is ready when it is durable.
pub(crate) async fn take(
    worker: &Worker,
    wishes: Wishes,
    body: &mut RequestBody<'_>,
    envelope: Envelope,
) -> Result<Response<Full<Bytes>>, Refused> {
    let Wishes { slot, key, json, .. } = wishes;
    let mut permit = worker.permit();
    let bytes = body.event(&mut permit).await?;
    body.is_complete();
    let (append, id) = append(worker, slot, key, &envelope, &bytes)?;
    // The record is in the block: the body's memory is free while the block waits.
    drop(bytes);
    let position = append.position();
    append.await.map_err(|error| of_append(worker, error))?;
    drop(permit);
    Ok(answer_for(json, id, position))
}

fn answer_for(json: bool, id: EventId, position: Position) -> Response<Full<Bytes>> {
    if json { answer::of_event_as_json(id, position) } else { answer::of_event() }
}

fn append<'w>(
    worker: &'w Worker,
    slot: Option<Slot>,
    key: Option<HeaderValue>,
    envelope: &Envelope,
    bytes: &[u8],
) -> Result<(Append<'w>, EventId), Refused> {
    let payload = json::check(bytes).map_err(Problem::of_json)?;
    let mut types = worker.types();
    let slot = match slot {
        Some(slot) => slot,
        None => type_of(&mut types, payload)?,
    };
    let known = types.get(slot);
    let id = match own_id(known, payload)? {
        Some(id) => id,
        None => match key {
            Some(key) => Ids::Keyed(key.as_bytes().to_vec()).id(known, 0),
            None => worker.new_id(envelope.received_at),
        },
    };
    let record = envelope.record(known, id, payload.as_bytes());
    let append = worker.log().append_one(&record, known.id).map_err(|error| of_append(worker, error))?;
    Ok((append, id))
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
