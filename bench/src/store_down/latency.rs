//! How long events of a type took, over a time that may be long: of each stretch of it the percentiles, and of those the medians.

use std::collections::BTreeMap;
use std::time::Duration;

use harness::open_loop::{Sample, percentile};
use harness::report::median;

/// So long that a percentile has enough requests in it; one bad moment in an hour then counts as one of many.
const STRETCH: Duration = Duration::from_secs(10);

/// The medians of all stretches.
pub(super) struct Latency {
    /// The type.
    pub(super) of: String,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    /// The worst p99 of a stretch, and how many there were.
    worst_ms: f64,
    stretches: usize,
}

impl Latency {
    pub(super) fn new(of: String, samples: &[Sample]) -> Self {
        let mut stretches: BTreeMap<u64, Vec<Sample>> = BTreeMap::new();
        for sample in samples {
            stretches.entry(sample.due.as_secs() / STRETCH.as_secs()).or_default().push(*sample);
        }
        let each = |hundredths| stretches.values().map(|stretch| percentile(stretch, hundredths)).collect::<Vec<_>>();
        let worst_ms = each(99).into_iter().fold(0.0, f64::max);
        Self { of, p50_ms: median(each(50)), p99_ms: median(each(99)), worst_ms, stretches: stretches.len() }
    }
}

impl std::fmt::Display for Latency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { of, p50_ms, p99_ms, worst_ms, stretches } = self;
        write!(
            f,
            "{of}: p50 {p50_ms:.2}, p99 {p99_ms:.2} ms until stored; the worst p99 of {stretches} stretches {worst_ms:.2}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bad_stretch_is_one_of_many() {
        let sample = |second: u64| {
            let latency = Duration::from_millis(if second / 10 == 3 { 900 } else { 5 });
            Sample { due: Duration::from_secs(second), latency }
        };
        let samples: Vec<Sample> = (0..70).map(sample).collect();
        let latency = Latency::new("a".to_owned(), &samples);
        assert_eq!(latency.stretches, 7);
        assert!((latency.p99_ms - 5.0).abs() < 1e-9 && (latency.worst_ms - 900.0).abs() < 1e-9);
    }
}
