//! Metrics as they are collected, apart from any format: a [`MetricSink`] gets each family, and then its series.
//!
//! Names follow the conventions that `promtool check metrics` checks: base units (`_seconds`, `_bytes`) at the end, and `_total` after them
//! for counters only.

use metrics::{BUCKET_BOUNDS, HistogramSnapshot, SizeSnapshot};

/// Names of labels with their values.
pub(crate) type Labels<'a> = &'a [(&'a str, &'a str)];

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A number that only grows.
    Counter,
    /// A number of this moment.
    Gauge,
    /// A distribution.
    Histogram,
}

/// A number of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    /// A count, digit for digit.
    Count(u64),
    /// Any number.
    Float(f64),
}

/// A distribution of a series.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buckets<'a> {
    /// The upper bounds, ascending.
    pub(crate) bounds: &'a [f64],
    /// How many values each bucket has alone, with one more for those beyond all bounds.
    pub(crate) counts: &'a [u64],
    /// The sum of the values.
    pub(crate) sum: f64,
}

/// What metrics are collected into: a text, or the messages of a protocol.
pub(crate) trait MetricSink {
    /// Begins a metric. Each has one name.
    fn family(&mut self, name: &'static str, help: &str, kind: Kind);
    /// Adds a series to the counter or gauge that was begun last.
    fn number(&mut self, labels: Labels<'_>, number: Number);
    /// Adds a series to the histogram that was begun last.
    fn buckets(&mut self, labels: Labels<'_>, buckets: Buckets<'_>);
}

/// Metrics that are being collected, in the order in which they are added.
pub(crate) type Exposition = dyn MetricSink;

impl dyn MetricSink {
    /// Adds a number that only grows; `name` ends in `_total`. `add` adds its series, each with other labels.
    pub(crate) fn counter(&mut self, name: &'static str, help: &str, add: impl FnOnce(&mut Series<'_>)) {
        debug_assert!(name.ends_with("_total"), "a counter's name ends in _total: {name}");
        self.family(name, help, Kind::Counter);
        add(&mut Series(self));
    }

    /// Adds a gauge.
    pub(crate) fn gauge(&mut self, name: &'static str, help: &str, add: impl FnOnce(&mut Series<'_>)) {
        self.family(name, help, Kind::Gauge);
        add(&mut Series(self));
    }

    /// Adds a number that only grows and has no labels.
    pub(crate) fn count(&mut self, name: &'static str, help: &str, count: u64) {
        self.counter(name, help, |series| series.count(&[], count));
    }

    /// Adds a gauge without labels.
    pub(crate) fn level(&mut self, name: &'static str, help: &str, level: u64) {
        self.gauge(name, help, |series| series.count(&[], level));
    }

    /// Adds a distribution.
    pub(crate) fn histogram(&mut self, name: &'static str, help: &str, add: impl FnOnce(&mut HistogramSeries<'_>)) {
        self.family(name, help, Kind::Histogram);
        add(&mut HistogramSeries(self));
    }
}

/// The series of a counter or a gauge.
pub(crate) struct Series<'a>(&'a mut Exposition);

impl Series<'_> {
    /// Adds a series with a number of any kind.
    pub(crate) fn value(&mut self, labels: Labels<'_>, value: f64) {
        self.0.number(labels, Number::Float(value));
    }

    /// Adds a series with a count, digit for digit.
    pub(crate) fn count(&mut self, labels: Labels<'_>, count: u64) {
        self.0.number(labels, Number::Count(count));
    }
}

/// The series of a histogram.
pub(crate) struct HistogramSeries<'a>(&'a mut Exposition);

impl HistogramSeries<'_> {
    /// Adds a distribution of durations, in seconds.
    pub(crate) fn durations(&mut self, labels: Labels<'_>, snapshot: &HistogramSnapshot) {
        let bounds = BUCKET_BOUNDS.map(seconds);
        self.buckets(labels, &bounds, &snapshot.buckets, seconds(snapshot.nanoseconds));
    }

    /// Adds a distribution of sizes.
    pub(crate) fn sizes(&mut self, labels: Labels<'_>, snapshot: &SizeSnapshot) {
        self.buckets(labels, &snapshot.bounds.map(float), &snapshot.buckets, float(snapshot.sum));
    }

    /// Adds a series of buckets.
    pub(crate) fn buckets(&mut self, labels: Labels<'_>, bounds: &[f64], counts: &[u64], sum: f64) {
        debug_assert_eq!(bounds.len() + 1, counts.len(), "the last bucket has no bound");
        self.0.buckets(labels, Buckets { bounds, counts, sum });
    }
}

/// Sizes and counts are far below 2⁵³, where a float is still exact.
#[expect(clippy::cast_precision_loss, reason = "figures for users; exact below 2⁵³")]
pub(crate) const fn float(value: u64) -> f64 {
    value as f64
}

/// Divided, as 1e-9 is not exact: multiplied by it, 9 ms would read 0.009000000000000001.
fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}
