//! One request, and its response.

use std::borrow::Cow;
use std::fmt::Write;

use json::parts;
use json::text::{string, write_string};

use crate::{
    Detail, IntakeCall, IntakeHead, IntakeRecord, Problem, ProblemKind, RecordPayload, RecordVerdict, Records, Reply,
    Stop, Verdicts, type_name,
};

use super::binary::Attributes;
use super::data::Data;
use super::event::{Event, Invalid};
use super::structured;

/// The media type of errors.
const PROBLEM: &str = "application/problem+json";

/// A request that posts events.
pub(super) struct Request {
    mode: Mode,
}

/// How the events are written.
enum Mode {
    Structured,
    Batch,
    Binary(Attributes),
    Unknown,
}

impl Request {
    pub(super) fn new(head: &IntakeHead<'_>) -> Self {
        let mode = match head.media_type().as_str() {
            "application/cloudevents+json" | "application/cloudevents" => Mode::Structured,
            "application/cloudevents-batch+json" | "application/cloudevents-batch" => Mode::Batch,
            // Another format of events, such as Avro.
            other if other.starts_with("application/cloudevents") => Mode::Unknown,
            _ => Attributes::read(head).map_or(Mode::Unknown, Mode::Binary),
        };
        Self { mode }
    }
}

impl IntakeCall for Request {
    fn needed_bytes(&self, body: &[u8]) -> usize {
        // The attributes of one event, and its data: decoded base64, or a text without escapes.
        2 * body.len() + 64 * 1024
    }

    fn decode(&mut self, body: &[u8], records: &mut Records<'_>) -> Result<(), Stop> {
        match &self.mode {
            Mode::Binary(attributes) => pass_on(attributes.event(body), body, records),
            Mode::Structured => {
                let event = checked(body)?;
                pass_on(structured::read(event), event.as_bytes(), records)
            }
            Mode::Batch => {
                let events = checked(body)?;
                if !events.starts_with('[') {
                    return Err(Problem::invalid("the batch isn't a JSON array: send an array of events").into());
                }
                parts::elements(events)
                    .try_for_each(|event| pass_on(structured::read(event), event.as_bytes(), records))
            }
            Mode::Unknown => Err(unsupported().into()),
        }
    }

    fn response(&self, verdicts: &Verdicts) -> Reply {
        match (verdicts.first_rejected(), &self.mode) {
            (None, _) => Reply::empty(204),
            (Some(_), Mode::Batch) => Reply::json(207, listed(verdicts)),
            (Some((_, detail)), _) => {
                let verdict = verdicts.all().first().copied();
                problem_reply(
                    422,
                    code(detail, verdict),
                    detail.map_or("the event was rejected", |known| &known.detail),
                )
            }
        }
    }

    fn refusal(&self, problem: &Problem) -> Reply {
        refusal(problem)
    }
}

/// Passes an event on, or why it is rejected.
fn pass_on(event: Result<(Event<'_>, Data<'_>), Invalid>, sent: &[u8], records: &mut Records<'_>) -> Result<(), Stop> {
    let named = event.and_then(|(event, data)| {
        let name = type_name(event.get("type").unwrap_or_default())?;
        Ok((event, data, name))
    });
    match named {
        Ok((event, data, name)) => {
            let payload = RecordPayload::Made(data.text(&event).into());
            records.take(IntakeRecord { type_name: &name, id: Some(event.identity().as_bytes()), payload })
        }
        Err(detail) => {
            records.take(IntakeRecord { type_name: "", id: None, payload: RecordPayload::Rejected { sent, detail } })
        }
    }
}

fn checked(body: &[u8]) -> Result<&str, Problem> {
    json::check(body).map_err(|error| Problem {
        kind: ProblemKind::Invalid,
        code: "json",
        detail: Cow::Owned(format!("the body isn't JSON: {error}")),
    })
}

fn unsupported() -> Problem {
    let detail = "the request isn't a CloudEvent: send application/cloudevents+json, application/cloudevents-batch+json, or the attributes \
                  as headers that begin with ce-";
    Problem { kind: ProblemKind::Unsupported, code: "record", detail: detail.into() }
}

/// The events of a batch that aren't stored.
fn listed(verdicts: &Verdicts) -> String {
    let mut list = String::from("[");
    for (index, verdict) in verdicts.all().iter().enumerate().filter(|(_, verdict)| !verdict.is_stored()) {
        let detail = verdicts.detail(index);
        let comma = if list.len() > 1 { "," } else { "" };
        // Writing to a string can't fail.
        let _ = write!(list, "{comma}{{\"index\":{index},\"code\":{}", string(code(detail, Some(*verdict))));
        if let Some(known) = detail {
            list.push_str(",\"detail\":");
            write_string(&known.detail, &mut list);
        }
        list.push('}');
    }
    list.push(']');
    list
}

fn code(detail: Option<&Detail>, verdict: Option<RecordVerdict>) -> &'static str {
    match (detail, verdict) {
        (Some(known), _) => known.code,
        (None, Some(RecordVerdict::IdReused)) => "id_reused",
        (None, _) => "rejected",
    }
}

/// The response to a request that is rejected as a whole.
pub(super) fn refusal(problem: &Problem) -> Reply {
    problem_reply(problem.status(), problem.code, &problem.detail).of_problem(problem)
}

fn problem_reply(status: u16, code: &str, detail: &str) -> Reply {
    let kind = string(&format!("urn:forebay:problem:{code}"));
    let (code, detail) = (string(code), string(detail));
    let body = format!("{{\"type\":{kind},\"status\":{status},\"code\":{code},\"detail\":{detail}}}");
    Reply { content_type: Some(PROBLEM), ..Reply::json(status, body) }
}
