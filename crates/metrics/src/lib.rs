//! The cells of metrics: each crate keeps its own, the binary collects them.
//!
//! Usually one thread writes a cell and another reads it from time to time; relaxed atomics are enough.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A count that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// A counter at 0.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

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

/// Buckets of a histogram that have an upper bound. Each bound is twice the one before; one more bucket has none.
pub const BOUNDED_BUCKETS: usize = 20;
/// How often values fell into each bucket, not cumulated.
pub type Buckets = [u64; BOUNDED_BUCKETS + 1];

/// The upper bounds of buckets of which the first ends at `smallest`.
#[must_use]
pub const fn bounds(smallest: u64) -> [u64; BOUNDED_BUCKETS] {
    let mut bounds = [smallest; BOUNDED_BUCKETS];
    let mut at = 1;
    while at < BOUNDED_BUCKETS {
        bounds[at] = bounds[at - 1] * 2;
        at += 1;
    }
    bounds
}

/// The bucket that a value falls into.
#[must_use]
pub fn bucket_of(bounds: &[u64; BOUNDED_BUCKETS], value: u64) -> usize {
    bounds.partition_point(|bound| *bound < value)
}

/// The upper bounds of a [`Histogram`] in nanoseconds: 50 µs and then twice as much each time, up to 26 s.
pub const BUCKET_BOUNDS: [u64; BOUNDED_BUCKETS] = bounds(50_000);

/// How often a duration fell into each of the buckets.
#[derive(Debug, Default)]
pub struct Histogram(Cells);

/// A histogram at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistogramSnapshot {
    /// How many durations fell into each bucket.
    pub buckets: Buckets,
    /// The sum of all durations in nanoseconds.
    pub nanoseconds: u64,
}

impl Histogram {
    /// An empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a duration.
    pub fn record(&self, duration: Duration) {
        self.0.record(&BUCKET_BOUNDS, u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    /// The counts as they are now.
    #[must_use]
    pub fn snapshot(&self) -> HistogramSnapshot {
        HistogramSnapshot { buckets: self.0.buckets(), nanoseconds: self.0.sum() }
    }
}

impl HistogramSnapshot {
    /// Adds the counts of another one.
    pub fn merge(&mut self, other: &Self) {
        self.buckets.iter_mut().zip(other.buckets).for_each(|(mine, theirs)| *mine += theirs);
        self.nanoseconds += other.nanoseconds;
    }

    /// What was counted after `before`, an earlier snapshot of the same histogram.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let buckets = std::array::from_fn(|at| self.buckets[at].saturating_sub(before.buckets[at]));
        Self { buckets, nanoseconds: self.nanoseconds.saturating_sub(before.nanoseconds) }
    }

    /// The duration that `percent` of 100 values don't exceed, about: it assumes that values are evenly spread over their bucket. `None` without
    /// values. Beyond the last bound it is that bound.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Option<Duration> {
        let all: u64 = self.buckets.iter().sum();
        let mut rank = (all * percent).div_ceil(100).max(1);
        for (at, count) in self.buckets.iter().enumerate() {
            if rank <= *count {
                let below = at.checked_sub(1).map_or(0, |below| BUCKET_BOUNDS[below]);
                let width = BUCKET_BOUNDS.get(at).map_or(0, |bound| bound - below);
                return Some(Duration::from_nanos(below + width / count * rank));
            }
            rank -= count;
        }
        None
    }
}

/// How often a size fell into each of the buckets.
#[derive(Debug)]
pub struct SizeHistogram {
    bounds: [u64; BOUNDED_BUCKETS],
    cells: Cells,
}

/// A size histogram at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeSnapshot {
    /// The upper bounds of all buckets but the last.
    pub bounds: [u64; BOUNDED_BUCKETS],
    /// How many sizes fell into each bucket.
    pub buckets: Buckets,
    /// The sum of all sizes.
    pub sum: u64,
}

impl SizeHistogram {
    /// A histogram whose first bucket ends at `smallest`.
    #[must_use]
    pub fn new(smallest: u64) -> Self {
        Self { bounds: bounds(smallest), cells: Cells::default() }
    }

    /// Counts a size.
    pub fn record(&self, size: u64) {
        self.cells.record(&self.bounds, size);
    }

    /// Counts many sizes: how many fell into each bucket, and their sum.
    pub fn add(&self, buckets: &Buckets, sum: u64) {
        let counted = self.cells.buckets.iter().zip(buckets).filter(|(_, count)| **count > 0);
        for (cell, count) in counted {
            cell.fetch_add(*count, Ordering::Relaxed);
        }
        self.cells.sum.fetch_add(sum, Ordering::Relaxed);
    }

    /// The counts as they are now.
    #[must_use]
    pub fn snapshot(&self) -> SizeSnapshot {
        SizeSnapshot { bounds: self.bounds, buckets: self.cells.buckets(), sum: self.cells.sum() }
    }
}

#[derive(Debug, Default)]
struct Cells {
    buckets: [AtomicU64; BOUNDED_BUCKETS + 1],
    sum: AtomicU64,
}

impl Cells {
    fn record(&self, bounds: &[u64; BOUNDED_BUCKETS], value: u64) {
        self.buckets[bucket_of(bounds, value)].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    fn buckets(&self) -> Buckets {
        std::array::from_fn(|at| self.buckets[at].load(Ordering::Relaxed))
    }

    fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_is_in_the_first_matching_bucket() {
        let histogram = Histogram::default();
        for (microseconds, bucket) in [(0, 0), (50, 0), (51, 1), (100, 1), (26_214_400, 19), (26_214_401, 20)] {
            let before = histogram.snapshot();
            histogram.record(Duration::from_micros(microseconds));
            let after = histogram.snapshot();
            assert_eq!(after.buckets[bucket], before.buckets[bucket] + 1, "{microseconds} µs");
            assert_eq!(after.nanoseconds - before.nanoseconds, microseconds * 1000);
        }
    }

    #[test]
    fn percentile_is_within_its_bucket() {
        let histogram = Histogram::new();
        assert_eq!(histogram.snapshot().percentile(99), None);
        (0..99).for_each(|_| histogram.record(Duration::from_micros(60)));
        let before = histogram.snapshot();
        let end = before.percentile(99).unwrap();
        assert!(
            (Duration::from_micros(99)..=Duration::from_micros(100)).contains(&end),
            "{end:?}: the end of its bucket"
        );
        assert!(before.percentile(50).unwrap() < Duration::from_micros(76));
        histogram.record(Duration::from_secs(60));
        assert_eq!(histogram.snapshot().since(&before).percentile(50), Some(Duration::from_nanos(BUCKET_BOUNDS[19])));
    }

    #[test]
    fn size_buckets_differ_and_snapshots_add_up() {
        let sizes = SizeHistogram::new(512);
        [512, 513, 1024, u64::MAX / 2].iter().for_each(|size| sizes.record(*size));
        let snapshot = sizes.snapshot();
        assert_eq!((snapshot.bounds[0], snapshot.bounds[1]), (512, 1024));
        assert_eq!((snapshot.buckets[0], snapshot.buckets[1], snapshot.buckets[BOUNDED_BUCKETS]), (1, 2, 1));
        let before = snapshot.sum;
        sizes.add(&snapshot.buckets, 7);
        assert_eq!((sizes.snapshot().buckets[1], sizes.snapshot().sum), (4, before + 7));

        let histogram = Histogram::new();
        histogram.record(Duration::from_micros(60));
        let mut sum = histogram.snapshot();
        sum.merge(&histogram.snapshot());
        assert_eq!((sum.buckets[1], sum.nanoseconds), (2, 120_000));
    }
}
