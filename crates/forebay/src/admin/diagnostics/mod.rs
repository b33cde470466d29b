//! What every role answers about itself, on its admin port: what slows it down, and what shows why.
//!
//! | request | answer |
//! |---|---|
//! | `GET /api/actions` | the last actions of operators |
//! | `GET /api/config`, `GET /api/config/history` | the configuration, with stars instead of secrets, and its last changes |
//! | `GET /api/overview`, `GET /api/live` | rates, latencies and backlogs: once, or a line each second |
//! | `GET /api/tap?at=&type=&source=&sink=&where=&rate=` | live samples of events, a line each |
//! | `GET /api/health` | what slowed the process down in the last minute, and figures of its host |
//! | `GET /debug/memory` | the memory of each owner of the memory plan, and the heap |
//! | `GET /debug/shards` | the connections and long requests of each shard |
//! | `POST /debug/profile` | where the CPU time of some seconds goes |
//! | `POST /debug/heap` | what allocates memory in some seconds |
//! | `GET /api/log` | the level and the last lines of the log |
//! | `PUT /api/log` | another level for some time |

mod config;
mod log;
mod overview;
mod profile;
mod shards;
mod tap;

use std::time::Duration;

use gateway::GatewayControl;
use hyper::body::Incoming;
use hyper::{Request, StatusCode};

use super::Views;
use super::fleet::{self, Fleet};
use super::response::{AdminResponse, json, not_allowed};
use super::{is_below, is_read};
use crate::actions::Actions;
use crate::caller::Caller;
use crate::configuration_sources::ConfigurationSources;
use crate::findings::Findings;
use crate::memory_use::MemoryUse;
use crate::overview::{HISTORY_BYTES_MAX, Overviews};
use crate::tapping::Tapping;
use admin_api::debug::{MemoryJson, OwnerJson};
use admin_api::paths;

/// What every role answers about itself.
#[derive(Clone)]
pub(crate) struct Diagnostics {
    pub(crate) findings: Findings,
    pub(crate) overviews: Overviews,
    pub(crate) memory: MemoryUse,
    /// A writer has no shards.
    pub(crate) gateway: Option<GatewayControl>,
    pub(crate) configuration: ConfigurationSources,
    pub(crate) tapping: Tapping,
    pub(crate) views: Views,
    pub(crate) fleet: Fleet,
    pub(crate) actions: Actions,
}

/// Clients of streams get this long to see their end.
const LAST_LINES: Duration = Duration::from_millis(50);

impl Diagnostics {
    /// Ends all streams: the process is about to end. Without streams this takes no time, so the next process finds the port free.
    pub(crate) async fn end(&self) {
        let (watchers, taps) = (self.overviews.end(), self.tapping.end());
        if watchers || taps {
            tokio::time::sleep(LAST_LINES).await;
        }
    }

    fn memory(&self) -> MemoryJson {
        let mut memory = self.memory.now();
        memory.owners.push(OwnerJson::new("history", self.overviews.history_bytes(), HISTORY_BYTES_MAX));
        memory
    }

    /// The answer to a request of an admitted caller. `None` if the path isn't one of these.
    pub(crate) async fn respond(&self, request: &mut Request<Incoming>, caller: &Caller) -> Option<AdminResponse> {
        const READ_ONLY: [&str; 9] = [
            paths::ACTIONS,
            paths::API_HEALTH,
            paths::API_OVERVIEW,
            paths::API_LIVE,
            paths::API_TAP,
            paths::CONFIG,
            paths::CONFIG_HISTORY,
            paths::DEBUG_MEMORY,
            paths::DEBUG_SHARDS,
        ];
        let path = request.uri().path();
        if let Some(rest) = path.strip_prefix(paths::PEERS).filter(|rest| is_below(rest)).map(str::to_owned) {
            return Some(fleet::respond(&self.fleet, &self.overviews, &rest, request).await);
        }
        Some(match request.uri().path() {
            path if READ_ONLY.contains(&path) && !is_read(request.method()) => not_allowed("GET, HEAD"),
            paths::ACTIONS => json(StatusCode::OK, &self.actions.now()),
            paths::CONFIG => config::respond(&self.configuration).await,
            paths::CONFIG_HISTORY => config::history(&self.configuration),
            paths::API_OVERVIEW => overview::once(&self.overviews).await,
            paths::API_TAP => tap::respond(&self.tapping, request.method(), request.uri().query()),
            paths::API_LIVE => overview::live(&self.overviews, request.method()),
            paths::API_HEALTH => json(StatusCode::OK, &self.findings.health()),
            paths::DEBUG_MEMORY => json(StatusCode::OK, &self.memory()),
            paths::DEBUG_SHARDS => shards::respond(self.gateway.as_ref()?).await,
            paths::DEBUG_PROFILE => profile::respond(request, (caller, &self.actions), ::profile::cpu).await,
            paths::DEBUG_HEAP => profile::respond(request, (caller, &self.actions), ::profile::heap).await,
            paths::LOG => log::respond(request, (caller, &self.actions)).await,
            _ => return self.views.respond(request, caller).await,
        })
    }
}
