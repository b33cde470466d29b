//! The query of a request for dead letters, checked by the server.

use admin_api::query::DeadQuery;
use event::Origin;
use hyper::StatusCode;

use super::response::{AdminResponse, problem};

/// The query of a request to the server of this data directory.
pub(super) fn of_request(text: Option<&str>, own: Origin) -> Result<DeadQuery, AdminResponse> {
    let query = DeadQuery::read(text.unwrap_or_default());
    let query = query.map_err(|detail| problem(StatusCode::BAD_REQUEST, "query", detail))?;
    if query.origin.as_ref().is_some_and(|wanted| *wanted != own.to_string()) {
        let detail = "the server at this admin address has another data directory: name the right server with --admin";
        return Err(problem(StatusCode::CONFLICT, "origin", detail.into()));
    }
    Ok(query)
}
