//! Metrics: `opentelemetry/proto/metrics/v1/metrics.proto` and `collector/metrics/v1/metrics_service.proto`.

use prost::{Message, Oneof};

use crate::attributes::{InstrumentationScope, KeyValue, Resource};

/// The temporality of sums and histograms that count since a start.
pub const CUMULATIVE: i32 = 2;

/// The body of a request.
#[derive(Clone, PartialEq, Message)]
pub struct ExportMetrics {
    /// The metrics of each resource.
    #[prost(message, repeated, tag = "1")]
    pub resource_metrics: Vec<ResourceMetrics>,
}

/// The metrics of a resource.
#[derive(Clone, PartialEq, Message)]
pub struct ResourceMetrics {
    /// The resource.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// Its metrics.
    #[prost(message, repeated, tag = "2")]
    pub scope_metrics: Vec<ScopeMetrics>,
}

/// The metrics of a scope.
#[derive(Clone, PartialEq, Message)]
pub struct ScopeMetrics {
    /// The scope.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<InstrumentationScope>,
    /// Its metrics.
    #[prost(message, repeated, tag = "2")]
    pub metrics: Vec<Metric>,
}

/// A metric with all its series.
#[derive(Clone, PartialEq, Message)]
pub struct Metric {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// What it counts.
    #[prost(string, tag = "2")]
    pub description: String,
    /// Its unit in UCUM, as `s` and `By`; or empty.
    #[prost(string, tag = "3")]
    pub unit: String,
    /// Its series.
    #[prost(oneof = "Data", tags = "5, 7, 9")]
    pub data: Option<Data>,
}

/// The series of a metric, by their kind.
#[derive(Clone, PartialEq, Oneof)]
pub enum Data {
    /// Values at a time.
    #[prost(message, tag = "5")]
    Gauge(Gauge),
    /// Values since a start.
    #[prost(message, tag = "7")]
    Sum(Sum),
    /// Distributions since a start.
    #[prost(message, tag = "9")]
    Histogram(HistogramData),
}

/// A value at a time.
#[derive(Clone, PartialEq, Message)]
pub struct Gauge {
    /// The series.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberDataPoint>,
}

/// A sum since a start.
#[derive(Clone, PartialEq, Message)]
pub struct Sum {
    /// The series.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberDataPoint>,
    /// [`CUMULATIVE`], or 1 if each value is the difference to the one before.
    #[prost(int32, tag = "2")]
    pub aggregation_temporality: i32,
    /// Whether it only grows.
    #[prost(bool, tag = "3")]
    pub is_monotonic: bool,
}

/// A distribution since a start.
#[derive(Clone, PartialEq, Message)]
pub struct HistogramData {
    /// The series.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<HistogramDataPoint>,
    /// As that of a [`Sum`].
    #[prost(int32, tag = "2")]
    pub aggregation_temporality: i32,
}

/// A number of a series. Times are nanoseconds since 1970.
#[derive(Clone, PartialEq, Message)]
pub struct NumberDataPoint {
    /// The labels.
    #[prost(message, repeated, tag = "7")]
    pub attributes: Vec<KeyValue>,
    /// When counting began; 0 for gauges.
    #[prost(fixed64, tag = "2")]
    pub start_time_unix_nano: u64,
    /// When it was read.
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    /// The number.
    #[prost(oneof = "Number", tags = "4, 6")]
    pub value: Option<Number>,
}

/// A number of one of two types.
#[derive(Clone, Copy, PartialEq, Oneof)]
pub enum Number {
    /// A number.
    #[prost(double, tag = "4")]
    Double(f64),
    /// A whole number.
    #[prost(sfixed64, tag = "6")]
    Int(i64),
}

/// A distribution of a series. Times are nanoseconds since 1970.
#[derive(Clone, PartialEq, Message)]
pub struct HistogramDataPoint {
    /// The labels.
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    /// When counting began.
    #[prost(fixed64, tag = "2")]
    pub start_time_unix_nano: u64,
    /// When it was read.
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    /// How many values there were.
    #[prost(fixed64, tag = "4")]
    pub count: u64,
    /// Their sum.
    #[prost(double, optional, tag = "5")]
    pub sum: Option<f64>,
    /// How many fell into each bucket alone; one more than there are bounds.
    #[prost(fixed64, repeated, tag = "6")]
    pub bucket_counts: Vec<u64>,
    /// The upper bounds of the buckets, ascending. They belong to their buckets.
    #[prost(double, repeated, tag = "7")]
    pub explicit_bounds: Vec<f64>,
}
