//! Options of aggregates.

use std::sync::Arc;
use std::time::Duration;

/// The wall clock: microseconds since 1970, UTC.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// Options of aggregates.
#[derive(Clone)]
pub struct AggregationOptions {
    /// How long an aggregate that has caught up gathers events after the first: it wakes at most once in this time.
    pub linger: Duration,
    /// The clock that ends windows of types without events.
    pub clock: Clock,
    /// Threads for aggregates: each has its own up to this number, and more share them. With 0 all run on the caller's runtime.
    pub threads: usize,
}
