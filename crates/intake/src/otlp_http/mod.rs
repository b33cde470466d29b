//! To be written.

use std::sync::Arc;

use crate::{Head, Intake, IntakeKind, IntakePath, Problem, Reply, Route};

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
    fn route(&self, _: &Head<'_>) -> Route {
        Route::Unknown
    }

    fn refusal(&self, problem: &Problem) -> Reply {
        Reply::empty(problem.status()).of_problem(problem)
    }
}
