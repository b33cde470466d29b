//! `/api/routes`: lists routes, discards the backlog of removed ones, and lets stopped lanes accept what their
//! store has.
//!
//! | request | answer |
//! |---|---|
//! | `GET /api/routes` | `{"routes": [{"type", "sink", "state", "reason", "since", "pending", "stored", "dead", "skipped", "deferred", "last_deferred", "last_dead"}]}` |
//! | `POST /api/routes/drop?sink=&type=` | `{"routes": [{"type", "events"}], "lanes": 0}`, 409 if there is nothing to discard |
//! | `POST /api/routes/accept?sink=&resend=` | `{"lanes": 1}`, 409 if no lane has stopped because of its store's cursor |
//! | both with `dry_run=true` | `{"events": 12, "lanes": 1}`: what would be discarded or delivered next, and the lanes that would resume |
//! | both with `expect=N` | 409 `changed` if there are more or fewer events to discard, or lanes to accept |

use std::sync::Arc;

use dead_letters::DeadLetterService;
use delivery::{ChangeError, Delivery, DeliveryControl, LaneBoard};
use event::{Origin, TypeName};
use hyper::{Method, StatusCode};
use ledger::Ledger;
use text::counted;

use super::dead_query;
use super::response::{AdminResponse, json, not_allowed, problem};
use crate::actions::Actions;
use crate::caller::Caller;
use crate::log::UNLIMITED;
use admin_api::query::DeadQuery;
use admin_api::route::{AcceptedJson, GivenUpJson, RoutePlanJson, RoutesJson};

/// The routes, and the delivery that discards their backlogs.
pub(crate) struct Routes {
    ledger: Arc<Ledger>,
    lanes: LaneBoard,
    dead: DeadLetterService,
    control: DeliveryControl,
}

impl Routes {
    pub(crate) fn new(delivery: &Delivery) -> Self {
        let (ledger, lanes) = (delivery.ledger().clone(), delivery.lanes().clone());
        Self { ledger, lanes, dead: delivery.dead_letters().clone(), control: delivery.control().clone() }
    }

    /// Answers a request whose path continues with `rest` after [`ROUTES`](admin_api::paths::ROUTES).
    pub(super) async fn respond(
        &self,
        method: &Method,
        rest: &str,
        query: Option<&str>,
        origin: Origin,
        by: (&Caller, &Actions),
    ) -> AdminResponse {
        let known: &[&str] = match rest {
            "/drop" => &["sink", "type", "dry_run", "expect"],
            "/accept" => &["sink", "resend", "again", "dry_run", "expect"],
            _ => &[],
        };
        let query = match dead_query::of_request(query, known, origin) {
            Ok(query) => query,
            Err(refused) => return refused,
        };
        match rest {
            "" if *method == Method::GET || *method == Method::HEAD => {
                let routes = RoutesJson::of(&self.ledger.snapshot(), &self.lanes.lanes(), &self.dead);
                json(StatusCode::OK, &routes)
            }
            "" => not_allowed("GET, HEAD"),
            "/drop" if *method == Method::POST => self.give_up(&query, by).await.unwrap_or_else(|refused| refused),
            "/accept" if *method == Method::POST => self.accept(&query, by).await.unwrap_or_else(|refused| refused),
            "/drop" | "/accept" => not_allowed("POST"),
            _ => {
                let paths = "the paths are /api/routes, /api/routes/drop and /api/routes/accept";
                problem(StatusCode::NOT_FOUND, "path", paths.into())
            }
        }
    }

    async fn accept(
        &self,
        query: &DeadQuery,
        (caller, actions): (&Caller, &Actions),
    ) -> Result<AdminResponse, AdminResponse> {
        let sink = sink(query)?;
        if query.has_again {
            tracing::warn!(by = %caller, "again=true is the old name of resend=true, and is accepted until 0.2: use resend=true");
        }
        if query.dry_run {
            let planned = self.control.plan_accept(sink.clone()).await;
            let lanes = planned.map_err(|error| refused(error, (StatusCode::CONFLICT, "nothing_stopped")))?;
            return Ok(json(StatusCode::OK, &RoutePlanJson { events: self.pending(&sink), lanes }));
        }
        let accepted = self.control.accept(sink.clone(), query.resend, query.expect).await;
        let lanes = accepted.map_err(|error| refused(error, (StatusCode::CONFLICT, "nothing_stopped")))?;
        let resend = query.resend.then_some(true);
        tracing::info!(target: UNLIMITED, by = %caller, sink = &*sink, lanes, resend, "route accept");
        let result = if query.resend { "with resend" } else { "without resend" };
        let result = format!("{} resumed, {result}", counted(lanes as u64, "lane"));
        actions.record(caller, "route accept", format!("sink {sink}"), result);
        Ok(json(StatusCode::OK, &AcceptedJson { lanes }))
    }

    async fn give_up(
        &self,
        query: &DeadQuery,
        (caller, actions): (&Caller, &Actions),
    ) -> Result<AdminResponse, AdminResponse> {
        let sink = sink(query)?;
        let only = query.filter.type_name.as_deref().map(TypeName::new).transpose();
        let only = only.map_err(|error| problem(StatusCode::BAD_REQUEST, "type", error.to_string()))?;
        if query.dry_run {
            let planned = self.control.plan_discard(sink.clone(), only).await;
            let planned = planned.map_err(|error| refused(error, (StatusCode::CONFLICT, "nothing_held")))?;
            let events = planned.routes.iter().map(|(_, events)| events).sum();
            return Ok(json(StatusCode::OK, &RoutePlanJson { events, lanes: planned.lanes }));
        }
        let given_up = self
            .control
            .discard(sink.clone(), only.clone(), query.expect)
            .await
            .map_err(|error| refused(error, (StatusCode::CONFLICT, "nothing_held")))?;
        let (events, lanes) = (given_up.routes.iter().map(|(_, events)| events).sum::<u64>(), given_up.lanes);
        tracing::info!(target: UNLIMITED, by = %caller, sink = &*sink, events, lanes, "route drop");
        let target = only.map_or_else(|| format!("sink {sink}"), |only| format!("sink {sink}, type {only}"));
        actions.record(caller, "route drop", target, format!("{} discarded", counted(events, "event")));
        Ok(json(StatusCode::OK, &GivenUpJson::of(given_up)))
    }

    /// The events that wait for a sink on routes that are configured.
    fn pending(&self, sink: &str) -> u64 {
        let rows = self.ledger.snapshot();
        let of_sink = rows.iter().flat_map(|row| &row.sinks).filter(|row| *row.sink == *sink && !row.removed);
        of_sink.map(|row| row.pending).sum()
    }
}

fn sink(query: &DeadQuery) -> Result<Arc<str>, AdminResponse> {
    let missing = || problem(StatusCode::BAD_REQUEST, "sink", "the parameter sink is missing: add sink=NAME".into());
    query.filter.sink.as_deref().map(Arc::from).ok_or_else(missing)
}

/// Why nothing was changed; `nothing` has the status and code if there is nothing to change.
fn refused(error: ChangeError, nothing: (StatusCode, &str)) -> AdminResponse {
    match error {
        ChangeError::Changed { .. } => problem(StatusCode::CONFLICT, "changed", error.to_string()),
        ChangeError::NothingToDo(detail) => problem(nothing.0, nothing.1, detail),
        error => problem(StatusCode::SERVICE_UNAVAILABLE, "delivery", error.to_string()),
    }
}
