//! `/api/dead`: lists, shows, edits, replays and drops dead letters.
//!
//! | request | answer |
//! |---|---|
//! | `GET /api/dead?…&order=&cursor=` | `{"letters": […], "more": false, "lost": 0, "next": null}`, without payloads; 404 `sink`, for all of these requests, if there is no such sink |
//! | `GET /api/dead/groups?…` | `{"groups": [{"sink", "type", "reason", "letters", "oldest", "newest"}], "more": 0}` |
//! | `GET /api/dead/ID?sink=` | as the list, with payloads; 404 if there is none |
//! | `PUT /api/dead/ID?sink=` | replaces the payload of this event's dead letters; as `replay`; 404 if there is none |
//! | `POST /api/dead/replay?…` | `{"sinks": [{"sink", "stored", "refused", "dropped", "edited", "left", "failure"}]}` |
//! | `POST /api/dead/drop?…` | the same; without a filter only with `all=true` |
//!
//! `dry_run=true`, `expect=` and `Prefer: respond-async` of the two actions: see [`super::dead_act`].

use dead_letters::{DeadAction, DeadFilter, PageRequest};
use event::EventId;
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};

use super::Admin;
use super::dead_act::{self, answer, record};
use super::dead_query;
use super::jobs::JobAction;
use super::response::{AdminResponse, json, not_allowed, problem};
use crate::caller::Caller;
use admin_api::dead::{GroupsJson, ListJson};
use admin_api::query::DeadQuery;

/// Dead letters in a list, unless the query says otherwise.
const LIST_DEFAULT: u64 = 100;
/// Dead letters in a list at most: it is built in memory.
const LIST_MAX: u64 = 10_000;
/// The number of a sink's dead letters that an edit reads; more than one is an error.
const EDITED_MAX: u64 = 2;

/// Answers a request whose path continues with `rest` after [`DEAD`](admin_api::paths::DEAD).
pub(super) async fn respond(
    rest: &str,
    request: &mut Request<Incoming>,
    admin: &Admin,
    caller: &Caller,
) -> AdminResponse {
    match route(rest, request, admin, caller).await {
        Ok(answer) | Err(answer) => answer,
    }
}

async fn route(
    rest: &str,
    request: &mut Request<Incoming>,
    admin: &Admin,
    caller: &Caller,
) -> Result<AdminResponse, AdminResponse> {
    let method = request.method().clone();
    let reads = method == Method::GET || method == Method::HEAD;
    let more: &[&str] = match method {
        Method::POST => &["id", "limit", "dry_run", "expect", "all"],
        Method::PUT => &[],
        _ => &["id", "limit", "order", "cursor"],
    };
    let known = [dead_query::FILTER, more].concat();
    let query = dead_query::of_request(request.uri().query(), &known, admin.origin)?;
    if let Some(sink) = query.filter.sink.as_ref().filter(|sink| !admin.dead_letters.has_sink(sink)) {
        return Err(problem(StatusCode::NOT_FOUND, "sink", format!("there is no sink {sink}: check the name")));
    }
    match rest {
        "" if reads => list(admin, query, false).await,
        "/groups" if reads => {
            let groups = admin.dead_reads.groups(query.filter).await?;
            Ok(json(StatusCode::OK, &GroupsJson::of(groups)))
        }
        "" | "/groups" => Err(not_allowed("GET, HEAD")),
        "/replay" if method == Method::POST => dead_act::act(request, admin, caller, JobAction::Replay, &query).await,
        "/drop" if method == Method::POST => dead_act::act(request, admin, caller, JobAction::Drop, &query).await,
        "/replay" | "/drop" => Err(not_allowed("POST")),
        _ if !reads && method != Method::PUT => Err(not_allowed("GET, HEAD, PUT")),
        rest => {
            let id = rest.trim_start_matches('/').parse::<EventId>();
            let id = id.map_err(|error| problem(StatusCode::NOT_FOUND, "id", format!("{error}")))?;
            let filter = DeadFilter { ids: Some(id.into()), ..query.filter };
            if reads {
                return list(admin, DeadQuery { filter, ..query }, true).await;
            }
            edit(request, admin, caller, &filter).await
        }
    }
}

/// Replaces the payload of one event's dead letters. Only a replay shows whether a store accepts the new one.
async fn edit(
    request: &mut Request<Incoming>,
    admin: &Admin,
    caller: &Caller,
    filter: &DeadFilter,
) -> Result<AdminResponse, AdminResponse> {
    let (bytes, _place) = admin.payloads.read(request).await?;
    let payload = ::json::check(&bytes).map_err(|error| {
        problem(StatusCode::UNPROCESSABLE_ENTITY, "json", format!("the payload is not a valid event: {error}"))
    })?;
    let action = DeadAction::Edit(payload.as_bytes().into());
    let outcomes = admin.dead_letters.act(&action, filter, EDITED_MAX).await;
    let target = filter.ids.as_ref().map(ToString::to_string).unwrap_or_default();
    record((caller, &admin.diagnostics.actions), "dead edit", target, &outcomes);
    if outcomes.iter().all(|outcome| outcome.edited == 0 && outcome.failure.is_none()) {
        return Err(no_letter());
    }
    Ok(answer(outcomes))
}

fn no_letter() -> AdminResponse {
    problem(
        StatusCode::NOT_FOUND,
        "letter",
        "there is no dead letter with this id: it was replayed or dropped, or the id is mistyped".into(),
    )
}

async fn list(admin: &Admin, query: DeadQuery, with_payload: bool) -> Result<AdminResponse, AdminResponse> {
    let limit = usize::try_from(query.limit.unwrap_or(LIST_DEFAULT).min(LIST_MAX)).unwrap_or_default();
    let page = PageRequest { limit, with_payload, order: query.order, cursor: query.cursor };
    let found = admin.dead_reads.list(query.filter, page).await?;
    if with_payload && found.letters.is_empty() {
        return Err(no_letter());
    }
    Ok(json(StatusCode::OK, &ListJson::of(&found)))
}
