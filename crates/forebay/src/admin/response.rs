//! The answers of the API: JSON, and problems.

use hyper::StatusCode;
use serde::Serialize;

use crate::admin_json::dead::ProblemJson;

/// An answer's status, the method that is allowed instead, and its JSON.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) allow: Option<&'static str>,
    pub(super) body: String,
}

pub(super) fn not_allowed(allow: &'static str) -> Answer {
    let answer = problem(StatusCode::METHOD_NOT_ALLOWED, "method", format!("only {allow}"));
    Answer { allow: Some(allow), ..answer }
}

/// Whoever asks means another data directory.
pub(super) fn other_origin() -> Answer {
    let detail = "the server that listens here has another data directory: name the right one with --admin";
    problem(StatusCode::CONFLICT, "origin", detail.into())
}

pub(super) fn problem(status: StatusCode, code: &str, detail: String) -> Answer {
    json(status, &ProblemJson { status: status.as_u16(), code: code.into(), detail })
}

pub(super) fn stopping() -> Answer {
    problem(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the server is stopping".into())
}

pub(super) fn json(status: StatusCode, body: &impl Serialize) -> Answer {
    // Texts and numbers can't fail to be written.
    let body = serde_json::to_string(body).unwrap_or_default() + "\n";
    Answer { status, allow: None, body }
}
