//! Routes as JSON: what the admin API answers, what the command reads from it, and what it prints.

use std::sync::Arc;

use dead_letters::{DeadLetterService, LastDead};
use delivery::{LaneState, LaneStatus};
use ledger::{Discarded, LedgerRow};
use serde::{Deserialize, Serialize};
use text::rfc3339;

/// One route.
#[derive(Debug, Deserialize, Serialize)]
pub struct RouteJson {
    #[serde(rename = "type")]
    pub type_name: String,
    pub sink: String,
    /// `active`, `waiting` for its store, `removed` from the configuration, or `stopped` until an operator resumes it.
    pub state: String,
    /// Why it waits or has stopped: usually the store's error message.
    pub reason: Option<String>,
    /// Since when it waits or has stopped.
    #[serde(default)]
    pub since: Option<String>,
    pub pending: u64,
    pub stored: u64,
    pub dead: u64,
    pub skipped: u64,
    /// The pending events that are deferred: the store rejects them for now and accepts others.
    #[serde(default)]
    pub deferred: u64,
    /// The newest rejection of one of them, with its id.
    #[serde(default)]
    pub last_deferred: Option<LastDeadJson>,
    /// Events that are lost from the journal.
    #[serde(default)]
    pub lost: u64,
    /// The newest dead letter, if there was one since the server's start.
    #[serde(default)]
    pub last_dead: Option<LastDeadJson>,
}

/// When an event became a dead letter, and the store's error message.
#[derive(Debug, Deserialize, Serialize)]
pub struct LastDeadJson {
    pub at: String,
    pub reason: String,
}

impl LastDeadJson {
    pub fn of(last: LastDead) -> Self {
        Self { at: rfc3339::format(last.at), reason: last.reason }
    }
}

/// All routes.
#[derive(Debug, Deserialize, Serialize)]
pub struct RoutesJson {
    pub routes: Vec<RouteJson>,
}

impl RoutesJson {
    /// The routes by the ledger's rows, if no server is running.
    pub fn of_rows(rows: &[LedgerRow]) -> Self {
        Self::of(rows, &[], &DeadLetterService::default())
    }

    /// The routes by the ledger's rows, and the lanes and dead letters of a running server. The ledger keeps the counts of removed routes
    /// forever; a removed route that holds nothing is no longer listed.
    pub fn of(rows: &[LedgerRow], lanes: &[Arc<LaneStatus>], dead: &DeadLetterService) -> Self {
        let mut routes = Vec::new();
        for row in rows {
            for sink in row.sinks.iter().filter(|sink| !sink.removed || sink.pending > 0) {
                let trouble = if sink.removed { None } else { Trouble::of(&sink.sink, lanes) };
                let state = match &trouble {
                    _ if sink.removed => "removed",
                    Some(trouble) => trouble.state,
                    None => "active",
                };
                let (deferred, last_deferred) = dead.deferred(&sink.sink, &row.type_name);
                routes.push(RouteJson {
                    type_name: row.type_name.to_string(),
                    sink: sink.sink.to_string(),
                    state: state.into(),
                    since: trouble.as_ref().map(|trouble| rfc3339::format(trouble.since)),
                    reason: trouble.map(|trouble| trouble.reason),
                    pending: sink.pending,
                    stored: sink.stored,
                    dead: sink.dead,
                    skipped: sink.skipped,
                    deferred,
                    last_deferred: last_deferred.map(LastDeadJson::of),
                    lost: sink.lost,
                    last_dead: dead.last(&sink.sink, &row.type_name).map(LastDeadJson::of),
                });
            }
        }
        Self { routes }
    }
}

/// What keeps a sink from getting its events.
pub struct Trouble {
    pub state: &'static str,
    pub reason: String,
    pub since: i64,
}

impl Trouble {
    /// That of the lane which has it for longest; stopped lanes are preferred to waiting ones.
    pub fn of(sink: &str, lanes: &[Arc<LaneStatus>]) -> Option<Self> {
        let of_lane = |lane: &Arc<LaneStatus>| match lane.state_and_since() {
            (LaneState::Stopped(reason), since) => Some(Self { state: "stopped", reason, since }),
            (LaneState::Waiting(reason), since) => Some(Self { state: "waiting", reason, since }),
            (LaneState::Connecting | LaneState::Delivering, _) => None,
        };
        let of_sink = lanes.iter().filter(|lane| *lane.lane().sink == *sink);
        of_sink.filter_map(of_lane).min_by_key(|trouble| (trouble.state != "stopped", trouble.since))
    }
}

/// The discarded backlogs.
#[derive(Debug, Deserialize, Serialize)]
pub struct GivenUpJson {
    pub routes: Vec<GivenUpRouteJson>,
    /// Stopped lanes that resume.
    pub lanes: u64,
}

/// The discarded backlog of one route.
#[derive(Debug, Deserialize, Serialize)]
pub struct GivenUpRouteJson {
    #[serde(rename = "type")]
    pub type_name: String,
    pub events: u64,
}

impl GivenUpJson {
    pub fn of(given_up: Discarded) -> Self {
        let route = |(name, events): (event::TypeName, u64)| GivenUpRouteJson { type_name: name.to_string(), events };
        Self { routes: given_up.routes.into_iter().map(route).collect(), lanes: given_up.lanes }
    }
}

/// The stopped lanes that were resumed.
#[derive(Debug, Deserialize, Serialize)]
pub struct AcceptedJson {
    /// Lanes that accept their store's cursor, and resume.
    pub lanes: u64,
}

/// What a drop or an acceptance would do.
#[derive(Debug, Deserialize, Serialize)]
pub struct RoutePlanJson {
    /// Events that are discarded (drop), or delivered next (accept).
    pub events: u64,
    /// Lanes that resume.
    pub lanes: u64,
}
