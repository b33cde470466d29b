//! What the console reads about the state of the process: small answers that are computed when they are asked for.
//!
//! | request | answer |
//! |---|---|
//! | `GET /api/aggregates`, `GET /api/aggregates/NAME/results` | the state of each aggregate, and its newest results |
//! | `GET /api/history?for=` | figures of the last hour |
//! | `GET /api/refused?code=&type=&source=` | the last rejected events and requests |
//! | `GET /api/sinks`, `GET /api/sinks/NAME` | the state of each sink |
//! | `POST /api/sinks/NAME/test` | whether the store can be used now |

mod aggregates;
mod history;
mod parameters;
mod refused;
mod sinks;

use hyper::Request;
use hyper::body::Incoming;

use super::response::{AdminResponse, not_allowed};
use super::{is_below, is_read};
use crate::caller::Caller;
use crate::overview::Overviews;
use admin_api::paths;
pub(crate) use aggregates::Aggregates;
pub(crate) use refused::Refusals;
pub(crate) use sinks::{ServerSinks, Sinks};

/// The sources of the views. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Views {
    pub(crate) overviews: Overviews,
    /// A writer has none.
    pub(crate) refusals: Option<Refusals>,
    /// A writer has none.
    pub(crate) aggregates: Option<Aggregates>,
    pub(crate) sinks: Sinks,
}

impl Views {
    /// The answer to a request of an admitted caller. `None` if the path isn't one of these.
    pub(super) async fn respond(&self, request: &Request<Incoming>, _caller: &Caller) -> Option<AdminResponse> {
        let (path, query) = (request.uri().path(), request.uri().query());
        if let Some(rest) = path.strip_prefix(paths::SINKS).filter(|rest| is_below(rest)) {
            return Some(sinks::respond(&self.sinks, request.method(), rest).await);
        }
        if let Some(rest) = path.strip_prefix(paths::AGGREGATES).filter(|rest| is_below(rest)) {
            return Some(self.aggregates.as_ref()?.respond(request.method(), rest).await);
        }
        let answer = match path {
            paths::HISTORY => history::respond(&self.overviews, query),
            paths::REFUSED => self.refusals.as_ref()?.respond(query),
            _ => return None,
        };
        Some(if is_read(request.method()) { answer } else { not_allowed("GET, HEAD") })
    }
}
