//! `/api/dead`: lists, shows, edits, replays and drops dead letters.
//!
//! | request | answer |
//! |---|---|
//! | `GET /api/dead?…` | `{"letters": […], "more": false, "lost": 0}`, without payloads; 404 `sink`, for all of these requests, if there is no such sink |
//! | `GET /api/dead/ID?sink=` | the same with payloads, 404 if there is none |
//! | `PUT /api/dead/ID?sink=` | replaces the payload of this event's dead letters; as `replay`; 404 if there is none |
//! | `POST /api/dead/replay?…` | `{"sinks": [{"sink", "stored", "refused", "dropped", "edited", "left", "failure"}]}` |
//! | `POST /api/dead/drop?…` | the same; without a filter only with `all=true` |

use dead_letters::{DeadAction, DeadFilter, DeadLetterService, DeadList, DeadOutcome};
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};

use super::Admin;
use super::auth::Caller;
use super::dead_query;
use super::response::{AdminResponse, json, not_allowed, problem};
use crate::log::UNLIMITED;
use admin_api::dead::{DeadLetterJson, ListJson, OutcomeJson, OutcomesJson};
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
    let query = match dead_query::of_request(request.uri().query(), admin.origin) {
        Ok(query) => query,
        Err(refused) => return refused,
    };
    if let Some(sink) = query.filter.sink.as_ref().filter(|sink| !admin.dead_letters.has_sink(sink)) {
        return problem(StatusCode::NOT_FOUND, "sink", format!("there is no sink {sink}: check the name"));
    }
    let (dead_letters, method) = (&admin.dead_letters, request.method().clone());
    let reads = method == Method::GET || method == Method::HEAD;
    match rest {
        "" if reads => list(dead_letters, query.filter, query.limit, false).await,
        "" => not_allowed("GET, HEAD"),
        "/replay" if method == Method::POST => act(dead_letters, caller, DeadAction::Replay, &query).await,
        "/drop" if method == Method::POST => act(dead_letters, caller, DeadAction::Drop, &query).await,
        "/replay" | "/drop" => not_allowed("POST"),
        _ if !reads && method != Method::PUT => not_allowed("GET, HEAD, PUT"),
        rest => match rest.trim_start_matches('/').parse() {
            Ok(id) => {
                let filter = DeadFilter { id: Some(id), ..query.filter };
                if reads {
                    return list(dead_letters, filter, query.limit, true).await;
                }
                edit(request, admin, caller, &filter).await.unwrap_or_else(|refused| refused)
            }
            Err(error) => problem(StatusCode::NOT_FOUND, "id", format!("{error}")),
        },
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
    record(caller, "edit", &outcomes);
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

fn answer(outcomes: Vec<DeadOutcome>) -> AdminResponse {
    json(StatusCode::OK, &OutcomesJson { sinks: outcomes.into_iter().map(OutcomeJson::of).collect() })
}

/// Logs the client that changed dead letters, and how many of each sink.
fn record(caller: &Caller, action: &str, outcomes: &[DeadOutcome]) {
    for DeadOutcome { sink, stored, refused, dropped, edited, left, failure } in outcomes {
        // An edit asks every sink, and usually one has the dead letter.
        if stored + refused + dropped + edited + left == 0 && failure.is_none() {
            continue;
        }
        let (sink, reason) = (&**sink, failure.as_deref());
        tracing::info!(
            target: UNLIMITED, by = %caller, sink, stored, refused, dropped, edited, left, reason,
            "dead {action}"
        );
    }
}

/// On a separate thread: the dead letters are read from disk.
async fn list(
    dead_letters: &DeadLetterService,
    filter: DeadFilter,
    limit: Option<u64>,
    with_payload: bool,
) -> AdminResponse {
    let limit = usize::try_from(limit.unwrap_or(LIST_DEFAULT).min(LIST_MAX)).unwrap_or_default();
    let dead_letters = dead_letters.clone();
    let listed = tokio::task::spawn_blocking(move || dead_letters.list(&filter, limit, with_payload)).await;
    match listed {
        Ok(Ok(DeadList { letters, .. })) if with_payload && letters.is_empty() => no_letter(),
        Ok(Ok(DeadList { letters, more, lost })) => {
            json(StatusCode::OK, &ListJson { letters: letters.iter().map(DeadLetterJson::of).collect(), more, lost })
        }
        Ok(Err(error)) => problem(StatusCode::INTERNAL_SERVER_ERROR, "journal", error.to_string()),
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, "bug", error.to_string()),
    }
}

async fn act(
    dead_letters: &DeadLetterService,
    caller: &Caller,
    action: DeadAction,
    query: &DeadQuery,
) -> AdminResponse {
    if action == DeadAction::Drop && query.filter == DeadFilter::default() && !query.all {
        let detail = "this request would drop all dead letters: add a filter, or all=true (--all)";
        return problem(StatusCode::BAD_REQUEST, "all", detail.into());
    }
    let outcomes = dead_letters.act(&action, &query.filter, query.limit.unwrap_or(u64::MAX)).await;
    record(caller, if action == DeadAction::Drop { "drop" } else { "replay" }, &outcomes);
    answer(outcomes)
}
