//! One request, and its response.

use std::borrow::Cow;
use std::sync::Arc;

use json::text::string;

use crate::{
    Detail, IntakeCall, IntakeHead, IntakeRecord, Problem, RecordPayload, RecordVerdict, Records, Reply, Stop, Verdicts,
};

use super::form;
use super::provider::Handshake;
use super::verifier::{Evidence, Verifier};

/// A request of a provider.
pub(super) struct Delivery {
    verifier: Option<(Arc<Verifier>, Evidence)>,
    handshake: Handshake,
    /// Whether the content type is that of a form. It isn't signed, so JSON is JSON regardless of it.
    may_be_form: bool,
    /// The challenge of a handshake, as JSON.
    challenge: Option<String>,
}

impl Delivery {
    pub(super) fn new(verifier: Option<&Arc<Verifier>>, handshake: Handshake, head: &IntakeHead<'_>) -> Self {
        let verifier = verifier.map(|verifier| (Arc::clone(verifier), verifier.evidence(head)));
        let may_be_form = head.media_type() == "application/x-www-form-urlencoded";
        Self { verifier, handshake, may_be_form, challenge: None }
    }
}

impl IntakeCall for Delivery {
    fn needed_bytes(&self, body: &[u8]) -> usize {
        // Signatures can cover a form regardless of the content type.
        if self.may_be_form || self.verifier.is_some() { form::needed_bytes(body.len()) } else { 0 }
    }

    fn decode(&mut self, body: &[u8], records: &mut Records<'_>) -> Result<(), Stop> {
        let verified = self.verifier.as_ref().map(|(verifier, evidence)| verifier.check(evidence, body)).transpose()?;
        if body.trim_ascii().is_empty() {
            return Err(Problem::empty("the body is empty: send an event").into());
        }
        self.challenge = if self.handshake == Handshake::Signed { challenge(body) } else { None };
        if self.challenge.is_some() {
            return Ok(());
        }
        let payload = if self.may_be_form && json::check(body).is_err() {
            RecordPayload::Made(Cow::Owned(form::json(form::pairs(body)?)))
        } else {
            RecordPayload::Sent(body)
        };
        records.take(IntakeRecord { type_name: "", id: verified.as_ref().map(|known| known.id().as_bytes()), payload })
    }

    fn kept_bytes(&self) -> usize {
        self.challenge.as_ref().map_or(0, String::len)
    }

    fn response(&self, verdicts: &Verdicts) -> Reply {
        if let Some(challenge) = &self.challenge {
            return Reply::json(200, format!("{{\"challenge\":{challenge}}}"));
        }
        match verdicts.all().first() {
            // The first copy of an event wins: the sender has nothing to repeat.
            None | Some(RecordVerdict::Accepted | RecordVerdict::IdReused) => Reply::empty(204),
            Some(RecordVerdict::Rejected) => {
                let detail = verdicts.detail(0);
                let (code, text) =
                    detail.map_or(("rejected", "the event was rejected"), |Detail { code, detail }| (*code, detail));
                error(422, code, text)
            }
        }
    }

    fn refusal(&self, problem: &Problem) -> Reply {
        refusal(problem)
    }
}

/// The challenge of Slack's `url_verification`, as JSON.
fn challenge(body: &[u8]) -> Option<String> {
    let body = json::check(body).ok()?;
    let kind = json::parts::member(body, "type").and_then(json::text::read_string)?;
    let challenge = json::parts::member(body, "challenge").filter(|value| value.starts_with('"'))?;
    (kind == "url_verification").then(|| challenge.to_owned())
}

/// The response to a request that is rejected as a whole.
pub(super) fn refusal(problem: &Problem) -> Reply {
    error(problem.status(), problem.code, &problem.detail).of_problem(problem)
}

/// An error in JSON.
pub(super) fn error(status: u16, code: &str, detail: &str) -> Reply {
    Reply::json(status, format!("{{\"code\":{},\"detail\":{}}}", string(code), string(detail)))
}
