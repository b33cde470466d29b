//! Metrics as messages of OTLP: each keeps the name that it has in `/metrics`.

use otlp::Message;
use otlp::attributes::{InstrumentationScope, KeyValue, Resource};
use otlp::metrics::{
    CUMULATIVE, Data, ExportMetrics, Gauge, HistogramData, HistogramDataPoint, Metric, Number as OtlpNumber,
    NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
};

use super::Instance;
use crate::metrics::exposition::{Buckets, Kind, Labels, MetricSink, Number};

/// Series of one request: a collector limits the size of a body.
const SERIES_MAX: usize = 2_000;

/// The times of all series, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// When the process began to count.
    pub(super) start: u64,
    /// The time of the collection.
    pub(super) now: u64,
}

/// Incomplete requests.
pub(super) struct OtlpMetrics {
    times: Times,
    resource: Resource,
    family: (&'static str, String, Kind),
    metrics: Vec<Metric>,
    series: usize,
    requests: Vec<Vec<u8>>,
}

impl OtlpMetrics {
    pub(super) fn new(instance: &Instance, times: Times) -> Self {
        let (resource, family) = (resource(instance), ("", String::new(), Kind::Gauge));
        Self { times, resource, family, metrics: Vec::new(), series: 0, requests: Vec::new() }
    }

    /// The bodies of requests.
    pub(super) fn into_requests(mut self) -> Vec<Vec<u8>> {
        self.finish_request();
        self.requests
    }

    fn finish_request(&mut self) {
        let metrics = std::mem::take(&mut self.metrics);
        self.series = 0;
        if !metrics.is_empty() {
            let scope_metrics = vec![ScopeMetrics { scope: Some(scope()), metrics }];
            let resource_metrics = ResourceMetrics { resource: Some(self.resource.clone()), scope_metrics };
            self.requests.push(ExportMetrics { resource_metrics: vec![resource_metrics] }.encode_to_vec());
        }
    }

    /// The metric that gets the next series.
    fn data(&mut self) -> Option<&mut Data> {
        if self.series == SERIES_MAX {
            self.finish_request();
        }
        self.series += 1;
        let (name, description, kind) = &self.family;
        if self.metrics.last().is_none_or(|metric| metric.name != *name) {
            let data = match kind {
                Kind::Counter => {
                    Data::Sum(Sum { data_points: Vec::new(), aggregation_temporality: CUMULATIVE, is_monotonic: true })
                }
                Kind::Gauge => Data::Gauge(Gauge { data_points: Vec::new() }),
                Kind::Histogram => {
                    Data::Histogram(HistogramData { data_points: Vec::new(), aggregation_temporality: CUMULATIVE })
                }
            };
            let (name, description, unit) = ((*name).to_owned(), description.clone(), unit(name).to_owned());
            self.metrics.push(Metric { name, description, unit, data: Some(data) });
        }
        self.metrics.last_mut()?.data.as_mut()
    }
}

impl MetricSink for OtlpMetrics {
    fn family(&mut self, name: &'static str, help: &str, kind: Kind) {
        self.family = (name, help.to_owned(), kind);
    }

    fn number(&mut self, labels: Labels<'_>, number: Number) {
        let Times { start, now } = self.times;
        let value = match number {
            Number::Count(count) => OtlpNumber::Int(i64::try_from(count).unwrap_or(i64::MAX)),
            Number::Float(value) => OtlpNumber::Double(value),
        };
        let point = |start_time_unix_nano| NumberDataPoint {
            attributes: attributes(labels),
            start_time_unix_nano,
            time_unix_nano: now,
            value: Some(value),
        };
        match self.data() {
            Some(Data::Sum(sum)) => sum.data_points.push(point(start)),
            Some(Data::Gauge(gauge)) => gauge.data_points.push(point(0)),
            _ => {}
        }
    }

    fn buckets(&mut self, labels: Labels<'_>, Buckets { bounds, counts, sum }: Buckets<'_>) {
        let Times { start, now } = self.times;
        let point = HistogramDataPoint {
            attributes: attributes(labels),
            start_time_unix_nano: start,
            time_unix_nano: now,
            count: counts.iter().sum(),
            sum: Some(sum),
            bucket_counts: counts.to_vec(),
            explicit_bounds: bounds.to_vec(),
        };
        if let Some(Data::Histogram(histogram)) = self.data() {
            histogram.data_points.push(point);
        }
    }
}

fn attributes(labels: Labels<'_>) -> Vec<KeyValue> {
    labels.iter().map(|(name, value)| KeyValue::text(name, value)).collect()
}

/// The process, by the semantic conventions of OpenTelemetry.
pub(super) fn resource(instance: &Instance) -> Resource {
    let attributes = [
        ("service.name", "forebay"),
        ("service.instance.id", &instance.id),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("forebay.role", instance.role),
    ];
    Resource { attributes: attributes.map(|(name, value)| KeyValue::text(name, value)).into() }
}

/// What measures.
pub(super) fn scope() -> InstrumentationScope {
    InstrumentationScope { name: "forebay".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
}

/// The unit in a name, as UCUM writes it.
fn unit(name: &str) -> &'static str {
    let name = name.strip_suffix("_total").unwrap_or(name);
    if name.ends_with("_seconds") {
        "s"
    } else if name.ends_with("_bytes") {
        "By"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(metrics: &mut crate::metrics::exposition::Exposition) {
        metrics.counter("forebay_a_total", "Counted.", |series| {
            series.count(&[("type", "access")], u64::MAX);
            series.value(&[], 0.5);
        });
        metrics.gauge("forebay_none", "Without a series.", |_| {});
        metrics.level("forebay_b_bytes", "Bytes.", 7);
        metrics.histogram("forebay_c_seconds", "Durations.", |series| {
            series.buckets(&[("shard", "0")], &[0.5, 2.0], &[1, 0, 3], 12.25);
        });
    }

    fn sent(collect: impl FnOnce(&mut crate::metrics::exposition::Exposition)) -> Vec<ResourceMetrics> {
        let instance = Instance { role: "serve", id: "one".to_owned() };
        let mut metrics = OtlpMetrics::new(&instance, Times { start: 1, now: 2 });
        collect(&mut metrics);
        let requests = metrics.into_requests();
        requests.iter().flat_map(|body| ExportMetrics::decode(&**body).unwrap().resource_metrics).collect()
    }

    #[test]
    fn families_become_metrics_with_times_and_units() {
        let [ResourceMetrics { resource, scope_metrics }] = &sent(example)[..] else { panic!("one request") };
        assert!(resource.as_ref().unwrap().attributes.contains(&KeyValue::text("service.instance.id", "one")));
        let [counted, level, durations] = &scope_metrics[0].metrics[..] else { panic!("three have series") };
        assert_eq!([&*counted.name, &*counted.unit, &*counted.description], ["forebay_a_total", "", "Counted."]);
        let Some(Data::Sum(sum)) = &counted.data else { panic!("a sum") };
        assert!(sum.is_monotonic && sum.aggregation_temporality == CUMULATIVE);
        let numbers = sum.data_points.iter().map(|point| (point.start_time_unix_nano, point.value)).collect::<Vec<_>>();
        assert_eq!(numbers, [(1, Some(OtlpNumber::Int(i64::MAX))), (1, Some(OtlpNumber::Double(0.5)))]);
        assert_eq!(sum.data_points[0].attributes, [KeyValue::text("type", "access")]);
        let Some(Data::Gauge(gauge)) = &level.data else { panic!("a gauge") };
        assert_eq!((&*level.unit, gauge.data_points[0].start_time_unix_nano), ("By", 0));
        let Some(Data::Histogram(histogram)) = &durations.data else { panic!("a histogram") };
        let point = &histogram.data_points[0];
        assert_eq!((&*durations.unit, point.count, point.sum, point.time_unix_nano), ("s", 4, Some(12.25), 2));
        assert_eq!((&point.bucket_counts[..], &point.explicit_bounds[..]), (&[1, 0, 3][..], &[0.5, 2.0][..]));
    }

    #[test]
    fn many_series_are_sent_in_several_requests() {
        let requests = sent(|metrics| {
            metrics.counter("forebay_a_total", "Counted.", |series| {
                (0..SERIES_MAX as u64 + 1).for_each(|number| series.count(&[("n", &number.to_string())], number));
            });
        });
        let series = requests.iter().map(|request| match &request.scope_metrics[0].metrics[0].data {
            Some(Data::Sum(sum)) => sum.data_points.len(),
            _ => 0,
        });
        assert_eq!(series.collect::<Vec<_>>(), [SERIES_MAX, 1]);
    }
}
