//! Any bytes as a request: nothing panics, every payload is JSON with distinct names, and a second pass passes the same.

use std::collections::HashSet;

use otlp::Message;
use testkit::fuzz::{Corpus, run};

use super::{JSON, PROTOBUF, logs, metrics, spans};
use crate::testing::{call, post};

const SAMPLES: &[&[u8]] = &[
    br#"{"resourceLogs":[{"resource":{"attributes":[{"key":"a","value":{"stringValue":"b"}}]},"scopeLogs":[{"logRecords":[
        {"timeUnixNano":"1","severityNumber":9,"body":{"kvlistValue":{"values":[{"key":"a","value":{"arrayValue":{"values":[
        {"doubleValue":1.5},{"bytesValue":"AA=="},{"boolValue":true}]}}}]}},"traceId":"00ff"}]}]}]}"#,
    br#"{"resourceSpans":[{"scopeSpans":[{"scope":{"name":"s"},"spans":[{"traceId":"0102030405060708090a0b0c0d0e0f10",
        "spanId":"0102030405060708","kind":2,"events":[{"name":"e"}],"links":[{}],"status":{"code":2}}]}]}]}"#,
    br#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m","summary":{"dataPoints":[{"count":"2","sum":1.5,
        "quantileValues":[{"quantile":0.5,"value":"NaN"}]}]}},{"name":"h","histogram":{"dataPoints":[{"bucketCounts":["1",2],
        "explicitBounds":[0.5],"exemplars":[{"asInt":"1"}]}],"aggregationTemporality":1}}]}]}]}"#,
];
const TOKENS: &[&[u8]] = &[
    b"\x0a\x00",
    b"\x12\x02\x0a\x00",
    b"\x7f",
    b"\xff\xff\xff\xff\x0f",
    b"{\"arrayValue\":{\"values\":[",
    b"\"intValue\":",
    b"\"doubleValue\":\"NaN\"",
    b"null",
    b"[]",
    b"{}",
    b"\\ud800",
    b"\"key\":\"a\"",
    b"-1e400",
];

#[test]
fn fuzz_otlp() {
    let binary = [
        logs::export(vec![logs::order_failed(), Default::default()]).encode_to_vec(),
        spans::export(vec![spans::pay()]).encode_to_vec(),
        metrics::export().encode_to_vec(),
        metrics::exponential(),
    ];
    let samples: Vec<&[u8]> = binary.iter().map(|sample| &**sample).chain(SAMPLES.iter().copied()).collect();
    let intake: std::sync::Arc<dyn crate::Intake> = std::sync::Arc::new(super::Otlp);
    run("OTLP", Corpus { samples: &samples, tokens: TOKENS }, |bytes| {
        ["/v1/logs", "/v1/traces", "/v1/metrics"].map(|target| {
            [&PROTOBUF[..], &JSON].map(|headers| {
                let mut call = call(&intake, "POST", target, headers);
                let _ = call.needed_bytes(bytes);
                let (taken, reply) = match post(&mut *call, bytes, &[]) {
                    Ok(accepted) => accepted,
                    Err(reply) => return (reply.status, 0, 0),
                };
                assert_eq!(reply.status, 200);
                for payload in taken.iter().filter_map(|record| record.payload.as_ref().ok()) {
                    assert!(has_distinct_names(payload), "{payload}");
                }
                (200, taken.len(), taken.iter().filter(|record| record.payload.is_err()).count())
            })
        })
    });
}

fn has_distinct_names(json: &str) -> bool {
    let mut names = HashSet::new();
    json::parts::members(json).all(|member| names.insert(member.name()) && has_distinct_names(member.value))
        && json::parts::elements(json).all(has_distinct_names)
}
