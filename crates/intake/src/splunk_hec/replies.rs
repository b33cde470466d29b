//! The responses, as senders read them: `code` decides.

use json::text;

use crate::{Problem, ProblemKind, Reply};

pub(super) const NO_EVENT: u8 = 12;
pub(super) const BLANK_EVENT: u8 = 13;
const INVALID: u8 = 6;

/// `number` counts events from 0.
pub(super) fn rejected(code: u8, detail: &str, number: usize) -> Reply {
    let begin = match code {
        NO_EVENT => "Event field is required",
        BLANK_EVENT => "Event field cannot be blank",
        _ => "Invalid data format",
    };
    write(400, &with_detail(begin, detail), code, Some(number))
}

/// A response for a request that is rejected as a whole, because of the event with this number if there is one.
pub(super) fn refusal(problem: &Problem, number: Option<usize>) -> Reply {
    let (begin, code) = match problem.kind {
        ProblemKind::Empty => ("No data", 5),
        ProblemKind::Unauthorized | ProblemKind::Signature => ("Token is required", 2),
        ProblemKind::Forbidden => ("Invalid token", 4),
        ProblemKind::TooLarge => ("Request is too large", 27),
        ProblemKind::Unavailable | ProblemKind::Timeout => ("Server is busy", 9),
        ProblemKind::NotFound => ("Not found", INVALID),
        ProblemKind::Method => ("Method not allowed", INVALID),
        ProblemKind::Invalid | ProblemKind::Unsupported => ("Invalid data format", INVALID),
    };
    write(problem.status(), &with_detail(begin, &problem.detail), code, number).of_problem(problem)
}

pub(super) fn success(ack: Option<u64>) -> Reply {
    let ack = ack.map(|number| format!(r#","ackId":{number}"#)).unwrap_or_default();
    Reply::json(200, format!(r#"{{"text":"Success","code":0{ack}}}"#))
}

pub(super) fn health() -> Reply {
    write(200, "HEC is healthy", 17, None)
}

fn with_detail(begin: &str, detail: &str) -> String {
    if detail.is_empty() { begin.to_owned() } else { format!("{begin}: {detail}") }
}

fn write(status: u16, words: &str, code: u8, number: Option<usize>) -> Reply {
    let number = number.map(|number| format!(r#","invalid-event-number":{number}"#)).unwrap_or_default();
    Reply::json(status, format!(r#"{{"text":{},"code":{code}{number}}}"#, text::string(words)))
}
