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
    /// `active`, `waiting` for its store, `removed` from the configuration, or `stopped` until somebody acts.
    pub state: String,
    /// Why it waits or has stopped, in the store's words.
    pub reason: Option<String>,
    /// Since when it waits or has stopped.
    #[serde(default)]
    pub since: Option<String>,
    pub pending: u64,
    pub stored: u64,
    pub dead: u64,
    pub skipped: u64,
    /// Of the pending events those that are deferred: the store refuses them for now and takes others.
    #[serde(default)]
    pub deferred: u64,
    /// The newest refusal of one of them, with its id.
    #[serde(default)]
    pub last_deferred: Option<LastDeadJson>,
    /// Events that are lost from the journal.
    #[serde(default)]
    pub lost: u64,
    /// The newest dead letter, if there was one since the server's start.
    #[serde(default)]
    pub last_dead: Option<LastDeadJson>,
}

/// When an event became a dead letter, and why, in the store's words.
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
    /// Of the ledger's rows, as far as nobody but the data directory can be asked.
    pub fn of_rows(rows: &[LedgerRow]) -> Self {
        Self::of(rows, &[], &DeadLetterService::default())
    }

    /// Of the ledger's rows, of the lanes and the dead letters of a running server. The ledger counts for ever what went through a
    /// route; one that is gone and holds nothing isn't one any more.
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
    /// That of the lane which is in it for longest; one that has stopped comes before those that wait.
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

/// What was given up.
#[derive(Debug, Deserialize, Serialize)]
pub struct GivenUpJson {
    pub routes: Vec<GivenUpRouteJson>,
    /// Stopped lanes that go on.
    pub lanes: u64,
}

/// What was given up of one route.
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

/// What stopped lanes were permitted.
#[derive(Debug, Deserialize, Serialize)]
pub struct AcceptedJson {
    /// Lanes that accept what their store has, and go on.
    pub lanes: u64,
}
