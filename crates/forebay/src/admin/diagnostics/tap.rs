//! `/api/tap`: live samples of events, a line each.

use hyper::{Method, StatusCode};
use tap::TAPS_MAX;

use crate::admin::response::{AdminResponse, problem};
use crate::tapping::{TapQuery, Tapping};

/// Opens a tap.
pub(super) fn respond(tapping: &Tapping, method: &Method, query: Option<&str>) -> AdminResponse {
    let wrong = |detail| problem(StatusCode::BAD_REQUEST, "query", detail);
    let query = match TapQuery::read(query.unwrap_or_default(), tapping.usual()) {
        Ok(query) if !tapping.has(query.at()) => {
            return wrong(format!("no events pass `{}` in a writer: use at=stored", query.at().as_str()));
        }
        Ok(query) => query,
        Err(detail) => return wrong(detail),
    };
    if *method == Method::HEAD {
        return AdminResponse::lines(None);
    }
    match tapping.open(query) {
        Ok(Some(lines)) => AdminResponse::lines(Some(lines)),
        Ok(None) => {
            let detail = format!("{TAPS_MAX} taps are open, or the process stops: close one, or retry later");
            problem(StatusCode::SERVICE_UNAVAILABLE, "busy", detail)
        }
        Err(error) => {
            let detail = format!("the tap's thread can't be started: {error}. Check the limit of threads");
            problem(StatusCode::SERVICE_UNAVAILABLE, "busy", detail)
        }
    }
}
