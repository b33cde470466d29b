//! The answers of the API: JSON, and problems.

use bytes::Bytes;
use gateway::ReadRefused;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;
use tokio::sync::mpsc::Receiver;

use super::AdminBody;
use admin_api::dead::ProblemJson;

/// An answer's status, the method that is allowed instead, and its JSON.
pub(crate) struct AdminResponse {
    pub(crate) status: StatusCode,
    pub(crate) content_type: &'static str,
    /// The methods of the path, for an answer that refuses another one.
    pub(super) allow: Option<&'static str>,
    pub(crate) body: AdminBody,
}

const JSON: &str = "application/json";
const PROBLEM: &str = "application/problem+json";
const LINES: &str = "application/x-ndjson";
const TEXT: &str = "text/plain; charset=utf-8";

impl AdminResponse {
    /// An answer of plain text.
    pub(crate) fn text(status: StatusCode, body: impl Into<AdminBody>) -> Self {
        Self { status, content_type: TEXT, allow: None, body: body.into() }
    }

    /// A stream of lines; without one the head of such an answer.
    pub(super) fn lines(lines: Option<Receiver<Bytes>>) -> Self {
        let body = lines.map_or(AdminBody::Whole(None), |lines| AdminBody::Stream(lines.into()));
        Self { status: StatusCode::OK, content_type: LINES, allow: None, body }
    }

    pub(crate) fn into_response(self) -> Response<AdminBody> {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        // Each answer is about its moment, and many need a token.
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(allow) = self.allow {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
        }
        response
    }
}

pub(crate) fn not_allowed(allow: &'static str) -> AdminResponse {
    let answer = problem(StatusCode::METHOD_NOT_ALLOWED, "method", format!("this path accepts only {allow}"));
    AdminResponse { allow: Some(allow), ..answer }
}

pub(super) fn problem(status: StatusCode, code: &str, detail: String) -> AdminResponse {
    json(status, &ProblemJson { status: status.as_u16(), code: code.into(), detail })
}

/// The answer to a read that was rejected.
pub(super) fn read_refused(ReadRefused { status, code, detail }: ReadRefused) -> AdminResponse {
    problem(status, code, detail.into_owned())
}

pub(super) fn stopping() -> AdminResponse {
    problem(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the server is stopping: retry after its restart".into())
}

pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> AdminResponse {
    // Texts and numbers can't fail to be written.
    let body = serde_json::to_string(body).unwrap_or_default() + "\n";
    AdminResponse {
        status,
        content_type: if status.is_success() { JSON } else { PROBLEM },
        allow: None,
        body: body.into(),
    }
}
