//! To be written.

use std::sync::Arc;

use crate::{Head, Intake, IntakeKind, IntakePath, Problem, Reply, Route};

/// The kind of intake.
pub static KIND: IntakeKind = IntakeKind {
    name: "splunk_hec",
    path: IntakePath::Fixed("/hec"),
    sender: "url={URL}/services/collector/event",
    settings: &[],
    secrets: &[],
    may_lack_ids: true,
    read: |_, _| Some(Arc::new(SplunkHec)),
};

/// The intake.
#[derive(Debug)]
pub struct SplunkHec;

impl Intake for SplunkHec {
    fn route(&self, _: &Head<'_>) -> Route {
        Route::Unknown
    }

    fn refusal(&self, problem: &Problem) -> Reply {
        Reply::empty(problem.status()).of_problem(problem)
    }
}
