//! What a run must keep: at most so many errors, latencies of at most so long.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

/// The percentiles that a report has and an assertion names.
pub(super) const PERCENTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

/// A bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Assertion {
    /// At most so many requests aren't answered as expected.
    Errors(u64),
    /// So many of the latencies, by their index in [`PERCENTILES`], are at most so long.
    Latency(usize, Duration),
}

impl Assertion {
    /// Why these figures break it; none if they don't.
    pub(super) fn broken(self, errors: u64, latency: &Histogram<u64>) -> Option<String> {
        match self {
            Self::Errors(most) => (errors > most).then(|| format!("{errors} errors, at most {most} expected")),
            Self::Latency(index, most) => {
                let (name, quantile) = PERCENTILES[index];
                if latency.is_empty() {
                    return Some(format!("{name} is unknown, because no request was answered as expected"));
                }
                let found = Milliseconds(latency.value_at_quantile(quantile) as f64 / 1e6);
                let most = Milliseconds(most.as_secs_f64() * 1e3);
                (found.0 > most.0).then(|| format!("{name} is {found}, at most {most} expected"))
            }
        }
    }
}

/// A latency.
pub(super) struct Milliseconds(pub(super) f64);

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} ms", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::run::histogram;

    #[test]
    fn broken_bound_has_the_figure() {
        let mut latency = histogram().unwrap();
        (1..=100).for_each(|number| latency.saturating_record(number * 1_000_000));
        let p99 = |milliseconds| Assertion::Latency(2, Duration::from_millis(milliseconds)).broken(0, &latency);
        assert_eq!(p99(100), None);
        assert_eq!(p99(98).unwrap(), "p99 is 99.0 ms, at most 98.0 ms expected");
        let errors = Assertion::Errors(1);
        assert_eq!(errors.broken(1, &latency), None);
        assert_eq!(errors.broken(2, &latency).unwrap(), "2 errors, at most 1 expected");
        let none = Assertion::Latency(0, Duration::MAX).broken(0, &histogram().unwrap());
        assert!(none.unwrap().starts_with("p50 is unknown"));
    }
}
