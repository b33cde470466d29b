//! The state of a process as JSON: what the admin API answers, and what `forebay status` reads and prints.

use std::collections::BTreeMap;
use std::sync::Arc;

use dead_letters::DeadLetterService;
use delivery::{LaneState, LaneStatus};
use ledger::{LedgerRow, SinkRow};
use serde::{Deserialize, Serialize};
use text::{OperatorCommand, counted, rfc3339};

use crate::health::{FindingJson, FindingLevel};
use crate::route::{LastDeadJson, Trouble};
use crate::upstream::WriterStatusJson;

/// The state of a process.
#[derive(Debug, Deserialize, Serialize)]
pub struct StatusJson {
    pub version: String,
    /// `serve`, `gateway` or `writer`.
    pub role: String,
    /// The origin of the data directory. A writer has none.
    #[serde(default)]
    pub gateway_id: Option<String>,
    pub started: String,
    pub uptime_seconds: u64,
    pub ready: bool,
    /// Why it isn't ready.
    pub reason: Option<String>,
    /// What needs an operator, a sentence each. Empty: the process is healthy.
    pub problems: Vec<String>,
    /// What slowed it down in the last minute.
    #[serde(default)]
    pub findings: Vec<FindingJson>,
    /// Events that became durable since the data directory was created. Of a writer: records that stores have accepted since its start.
    pub events: u64,
    /// Added by the command, which asks twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events_per_second: Option<f64>,
    /// Requests, and records of batches, that were rejected since the start.
    pub refused: u64,
    /// A writer has none.
    pub journal: Option<JournalJson>,
    pub sinks: Vec<SinkStatusJson>,
    /// The writers of a gateway.
    #[serde(default)]
    pub writers: Vec<WriterStatusJson>,
}

/// The journal and its disk.
#[derive(Debug, Deserialize, Serialize)]
pub struct JournalJson {
    pub bytes: u64,
    pub disk_free_bytes: u64,
}

/// The state of a sink.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct SinkStatusJson {
    pub sink: String,
    /// `active`, `connecting`, `waiting` for its store, `stopped` until an operator resumes it, or `removed` from the configuration. Of a
    /// writer: whether the last call of the store succeeded, `active`, or failed, `failing`; `unused` before the first.
    pub state: String,
    /// Why it waits, has stopped or fails: usually the store's error message.
    pub reason: Option<String>,
    /// Since when it waits, has stopped or fails.
    pub since: Option<String>,
    /// The backlog. A writer has none: it keeps no events.
    pub backlog: Option<BacklogJson>,
}

/// The events of a sink that aren't stored.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct BacklogJson {
    /// Events without an outcome yet.
    pub pending: u64,
    /// The age of the oldest of them that a lane has read.
    pub oldest_seconds: Option<u64>,
    /// Dead letters that are held.
    pub dead_letters: u64,
    /// The newest dead letter since the start.
    pub last_dead: Option<LastDeadJson>,
    /// The pending events that are deferred.
    pub deferred: u64,
    pub last_deferred: Option<LastDeadJson>,
}

impl SinkStatusJson {
    /// All sinks that have lanes, and those that are removed from the configuration and still hold something. `now` is in microseconds.
    pub fn of_all(rows: &[LedgerRow], lanes: &[Arc<LaneStatus>], dead: &DeadLetterService, now: i64) -> Vec<Self> {
        let of_lanes =
            |lane: &Arc<LaneStatus>| (lane.lane().sink.clone(), Self::of_lanes(&lane.lane().sink, lanes, now));
        let mut sinks: BTreeMap<_, Self> = lanes.iter().map(of_lanes).collect();
        for row in rows {
            for route in &row.sinks {
                let dead_letters = dead.held(&route.sink, &row.type_name);
                if route.removed && route.pending == 0 && dead_letters == 0 {
                    continue;
                }
                let removed = || Self { sink: route.sink.to_string(), state: "removed".into(), ..Self::default() };
                let sink = sinks.entry(route.sink.clone()).or_insert_with(removed);
                sink.backlog.get_or_insert_default().add(row, route, dead_letters, dead);
            }
        }
        sinks.into_values().collect()
    }

    fn of_lanes(name: &str, lanes: &[Arc<LaneStatus>], now: i64) -> Self {
        let own = || lanes.iter().filter(|lane| *lane.lane().sink == *name);
        let trouble = Trouble::of(name, lanes);
        let is_connecting = own().any(|lane| lane.state() == LaneState::Connecting);
        let state =
            trouble.as_ref().map_or(if is_connecting { "connecting" } else { "active" }, |trouble| trouble.state);
        let oldest = own().filter_map(|lane| lane.oldest_pending_at()).min();
        let oldest_seconds = oldest.map(|at| u64::try_from(now.saturating_sub(at) / 1_000_000).unwrap_or(0));
        Self {
            sink: name.to_owned(),
            state: state.to_owned(),
            since: trouble.as_ref().map(|trouble| rfc3339::format(trouble.since)),
            reason: trouble.map(|trouble| trouble.reason),
            backlog: Some(BacklogJson { oldest_seconds, ..BacklogJson::default() }),
        }
    }

    /// The problem that needs an operator, if there is one.
    pub fn problem(&self) -> Option<FindingJson> {
        let Self { sink, reason, backlog, .. } = self;
        let reason = reason.as_deref().unwrap_or("reason unknown");
        let pending = backlog.as_ref().map_or(0, |backlog| backlog.pending);
        let text = match self.state.as_str() {
            "waiting" => format!("sink {sink} waits: {reason}"),
            "stopped" => format!("sink {sink} has stopped: {reason}"),
            "failing" => format!("sink {sink} fails: {reason}"),
            "removed" if pending > 0 => format!(
                "sink {sink} was removed from the configuration and has a backlog of {}: add it again, or run {}",
                counted(pending, "event"),
                OperatorCommand::RouteDrop(sink)
            ),
            _ => return None,
        };
        Some(FindingJson {
            code: format!("sink_{}", self.state),
            level: FindingLevel::Error,
            since: self.since.clone().unwrap_or_default(),
            text,
            page: Some(format!("sinks/{sink}")),
        })
    }

    /// The dead letters that the sink holds, if there are any. The process is healthy with them.
    pub fn dead_letters(&self) -> Option<FindingJson> {
        let backlog = self.backlog.as_ref().filter(|backlog| backlog.dead_letters > 0)?;
        let held = counted(backlog.dead_letters, "dead letter");
        let newest = backlog.last_dead.as_ref();
        let reason = newest.map(|newest| format!(": {}", newest.reason)).unwrap_or_default();
        Some(FindingJson {
            code: "dead_letters".to_owned(),
            level: FindingLevel::Warning,
            since: newest.map(|newest| newest.at.clone()).unwrap_or_default(),
            text: format!("{held} of sink {}{reason}", self.sink),
            page: Some(format!("dead?sink={}", self.sink)),
        })
    }
}

impl BacklogJson {
    fn add(&mut self, row: &LedgerRow, route: &SinkRow, dead_letters: u64, dead: &DeadLetterService) {
        self.pending += route.pending;
        self.dead_letters += dead_letters;
        let (deferred, last_deferred) = dead.deferred(&route.sink, &row.type_name);
        self.deferred += deferred;
        let last_dead = dead.last(&route.sink, &row.type_name);
        for (newest, last) in [(&mut self.last_dead, last_dead), (&mut self.last_deferred, last_deferred)] {
            // Times of one format sort like their texts.
            let last = last.map(LastDeadJson::of);
            if last.as_ref().map(|last| &last.at) > newest.as_ref().map(|newest| &newest.at) {
                *newest = last;
            }
        }
    }
}
