//! The query of a request for dead letters, checked by the server.

use admin_api::query::{DeadQuery, pairs};
use event::Origin;
use hyper::StatusCode;

use super::response::{AdminResponse, problem};

/// Parameters of a list of dead letters, or of their groups.
pub(super) const LIST: &[&str] =
    &["sink", "type", "id", "since", "until", "reason", "reason_group", "where", "limit", "order", "cursor", "origin"];
/// Of an edit of one event's dead letters.
pub(super) const EDIT: &[&str] = &["sink", "type", "since", "until", "reason", "reason_group", "where", "origin"];
/// Of a replay or a drop.
pub(super) const ACTION: &[&str] = &[
    "sink",
    "type",
    "id",
    "since",
    "until",
    "reason",
    "reason_group",
    "where",
    "limit",
    "dry_run",
    "expect",
    "all",
    "origin",
];

/// The query of a request to the server of this data directory. It may have these parameters: one that is ignored could change what its client
/// means.
pub(super) fn of_request(text: Option<&str>, known: &[&str], own: Origin) -> Result<DeadQuery, AdminResponse> {
    let query = read(text.unwrap_or_default(), known);
    let query = query.map_err(|detail| problem(StatusCode::BAD_REQUEST, "query", detail))?;
    if query.origin.as_ref().is_some_and(|wanted| *wanted != own.to_string()) {
        let detail = "the server at this admin address has another data directory: name the right server with --admin";
        return Err(problem(StatusCode::CONFLICT, "origin", detail.into()));
    }
    Ok(query)
}

fn read(text: &str, known: &[&str]) -> Result<DeadQuery, String> {
    for pair in pairs(text) {
        let (key, _) = pair?;
        if !known.contains(&key) {
            return Err(format!("unknown parameter {key} of this request: use {}", known.join(", ")));
        }
    }
    DeadQuery::read(text)
}
