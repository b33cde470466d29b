//! `GET /api/aggregates`: the state of each aggregate.

use aggregation::AggregateBoard;
use hyper::StatusCode;
use serde::Serialize;
use text::{duration, rfc3339};

use crate::admin::response::{AdminResponse, json};
use crate::type_info::TypeInfo;

/// The aggregates of a server or a gateway. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Aggregates {
    board: AggregateBoard,
    types: TypeInfo,
}

#[derive(Serialize)]
struct AggregatesJson {
    aggregates: Vec<AggregateJson>,
}

#[derive(Serialize)]
struct AggregateJson {
    name: String,
    of: String,
    window_s: u64,
    by: Vec<String>,
    watermark: Option<String>,
    lag: u64,
    groups: usize,
    bytes: usize,
    bytes_max: usize,
    late: u64,
}

impl Aggregates {
    pub(crate) const fn new(board: AggregateBoard, types: TypeInfo) -> Self {
        Self { board, types }
    }

    pub(super) fn respond(&self) -> AdminResponse {
        let running = self.board.aggregates();
        let configured = self.types.aggregate_configs();
        let aggregate = |status: &std::sync::Arc<aggregation::AggregateStatus>| {
            let (of, config) = configured.iter().find(|(_, config)| config.rules.name() == status.name())?;
            let figures = status.figures();
            let groups = config.rules.places().filter(|(setting, _)| setting.starts_with("group_by."));
            Some(AggregateJson {
                name: status.name().to_string(),
                of: of.clone(),
                window_s: seconds(&config.window),
                by: groups.map(|(_, pointer)| pointer.to_string()).collect(),
                watermark: figures.watermark.map(rfc3339::format),
                lag: status.lag(),
                groups: figures.groups,
                bytes: figures.memory_bytes,
                bytes_max: figures.memory_limit_bytes,
                late: figures.counts.late,
            })
        };
        json(StatusCode::OK, &AggregatesJson { aggregates: running.iter().filter_map(aggregate).collect() })
    }
}

/// The length of windows such as `1m`, `5m every 1m` and `session 30m`.
fn seconds(window: &str) -> u64 {
    let mut words = window.split_whitespace();
    words.find_map(|word| duration::parse(word).ok()).map_or(0, |length| length.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_window_has_a_length() {
        assert_eq!(["1m", "5m every 1m", "session 30m"].map(seconds), [60, 300, 1_800]);
    }
}
