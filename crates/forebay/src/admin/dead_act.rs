//! Replays and drops of dead letters: immediately, as a dry run, or as a job.
//!
//! | part of the request | meaning |
//! |---|---|
//! | `dry_run=true` | `{"letters", "sinks": [{"sink", "letters", "repeatable"}]}`: what would be handled |
//! | `expect=N` | 409 `changed` if there are more or fewer now; 409 `running` while a job does the same |
//! | `Prefer: respond-async` | 202 `{"job"}`: the action continues as a [job](super::jobs) |

use std::sync::Arc;

use dead_letters::{DeadFilter, DeadOutcome, Selection};
use hyper::body::Incoming;
use hyper::{HeaderMap, Request, StatusCode};
use tokio::sync::oneshot;

use super::Admin;
use super::dead_reads::DeadReads;
use super::jobs::{Job, JobAction, Jobs};
use super::response::{AdminResponse, json, problem, stopping};
use crate::actions::Actions;
use crate::caller::Caller;
use crate::log::UNLIMITED;
use admin_api::dead::{OutcomeJson, OutcomesJson, PlanJson};
use admin_api::jobs::JobStartedJson;
use admin_api::query::DeadQuery;

/// The header field of a client that doesn't wait for the end.
const PREFER: &str = "prefer";
const RESPOND_ASYNC: &str = "respond-async";

/// Replays or drops the dead letters of a query.
pub(super) async fn act(
    request: &Request<Incoming>,
    admin: &Admin,
    caller: &Caller,
    action: JobAction,
    query: &DeadQuery,
) -> Result<AdminResponse, AdminResponse> {
    let limit = query.limit.unwrap_or(u64::MAX);
    if query.dry_run {
        let selection = admin.dead_reads.select(query.filter.clone(), limit).await?;
        return Ok(json(StatusCode::OK, &PlanJson::of(&selection)));
    }
    if action == JobAction::Drop && query.filter == DeadFilter::default() && !query.all {
        let detail = "this request would drop all dead letters: add a filter, or all=true (--all)";
        return Err(problem(StatusCode::BAD_REQUEST, "all", detail.into()));
    }
    let is_async = responds_async(request.headers());
    if !is_async && query.expect.is_none() {
        let outcomes = admin.dead_letters.act(&action.of_dead_letters(), &query.filter, limit).await;
        record((caller, &admin.diagnostics.actions), action.recorded(), query.shown(), &outcomes);
        return Ok(answer(outcomes));
    }
    let job = admin.jobs.begin(action, query, caller).map_err(|refused| refused.answer())?;
    let running = RunningJob {
        job: job.clone(),
        jobs: admin.jobs.clone(),
        reads: admin.dead_reads.clone(),
        actions: admin.diagnostics.actions.clone(),
        caller: caller.clone(),
        query: query.clone(),
    };
    let (accept, accepted) = oneshot::channel();
    let ended = tokio::spawn(running.run(accept));
    accepted.await.unwrap_or_else(|_| Err(stopping()))?;
    if is_async {
        return Ok(json(StatusCode::ACCEPTED, &JobStartedJson { job: job.id() }));
    }
    ended.await.map(answer).map_err(|_| stopping())
}

/// Whether the client has the answer of a job instead of waiting for its end.
fn responds_async(headers: &HeaderMap) -> bool {
    let values = headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
    let mut wanted = values.flat_map(|value| value.split(',')).map(|part| part.split(';').next().unwrap_or_default());
    wanted.any(|preference| preference.trim().eq_ignore_ascii_case(RESPOND_ASYNC))
}

/// A job, and everything that it needs. It ends without its client.
struct RunningJob {
    job: Arc<Job>,
    jobs: Jobs,
    reads: DeadReads,
    actions: Actions,
    caller: Caller,
    query: DeadQuery,
}

impl Drop for RunningJob {
    /// Also after a panic: a job that seems to run keeps out others.
    fn drop(&mut self) {
        self.job.end();
    }
}

impl RunningJob {
    /// Says first whether it handles anything.
    async fn run(self, accept: oneshot::Sender<Result<(), AdminResponse>>) -> Vec<DeadOutcome> {
        let selection = match self.select().await {
            Ok(selection) => selection,
            Err(refused) => {
                self.jobs.forget(&self.job);
                let _ = accept.send(Err(refused));
                return Vec::new();
            }
        };
        self.job.counted(selection.letters());
        // The client may have gone; the work is done anyway.
        let _ = accept.send(Ok(()));
        let action = self.job.action.of_dead_letters();
        let outcomes = self.reads.letters().act_on(&action, &selection, &self.job.progress).await;
        record((&self.caller, &self.actions), self.job.action.recorded(), self.query.shown(), &outcomes);
        self.job.end();
        outcomes
    }

    /// The dead letters that match now.
    async fn select(&self) -> Result<Selection, AdminResponse> {
        let limit = self.query.limit.unwrap_or(u64::MAX);
        let selection = self.reads.select(self.query.filter.clone(), limit).await?;
        let letters = selection.letters();
        match self.query.expect.filter(|expected| *expected != letters) {
            None => Ok(selection),
            Some(expected) => {
                let detail = format!(
                    "{} match now, and {expected} were expected: repeat the dry run",
                    text::counted(letters, "dead letter")
                );
                Err(problem(StatusCode::CONFLICT, "changed", detail))
            }
        }
    }
}

/// The outcome of each sink.
pub(super) fn answer(outcomes: Vec<DeadOutcome>) -> AdminResponse {
    json(StatusCode::OK, &OutcomesJson { sinks: outcomes.into_iter().map(OutcomeJson::of).collect() })
}

/// Logs the client that changed dead letters, and how many of each sink, and keeps it in the list of actions.
pub(super) fn record(
    (caller, actions): (&Caller, &Actions),
    action: &'static str,
    target: String,
    outcomes: &[DeadOutcome],
) {
    let mut results = Vec::new();
    for outcome in outcomes {
        let DeadOutcome { sink, stored, refused, dropped, edited, left, failure } = outcome;
        // An edit asks every sink, and usually one has the dead letter.
        if stored + refused + dropped + edited + left == 0 && failure.is_none() {
            continue;
        }
        let (sink, reason) = (&**sink, failure.as_deref());
        tracing::info!(
            target: UNLIMITED, by = %caller, sink, stored, refused, dropped, edited, left, reason,
            "{action}"
        );
        let counts = [
            (*stored, "stored"),
            (*refused, "rejected again"),
            (*dropped, "dropped"),
            (*edited, "edited"),
            (*left, "left for later"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}"));
        let parts: Vec<String> = counts.chain(reason.map(|reason| format!("ended early: {reason}"))).collect();
        results.push(format!("{sink}: {}", parts.join(", ")));
    }
    let result = if results.is_empty() { "no dead letter matched".into() } else { results.join("; ") };
    actions.record(caller, action, target, result);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefer_asks_for_a_job() {
        let responds = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(PREFER, value.parse().unwrap());
            }
            responds_async(&headers)
        };
        assert!(responds(&["respond-async"]) && responds(&["wait=5, Respond-Async"]));
        assert!(responds(&["return=minimal", "respond-async; x=1"]));
        assert!(!responds(&[]) && !responds(&["wait=5"]) && !responds(&["respond-async-not"]));
    }

    #[test]
    fn action_without_dead_letters_is_recorded() {
        let actions = Actions::default();
        record((&Caller::Loopback, &actions), "dead drop", "sink=a".into(), &[]);
        let kept = actions.now().actions;
        assert_eq!((kept[0].action, &*kept[0].result), ("dead drop", "no dead letter matched"));
    }
}
