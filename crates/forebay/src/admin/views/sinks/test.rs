//! Tests the connection to a store, as `forebay doctor` does.

use std::sync::Arc;
use std::time::Duration;

use config::SinkConfig;
use hyper::StatusCode;
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::admin::response::{AdminResponse, json, problem};

/// A store that takes longer doesn't work.
const LIMIT: Duration = Duration::from_secs(10);
/// Connections that don't close in time are dropped.
const CLOSE_MAX: Duration = Duration::from_secs(1);

#[derive(Serialize)]
struct SinkTestJson {
    ok: bool,
    /// The store's error message.
    reason: Option<String>,
    took_ms: u64,
}

/// Connects to the store, apart from the connections of delivery.
pub(super) async fn respond(tests: &Arc<Semaphore>, store: SinkConfig) -> AdminResponse {
    let Ok(_permit) = tests.try_acquire() else {
        let detail = "another sink is being tested: retry in 10 s";
        return problem(StatusCode::CONFLICT, "test", detail.into());
    };
    let (sink, begun) = (store.build(), Instant::now());
    let examined = timeout(LIMIT, sink.examine(false)).await;
    let took = begun.elapsed();
    let _ = timeout(CLOSE_MAX, sink.close()).await;
    let reason = match examined {
        Ok(Ok(found)) => {
            let problems: Vec<String> =
                found.problems.into_iter().map(|problem| format!("{}. {}", problem.seen, problem.remedy)).collect();
            (!problems.is_empty()).then(|| problems.join("; "))
        }
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("no answer within {} s: check the store and the network", LIMIT.as_secs())),
    };
    let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    json(StatusCode::OK, &SinkTestJson { ok: reason.is_none(), reason, took_ms })
}
