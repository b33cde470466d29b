//! Types with a schema: an invalid event is rejected with all its errors, and nothing of it is stored.

use std::sync::Arc;

use event::TypeName;
use gateway::{ErrorCode, GatewayOptions, GatewayTypes, TypeRules};
use schema::{Documents, Schema, SchemaOptions};
use serde_json::json;

use crate::fixture::Fixture;

const SCHEMA: &str = r#"{"required": ["status"], "properties": {"status": {"type": "integer", "maximum": 599}, "path": {"pattern": "^/"}}}"#;

fn fixture() -> Fixture {
    let documents = Documents::new();
    let schema =
        Schema::compile("access.json", SCHEMA, &SchemaOptions { documents: &documents, formats: false }).unwrap();
    let rules = |schema| TypeRules { schema, ..TypeRules::default() };
    let name = |text| TypeName::new(text).unwrap();
    let named = [(name("access"), rules(Some(Arc::new(schema)))), (name("other"), rules(None))];
    Fixture::with(GatewayTypes { named: named.into(), ..GatewayTypes::default() }, GatewayOptions::default())
}

#[test]
fn invalid_event_is_rejected_with_all_errors() {
    let fixture = fixture();
    let answer = fixture.post("/ingest/event/access", "", r#"{"status": 600, "path": "a"}"#);
    assert_eq!((answer.status, answer.header("content-type")), (422, Some("application/problem+json")));
    assert_eq!(
        answer.json(),
        json!({
            "type": "urn:forebay:problem:schema",
            "title": "Schema validation failed",
            "status": 422,
            "code": "schema",
            "detail": "the schema of type access: expected at most 599, found 600; 1 more",
            "pointer": "/status",
            "errors": [
                {"pointer": "/status", "schema_pointer": "/properties/status/maximum", "expected": "at most 599", "found": "600"},
                {"pointer": "/path", "schema_pointer": "/properties/path/pattern", "expected": "a string that matches ^/", "found": "\"a\""},
            ],
        })
    );
    assert_eq!(fixture.counters().refusals(ErrorCode::Schema), 1);
    for body in [r#"{"status": 200}"#, "[1]"] {
        assert_eq!(fixture.post("/ingest/event/access", "", body).status, 200, "{body}");
    }
    assert_eq!(fixture.post("/ingest/event/other", "", r#"{"status": 600}"#).status, 200);
    assert_eq!(fixture.payloads(), [r#"{"status": 200}"#, "[1]", r#"{"status": 600}"#]);
}

#[test]
fn every_ack_mode_rejects_invalid_events() {
    let fixture = fixture();
    for ack in ["disk", "stored"] {
        let answer = fixture.post("/ingest/event/access", &format!("Forebay-Ack: {ack}\r\n"), "{}");
        assert_eq!(
            (answer.status, answer.json()["errors"][0]["expected"].clone()),
            (422, json!("a member \"status\""))
        );
    }
    assert!(fixture.stored().is_empty());
}

#[test]
fn batch_errors_are_listed_by_line() {
    let fixture = fixture();
    let body = "{\"status\": 1}\n\n{\"status\": \"1\"}\n{}\n";
    let answer = fixture.post("/ingest/batch/access", "Content-Type: application/x-ndjson\r\n", body);
    assert_eq!(answer.status, 207);
    assert_eq!(
        answer.json(),
        json!({"accepted": 1, "duplicates": 0, "refused": [
            {"line": 3, "pointer": "/status", "code": "schema", "detail": "the schema of type access: expected integer, found \"1\""},
            {"line": 4, "pointer": "", "code": "schema", "detail": "the schema of type access: expected a member \"status\", found {}"},
        ]})
    );
    let answer = fixture.post("/ingest/batch/access", "Forebay-Atomic: true\r\n", body);
    assert_eq!((answer.status, answer.json()["accepted"].clone()), (422, json!(0)));
    assert_eq!(fixture.payloads(), [r#"{"status": 1}"#]);
}
