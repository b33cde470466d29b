//! Jobs: replays and drops of dead letters. A job continues when its client is gone. A restart forgets all jobs.
//!
//! | request | answer |
//! |---|---|
//! | `GET /api/jobs` | `{"jobs": […]}`, the newest first |
//! | `GET /api/jobs/ID` | one job; 404 `job` if there is none |
//! | `DELETE /api/jobs/ID` | the same; the job ends after its present batch |

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use admin_api::dead::OutcomeJson;
use admin_api::jobs::{JobJson, JobStateJson, JobsJson};
use admin_api::query::DeadQuery;
use dead_letters::{DeadAction, DeadFilter, DeadOutcome, DeadProgress};
use hyper::{Method, StatusCode};
use text::rfc3339;

use super::is_read;
use super::response::{AdminResponse, json, not_allowed, problem};
use crate::actions::Actions;
use crate::caller::Caller;

/// Jobs that are kept at most.
const KEPT_MAX: usize = 64;

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobAction {
    Replay,
    Drop,
}

impl JobAction {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Drop => "drop",
        }
    }

    /// Its name in the list of actions.
    pub(super) const fn recorded(self) -> &'static str {
        match self {
            Self::Replay => "dead replay",
            Self::Drop => "dead drop",
        }
    }

    pub(super) const fn of_dead_letters(self) -> DeadAction {
        match self {
            Self::Replay => DeadAction::Replay,
            Self::Drop => DeadAction::Drop,
        }
    }
}

/// A replay or a drop of the dead letters that match at its start.
pub(super) struct Job {
    number: u64,
    pub(super) action: JobAction,
    filter: DeadFilter,
    shown: String,
    by: String,
    started: i64,
    pub(super) progress: Arc<DeadProgress>,
    state: Mutex<JobState>,
}

#[derive(Clone, Copy, Default)]
struct JobState {
    letters: u64,
    ended: Option<i64>,
}

impl Job {
    fn state(&self) -> MutexGuard<'_, JobState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn id(&self) -> String {
        self.number.to_string()
    }

    /// Sets how many dead letters it is to handle.
    pub(super) fn counted(&self, letters: u64) {
        self.state().letters = letters;
    }

    /// Ends it, unless it has ended.
    pub(super) fn end(&self) {
        self.state().ended.get_or_insert_with(clock::unix_microseconds);
    }

    fn is_running(&self) -> bool {
        self.state().ended.is_none()
    }

    fn json(&self) -> JobJson {
        let JobState { letters, ended } = *self.state();
        let outcomes = self.progress.outcomes();
        let handled: u64 = outcomes.iter().map(handled).sum();
        let is_whole = handled >= letters && outcomes.iter().all(|outcome| outcome.failure.is_none());
        let state = match (ended.is_some(), self.progress.is_stopped()) {
            (false, false) => JobStateJson::Running,
            (false, true) => JobStateJson::Stopping,
            (true, true) if !is_whole => JobStateJson::Stopped,
            (true, _) if outcomes.iter().any(|outcome| outcome.failure.is_some()) => JobStateJson::Failed,
            (true, _) => JobStateJson::Done,
        };
        JobJson {
            job: self.id(),
            action: self.action.as_str(),
            filter: self.shown.clone(),
            by: self.by.clone(),
            started: rfc3339::format(self.started),
            ended: ended.map(rfc3339::format),
            state,
            letters,
            sinks: outcomes.into_iter().map(OutcomeJson::of).collect(),
        }
    }
}

const fn handled(outcome: &DeadOutcome) -> u64 {
    outcome.stored + outcome.refused + outcome.dropped + outcome.left
}

/// The last jobs of this process, at most 64. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Jobs(Arc<Mutex<JobList>>);

#[derive(Default)]
struct JobList {
    last: u64,
    /// The newest first.
    jobs: VecDeque<Arc<Job>>,
}

/// Why a job can't begin.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum JobRefused {
    /// This job does the same.
    Running(u64),
    /// All jobs that are kept are running.
    Full,
}

impl JobRefused {
    pub(super) fn answer(&self) -> AdminResponse {
        match self {
            Self::Running(number) => {
                let detail = format!(
                    "job {number} is doing this for the same dead letters: wait for its end, or stop it with DELETE \
                     /api/jobs/{number}"
                );
                problem(StatusCode::CONFLICT, "running", detail)
            }
            Self::Full => {
                let detail = format!("{KEPT_MAX} jobs are running: wait for the end of one, or stop one");
                problem(StatusCode::TOO_MANY_REQUESTS, "jobs", detail)
            }
        }
    }
}

impl Jobs {
    fn list(&self) -> MutexGuard<'_, JobList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job. While one with the same action and filter runs, there is no second one.
    pub(super) fn begin(&self, action: JobAction, query: &DeadQuery, by: &Caller) -> Result<Arc<Job>, JobRefused> {
        let mut list = self.list();
        let is_same = |job: &&Arc<Job>| job.action == action && job.filter == query.filter && job.is_running();
        if let Some(same) = list.jobs.iter().find(is_same) {
            return Err(JobRefused::Running(same.number));
        }
        if list.jobs.len() >= KEPT_MAX {
            let oldest = list.jobs.iter().rposition(|job| !job.is_running()).ok_or(JobRefused::Full)?;
            list.jobs.remove(oldest);
        }
        list.last += 1;
        let job = Arc::new(Job {
            number: list.last,
            action,
            filter: query.filter.clone(),
            shown: query.shown(),
            by: by.to_string(),
            started: clock::unix_microseconds(),
            progress: Arc::default(),
            state: Mutex::default(),
        });
        list.jobs.push_front(job.clone());
        Ok(job)
    }

    /// Removes a job that did nothing.
    pub(super) fn forget(&self, job: &Job) {
        self.list().jobs.retain(|kept| kept.number != job.number);
    }

    fn find(&self, id: &str) -> Option<Arc<Job>> {
        let number = id.parse::<u64>().ok()?;
        self.list().jobs.iter().find(|job| job.number == number).cloned()
    }

    /// Answers a request whose path continues with `rest` after [`JOBS`](admin_api::paths::JOBS).
    pub(super) fn respond(&self, method: &Method, rest: &str, (caller, actions): (&Caller, &Actions)) -> AdminResponse {
        let Some(id) = rest.strip_prefix('/') else {
            if !is_read(method) {
                return not_allowed("GET, HEAD");
            }
            let jobs = self.list().jobs.clone();
            return json(StatusCode::OK, &JobsJson { jobs: jobs.iter().map(|job| job.json()).collect() });
        };
        if !is_read(method) && *method != Method::DELETE {
            return not_allowed("GET, HEAD, DELETE");
        }
        let Some(job) = self.find(id) else {
            let detail = "there is no job with this number: GET /api/jobs lists the last ones since the start";
            return problem(StatusCode::NOT_FOUND, "job", detail.into());
        };
        if *method == Method::DELETE && job.is_running() {
            job.progress.stop();
            tracing::info!(target: crate::log::UNLIMITED, by = %caller, job = job.number, "job stop");
            actions.record(caller, "job stop", format!("job {id}: {}", job.shown), "stops after its batch".into());
        }
        json(StatusCode::OK, &job.json())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(sink: &str) -> DeadQuery {
        DeadQuery::read(&format!("sink={sink}")).unwrap()
    }

    #[test]
    fn same_job_runs_once() {
        let jobs = Jobs::default();
        let first = jobs.begin(JobAction::Replay, &query("a"), &Caller::Loopback).unwrap();
        let refused = jobs.begin(JobAction::Replay, &query("a"), &Caller::Loopback).err();
        assert_eq!(refused, Some(JobRefused::Running(1)));
        assert!(jobs.begin(JobAction::Drop, &query("a"), &Caller::Loopback).is_ok());
        assert!(jobs.begin(JobAction::Replay, &query("b"), &Caller::Loopback).is_ok());
        first.end();
        assert!(jobs.begin(JobAction::Replay, &query("a"), &Caller::Loopback).is_ok());
    }

    #[test]
    fn oldest_ended_jobs_make_room() {
        let jobs = Jobs::default();
        let begin = |number: usize| jobs.begin(JobAction::Replay, &query(&number.to_string()), &Caller::Loopback);
        let kept: Vec<_> = (0..KEPT_MAX).map(|number| begin(number).unwrap()).collect();
        assert_eq!(begin(KEPT_MAX).err(), Some(JobRefused::Full));
        kept[7].end();
        kept[9].end();
        assert!(begin(KEPT_MAX).is_ok());
        assert!(jobs.find("8").is_none() && jobs.find("10").is_some() && jobs.find("1").is_some());
    }

    #[test]
    fn job_state_follows_its_outcome() {
        let jobs = Jobs::default();
        let job = jobs.begin(JobAction::Drop, &query("a"), &Caller::Loopback).unwrap();
        job.counted(2);
        assert_eq!(job.json().state, JobStateJson::Running);
        job.progress.stop();
        assert_eq!(job.json().state, JobStateJson::Stopping);
        job.end();
        assert_eq!(job.json().state, JobStateJson::Stopped);
        job.counted(0);
        assert_eq!(job.json().state, JobStateJson::Done, "nothing was left to stop");
    }
}
