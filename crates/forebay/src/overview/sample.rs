//! The counters from which rates are computed.

use std::collections::BTreeMap;
use std::sync::Arc;

use event::TypeName;
use host::{container_stats, process_stats};
use metrics::HistogramSnapshot;
use tokio::time::Instant;

/// The counters of one moment. All but pending events and dead letters only grow.
#[derive(Debug)]
pub(crate) struct RateSample {
    pub(super) at: Instant,
    pub(super) accepted: u64,
    pub(super) refused: u64,
    /// A writer has none.
    pub(super) body_bytes: Option<u64>,
    pub(super) commits: u64,
    /// Records of these.
    pub(super) records: u64,
    /// Requests that post events.
    pub(super) posts: HistogramSnapshot,
    pub(super) fdatasync: HistogramSnapshot,
    pub(super) types: BTreeMap<TypeName, TypeSample>,
    pub(super) sinks: BTreeMap<Arc<str>, SinkSample>,
    pub(super) host: HostSample,
}

/// The counters of a type.
#[derive(Debug, Default)]
pub(super) struct TypeSample {
    pub(super) accepted: u64,
    pub(super) refused: u64,
    /// Events that each sink has stored.
    pub(super) stored: Vec<(Arc<str>, u64)>,
}

/// The counters of a sink.
#[derive(Debug, Default)]
pub(super) struct SinkSample {
    pub(super) stored: u64,
    pub(super) pending: u64,
    /// Dead letters that are held.
    pub(super) dead: u64,
    /// How long its batches took.
    pub(super) batches: HistogramSnapshot,
}

/// The counters of the process.
#[derive(Debug)]
pub(super) struct HostSample {
    cpu_seconds: Option<f64>,
    throttled_seconds: Option<f64>,
    pub(super) cpu_limit: Option<f64>,
    pub(super) rss_bytes: Option<u64>,
    pub(super) memory_limit: Option<u64>,
}

impl RateSample {
    /// Whether the process keeps events until they are stored. A writer doesn't.
    pub(super) const fn keeps_events(&self) -> bool {
        self.body_bytes.is_some()
    }

    /// A sample of the process, without its work.
    pub(super) fn of_process() -> Self {
        Self {
            at: Instant::now(),
            accepted: 0,
            refused: 0,
            body_bytes: None,
            commits: 0,
            records: 0,
            posts: HistogramSnapshot::default(),
            fdatasync: HistogramSnapshot::default(),
            types: BTreeMap::new(),
            sinks: BTreeMap::new(),
            host: HostSample::take(),
        }
    }
}

impl HostSample {
    fn take() -> Self {
        let (process, container) = (process_stats(), container_stats());
        Self {
            cpu_seconds: process.cpu_seconds,
            throttled_seconds: container.throttled_seconds,
            cpu_limit: container.cpu_limit,
            rss_bytes: process.resident_bytes,
            memory_limit: container.memory_limit_bytes,
        }
    }

    /// Seconds of CPU since an earlier sample.
    pub(super) fn cpu_since(&self, before: &Self) -> Option<f64> {
        Some(self.cpu_seconds? - before.cpu_seconds?)
    }

    /// Throttled seconds since an earlier sample.
    pub(super) fn throttled_since(&self, before: &Self) -> Option<f64> {
        Some(self.throttled_seconds? - before.throttled_seconds?)
    }
}
