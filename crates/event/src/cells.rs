//! The cells that metrics are made of: each crate keeps its own, the binary collects them.
//!
//! A cell is written by one thread as a rule and read by another now and then; relaxed atomics are enough.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A count that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `amount`.
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// The count.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The upper bounds of a histogram's buckets in nanoseconds: 50 µs and then twice as much each time, up to 26 s.
pub const BUCKET_BOUNDS: [u64; 20] = {
    let mut bounds = [50_000; 20];
    let mut at = 1;
    while at < bounds.len() {
        bounds[at] = bounds[at - 1] * 2;
        at += 1;
    }
    bounds
};

/// How often a duration fell into each of the buckets.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKET_BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

/// A histogram as it was at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistogramSnapshot {
    /// How many durations fell into each bucket, not cumulated; the last one has no upper bound.
    pub buckets: [u64; BUCKET_BOUNDS.len() + 1],
    /// The sum of all durations in nanoseconds.
    pub nanoseconds: u64,
}

impl Histogram {
    /// Counts a duration.
    pub fn record(&self, duration: Duration) {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BUCKET_BOUNDS.partition_point(|bound| *bound < nanoseconds);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// The counts as they are now.
    #[must_use]
    pub fn snapshot(&self) -> HistogramSnapshot {
        let buckets = std::array::from_fn(|at| self.buckets[at].load(Ordering::Relaxed));
        HistogramSnapshot { buckets, nanoseconds: self.nanoseconds.load(Ordering::Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_falls_into_the_first_bucket_that_holds_it() {
        let histogram = Histogram::default();
        for (microseconds, bucket) in [(0, 0), (50, 0), (51, 1), (100, 1), (26_214_400, 19), (26_214_401, 20)] {
            let before = histogram.snapshot();
            histogram.record(Duration::from_micros(microseconds));
            let after = histogram.snapshot();
            assert_eq!(after.buckets[bucket], before.buckets[bucket] + 1, "{microseconds} µs");
            assert_eq!(after.nanoseconds - before.nanoseconds, microseconds * 1000);
        }
    }
}
