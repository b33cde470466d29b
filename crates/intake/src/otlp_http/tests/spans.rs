//! Spans in both encodings.

use otlp::Message;
use otlp::attributes::{InstrumentationScope, KeyValue};
use otlp::trace::{ERROR, ExportTraces, Link, ResourceSpans, SERVER, ScopeSpans, SpanMessage, Status};

use super::{PROTOBUF, only, send};

pub(super) fn export(spans: Vec<SpanMessage>) -> ExportTraces {
    let scope = InstrumentationScope { name: "shop".into(), version: String::new() };
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans }];
    ExportTraces { resource_spans: vec![ResourceSpans { resource: None, scope_spans }] }
}

pub(super) fn pay() -> SpanMessage {
    SpanMessage {
        trace_id: (1..=16).collect(),
        span_id: vec![0xcd; 8],
        parent_span_id: vec![0; 8],
        flags: 0x101,
        name: "POST /pay".into(),
        kind: SERVER,
        start_time_unix_nano: 1_795_867_200_000_000_000,
        end_time_unix_nano: 1_795_867_200_000_001_500,
        attributes: vec![KeyValue::int("http.response.status_code", 500)],
        links: vec![Link { trace_id: vec![0xee; 16], span_id: vec![0xdd; 8] }],
        status: Some(Status { message: "no funds".into(), code: ERROR }),
    }
}

const IDS: &str = r#""trace_id":"0102030405060708090a0b0c0d0e0f10","span_id":"cdcdcdcdcdcdcdcd""#;

#[test]
fn protobuf_span_becomes_flat_json() {
    let (taken, reply) = send("/v1/traces", &PROTOBUF, &export(vec![pay()]).encode_to_vec());
    let id: Vec<u8> = (1..=16).chain([0xcd; 8]).collect();
    assert_eq!((&*taken[0].type_name, taken[0].id.as_ref()), ("otlp.span", Some(&id)));
    let expected = [
        r#"{"name":"POST /pay","kind":"server","start":"2026-11-28T12:00:00.000000000Z","#,
        r#""end":"2026-11-28T12:00:00.000001500Z","duration_ns":1500,"status":{"code":"error","message":"no funds"},"#,
        IDS,
        r#","flags":257,"attributes":{"http.response.status_code":500},"links":[{"#,
        r#""trace_id":"eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee","span_id":"dddddddddddddddd"}],"scope":{"name":"shop"}}"#,
    ]
    .concat();
    assert_eq!(taken[0].payload.as_deref(), Ok(&*expected));
    assert_eq!((reply.status, reply.body.len()), (200, 0));
}

fn in_json(span: &str) -> String {
    format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{span}]}}]}}]}}"#)
}

#[test]
fn json_span_has_events_and_links() {
    let span = r#"{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"cdcdcdcdcdcdcdcd","parentSpanId":"","traceState":"a=b",
        "name":"x","kind":"SPAN_KIND_CLIENT","startTimeUnixNano":"1","endTimeUnixNano":1,"status":{"code":1},
        "events":[{"timeUnixNano":"1000","name":"retry","attributes":[{"key":"n","value":{"intValue":"2"}}]},{}],
        "links":[{"traceId":"ee","flags":1,"attributes":[{"key":"a","value":null}]}],"droppedEventsCount":3}"#;
    let expected = [
        r#"{"name":"x","kind":"client","start":"1970-01-01T00:00:00.000000001Z","end":"1970-01-01T00:00:00.000000001Z","#,
        r#""duration_ns":0,"status":{"code":"ok"},"#,
        IDS,
        r#","trace_state":"a=b","events":[{"time":"1970-01-01T00:00:00.000001000Z","name":"retry","attributes":{"n":2}},"#,
        r#"{}],"links":[{"trace_id":"ee","flags":1,"attributes":{"a":null}}],"dropped_events_count":3}"#,
    ]
    .concat();
    assert_eq!(only("/v1/traces", &in_json(span)), Ok(expected));
}

#[test]
fn span_without_valid_ids_has_no_id() {
    for (trace_id, span_id) in [(vec![0; 16], vec![1; 8]), (vec![1; 16], vec![]), (vec![1; 15], vec![1; 8])] {
        let span = SpanMessage { trace_id, span_id, ..pay() };
        let (taken, _) = send("/v1/traces", &PROTOBUF, &export(vec![span]).encode_to_vec());
        assert!(taken[0].id.is_none() && taken[0].payload.is_ok());
    }
}

#[test]
fn id_that_is_not_hexadecimal_is_rejected() {
    let fault = only("/v1/traces", &in_json(r#"{"traceId":"AQIDBAUGBwgJCgsMDQ4PEA=="}"#)).unwrap_err();
    assert!(fault.contains("hexadecimal"), "{fault}");
}
