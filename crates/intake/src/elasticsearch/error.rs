//! Errors as Elasticsearch writes them.

use json::text::string;

use crate::{Problem, ProblemKind, Reply};

use super::media;

/// A document that can't be stored.
pub(super) const DOCUMENT: &str = "document_parsing_exception";
/// An id that other bytes have.
pub(super) const CONFLICT: &str = "version_conflict_engine_exception";
/// A request that isn't understood.
pub(super) const ARGUMENT: &str = "illegal_argument_exception";
/// A name that is unknown.
pub(super) const NOT_FOUND: &str = "resource_not_found_exception";

/// The response to a request that is rejected as a whole.
pub(super) fn refusal(problem: &Problem, media: &'static str) -> Reply {
    let reason = format!("{}: {}", problem.code, problem.detail);
    reply(problem.status(), media, error_type(problem.kind), &reason).of_problem(problem)
}

/// A response with an error.
pub(super) fn reply(status: u16, media: &'static str, error_type: &str, reason: &str) -> Reply {
    let reason = string(reason);
    let cause = format!(r#""type":"{error_type}","reason":{reason}"#);
    media::json(status, media, format!(r#"{{"error":{{"root_cause":[{{{cause}}}],{cause}}},"status":{status}}}"#))
}

const fn error_type(kind: ProblemKind) -> &'static str {
    match kind {
        ProblemKind::Invalid => ARGUMENT,
        ProblemKind::Empty => "parse_exception",
        ProblemKind::Unauthorized | ProblemKind::Forbidden | ProblemKind::Signature => "security_exception",
        ProblemKind::TooLarge => "content_too_long_exception",
        ProblemKind::Unsupported => "media_type_header_exception",
        ProblemKind::NotFound => NOT_FOUND,
        ProblemKind::Method => "method_not_allowed_exception",
        ProblemKind::Timeout => "timeout_exception",
        ProblemKind::Unavailable => "es_rejected_execution_exception",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JSON;

    #[test]
    fn refusal_has_the_shape_of_elasticsearch() {
        let problem =
            Problem { kind: ProblemKind::Unavailable, code: "overload", detail: "too \"busy\": retry later".into() };
        let reply = refusal(&problem, JSON);
        let cause = r#""type":"es_rejected_execution_exception","reason":"overload: too \"busy\": retry later""#;
        let expected = format!(r#"{{"error":{{"root_cause":[{{{cause}}}],{cause}}},"status":503}}"#);
        assert_eq!((reply.status, String::from_utf8(reply.body).unwrap()), (503, expected));
        assert_eq!(reply.lines, "X-Elastic-Product: Elasticsearch\r\nretry-after: 1\r\n");
    }
}
