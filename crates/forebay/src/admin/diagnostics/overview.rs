//! `/api/overview` and `/api/live`: rates, latencies and backlogs, once or each second.

use hyper::{Method, StatusCode};

use crate::admin::response::{AdminResponse, json, problem};
use crate::overview::{Overviews, STREAMS_MAX};

/// The overview of this moment.
pub(super) async fn once(overviews: &Overviews) -> AdminResponse {
    json(StatusCode::OK, &overviews.now().await)
}

/// The overview of each second.
pub(super) fn live(overviews: &Overviews, method: &Method) -> AdminResponse {
    if *method == Method::HEAD {
        return AdminResponse::lines(None);
    }
    match overviews.watch() {
        Some(lines) => AdminResponse::lines(Some(lines)),
        None => {
            let detail = format!("{STREAMS_MAX} streams are open, or the process stops: close one, or retry later");
            problem(StatusCode::SERVICE_UNAVAILABLE, "busy", detail)
        }
    }
}
