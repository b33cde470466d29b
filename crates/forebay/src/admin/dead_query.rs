//! The query of a request for dead letters, checked by the server.

use admin_api::query::{DeadQuery, known_pairs};
use event::Origin;
use hyper::StatusCode;

use super::response::{AdminResponse, problem};

/// The parameters of a filter for dead letters, except `id`: some paths have the id.
pub(super) const FILTER: &[&str] = &["sink", "type", "since", "until", "reason", "reason_group", "where"];
/// Accepted by all requests.
const ORIGIN: &[&str] = &["origin"];

/// The query of a request to the server of this data directory. It may have these parameters and `origin`: one that is ignored could change
/// what its client means.
pub(super) fn of_request(text: Option<&str>, known: &[&str], own: Origin) -> Result<DeadQuery, AdminResponse> {
    let query = read(text.unwrap_or_default(), &[known, ORIGIN].concat());
    let query = query.map_err(|detail| problem(StatusCode::BAD_REQUEST, "query", detail))?;
    if query.origin.as_ref().is_some_and(|wanted| *wanted != own.to_string()) {
        let detail = "the server at this admin address has another data directory: name the right server with --admin";
        return Err(problem(StatusCode::CONFLICT, "origin", detail.into()));
    }
    Ok(query)
}

fn read(text: &str, known: &[&str]) -> Result<DeadQuery, String> {
    known_pairs(text, known).try_for_each(|pair| pair.map(drop))?;
    DeadQuery::read(text)
}
