//! `/api/dead`: lists, shows, replays and drops dead letters.
//!
//! | request | answer |
//! |---|---|
//! | `GET /api/dead?…` | `{"letters": […], "more": false}`, without payloads |
//! | `GET /api/dead/ID?sink=` | the same with payloads, 404 where there is none |
//! | `POST /api/dead/replay?…` | `{"sinks": [{"sink", "stored", "refused", "dropped", "left", "failure"}]}` |
//! | `POST /api/dead/drop?…` | the same; without a filter only with `all=true` |

use delivery::{DeadAction, DeadFilter, DeadLetterOffice, DeadList};
use event::Origin;
use hyper::{Method, StatusCode};

use super::answer::{Answer, json, not_allowed, other_origin, problem};
use super::query::DeadQuery;
use crate::dead_json::{LetterJson, ListJson, OutcomeJson, OutcomesJson};

/// Letters in a list, unless the query says otherwise.
const LIST_DEFAULT: u64 = 100;
/// Letters in a list at most: it is built in memory.
const LIST_MAX: u64 = 10_000;

/// The beginning of all paths here.
pub(super) const PATH: &str = "/api/dead";

/// Answers a request whose path goes on with `rest` behind [`PATH`].
pub(super) async fn respond(
    method: &Method,
    rest: &str,
    query: Option<&str>,
    office: &DeadLetterOffice,
    origin: Origin,
) -> Answer {
    let query = match DeadQuery::read(query.unwrap_or_default()) {
        Ok(query) => query,
        Err(detail) => return problem(StatusCode::BAD_REQUEST, "query", detail),
    };
    if query.origin.as_ref().is_some_and(|wanted| *wanted != origin.to_string()) {
        return other_origin();
    }
    let reads = *method == Method::GET || *method == Method::HEAD;
    match rest {
        "" if reads => list(office, query.filter, query.limit, false).await,
        "/replay" if *method == Method::POST => act(office, DeadAction::Replay, &query).await,
        "/drop" if *method == Method::POST => act(office, DeadAction::Drop, &query).await,
        "/replay" | "/drop" => not_allowed("POST"),
        _ if !reads => not_allowed("GET, HEAD"),
        rest => match rest.trim_start_matches('/').parse() {
            Ok(id) => list(office, DeadFilter { id: Some(id), ..query.filter }, query.limit, true).await,
            Err(error) => problem(StatusCode::NOT_FOUND, "id", format!("{error}")),
        },
    }
}

/// On a thread of its own: the letters are read from disk.
async fn list(office: &DeadLetterOffice, filter: DeadFilter, limit: Option<u64>, with_payload: bool) -> Answer {
    let limit = usize::try_from(limit.unwrap_or(LIST_DEFAULT).min(LIST_MAX)).unwrap_or_default();
    let office = office.clone();
    let listed = tokio::task::spawn_blocking(move || office.list(&filter, limit, with_payload)).await;
    match listed {
        Ok(Ok(DeadList { letters, .. })) if with_payload && letters.is_empty() => {
            problem(StatusCode::NOT_FOUND, "letter", "no dead letter that is held has this id".into())
        }
        Ok(Ok(DeadList { letters, more })) => {
            json(StatusCode::OK, &ListJson { letters: letters.iter().map(LetterJson::of).collect(), more })
        }
        Ok(Err(error)) => problem(StatusCode::INTERNAL_SERVER_ERROR, "journal", error.to_string()),
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, "bug", error.to_string()),
    }
}

async fn act(office: &DeadLetterOffice, action: DeadAction, query: &DeadQuery) -> Answer {
    if action == DeadAction::Drop && query.filter == DeadFilter::default() && !query.all {
        let detail = "this would drop all dead letters: say which, or add all=true (--all)";
        return problem(StatusCode::BAD_REQUEST, "all", detail.into());
    }
    let outcomes = office.act(action, &query.filter, query.limit.unwrap_or(u64::MAX)).await;
    if let Some(sink) = query.filter.sink.as_ref().filter(|_| outcomes.is_empty()) {
        return problem(StatusCode::NOT_FOUND, "sink", format!("there is no sink {sink}"));
    }
    json(StatusCode::OK, &OutcomesJson { sinks: outcomes.into_iter().map(OutcomeJson::of).collect() })
}
