//! The answers to what was taken.

use std::borrow::Cow;

use event::{EventId, Position};
use http::StatusCode;
use pipeline::transform::Filtered;
use serde::Serialize;

use crate::error_code::ErrorCode;
use crate::http1::response::Response;
use crate::ingest::record_builder::RecordBuilder;
use crate::problem::{FailedStep, Problem};

pub(crate) const JSON: &str = "application/json";

/// How a record that was refused can be taken after all, just as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Retry {
    /// With its batch, sent again.
    Later,
    /// In a request without the records that its batch has before it.
    Alone,
}

/// A record of a batch that isn't taken.
#[derive(Debug, Serialize)]
pub(crate) struct RejectedRecord {
    /// The line or element, from 1.
    line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<Box<str>>,
    pub(crate) code: ErrorCode,
    /// None where it has to be mended first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry: Option<Retry>,
    detail: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<usize>,
    #[serde(flatten)]
    step: Option<Box<FailedStep>>,
}

impl RejectedRecord {
    /// Says more.
    pub(crate) fn add(&mut self, detail: &str) {
        self.detail = format!("{}; {detail}", self.detail).into();
    }

    pub(crate) fn of_problem(line: u32, problem: Problem) -> Self {
        let Problem { code, detail, offset, pointer, step, .. } = problem;
        let retry = code.is_transient().then_some(Retry::Later);
        Self { line, pointer, code, retry, detail, offset, step }
    }
}

impl RejectedRecord {
    pub(crate) const fn line(&self) -> u32 {
        self.line
    }

    /// Bytes that it takes in memory, about.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.detail.len() + self.pointer.as_deref().map_or(0, str::len)
    }
}

impl From<pipeline::Refusal> for RejectedRecord {
    fn from(refusal: pipeline::Refusal) -> Self {
        let pipeline::Refusal { line, pointer, code, detail, offset } = refusal;
        Self { line, pointer: pointer.map(Into::into), code: code.into(), retry: None, detail, offset, step: None }
    }
}

/// What became of a batch.
#[derive(Serialize)]
pub(crate) struct BatchSummary<'a> {
    accepted: u64,
    duplicates: u64,
    /// How many of those that were accepted a step has taken out.
    #[serde(skip_serializing_if = "Option::is_none")]
    filtered: Option<u64>,
    refused: &'a [RejectedRecord],
    /// All that were refused, where the list has only the first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_count: Option<u64>,
    /// How many of those that were refused may be taken when the batch is sent again, in the list or not.
    #[serde(skip_serializing_if = "is_zero")]
    retry_later: u64,
    /// How many may be taken alone.
    #[serde(skip_serializing_if = "is_zero")]
    retry_alone: u64,
}

const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A single event is durable, with its id and position.
pub(crate) fn of_event_as_json(id: EventId, position: Position, duplicate: bool) -> Response {
    let body = format!(r#"{{"id":"{id}","position":"{position}","duplicate":{duplicate}}}"#);
    Response::with_body(StatusCode::OK, JSON, body.into())
}

/// Several events were made of a single one, and are durable: the first one's id and position.
pub(crate) fn of_several_as_json(id: EventId, position: Position, duplicate: bool, events: u32) -> Response {
    let body = format!(r#"{{"id":"{id}","position":"{position}","duplicate":{duplicate},"events":{events}}}"#);
    Response::with_body(StatusCode::OK, JSON, body.into())
}

/// A step has taken a single event out.
pub(crate) fn of_filtered_as_json(by: Filtered) -> Response {
    let Filtered { step, operation } = by;
    let body = format!(r#"{{"filtered":{{"step":{step},"operation":"{operation}"}}}}"#);
    Response::with_body(StatusCode::OK, JSON, body.into())
}

/// The good records of a batch are durable.
pub(crate) fn of_batch(batch: &RecordBuilder) -> Response {
    let (verdict, status) = verdict(batch);
    json(status, &verdict)
}

/// What became of a batch whose good records are durable, and the status that says so.
pub(crate) fn verdict(batch: &RecordBuilder) -> (BatchSummary<'_>, StatusCode) {
    let refused_count = batch.refused_count();
    let is_cut = refused_count > batch.refused.len() as u64;
    let verdict = BatchSummary {
        accepted: batch.accepted,
        duplicates: batch.duplicates,
        filtered: (batch.filtered > 0).then_some(batch.filtered),
        refused: &batch.refused,
        refused_count: is_cut.then_some(refused_count),
        retry_later: batch.refused_for_now() - batch.refused_for_others,
        retry_alone: batch.refused_for_others,
    };
    (verdict, status(batch, refused_count))
}

/// An answer in JSON.
pub(crate) fn json(status: StatusCode, answer: &impl Serialize) -> Response {
    let body = serde_json::to_vec(answer).expect("numbers and texts can be written as JSON");
    Response::with_body(status, JSON, body)
}

fn status(batch: &RecordBuilder, refused: u64) -> StatusCode {
    let no_json: u64 = ErrorCode::ALL
        .iter()
        .filter(|code| code.means_no_json())
        .map(|code| batch.refused_by_code[*code as usize])
        .sum();
    match (batch.accepted + batch.duplicates, refused) {
        (_, 0) => StatusCode::OK,
        _ if batch.is_refused_for_some => StatusCode::UNPROCESSABLE_ENTITY,
        (0, refused) if refused == no_json => StatusCode::BAD_REQUEST,
        (0, _) => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::MULTI_STATUS,
    }
}
