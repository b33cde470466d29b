//! Bytes that were encoded by hand, from the definitions.

use crate::Message;
use crate::attributes::{KeyValue, Resource};
use crate::metrics::{
    CUMULATIVE, Data, ExportMetrics, HistogramData, HistogramDataPoint, Metric, Number, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum,
};
use crate::trace::{SERVER, SpanMessage};
use crate::{ExportResponse, PartialSuccess};

#[test]
fn sum_has_the_bytes_of_the_definition() {
    let point = NumberDataPoint {
        attributes: vec![KeyValue::text("a", "b")],
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        value: Some(Number::Int(-1)),
    };
    let data = Data::Sum(Sum { data_points: vec![point], aggregation_temporality: CUMULATIVE, is_monotonic: true });
    let metric = Metric { name: "n".into(), description: String::new(), unit: "s".into(), data: Some(data) };
    let scope = ScopeMetrics { scope: None, metrics: vec![metric] };
    let resource = Resource { attributes: vec![KeyValue::int("i", 300)] };
    let metrics = ResourceMetrics { resource: Some(resource), scope_metrics: vec![scope] };
    let attribute_ab = [0x3a, 8, 0x0a, 1, b'a', 0x12, 3, 0x0a, 1, b'b'];
    let mut point = vec![0x11, 1, 0, 0, 0, 0, 0, 0, 0, 0x19, 2, 0, 0, 0, 0, 0, 0, 0];
    point.push(0x31);
    point.extend([0xff; 8]);
    point.extend(attribute_ab);
    let sum = [vec![0x0a, 37], point, vec![0x10, 2, 0x18, 1]].concat();
    let metric = [vec![0x0a, 1, b'n', 0x1a, 1, b's', 0x3a, 43], sum].concat();
    let scope = [vec![0x12, 51], metric].concat();
    let resource = vec![0x0a, 10, 0x0a, 8, 0x0a, 1, b'i', 0x12, 3, 0x18, 0xac, 0x02];
    let all = [vec![0x0a, 67], resource, vec![0x12, 53], scope].concat();
    let encoded = ExportMetrics { resource_metrics: vec![metrics.clone()] }.encode_to_vec();
    assert_eq!(encoded, all);
    assert_eq!(ExportMetrics::decode(&*all).unwrap().resource_metrics, [metrics]);
}

#[test]
fn histogram_has_the_bytes_of_the_definition() {
    let point = HistogramDataPoint {
        attributes: Vec::new(),
        start_time_unix_nano: 0,
        time_unix_nano: 0,
        count: 3,
        sum: Some(0.0),
        bucket_counts: vec![1, 2],
        explicit_bounds: vec![0.5],
    };
    let histogram = HistogramData { data_points: vec![point], aggregation_temporality: CUMULATIVE };
    let eight = |byte: u8| [byte, 0, 0, 0, 0, 0, 0, 0];
    let mut point = [vec![0x21], eight(3).to_vec(), vec![0x29], eight(0).to_vec(), vec![0x32, 16]].concat();
    point.extend([eight(1), eight(2)].concat());
    point.extend([0x3a, 8, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f]);
    let expected = [vec![0x0a, 46], point, vec![0x10, 2]].concat();
    assert_eq!(histogram.encode_to_vec(), expected);
}

#[test]
fn span_has_the_bytes_of_the_definition() {
    let span =
        SpanMessage { trace_id: vec![1; 16], span_id: vec![2; 8], flags: 1, kind: SERVER, ..SpanMessage::default() };
    let expected = [
        [vec![0x0a, 16], vec![1; 16], vec![0x12, 8], vec![2; 8]].concat(),
        vec![0x30, 2],
        vec![0x85, 0x01, 1, 0, 0, 0],
    ]
    .concat();
    assert_eq!(span.encode_to_vec(), expected);
}

#[test]
fn response_has_rejection_and_skips_unknown_fields() {
    let bytes = [0x0a, 6, 0x08, 5, 0x12, 2, b'n', b'o', 0x7a, 1, 0];
    let partial_success = Some(PartialSuccess { rejected: 5, error_message: "no".into() });
    assert_eq!(ExportResponse::decode(&bytes[..]).unwrap(), ExportResponse { partial_success });
    assert!(ExportResponse::decode(&[0x0a, 9][..]).is_err());
}
