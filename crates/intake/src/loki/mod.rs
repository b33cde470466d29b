//! To be written.

use std::sync::Arc;

use crate::{Head, Intake, IntakeKind, IntakePath, Problem, Reply, Route};

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
    fn route(&self, _: &Head<'_>) -> Route {
        Route::Unknown
    }

    fn refusal(&self, problem: &Problem) -> Reply {
        Reply::empty(problem.status()).of_problem(problem)
    }
}
