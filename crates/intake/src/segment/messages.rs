//! A request with one message or a batch.

use std::borrow::Cow;

use json::{parts, text};
use limits::EVENT_BYTES_MAX;
use serde::de::IgnoredAny;

use super::message::{self, Shared};
use super::replies::{self, NOT_JSON};
use crate::budget::Budget;
use crate::{
    Detail, IntakeCall, IntakeHead, IntakeRecord, Problem, ProblemKind, RecordPayload, Records, Reply, Stop, Verdicts,
};

/// A request with one message or a batch.
#[derive(Debug)]
pub(super) struct Messages {
    /// The type of its only message; `None` for a batch.
    call: Option<&'static str>,
    /// The write key in the head, in the forms that only these SDKs use.
    write_key: Option<String>,
    is_json: bool,
    /// The body was checked in an earlier pass.
    is_checked: bool,
}

impl Messages {
    pub(super) fn new(call: Option<&'static str>, head: &IntakeHead<'_>) -> Self {
        let write_key = head.header("x-write-key").map(str::to_owned).or_else(|| head.parameter("writeKey"));
        Self { call, write_key, is_json: true, is_checked: false }
    }
}

/// The body as text, if it is JSON. Halves of surrogate pairs are a matter of the message that has them.
fn checked(body: &[u8]) -> Result<&str, Problem> {
    let body = body.strip_prefix(json::BYTE_ORDER_MARK).unwrap_or(body).trim_ascii();
    if body.is_empty() {
        return Err(Problem { code: NOT_JSON, ..Problem::empty("the body is empty: send a JSON object") });
    }
    if let Err(error) = serde_json::from_slice::<IgnoredAny>(body) {
        let detail = json::check(body).map_or_else(|error| error.to_string(), |_| error.to_string());
        return Err(Problem { code: NOT_JSON, ..Problem::invalid(format!("the body is no JSON: {detail}")) });
    }
    match str::from_utf8(body) {
        Ok(body) if body.starts_with('{') => Ok(body),
        Ok(body) => Err(Problem::invalid(format!("the body is {}: send an object", text::kind(body)))),
        Err(_) => Err(Problem { code: NOT_JSON, ..Problem::invalid("the body is not UTF-8") }),
    }
}

impl IntakeCall for Messages {
    fn may_have_token(&self) -> bool {
        true
    }

    fn token<'b>(&self, body: &'b [u8]) -> Option<Cow<'b, str>> {
        if let Some(key) = &self.write_key {
            return Some(Cow::Owned(key.clone()));
        }
        text::read_string(parts::member(checked(body).ok()?, "writeKey")?)
    }

    fn needed_bytes(&self, body: &[u8]) -> usize {
        // One message as it is stored, with what the batch shares.
        2 * body.len().min(2 * EVENT_BYTES_MAX)
    }

    fn decode(&mut self, body: &[u8], records: &mut Records<'_>) -> Result<(), Stop> {
        let body = if self.is_checked {
            let body = body.strip_prefix(json::BYTE_ORDER_MARK).unwrap_or(body).trim_ascii();
            str::from_utf8(body).map_err(|_| Problem::invalid("the body is not UTF-8"))?
        } else {
            checked(body).inspect_err(|problem| self.is_json = problem.code != NOT_JSON)?
        };
        self.is_checked = true;
        let (mut made, mut budget) = (String::new(), Budget::new());
        if self.call.is_some() {
            return pass(body, self.call, Shared::default(), &mut made, records);
        }
        let (mut shared, mut batch) = (Shared::default(), None);
        for member in parts::members(body) {
            shared.keep(member);
            if member.name() == "batch" {
                batch = Some(member.value);
            }
        }
        let batch = batch.filter(|batch| batch.starts_with('['));
        let batch = batch.ok_or_else(|| Problem::invalid("`batch` is no array: send the messages in it"))?;
        if shared.bytes() > EVENT_BYTES_MAX {
            let detail = format!("`context` and `integrations` of the batch have more than {EVENT_BYTES_MAX} bytes");
            return Err(Problem::too_large(detail).into());
        }
        for message in parts::elements(batch) {
            budget.spend(message.len() + shared.bytes())?;
            pass(message, None, shared, &mut made, records)?;
        }
        Ok(())
    }

    fn response(&self, verdicts: &Verdicts) -> Reply {
        // SDKs send a batch again if one of its messages is rejected, or drop all of them. If no message has a type that is configured,
        // nothing keeps them: the program must see that.
        match verdicts.first_rejected() {
            Some((0, Some(Detail { code: code @ ("unknown_type" | "too_many_types"), detail })))
                if verdicts.rejected() == verdicts.all().len() =>
            {
                replies::refusal(&Problem { code, ..Problem::invalid(detail.clone()) })
            }
            _ => replies::success(),
        }
    }

    fn refusal(&self, problem: &Problem) -> Reply {
        if !self.is_json && matches!(problem.kind, ProblemKind::Invalid | ProblemKind::Empty) {
            return replies::refusal(&Problem { code: NOT_JSON, ..problem.clone() });
        }
        replies::refusal(problem)
    }
}

fn pass(
    message: &str,
    call: Option<&str>,
    shared: Shared<'_>,
    made: &mut String,
    records: &mut Records<'_>,
) -> Result<(), Stop> {
    made.clear();
    let found = message::write(message, call, shared, made);
    let (type_name, id, payload) = match &found {
        // It is rejected for its size.
        Ok(found) if message.len() > EVENT_BYTES_MAX => {
            (&*found.type_name, None, RecordPayload::Sent(message.as_bytes()))
        }
        Ok(found) => (&*found.type_name, found.id.as_deref(), RecordPayload::Sent(made.as_bytes())),
        Err(detail) => ("", None, RecordPayload::Rejected { sent: message.as_bytes(), detail: detail.clone() }),
    };
    records.take(IntakeRecord { type_name, id: id.map(str::as_bytes), payload })
}
