//! The state of a process at one moment as JSON, with rates: what `GET /api/overview` and `GET /api/live` answer, and what `forebay top` shows.

use serde::{Deserialize, Serialize};

use crate::health::{FindingJson, HostJson};

/// The state of a process. Rates and latencies are over the last 10 s, or since the first sample if that was later.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct OverviewJson {
    /// Grows by one with each overview of the process.
    pub n: u64,
    pub at: String,
    /// The name of the host.
    pub instance: String,
    /// `serve`, `gateway` or `writer`.
    pub role: String,
    pub version: String,
    /// The gateway id. A writer has none.
    pub origin: Option<String>,
    pub ready: bool,
    /// Why it isn't ready.
    pub reason: Option<String>,
    /// What needs an operator, the worst first.
    #[serde(default)]
    pub problems: Vec<FindingJson>,
    pub findings: Vec<FindingJson>,
    pub totals: TotalsJson,
    /// The busiest types. A writer knows none.
    pub types: Vec<TypeRateJson>,
    /// How many more types there are.
    pub types_more: u64,
    pub sinks: Vec<SinkRateJson>,
    /// The routes of the busiest types.
    pub edges: Vec<EdgeJson>,
    /// The outcomes of the busiest types' events, and of all events that don't add up.
    pub ledger: Vec<LedgerRowJson>,
    pub host: HostJson,
}

/// What the process accepts, over all types.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct TotalsJson {
    /// Events that became durable since the data directory was created. Of a writer: records that stores have accepted since its start.
    pub accepted: u64,
    pub accepted_per_s: f64,
    /// Bytes of request bodies. A writer doesn't count them.
    pub bytes_per_s: Option<f64>,
    pub refused_per_min: f64,
    /// 99 of 100 requests that post events were answered within this time, in milliseconds.
    pub post_p99_ms: Option<f64>,
    /// The same of the journal's fdatasync.
    pub fsync_p99_ms: Option<f64>,
    /// Events that share a commit.
    pub events_a_commit: Option<f64>,
}

/// The rate of a type.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct TypeRateJson {
    pub r#type: String,
    pub accepted_per_s: f64,
    pub refused_per_min: f64,
    /// The type whose events it aggregates, if it has results.
    pub aggregate_of: Option<String>,
}

/// The state of a sink.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct SinkRateJson {
    pub sink: String,
    /// The kind of store. `None` if it was removed from the configuration.
    pub kind: Option<String>,
    /// As in [`SinkStatusJson::state`](crate::status::SinkStatusJson::state).
    pub state: String,
    pub since: Option<String>,
    pub reason: Option<String>,
    /// Events without an outcome. A writer keeps none.
    pub pending: Option<u64>,
    /// The age of the oldest of them that a lane has read.
    pub oldest_s: Option<u64>,
    pub stored_per_s: f64,
    /// When nothing is pending any longer, at the rates of now; `None` if the backlog doesn't shrink.
    pub drains_in_s: Option<u64>,
    /// 99 of 100 batches were written within this time, in milliseconds.
    pub batch_p99_ms: Option<f64>,
    /// Dead letters that are held.
    pub dead: Option<u64>,
    /// The writer that answered last, if the sink is one of writers.
    pub server: Option<String>,
}

/// The rate of a route.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct EdgeJson {
    pub r#type: String,
    pub sink: String,
    /// Events stored a second.
    pub per_s: f64,
}

/// The outcomes of a type's events in one sink.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct LedgerRowJson {
    pub r#type: String,
    pub sink: String,
    pub accepted: u64,
    pub stored: u64,
    pub dead: u64,
    pub skipped: u64,
    pub lost: u64,
    pub pending: u64,
    pub adds_up: bool,
}
