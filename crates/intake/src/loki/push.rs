//! A request with lines.

use limits::EVENT_BYTES_MAX;
use serde::de::IgnoredAny;

use super::line::Lines;
use super::{json_push, proto_push, snappy};
use crate::{IntakeCall, IntakeHead, Problem, Records, Reply, Stop, Verdicts};

/// A request with lines.
#[derive(Debug)]
pub(super) struct Push {
    /// What the content type says.
    declared: Option<Form>,
    /// Lines of two tenants can be equal.
    tenant: Box<str>,
    /// The body was checked in an earlier pass.
    is_checked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Proto,
}

impl Push {
    pub(super) fn new(head: &IntakeHead<'_>) -> Self {
        let media_type = head.media_type();
        let declared = if media_type.contains("json") {
            Some(Form::Json)
        } else {
            media_type.contains("protobuf").then_some(Form::Proto)
        };
        let tenant = head.header("x-scope-orgid").unwrap_or_default().into();
        Self { declared, tenant, is_checked: false }
    }

    /// The first byte shows the form of a body without a content type, unless it is a block of exactly 123 bytes.
    fn form(&self, body: &[u8]) -> Form {
        let is_json =
            || body.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(body).is_ok();
        self.declared.unwrap_or_else(|| if is_json() { Form::Json } else { Form::Proto })
    }

    fn decode_json(&mut self, body: &[u8], lines: &mut Lines<'_, '_>) -> Result<(), Stop> {
        let body = body.strip_prefix(json::BYTE_ORDER_MARK).unwrap_or(body).trim_ascii();
        // Halves of surrogate pairs are a matter of the line that has them.
        if !self.is_checked
            && let Err(error) = serde_json::from_slice::<IgnoredAny>(body)
        {
            let detail = json::check(body).map_or_else(|error| error.to_string(), |_| error.to_string());
            return Err(Problem::invalid(format!("the body is no JSON: {detail}")).into());
        }
        let body = str::from_utf8(body).map_err(|_| Problem::invalid("the body is not UTF-8"))?;
        self.is_checked = true;
        json_push::walk(body, lines)
    }

    fn decode_proto(&mut self, body: &[u8], lines: &mut Lines<'_, '_>) -> Result<(), Stop> {
        let body = snappy::decompress(body)?;
        if !self.is_checked {
            proto_push::check(&body)?;
        }
        self.is_checked = true;
        proto_push::walk(&body, lines)
    }
}

impl IntakeCall for Push {
    fn scope(&self) -> &str {
        &self.tenant
    }

    fn needed_bytes(&self, body: &[u8]) -> usize {
        if self.form(body) == Form::Json {
            return 2 * body.len().min(EVENT_BYTES_MAX);
        }
        let decompressed = snappy::length(body).unwrap_or(0).min(limits::BATCH_BYTES_MAX);
        // The parts of a line as strings, which may have six times their bytes, and as they are stored.
        decompressed + 5 * (6 * decompressed).min(EVENT_BYTES_MAX)
    }

    fn decodes(&self, coding: &str) -> bool {
        // Some senders name the compression that belongs to the format.
        coding.eq_ignore_ascii_case("snappy") && self.declared != Some(Form::Json)
    }

    fn decode(&mut self, body: &[u8], records: &mut Records<'_>) -> Result<(), Stop> {
        if body.trim_ascii().is_empty() {
            return Err(Problem::empty("the body is empty: send a push request").into());
        }
        let mut lines = Lines::new(records);
        match self.form(body) {
            Form::Json => self.decode_json(body, &mut lines),
            Form::Proto => self.decode_proto(body, &mut lines),
        }
    }

    fn response(&self, verdicts: &Verdicts) -> Reply {
        let Some((index, detail)) = verdicts.first_rejected() else { return Reply::empty(204) };
        let (rejected, all) = (verdicts.rejected(), verdicts.all().len());
        let detail = detail.map_or("it was rejected", |detail| &*detail.detail);
        let first = index + 1;
        Reply::text(
            400,
            format!("{rejected} of {all} lines are rejected, the others are stored; line {first}: {detail}\n"),
        )
    }

    fn refusal(&self, problem: &Problem) -> Reply {
        super::refusal(problem)
    }
}
