//! One request.

use std::borrow::Cow;

use json::JsonErrorKind;

use super::envelope::{self, Signal};
use super::message::Message;
use super::{needed, reply};
use crate::{IntakeCall, IntakeHead, JSON, Problem, Records, Reply, Stop, Verdicts};

/// A request that exports records.
pub(super) struct Export {
    signal: Signal,
    is_json: bool,
}

impl Export {
    pub(super) fn new(signal: Signal, head: &IntakeHead<'_>) -> Self {
        Self { signal, is_json: head.media_type() == JSON }
    }

    /// Whether a body is JSON: its first byte says it, because no message in protobuf begins with a brace. Otherwise its type counts.
    fn is_json(&self, body: &[u8]) -> bool {
        match body.trim_ascii_start().first() {
            Some(b'{') => self.is_json || body.first() == Some(&b'{'),
            // Field 1, which a text that begins with a line end isn't if it has no object.
            Some(_) => self.is_json && body.first() != Some(&b'\n'),
            None => self.is_json,
        }
    }
}

impl IntakeCall for Export {
    fn needed_bytes(&self, body: &[u8]) -> usize {
        let body = body.strip_prefix(json::BYTE_ORDER_MARK).unwrap_or(body);
        if self.is_json(body) { needed::of_json(body) } else { needed::of_protobuf(self.signal, body) }
    }

    fn decode(&mut self, body: &[u8], records: &mut Records<'_>) -> Result<(), Stop> {
        let body = body.strip_prefix(json::BYTE_ORDER_MARK).unwrap_or(body);
        self.is_json = self.is_json(body);
        if !self.is_json {
            return envelope::walk(self.signal, Message::Protobuf(body), records);
        }
        if body.trim_ascii().is_empty() {
            return Err(Problem::empty("the body is empty: send a request of OTLP, at least {}").into());
        }
        let text = match json::check(body) {
            Ok(text) => Cow::Borrowed(text),
            Err(error) if error.kind == JsonErrorKind::Surrogate => Cow::Owned(json::replace_surrogates(body)),
            Err(error) => return Err(Problem::invalid(format!("the body is not JSON: {error}")).into()),
        };
        if !text.starts_with('{') {
            return Err(Problem::invalid("the body is no JSON object: send a request of OTLP").into());
        }
        envelope::walk(self.signal, Message::Json(&text), records)
    }

    fn response(&self, verdicts: &Verdicts) -> Reply {
        reply::of_verdicts(self.signal, verdicts, self.is_json)
    }

    fn refusal(&self, problem: &Problem) -> Reply {
        reply::of_problem(problem, self.is_json)
    }
}
