//! `GET /api/aggregates`: the state of each aggregate. `GET /api/aggregates/NAME/results`: its newest results, from a store that can be read.

use aggregation::AggregateBoard;
use gateway::{ReadRefused, StoredEvents};
use hyper::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use text::{duration, percent, rfc3339};

use crate::admin::is_read;
use crate::admin::response::{AdminResponse, json, not_allowed, problem, read_refused};
use crate::bus_events::Readers;
use crate::type_info::TypeInfo;

/// The aggregates of a server or a gateway. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Aggregates {
    board: AggregateBoard,
    types: TypeInfo,
    stored: StoredEvents,
    readers: Readers,
}

/// Results of a request.
const RESULTS: usize = 200;

/// A page of stored events.
#[derive(Deserialize)]
struct PageJson<'p> {
    #[serde(borrow)]
    events: &'p RawValue,
    sink: String,
}

#[derive(Serialize)]
struct ResultsJson<'p> {
    /// The newest first.
    results: &'p RawValue,
    /// The sink that was read.
    sink: String,
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
    pub(crate) fn new(board: AggregateBoard, types: TypeInfo, of_stores: (StoredEvents, Readers)) -> Self {
        let (stored, readers) = of_stores;
        Self { board, types, stored, readers }
    }

    /// Answers a request whose path continues with `rest` after [`AGGREGATES`](admin_api::paths::AGGREGATES).
    pub(super) async fn respond(&self, method: &Method, rest: &str) -> AdminResponse {
        let rest = rest.strip_prefix('/').unwrap_or(rest);
        match rest.strip_suffix("/results") {
            _ if !is_read(method) => not_allowed("GET, HEAD"),
            Some(name) => self.results(name).await,
            None if rest.is_empty() => self.all(),
            None => {
                let paths = "the paths are /api/aggregates and /api/aggregates/NAME/results";
                problem(StatusCode::NOT_FOUND, "path", paths.into())
            }
        }
    }

    /// The newest results of an aggregate. `name` is percent-encoded.
    async fn results(&self, name: &str) -> AdminResponse {
        let decoded = percent::decode(name).unwrap_or_else(|| name.to_owned());
        if !self.board.aggregates().iter().any(|status| status.name().as_str() == decoded) {
            let detail = format!("there is no aggregate {decoded}: GET /api/aggregates lists all");
            return problem(StatusCode::NOT_FOUND, "aggregate", detail);
        }
        let query = format!("type={name}&order=desc&limit={RESULTS}");
        let body = match self.stored.page(Some(&query), &self.readers.current()).await {
            Ok(body) => body,
            Err(ReadRefused { code: "not_readable", .. }) => {
                return json(StatusCode::OK, &serde_json::json!({"results": [], "sink": null}));
            }
            Err(refused) => return read_refused(refused),
        };
        match serde_json::from_slice::<PageJson<'_>>(body.as_ref()) {
            Ok(PageJson { events, sink }) => json(StatusCode::OK, &ResultsJson { results: events, sink }),
            Err(error) => {
                problem(StatusCode::INTERNAL_SERVER_ERROR, "bug", format!("BUG: the page is no JSON: {error}"))
            }
        }
    }

    fn all(&self) -> AdminResponse {
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
