//! The responses, as the SDKs read them.

use json::text;

use crate::{Problem, Reply};

/// The code of a body that is no JSON. RudderStack's Python SDK needs `message` next to it.
pub(super) const NOT_JSON: &str = "invalid_json";

pub(super) fn success() -> Reply {
    Reply::json(200, r#"{"success":true}"#)
}

pub(super) fn refusal(problem: &Problem) -> Reply {
    let (message, code) = (text::string(&problem.detail), text::string(problem.code));
    let body = format!(r#"{{"success":false,"message":{message},"code":{code}}}"#);
    Reply::json(problem.status(), body).of_problem(problem)
}
