//! The HTTP Event Collector of Splunk: libraries, Docker's `splunk` driver, Amazon Data Firehose, Fluent Bit, Vector, the Collector.
//!
//! A request is stored as a whole or not at all, so a sender can repeat it. Every success is on disk: acknowledgements are true immediately.

mod acks;
mod event;
mod events;
mod raw;
mod replies;
#[cfg(test)]
mod tests;
mod time;
mod values;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Intake, IntakeHead, IntakeKind, IntakePath, IntakeRoute, Problem, Reply};
use acks::Acks;
use event::Defaults;
use events::{Events, Form};

/// The kind of intake.
pub static KIND: IntakeKind = IntakeKind {
    name: "splunk_hec",
    path: IntakePath::Fixed("/hec"),
    sender: "url={URL}/services/collector/event",
    settings: &[],
    secrets: &[],
    may_lack_ids: true,
    read: |_, _| Some(Arc::new(SplunkHec::default())),
};

/// The intake.
#[derive(Debug, Default)]
pub struct SplunkHec {
    /// The number of the next acknowledgement. Senders keep what they wait for by these numbers, so they aren't used twice.
    next_ack: AtomicU64,
}

const POST: &str = "OPTIONS, POST";

impl Intake for SplunkHec {
    fn types(&self) -> &'static [&'static str] {
        &["hec"]
    }

    fn route(&self, head: &IntakeHead<'_>) -> IntakeRoute {
        let path = head.path.strip_suffix('/').unwrap_or(head.path);
        let form = match path {
            "/services/collector" | "/services/collector/event" | "/services/collector/event/1.0" => Form::Events,
            "/services/collector/raw" | "/services/collector/raw/1.0" => Form::Raw,
            "/services/collector/ack" | "/services/collector/ack/1.0" => {
                return Self::posted(head, || IntakeRoute::Ingest(Box::<Acks>::default()));
            }
            "/services/collector/health" | "/services/collector/health/1.0" => return Self::health(head),
            _ => return IntakeRoute::Unknown,
        };
        Self::posted(head, || IntakeRoute::Ingest(Box::new(Events::new(form, Defaults::of(head), self.ack(head)))))
    }

    fn refusal(&self, problem: &Problem) -> Reply {
        replies::refusal(problem, None)
    }
}

impl SplunkHec {
    fn posted(head: &IntakeHead<'_>, route: impl FnOnce() -> IntakeRoute) -> IntakeRoute {
        match head.method {
            "POST" | "PUT" => route(),
            // Docker's driver sends it before the first event, without a token, and needs this status.
            "OPTIONS" => IntakeRoute::Free(Reply::empty(200).with_header("allow", POST)),
            _ => IntakeRoute::Methods(POST),
        }
    }

    fn health(head: &IntakeHead<'_>) -> IntakeRoute {
        match head.method {
            "GET" | "HEAD" => IntakeRoute::Free(replies::health()),
            _ => IntakeRoute::Methods("GET, HEAD"),
        }
    }

    /// A sender with a channel wants a number with which it asks for the acknowledgement.
    fn ack(&self, head: &IntakeHead<'_>) -> Option<u64> {
        let has_channel = head.header("x-splunk-request-channel").is_some_and(|channel| !channel.is_empty());
        (has_channel || head.parameter("channel").is_some()).then(|| self.next_ack.fetch_add(1, Ordering::Relaxed))
    }
}
