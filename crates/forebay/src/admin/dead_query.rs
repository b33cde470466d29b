//! The query of a request for dead letters, checked by the server.

use admin_api::query::DeadQuery;
use dead_letters::DeadOrder;
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

/// Rejects parameters that the request would ignore, although they change what its client means.
pub(super) fn check_action(query: &DeadQuery, is_bulk: bool) -> Result<(), AdminResponse> {
    let is_page = query.cursor.is_some() || query.order != DeadOrder::default();
    let ignored = if is_page {
        "cursor and order"
    } else if !is_bulk && (query.dry_run || query.expect.is_some()) {
        "dry_run and expect"
    } else {
        return Ok(());
    };
    let detail = format!("this request has no parameters {ignored}: remove them");
    Err(problem(StatusCode::BAD_REQUEST, "query", detail))
}
