//! Jobs as JSON: replays and drops of dead letters that continue when their client is gone.

use serde::Serialize;

use crate::dead::OutcomeJson;

/// The answer to a request with `Prefer: respond-async`.
#[derive(Debug, Serialize)]
pub struct JobStartedJson {
    pub job: String,
}

/// The jobs of a process.
#[derive(Debug, Serialize)]
pub struct JobsJson {
    /// The newest first.
    pub jobs: Vec<JobJson>,
}

/// A job.
#[derive(Debug, Serialize)]
pub struct JobJson {
    pub job: String,
    /// `replay` or `drop`.
    pub action: &'static str,
    /// The filter, for the operator.
    pub filter: String,
    pub by: String,
    pub started: String,
    pub ended: Option<String>,
    pub state: JobStateJson,
    /// Dead letters that it is to handle.
    pub letters: u64,
    /// Grows while the job runs.
    pub sinks: Vec<OutcomeJson>,
}

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStateJson {
    Running,
    /// It ends after its present batch.
    Stopping,
    Done,
    /// It was stopped.
    Stopped,
    /// At least one sink's dead letters could not be handled to the end.
    Failed,
}
