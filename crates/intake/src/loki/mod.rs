//! The push API of Loki: Promtail, Alloy, Docker's `loki` driver, Vector, Fluent Bit, and log handlers of many languages.

mod json_push;
mod labels;
mod line;
mod proto_push;
mod push;
mod snappy;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::{Intake, IntakeHead, IntakeKind, IntakePath, IntakeRoute, Problem, Reply};
use push::Push;

/// The kind of intake.
pub static KIND: IntakeKind = IntakeKind {
    name: "loki",
    path: IntakePath::Fixed("/loki"),
    sender: "url: {URL}/loki/api/v1/push",
    settings: &[],
    secrets: &[],
    may_lack_ids: true,
    read: |_, _| Some(Arc::new(Loki)),
};

/// The intake.
#[derive(Debug)]
pub struct Loki;

impl Intake for Loki {
    fn types(&self) -> &'static [&'static str] {
        &["loki.log"]
    }

    fn route(&self, head: &IntakeHead<'_>) -> IntakeRoute {
        match (head.path.strip_suffix('/').unwrap_or(head.path), head.method) {
            ("/loki/api/v1/push" | "/api/v1/push" | "/api/prom/push", "POST") => {
                IntakeRoute::Ingest(Box::new(Push::new(head)))
            }
            ("/loki/api/v1/push" | "/api/v1/push" | "/api/prom/push", _) => IntakeRoute::Methods("POST"),
            ("/ready", "GET" | "HEAD") => IntakeRoute::Free(Reply::text(200, "ready\n")),
            ("/ready", _) => IntakeRoute::Methods("GET, HEAD"),
            _ => IntakeRoute::Unknown,
        }
    }

    fn refusal(&self, problem: &Problem) -> Reply {
        refusal(problem)
    }
}

fn refusal(problem: &Problem) -> Reply {
    Reply::text(problem.status(), format!("{}\n", problem.detail)).of_problem(problem)
}
