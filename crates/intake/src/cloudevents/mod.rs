//! CloudEvents 1.0 over HTTP: structured, binary and batch mode on one path.
//!
//! | file | content |
//! |---|---|
//! | `event.rs` | the attributes of an event of either mode |
//! | `structured.rs`, `binary.rs` | reads an event of JSON, and of headers |
//! | `data.rs` | the data, and the text that is stored for an event |
//! | `call.rs` | one request, and its response |

mod binary;
mod call;
mod data;
mod event;
mod structured;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::{Intake, IntakeHead, IntakeKind, IntakePath, IntakeRoute, Problem, Reply};

/// The kind of intake.
pub static KIND: IntakeKind = IntakeKind {
    name: "cloudevents",
    path: IntakePath::Fixed("/cloudevents"),
    sender: "K_SINK={URL}",
    settings: &[],
    secrets: &[],
    may_lack_ids: false,
    read: |_, _| Some(Arc::new(CloudEvents)),
};

/// The intake.
#[derive(Debug)]
pub struct CloudEvents;

/// The methods of its path.
const METHODS: &str = "POST, OPTIONS";

impl Intake for CloudEvents {
    fn route(&self, head: &IntakeHead<'_>) -> IntakeRoute {
        match (head.path, head.method) {
            ("" | "/", "POST") => IntakeRoute::Ingest(Box::new(call::Request::new(head))),
            ("" | "/", "OPTIONS") => IntakeRoute::Free(handshake(head)),
            ("" | "/", _) => IntakeRoute::Methods(METHODS),
            _ => IntakeRoute::Unknown,
        }
    }

    fn refusal(&self, problem: &Problem) -> Reply {
        call::refusal(problem)
    }
}

/// The protection against abuse (CloudEvents, `http-webhook.md`, §4): any sender may post at any rate. Tokens decide whose events
/// are accepted.
fn handshake(head: &IntakeHead<'_>) -> Reply {
    let reply = Reply::empty(200).with_header("allow", METHODS);
    match head.header("webhook-request-origin") {
        Some(origin) => reply.with_header("webhook-allowed-origin", origin).with_header("webhook-allowed-rate", "*"),
        None => reply,
    }
}
