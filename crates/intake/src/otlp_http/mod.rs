//! OTLP/HTTP, the protocol of OpenTelemetry: logs, traces and metrics, in protobuf and in JSON.
//! <https://opentelemetry.io/docs/specs/otlp/>
//!
//! | file | content |
//! |---|---|
//! | `call.rs`, `reply.rs` | one request, and its response |
//! | `envelope.rs`, `emitter.rs` | the walk from resources to records, and how records are passed on |
//! | `log.rs`, `span.rs`, `metric.rs`, `point.rs` | the JSON of each kind of record |
//! | `message.rs`, `value.rs` | messages and values in either encoding |
//! | `attributes.rs`, `write.rs` | parts of the JSON |
//! | `needed.rs` | the memory that a request needs |
//!
//! No message is decoded as a whole: each record is read from the body where it is, and its JSON is written into one buffer. So a hostile
//! body needs at most the memory of its largest record.

mod attributes;
mod call;
mod emitter;
mod envelope;
mod log;
mod message;
mod metric;
mod needed;
mod point;
mod reply;
mod shared;
mod span;
#[cfg(test)]
mod tests;
mod value;
mod write;

use std::sync::Arc;

use crate::{Intake, IntakeHead, IntakeKind, IntakePath, IntakeRoute, Problem, Reply};
use call::Export;
use envelope::Signal;

/// The kind of intake.
pub static KIND: IntakeKind = IntakeKind {
    name: "otlp",
    path: IntakePath::Fixed("/otlp"),
    sender: "endpoint: {URL}",
    settings: &[],
    secrets: &[],
    may_lack_ids: true,
    read: |_, _| Some(Arc::new(Otlp)),
};

/// The intake.
#[derive(Debug)]
pub struct Otlp;

impl Intake for Otlp {
    fn types(&self) -> &'static [&'static str] {
        &["otlp.log", "otlp.span", "otlp.metric"]
    }

    fn route(&self, head: &IntakeHead<'_>) -> IntakeRoute {
        let signal = match head.path.trim_end_matches('/') {
            otlp::LOGS_PATH => Signal::Logs,
            otlp::TRACES_PATH => Signal::Traces,
            otlp::METRICS_PATH => Signal::Metrics,
            _ => return IntakeRoute::Unknown,
        };
        match head.method {
            "POST" => IntakeRoute::Ingest(Box::new(Export::new(signal, head))),
            _ => IntakeRoute::Methods("POST"),
        }
    }

    fn refusal(&self, problem: &Problem) -> Reply {
        reply::of_problem(problem, true)
    }
}
