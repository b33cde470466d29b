//! To be written.

use std::sync::Arc;

use crate::{Head, Intake, IntakeKind, IntakePath, Problem, Reply, Route};

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

impl Intake for CloudEvents {
    fn route(&self, _: &Head<'_>) -> Route {
        Route::Unknown
    }

    fn refusal(&self, problem: &Problem) -> Reply {
        Reply::empty(problem.status()).of_problem(problem)
    }
}
