//! What the console reads about the state of the process: small answers that are computed when they are asked for.
//!
//! | request | answer |
//! |---|---|
//! | `GET /api/history?for=` | figures of the last hour |
//! | `GET /api/refused?code=&type=&source=` | the last rejected events and requests |

mod history;
mod parameters;
mod refused;

use hyper::Request;
use hyper::body::Incoming;

use super::auth::Caller;
use super::is_read;
use super::response::{AdminResponse, not_allowed};
use crate::overview::Overviews;
use admin_api::paths;
pub(crate) use refused::Refusals;

/// The sources of the views. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Views {
    pub(crate) overviews: Overviews,
    /// A writer has none.
    pub(crate) refusals: Option<Refusals>,
}

impl Views {
    /// The answer to a request of an admitted caller. `None` if the path isn't one of these.
    pub(super) async fn respond(&self, request: &Request<Incoming>, _caller: &Caller) -> Option<AdminResponse> {
        let query = request.uri().query();
        let answer = match request.uri().path() {
            paths::HISTORY => history::respond(&self.overviews, query),
            paths::REFUSED => self.refusals.as_ref()?.respond(query),
            _ => return None,
        };
        Some(if is_read(request.method()) { answer } else { not_allowed("GET, HEAD") })
    }
}
