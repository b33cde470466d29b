//! Data points of metrics in both encodings.

use otlp::Message;
use otlp::attributes::{InstrumentationScope, KeyValue};
use otlp::metrics::{
    CUMULATIVE, Data, ExportMetrics, Gauge, HistogramData, HistogramDataPoint, Metric, Number, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum,
};

use super::{JSON, PROTOBUF, send};

fn point(value: Number) -> NumberDataPoint {
    NumberDataPoint {
        attributes: vec![KeyValue::text("route", "/pay")],
        start_time_unix_nano: 1_000_000_000,
        time_unix_nano: 2_000_000_000,
        value: Some(value),
    }
}

fn metric(name: &str, data: Data) -> Metric {
    Metric { name: name.into(), description: String::new(), unit: "s".into(), data: Some(data) }
}

pub(super) fn export() -> ExportMetrics {
    let sum = Sum {
        data_points: vec![point(Number::Int(-7)), point(Number::Double(0.5))],
        aggregation_temporality: CUMULATIVE,
        is_monotonic: true,
    };
    let histogram = HistogramDataPoint {
        attributes: Vec::new(),
        start_time_unix_nano: 0,
        time_unix_nano: 0,
        count: 3,
        sum: Some(0.0),
        bucket_counts: vec![1, 2],
        explicit_bounds: vec![0.5],
    };
    let gauge = Gauge { data_points: vec![NumberDataPoint { value: None, ..point(Number::Int(0)) }] };
    let metrics = vec![
        metric("requests", Data::Sum(sum)),
        metric("load", Data::Gauge(gauge)),
        metric("time", Data::Histogram(HistogramData { data_points: vec![histogram], aggregation_temporality: 1 })),
    ];
    let scope = Some(InstrumentationScope { name: "shop".into(), version: String::new() });
    let scope_metrics = vec![ScopeMetrics { scope, metrics }];
    ExportMetrics { resource_metrics: vec![ResourceMetrics { resource: None, scope_metrics }] }
}

/// An exponential histogram, encoded by hand: count 3, scale -2, buckets from -1 with 1 and 300.
pub(super) fn exponential() -> Vec<u8> {
    let point = b"\x21\x03\0\0\0\0\0\0\0\x30\x03\x42\x07\x08\x01\x12\x03\x01\xac\x02";
    let wrap = |tag: u8, inner: &[u8]| [&[tag, u8::try_from(inner.len()).unwrap()], inner].concat();
    let metric = [&b"\x0a\x01e"[..], &wrap(0x52, &wrap(0x0a, point))].concat();
    wrap(0x0a, &wrap(0x12, &wrap(0x12, &metric)))
}

fn payloads(headers: &[(&str, &str)], body: &[u8]) -> Vec<String> {
    let (taken, _) = send("/v1/metrics", headers, body);
    assert!(taken.iter().all(|record| record.type_name == "otlp.metric" && record.id.is_none()));
    taken.into_iter().map(|record| record.payload.unwrap()).collect()
}

const TIMES: &str = r#""start":"1970-01-01T00:00:01.000000000Z","time":"1970-01-01T00:00:02.000000000Z""#;

#[test]
fn each_data_point_is_an_event() {
    let shared = r#"{"name":"requests","unit":"s","kind":"sum","temporality":"cumulative","is_monotonic":true,"#;
    let end = r#""attributes":{"route":"/pay"},"scope":{"name":"shop"}}"#;
    let expected = [
        format!(r#"{shared}{TIMES},"value":-7,{end}"#),
        format!(r#"{shared}{TIMES},"value":0.5,{end}"#),
        format!(r#"{{"name":"load","unit":"s","kind":"gauge",{TIMES},{end}"#),
        [
            r#"{"name":"time","unit":"s","kind":"histogram","temporality":"delta","count":3,"sum":0.0,"#,
            r#""explicit_bounds":[0.5],"bucket_counts":[1,2],"scope":{"name":"shop"}}"#,
        ]
        .concat(),
    ];
    assert_eq!(payloads(&PROTOBUF, &export().encode_to_vec()), expected);
}

#[test]
fn exponential_histogram_has_both_encodings() {
    let expected = concat!(
        r#"{"name":"e","kind":"exponential_histogram","count":3,"scale":-2,"zero_count":0,"#,
        r#""positive":{"offset":-1,"bucket_counts":[1,300]}}"#
    );
    assert_eq!(payloads(&PROTOBUF, &exponential()), [expected]);
    let json = r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"e","exponentialHistogram":{"dataPoints":[
        {"count":"3","scale":-2,"positive":{"offset":-1,"bucketCounts":["1",300]}}]}}]}]}]}"#;
    assert_eq!(payloads(&JSON, json.as_bytes()), [expected]);
}

#[test]
fn summary_and_exemplars_are_kept() {
    let json = r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[
        {"name":"s","description":"d","summary":{"dataPoints":[{"count":2,"sum":1.5,"quantileValues":[{"quantile":0.5,"value":"NaN"}]}]}},
        {"name":"g","gauge":{"dataPoints":[{"asInt":"5","asDouble":5.5,"flags":1,
            "exemplars":[{"timeUnixNano":"1","asDouble":2,"traceId":"ff","filteredAttributes":[]},{"asInt":"1"}]}]}},
        {"name":"none"}]}]}]}"#;
    let expected = [
        r#"{"name":"s","description":"d","kind":"summary","count":2,"sum":1.5,"quantiles":[{"quantile":0.5,"value":"NaN"}]}"#,
        concat!(
            r#"{"name":"g","kind":"gauge","value":5,"flags":1,"exemplars":["#,
            r#"{"time":"1970-01-01T00:00:00.000000001Z","value":2,"trace_id":"ff"},{"value":1}]}"#
        ),
    ];
    assert_eq!(payloads(&JSON, json.as_bytes()), expected);
}

#[test]
fn unreadable_metric_rejects_its_points() {
    let mut export = export();
    export.resource_metrics[0].scope_metrics[0].metrics[0].description = "x".repeat(65_536);
    let (taken, _) = send("/v1/metrics", &PROTOBUF, &export.encode_to_vec());
    let outcomes: Vec<_> = taken.iter().map(|record| record.payload.is_ok()).collect();
    assert_eq!(outcomes, [false, false, true, true]);
}
