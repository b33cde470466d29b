//! The options of a delivery.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use aggregation::{AggregationOptions, Clock};
use eventlog::unix_microseconds;
use limits::memory::Budgets;
use sink::Claim;
use spans::SpanQueue;
use tap::Taps;

/// The options of a delivery.
#[derive(Clone)]
pub struct Options {
    /// How long a lane that has caught up gathers events after the first: it wakes at most once in this time.
    pub linger: Duration,
    /// How much longer it does so for a writer while no client waits for the store.
    pub linger_remote: Duration,
    /// How often the ledger is saved while it changes.
    pub save_every: Duration,
    /// How often a transactional store's cursor is moved while only events of other sinks pass. No request waits for it.
    pub cover_every: Duration,
    /// How long a record may be the only one of its batch that its store does not accept, before it becomes a dead
    /// letter.
    pub alone_max: Duration,
    /// The longest pause between two attempts.
    pub retry_max: Duration,
    /// The process's claim on its lanes: no other process has it.
    pub claim: Claim,
    /// The budgets of delivery in the process's memory.
    pub memory: Budgets,
    /// Decides the jitter of the pauses.
    pub seed: u64,
    /// The clock that ends windows of idle types, and closes objects whose events have waited long enough.
    pub clock: Clock,
    /// Threads for aggregates: each has its own up to this number, and more share them. With 0 all run on the thread of
    /// delivery.
    pub aggregate_threads: usize,
    /// Whether a thread writes the files of progress. Without it the thread of delivery does, so the order of all writes
    /// is fixed.
    pub progress_thread: bool,
    /// Those who watch events pass.
    pub taps: &'static Taps,
    /// The spans of sampled events, if they are sent somewhere.
    pub spans: Option<&'static SpanQueue>,
}

impl Options {
    /// The options of a server.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "each one has another claim and another seed")]
    pub fn new() -> Self {
        Self {
            linger: Duration::from_millis(10),
            linger_remote: Duration::from_millis(15),
            save_every: Duration::from_millis(200),
            cover_every: Duration::from_secs(1),
            alone_max: Duration::from_hours(1),
            retry_max: Duration::from_mins(1),
            claim: random_claim(),
            memory: Budgets::FULL,
            seed: RandomState::new().hash_one("jitter"),
            clock: Arc::new(unix_microseconds),
            aggregate_threads: 8,
            progress_thread: true,
            taps: Taps::closed(),
            spans: None,
        }
    }

    /// The options of the aggregates.
    pub(crate) fn aggregation(&self) -> AggregationOptions {
        AggregationOptions { linger: self.linger, clock: self.clock.clone(), threads: self.aggregate_threads }
    }
}

/// 128 bits from the operating system's randomness, which seeds the standard library's hashes.
fn random_claim() -> Claim {
    let half = |name: &str| RandomState::new().hash_one((name, std::process::id(), unix_microseconds()));
    Claim(((u128::from(half("claim")) << 64) | u128::from(half("of this process"))).to_be_bytes())
}
