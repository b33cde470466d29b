//! The answers to a `Forebay-Ack` that isn't the default.

use std::sync::Arc;

use event::{EventId, Position};
use eventlog::RejectedEvent;
use http::StatusCode;
use serde::Serialize;

use crate::answer::{self, Verdict};
use crate::code::Code;
use crate::http1::response::Response;
use crate::problem::Problem;
use crate::stored::{Dead, Standing};

/// A single event that is durable.
pub(crate) struct SingleEvent {
    pub(crate) id: EventId,
    pub(crate) position: Position,
    pub(crate) duplicate: bool,
}

/// What is said of it where it isn't stored.
#[derive(Serialize)]
struct EventMembers<'a> {
    id: String,
    position: String,
    duplicate: bool,
    pending: Vec<&'a str>,
}

/// A dead letter, with the names by which `forebay dead show` finds it.
#[derive(Serialize)]
pub(crate) struct Letter<'a> {
    sink: &'a str,
    id: String,
    position: String,
    reason: &'a str,
}

/// Dead letters beside what else is said.
#[derive(Serialize)]
struct WithDead<'a, T> {
    #[serde(flatten)]
    members: T,
    dead: Vec<Letter<'a>>,
    /// All of them, where the list has only the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_count: Option<u64>,
}

/// What is said of a batch that isn't stored as a whole.
#[derive(Serialize)]
struct BatchMembers<'a> {
    #[serde(flatten)]
    verdict: Verdict<'a>,
    pending: Vec<&'a str>,
}

/// What became of a single event.
pub(crate) fn of_event(event: &SingleEvent, standing: &Standing, as_json: bool) -> Response {
    let SingleEvent { id, position, duplicate } = event;
    let members = |pending| EventMembers {
        id: id.to_string(),
        position: position.to_string(),
        duplicate: *duplicate,
        pending: names(pending),
    };
    match standing {
        Standing::Stored if as_json => answer::of_event_as_json(*id, *position, *duplicate),
        Standing::Stored => Response::ok(),
        Standing::Pending(sinks) => answer::json(StatusCode::ACCEPTED, &members(sinks)),
        Standing::Refused(dead) => refused(members(&dead.pending), dead),
    }
}

/// A single event is in memory. Where it will stand isn't known before it is durable.
pub(crate) fn of_event_in_memory(id: EventId, duplicate: bool) -> Response {
    let body = format!(r#"{{"id":"{id}","duplicate":{duplicate}}}"#);
    Response::with_body(StatusCode::ACCEPTED, answer::JSON, body.into())
}

/// What became of a batch of which some records are durable; `status` is that of the batch itself.
pub(crate) fn of_batch(verdict: Verdict<'_>, status: StatusCode, standing: &Standing) -> Response {
    match standing {
        Standing::Stored => answer::json(status, &verdict),
        Standing::Pending(sinks) => answer::json(not_yet(status), &BatchMembers { verdict, pending: names(sinks) }),
        Standing::Refused(dead) => refused(BatchMembers { verdict, pending: names(&dead.pending) }, dead),
    }
}

/// What was taken as a whole isn't where it was wished to be. A batch of which some was refused says so, whatever became of
/// the rest.
pub(crate) fn not_yet(status: StatusCode) -> StatusCode {
    if status == StatusCode::OK { StatusCode::ACCEPTED } else { status }
}

/// Events are durable, and sinks have refused some of them for good.
pub(crate) fn refused(members: impl Serialize, dead: &Dead) -> Response {
    let Dead { letters, count, .. } = dead;
    let detail = letters.first().map_or_else(
        || "a sink refused an event for good; it is kept as a dead letter: don't send it again".to_owned(),
        |RejectedEvent { sink, id, reason, .. }| {
            format!(
                "sink {sink} refused the event for good: {reason}; it is kept as a dead letter (forebay dead show {id} \
                 --sink {sink}): don't send it again"
            )
        },
    );
    let is_cut = *count > letters.len() as u64;
    let dead = letters.iter().map(Letter::of).collect();
    let members = WithDead { members, dead, dead_count: is_cut.then_some(*count) };
    Problem::new(Code::DeadLetter, detail).response_with(&members)
}

impl<'a> Letter<'a> {
    pub(crate) fn of(refused: &'a RejectedEvent) -> Self {
        let RejectedEvent { sink, id, position, reason } = refused;
        Self { sink, id: id.to_string(), position: position.to_string(), reason }
    }
}

/// Sinks as they are named in an answer.
pub(crate) fn names(sinks: &[Arc<str>]) -> Vec<&str> {
    sinks.iter().map(|sink| &**sink).collect()
}
