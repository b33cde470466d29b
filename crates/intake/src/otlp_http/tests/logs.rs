//! Log records in both encodings.

use otlp::Message;
use otlp::attributes::{AnyValue, ArrayValue, AttributeValue, InstrumentationScope, KeyValue, KeyValueList, Resource};
use otlp::logs::{ExportLogs, LogRecord, ResourceLogs, ScopeLogs};

use super::{JSON, PROTOBUF, only, send};

pub(super) fn text(text: &str) -> AnyValue {
    AnyValue { value: Some(AttributeValue::String(text.into())) }
}

pub(super) fn export(log_records: Vec<LogRecord>) -> ExportLogs {
    let scope = InstrumentationScope { name: "shop".into(), version: "1.2".into() };
    let resource = Resource { attributes: vec![KeyValue::text("service.name", "checkout"), KeyValue::int("pid", 7)] };
    let scope_logs = vec![ScopeLogs { scope: Some(scope), log_records }];
    ExportLogs { resource_logs: vec![ResourceLogs { resource: Some(resource), scope_logs }] }
}

pub(super) fn order_failed() -> LogRecord {
    LogRecord {
        time_unix_nano: 1_795_867_200_000_000_123,
        observed_time_unix_nano: 1_795_867_200_000_001_000,
        severity_number: 13,
        severity_text: "WARNING".into(),
        body: Some(text("order \"7\" failed")),
        attributes: vec![KeyValue::int("order", 7), KeyValue::text("order", "twice")],
        flags: 1,
        trace_id: vec![0xab; 16],
        span_id: vec![0x01; 8],
    }
}

const ORDER_FAILED: &str = concat!(
    r#"{"time":"2026-11-28T12:00:00.000000123Z","observed_time":"2026-11-28T12:00:00.000001000Z","#,
    r#""severity":"WARNING","severity_number":13,"body":"order \"7\" failed","attributes":{"order":7},"flags":1,"#,
    r#""trace_id":"abababababababababababababababab","span_id":"0101010101010101","#,
    r#""resource":{"service.name":"checkout","pid":7},"scope":{"name":"shop","version":"1.2"}}"#,
);

#[test]
fn protobuf_log_becomes_flat_json() {
    let (taken, reply) = send("/v1/logs", &PROTOBUF, &export(vec![order_failed()]).encode_to_vec());
    assert_eq!(taken.len(), 1);
    assert_eq!((&*taken[0].type_name, &taken[0].id), ("otlp.log", &None));
    assert_eq!(taken[0].payload.as_deref(), Ok(ORDER_FAILED));
    assert_eq!((reply.status, reply.content_type, &*reply.body), (200, Some("application/x-protobuf"), &b""[..]));
}

#[test]
fn json_log_becomes_the_same() {
    let lower_camel = r#"{"resourceLogs":[{"schemaUrl":"x","scopeLogs":[{"logRecords":[{"timeUnixNano":"1795867200000000123",
        "observedTimeUnixNano":1795867200000001000,"severityNumber":"SEVERITY_NUMBER_WARN","severityText":"WARNING",
        "body":{"stringValue":"order \"7\" failed"},"attributes":[{"key":"order","value":{"intValue":"7"}},
        {"key":"order","value":{"boolValue":true}}],"flags":1,"traceId":"ABABABABABABABABABABABABABABABAB",
        "spanId":"0101010101010101","newField":[{}]}],"scope":{"name":"shop","version":"1.2"}}],
        "resource":{"attributes":[{"key":"service.name","value":{"stringValue":"checkout"}},
        {"key":"pid","value":{"intValue":7}}]}}]}"#;
    let mut snake = lower_camel.to_owned();
    for (camel, other) in [
        ("resourceLogs", "resource_logs"),
        ("timeUnixNano", "time_unix_nano"),
        ("intValue", "int_value"),
        ("traceId", "trace_id"),
        ("\"SEVERITY_NUMBER_WARN\"", "13"),
    ] {
        snake = snake.replace(camel, other);
    }
    for body in [lower_camel, &snake] {
        // The body says what it is, if its type lies.
        for headers in [&JSON[..], &PROTOBUF, &[]] {
            let (taken, reply) = send("/v1/logs/", headers, body.as_bytes());
            let payloads: Vec<_> = taken.iter().map(|record| record.payload.as_deref()).collect();
            assert_eq!(payloads, [Ok(ORDER_FAILED)]);
            assert_eq!((reply.status, reply.content_type, &*reply.body), (200, Some("application/json"), &b"{}"[..]));
        }
    }
}

#[test]
fn empty_log_has_no_members() {
    let mut export = export(vec![LogRecord::default()]);
    export.resource_logs[0].resource = None;
    export.resource_logs[0].scope_logs[0].scope = None;
    let (taken, _) = send("/v1/logs", &JSON, &export.encode_to_vec());
    assert_eq!(taken[0].payload.as_deref(), Ok("{}"));
    let (taken, _) = send("/v1/logs", &PROTOBUF, b"");
    assert_eq!(taken, []);
}

#[test]
fn observed_time_replaces_missing_time() {
    let record = LogRecord { observed_time_unix_nano: 1_000_000_000, severity_number: 9, ..LogRecord::default() };
    let mut export = export(vec![record]);
    export.resource_logs[0].resource = None;
    export.resource_logs[0].scope_logs[0].scope = None;
    let (taken, _) = send("/v1/logs", &PROTOBUF, &export.encode_to_vec());
    let time = "1970-01-01T00:00:01.000000000Z";
    let expected = format!(r#"{{"time":"{time}","observed_time":"{time}","severity":"INFO","severity_number":9}}"#);
    assert_eq!(taken[0].payload.as_deref(), Ok(&*expected));
}

#[test]
fn values_have_every_type() {
    let value = |value| AnyValue { value: Some(value) };
    let list = ArrayValue { values: vec![text("a"), AnyValue::default(), value(AttributeValue::Double(f64::NAN))] };
    let entry = |key: &str, found| KeyValue { key: key.into(), value: Some(value(found)) };
    let map = KeyValueList {
        values: vec![
            entry("bool", AttributeValue::Bool(false)),
            entry("int", AttributeValue::Int(i64::MIN)),
            entry("double", AttributeValue::Double(-1.5)),
            entry("bytes", AttributeValue::Bytes(vec![0xff, 0])),
            entry("list", AttributeValue::Array(list)),
            KeyValue { key: "none\n".into(), value: None },
            entry("bool", AttributeValue::Bool(true)),
        ],
    };
    let record = LogRecord { body: Some(value(AttributeValue::KeyValues(map))), ..LogRecord::default() };
    let (taken, _) = send("/v1/logs", &PROTOBUF, &export(vec![record]).encode_to_vec());
    let expected = concat!(
        r#"{"body":{"bool":false,"int":-9223372036854775808,"double":-1.5,"bytes":"/wA=","#,
        r#""list":["a",null,"NaN"],"none\n":null},"resource":"#
    );
    let payload = taken[0].payload.clone().unwrap();
    assert!(payload.starts_with(expected), "{payload}");
    let json = r#"{"kvlistValue":{"values":[{"key":"bool","value":{"boolValue":false}},{"key":"int","value":
        {"intValue":"-9223372036854775808"}},{"key":"double","value":{"doubleValue":-1.5}},{"key":"bytes","value":
        {"bytesValue":"/wA="}},{"key":"list","value":{"arrayValue":{"values":[{"stringValue":"a"},{},{"doubleValue":
        "NaN"}]}}},{"key":"none\n"}]}}"#;
    let body = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"body":{json}}}]}}]}}]}}"#);
    assert_eq!(only("/v1/logs", &body), Ok(expected.replace(",\"resource\":", "}")));
}

#[test]
fn many_attributes_have_distinct_names() {
    let attributes = (0..300).map(|number| KeyValue::int(&format!("k{}", number % 100), number)).collect();
    let record = LogRecord { attributes, ..LogRecord::default() };
    let (taken, _) = send("/v1/logs", &PROTOBUF, &export(vec![record]).encode_to_vec());
    let payload = taken[0].payload.clone().unwrap();
    assert_eq!((payload.matches("\"k99\":").count(), payload.matches("\"k").count()), (1, 100));
}

#[test]
fn unreadable_records_are_rejected_alone() {
    let good = order_failed();
    let nested = (0..33).fold(text("x"), |value, _| AnyValue {
        value: Some(AttributeValue::Array(ArrayValue { values: vec![value] })),
    });
    let deep = LogRecord { body: Some(nested), ..LogRecord::default() };
    let large = LogRecord { body: Some(text(&"x".repeat(limits::EVENT_BYTES_MAX))), ..LogRecord::default() };
    let escapes = LogRecord { body: Some(text(&"\u{1}".repeat(300_000))), ..LogRecord::default() };
    let mut bytes = export(vec![good.clone(), deep, large, escapes, good]).encode_to_vec();
    let last = bytes.windows(7).rposition(|window| window == b"WARNING").unwrap();
    bytes[last] = 0xff;
    let (taken, reply) = send("/v1/logs", &PROTOBUF, &bytes);
    let faults: Vec<_> = taken.iter().filter_map(|record| record.payload.as_ref().err()).collect();
    assert_eq!(faults.len(), 4, "{faults:?}");
    for (fault, part) in faults.iter().zip(["nested", "1048576", "1048576", "UTF-8"]) {
        assert!(fault.contains(part), "{fault}");
    }
    let response = otlp::ExportResponse::decode(&*reply.body).unwrap().partial_success.unwrap();
    assert_eq!((reply.status, response.rejected), (200, 4));
    assert!(response.error_message.contains("IntakeRecord 1: "), "{}", response.error_message);
}

#[test]
fn large_resource_rejects_its_records() {
    let mut export = export(vec![order_failed()]);
    let large = Resource { attributes: vec![KeyValue::text("a", &"x".repeat(65_536))] };
    export.resource_logs[0].resource = Some(large);
    export.resource_logs.extend(super::logs::export(vec![order_failed()]).resource_logs);
    let (taken, _) = send("/v1/logs", &PROTOBUF, &export.encode_to_vec());
    assert!(taken[0].payload.as_ref().is_err_and(|fault| fault.contains("65536")));
    assert_eq!(taken[1].payload.as_deref(), Ok(ORDER_FAILED));
}

#[test]
fn resource_belongs_to_its_records_only() {
    let mut export = export(vec![LogRecord::default()]);
    let mut other = export.resource_logs[0].clone();
    other.resource = None;
    other.scope_logs.push(ScopeLogs { scope: None, log_records: vec![LogRecord::default()] });
    export.resource_logs.push(other);
    let (taken, _) = send("/v1/logs", &PROTOBUF, &export.encode_to_vec());
    let payloads: Vec<_> = taken.iter().map(|record| record.payload.as_deref().unwrap()).collect();
    let scope = r#""scope":{"name":"shop","version":"1.2"}}"#;
    let first = format!(r#"{{"resource":{{"service.name":"checkout","pid":7}},{scope}"#);
    assert_eq!(payloads, [&*first, &*format!("{{{scope}"), "{}"]);
}

#[test]
fn half_surrogates_are_replaced() {
    let body = r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"\ud800"}}]}]}]}"#;
    assert_eq!(only("/v1/logs", body), Ok(r#"{"body":"\ufffd"}"#.to_owned()));
}
