//! Responses to accepted, partly accepted and rejected requests.

use std::sync::Arc;

use otlp::{ExportResponse, Message, RpcStatus};

use super::logs::{export, order_failed};
use super::{JSON, Otlp, PROTOBUF};
use crate::testing::{call, head, lines, post};
use crate::{Intake, IntakeRoute, Problem, ProblemKind};

fn intake() -> Arc<dyn Intake> {
    Arc::new(Otlp)
}

#[test]
fn rejected_records_are_counted() {
    let body = export(vec![order_failed(), order_failed(), order_failed()]).encode_to_vec();
    let (_, reply) = post(&mut *call(&intake(), "POST", "/v1/logs", &PROTOBUF), &body, &[1, 2]).unwrap();
    let partial = ExportResponse::decode(&*reply.body).unwrap().partial_success.unwrap();
    assert_eq!((reply.status, partial.rejected), (200, 2));
    let message = "2 of 3 records were rejected. IntakeRecord 1: schema: the schema of the type";
    assert_eq!(partial.error_message, message);
    let json = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{}]}]}]}"#;
    let (_, reply) = post(&mut *call(&intake(), "POST", "/v1/traces", &JSON), json.as_bytes(), &[0]).unwrap();
    let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(body["partialSuccess"]["rejectedSpans"], "1");
    let json = r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"gauge":{"dataPoints":[{},{}]}}]}]}]}"#;
    let (_, reply) = post(&mut *call(&intake(), "POST", "/v1/metrics", &JSON), json.as_bytes(), &[0]).unwrap();
    let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(body["partialSuccess"]["rejectedDataPoints"], "1");
}

#[test]
fn invalid_bodies_are_rejected_as_a_whole() {
    for (headers, body) in [
        (&PROTOBUF[..], &b"\x0a\x05x"[..]),
        (&PROTOBUF, b"\x0a\x02\x12\x05"),
        (&PROTOBUF, b"\x08\x01"),
        (&JSON, b"{"),
        (&JSON, b" "),
        (&JSON, b"[]"),
        (&JSON, br#"{"resourceLogs":[1]}"#),
        (&PROTOBUF, br#"{"resourceLogs":[{"scopeLogs":[{"logRecords":["x"]}]}]}"#),
    ] {
        let outcome = post(&mut *call(&intake(), "POST", "/v1/logs", headers), body, &[]);
        let reply = outcome.unwrap_err();
        assert_eq!(reply.status, 400);
        if reply.content_type == Some("application/json") {
            let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
            assert_eq!(body["code"], 3);
        } else {
            assert_eq!(RpcStatus::decode(&*reply.body).unwrap().code, 3);
        }
    }
}

#[test]
fn temporary_trouble_says_when_to_retry() {
    let problem = Problem { kind: ProblemKind::Unavailable, code: "overload", detail: "busy".into() };
    let reply = call(&intake(), "POST", "/v1/logs", &PROTOBUF).refusal(&problem);
    assert_eq!((reply.status, &*reply.lines), (503, "retry-after: 1\r\n"));
    assert_eq!(RpcStatus::decode(&*reply.body).unwrap(), RpcStatus { code: 14, message: "busy".into() });
    assert_eq!(intake().refusal(&problem).body, br#"{"code":14,"message":"busy"}"#);
}

#[test]
fn routes_are_those_of_the_signals() {
    let lines = lines(&[]);
    let route = |method, path| intake().route(&head(method, path, &lines));
    assert!(matches!(route("GET", "/v1/logs"), IntakeRoute::Methods("POST")));
    assert!(matches!(route("POST", "/v1/traces"), IntakeRoute::Ingest(_)));
    assert!(matches!(route("POST", "/v1development/profiles"), IntakeRoute::Unknown));
}

#[test]
fn text_with_a_line_end_may_be_json() {
    let body = b"\n {\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{}]}]}]}\n";
    let (taken, _) = post(&mut *call(&intake(), "POST", "/v1/logs", &JSON), body, &[]).unwrap();
    assert_eq!(taken.len(), 1);
}
