//! `/api/peers`: the processes of the fleet, and their answers.
//!
//! | request | answer |
//! |---|---|
//! | `GET /api/peers` | all processes, this one first, each with its last overview |
//! | any below `/api/peers/NAME/api` or `/debug` | the peer's answer |

use admin_api::paths;
use admin_api::peers::PeerJson;
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use serde_json::value::to_raw_value;
use text::rfc3339;

use super::Fleet;
use super::pass::split;
use crate::admin::is_read;
use crate::admin::response::{AdminResponse, json, not_allowed, problem};
use crate::overview::Overviews;

/// The answer to a request whose path continues with `rest` after [`PEERS`](paths::PEERS).
pub(in crate::admin) async fn respond(
    fleet: &Fleet,
    overviews: &Overviews,
    rest: &str,
    request: &mut Request<Incoming>,
) -> AdminResponse {
    if rest.is_empty() {
        return if is_read(request.method()) { list(fleet, overviews).await } else { not_allowed("GET, HEAD") };
    }
    let Some((name, path)) = split(rest) else {
        let detail = format!("the paths are {0}, {0}/NAME/api/… and {0}/NAME/debug/…", paths::PEERS);
        return problem(StatusCode::NOT_FOUND, "path", detail);
    };
    fleet.pass(&name, path, request).await
}

async fn list(fleet: &Fleet, overviews: &Overviews) -> AdminResponse {
    let overview = overviews.now().await;
    let own = PeerJson {
        name: overview.instance.clone(),
        this: true,
        url: String::new(),
        role: Some(overview.role.clone()),
        seen: Some(rfc3339::format(clock::unix_microseconds())),
        error: None,
        overview: to_raw_value(&overview).ok(),
    };
    json(StatusCode::OK, &fleet.peers(own).await)
}
