//! The figures of the last hour as JSON. The last value of each list is of the time `until`; `None` where nothing was measured.

use serde::{Deserialize, Serialize};

/// The values of a curve, the oldest first.
pub type Points = Vec<Option<f32>>;

/// The answer of [`HISTORY`](crate::paths::HISTORY).
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct HistoryJson {
    /// Seconds between two points.
    pub step_s: u64,
    pub until: String,
    pub totals: TotalsHistoryJson,
    /// The busiest, busiest first.
    pub types: Vec<TypeHistoryJson>,
    /// The busiest, busiest first.
    pub sinks: Vec<SinkHistoryJson>,
}

/// The process.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct TotalsHistoryJson {
    pub accepted_per_s: Points,
    pub refused_per_min: Points,
    pub pending: Points,
    pub dead: Points,
    pub post_p99_ms: Points,
}

/// A type.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct TypeHistoryJson {
    pub r#type: String,
    pub accepted_per_s: Points,
}

/// A sink. A writer keeps no events: nothing is pending or dead.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct SinkHistoryJson {
    pub sink: String,
    pub stored_per_s: Points,
    pub pending: Points,
    pub dead: Points,
}
