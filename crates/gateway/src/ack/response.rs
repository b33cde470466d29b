//! The responses to a `Forebay-Ack` that isn't the default.

use std::sync::Arc;

use event::{EventId, Position};
use eventlog::RejectedEvent;
use http::StatusCode;
use serde::Serialize;

use super::batch_summary::BatchSummary;
use super::until_delivered::{Dead, DeliveryStatus};
use crate::error_code::ErrorCode;
use crate::problem::Problem;
use crate::responses;
use http1::Response;

/// A single event that is durable.
pub(crate) struct SingleEvent {
    pub(crate) id: EventId,
    pub(crate) position: Position,
    pub(crate) duplicate: bool,
}

/// The members of an event that isn't stored.
#[derive(Serialize)]
struct EventMembers<'a> {
    id: String,
    position: String,
    duplicate: bool,
    pending: Vec<&'a str>,
}

/// A dead letter, with the names by which `forebay dead show` finds it.
#[derive(Serialize)]
pub(crate) struct DeadLetterMember<'a> {
    sink: &'a str,
    id: String,
    position: String,
    reason: &'a str,
}

/// Dead letters, with other members.
#[derive(Serialize)]
struct WithDead<'a, T> {
    #[serde(flatten)]
    members: T,
    dead: Vec<DeadLetterMember<'a>>,
    /// The number of all of them, if the list has only the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_count: Option<u64>,
}

/// The members of a batch that isn't stored as a whole.
#[derive(Serialize)]
struct BatchMembers<'a> {
    #[serde(flatten)]
    summary: BatchSummary<'a>,
    pending: Vec<&'a str>,
}

/// The response to a single event.
pub(crate) fn of_event(event: &SingleEvent, status: &DeliveryStatus, as_json: bool) -> Response {
    let SingleEvent { id, position, duplicate } = event;
    let members = |pending| EventMembers {
        id: id.to_string(),
        position: position.to_string(),
        duplicate: *duplicate,
        pending: names(pending),
    };
    match status {
        DeliveryStatus::Stored if as_json => responses::of_event_as_json(*id, *position, *duplicate),
        DeliveryStatus::Stored => Response::ok(),
        DeliveryStatus::Pending(sinks) => responses::json(StatusCode::ACCEPTED, &members(sinks)),
        DeliveryStatus::Refused(dead) => refused(members(&dead.pending), dead),
    }
}

/// The response to an event in memory. Its position isn't known before it is durable.
pub(crate) fn of_event_in_memory(id: EventId, duplicate: bool) -> Response {
    let body = format!(r#"{{"id":"{id}","duplicate":{duplicate}}}"#);
    Response::with_body(StatusCode::ACCEPTED, responses::JSON, body.into())
}

/// The response to a batch of which some records are durable; `status` is that of the batch itself.
pub(crate) fn of_batch(summary: BatchSummary<'_>, status: StatusCode, delivery: &DeliveryStatus) -> Response {
    match delivery {
        DeliveryStatus::Stored => responses::json(status, &summary),
        DeliveryStatus::Pending(sinks) => {
            responses::json(not_yet(status), &BatchMembers { summary, pending: names(sinks) })
        }
        DeliveryStatus::Refused(dead) => refused(BatchMembers { summary, pending: names(&dead.pending) }, dead),
    }
}

/// The status of a batch that isn't acknowledged as asked yet. If records were rejected, the status says so instead.
pub(crate) fn not_yet(status: StatusCode) -> StatusCode {
    if status == StatusCode::OK { StatusCode::ACCEPTED } else { status }
}

/// The response to durable events of which sinks have rejected some permanently.
pub(crate) fn refused(members: impl Serialize, dead: &Dead) -> Response {
    let Dead { listed, count, .. } = dead;
    let detail = listed.first().map_or_else(
        || "a sink rejected an event permanently; it is kept as a dead letter: do not resend it".to_owned(),
        |RejectedEvent { sink, id, reason, .. }| {
            let reason = reason.as_str();
            format!(
                "sink {sink} rejected the event permanently ({reason}); it is kept as a dead letter: do not resend \
                 it. See: forebay dead show {id} --sink {sink}"
            )
        },
    );
    let is_cut = *count > listed.len() as u64;
    let dead = listed.iter().map(DeadLetterMember::of).collect();
    let members = WithDead { members, dead, dead_count: is_cut.then_some(*count) };
    responses::problem_with(&Problem::new(ErrorCode::DeadLetter, detail), &members)
}

impl<'a> DeadLetterMember<'a> {
    pub(crate) fn of(refused: &'a RejectedEvent) -> Self {
        let RejectedEvent { sink, id, position, reason } = refused;
        Self { sink, id: id.to_string(), position: position.to_string(), reason: reason.as_str() }
    }
}

/// Sinks as a response names them.
pub(crate) fn names(sinks: &[Arc<str>]) -> Vec<&str> {
    sinks.iter().map(|sink| &**sink).collect()
}
