//! Routes as JSON: what the admin API answers, what the command reads from it, and what it prints.

use std::sync::Arc;

use delivery::{GivenUp, LaneState, LaneStatus, Row};
use serde::{Deserialize, Serialize};

/// One route.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct RouteJson {
    #[serde(rename = "type")]
    pub(crate) type_name: String,
    pub(crate) sink: String,
    /// `active`, `removed` from the configuration, or `stopped` until somebody acts.
    pub(crate) state: String,
    /// Why it has stopped.
    pub(crate) reason: Option<String>,
    pub(crate) pending: u64,
    pub(crate) stored: u64,
    pub(crate) dead: u64,
    pub(crate) skipped: u64,
}

/// All routes.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct RoutesJson {
    pub(crate) routes: Vec<RouteJson>,
}

impl RoutesJson {
    /// Of the ledger's rows, and of the lanes where a server runs. The ledger counts for ever what went through a route;
    /// one that is gone and holds nothing isn't one any more.
    pub(crate) fn of(rows: &[Row], lanes: &[Arc<LaneStatus>]) -> Self {
        let stopped = |sink: &str| {
            lanes.iter().filter(|lane| *lane.lane().sink == *sink).find_map(|lane| match lane.state() {
                LaneState::Stopped(reason) => Some(reason),
                _ => None,
            })
        };
        let mut routes = Vec::new();
        for row in rows {
            for sink in row.sinks.iter().filter(|sink| !sink.removed || sink.pending > 0) {
                let reason = if sink.removed { None } else { stopped(&sink.sink) };
                routes.push(RouteJson {
                    type_name: row.type_name.to_string(),
                    sink: sink.sink.to_string(),
                    state: if sink.removed {
                        "removed"
                    } else if reason.is_some() {
                        "stopped"
                    } else {
                        "active"
                    }
                    .into(),
                    reason,
                    pending: sink.pending,
                    stored: sink.stored,
                    dead: sink.dead,
                    skipped: sink.skipped,
                });
            }
        }
        Self { routes }
    }
}

/// What was given up.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct GivenUpJson {
    pub(crate) routes: Vec<GivenUpRouteJson>,
    /// Stopped lanes that go on.
    pub(crate) lanes: u64,
}

/// What was given up of one route.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct GivenUpRouteJson {
    #[serde(rename = "type")]
    pub(crate) type_name: String,
    pub(crate) events: u64,
}

impl GivenUpJson {
    pub(crate) fn of(given_up: GivenUp) -> Self {
        let route = |(name, events): (event::TypeName, u64)| GivenUpRouteJson { type_name: name.to_string(), events };
        Self { routes: given_up.routes.into_iter().map(route).collect(), lanes: given_up.lanes }
    }
}
