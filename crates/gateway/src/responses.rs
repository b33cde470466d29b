//! The bodies of responses.

use event::{EventId, Position};
use http::StatusCode;
use serde::Serialize;
use transform::Filtered;

use crate::error_code::ErrorCode;
use crate::problem::Problem;
use http1::Response;

pub(crate) const JSON: &str = "application/json";
const PROBLEM_JSON: &str = "application/problem+json";
const RETRY_AFTER_SECONDS: u32 = 1;

/// A response in JSON.
pub(crate) fn json(status: StatusCode, answer: &impl Serialize) -> Response {
    let body = serde_json::to_vec(answer).expect("numbers and texts can be written as JSON");
    Response::with_body(status, JSON, body)
}

/// A single event is durable, with its id and position.
pub(crate) fn of_event_as_json(id: EventId, position: Position, duplicate: bool) -> Response {
    let body = format!(r#"{{"id":"{id}","position":"{position}","duplicate":{duplicate}}}"#);
    Response::with_body(StatusCode::OK, JSON, body.into())
}

/// A single event became several, which are durable: the first one's id and position.
pub(crate) fn of_several_as_json(id: EventId, position: Position, duplicate: bool, events: u32) -> Response {
    let body = format!(r#"{{"id":"{id}","position":"{position}","duplicate":{duplicate},"events":{events}}}"#);
    Response::with_body(StatusCode::OK, JSON, body.into())
}

/// A step has dropped a single event.
pub(crate) fn of_filtered_as_json(by: Filtered) -> Response {
    let Filtered { step, operation } = by;
    let body = format!(r#"{{"filtered":{{"step":{step},"operation":"{operation}"}}}}"#);
    Response::with_body(StatusCode::OK, JSON, body.into())
}

/// The response to a request that is rejected.
pub(crate) fn problem(problem: &Problem) -> Response {
    of_problem(problem, problem.json())
}

/// The same with additional members.
pub(crate) fn problem_with(problem: &Problem, members: &impl Serialize) -> Response {
    of_problem(problem, problem.json_with(members))
}

fn of_problem(problem: &Problem, body: Vec<u8>) -> Response {
    Response {
        retry_after: problem.code.is_transient().then_some(RETRY_AFTER_SECONDS),
        allow: problem.allow,
        // RFC 9110 §11.6.1: a 401 names the scheme by which the client can authenticate.
        lines: if problem.code == ErrorCode::Unauthorized { "www-authenticate: Bearer\r\n" } else { "" },
        ..Response::with_body(problem.status(), PROBLEM_JSON, body)
    }
}
