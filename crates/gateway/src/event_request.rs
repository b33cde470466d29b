//! `POST /ingest/event`: one payload, one event.

use bytes::Bytes;
use event::EventId;
use eventlog::{Append, AppendError};
use http_body_util::Full;
use hyper::Response;
use pipeline::json;

use crate::answer;
use crate::code::Code;
use crate::encoder::{Envelope, Ids, own_id, type_of};
use crate::intake::Begun;
use crate::problem::{Problem, Refused};
use crate::request::Wishes;
use crate::worker::Worker;

/// Takes an event: the answer is ready when it is durable.
pub(crate) async fn take(worker: &Worker, begun: &mut Begun) -> Result<Response<Full<Bytes>>, Refused> {
    let mut permit = worker.permit();
    let bytes = begun.body.event(&mut permit).await?;
    begun.body.is_complete();
    let (append, id) = append(worker, &begun.wishes, &begun.envelope, &bytes)?;
    // The record is in the block: the body's memory is free while the block waits.
    drop(bytes);
    let position = append.position();
    append.await.map_err(|error| of_append(worker, error))?;
    Ok(if begun.wishes.json { answer::of_event_as_json(id, position) } else { answer::of_event() })
}

fn append<'w>(
    worker: &'w Worker,
    wishes: &Wishes,
    envelope: &Envelope,
    bytes: &[u8],
) -> Result<(Append<'w>, EventId), Refused> {
    let payload = json::check(bytes).map_err(Problem::of_json)?;
    let mut types = worker.types();
    let slot = match wishes.slot {
        Some(slot) => slot,
        None => type_of(&mut types, payload)?,
    };
    let known = types.get(slot);
    let id = match own_id(known, payload)? {
        Some(id) => id,
        None => match &wishes.key {
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
