//! Each protocol through the gateway: one bad record of a hundred, and one record whose type has a full backlog.

use event::TypeName;
use gateway::{GatewayOptions, GatewayTypes, IntakeRule, TypeRules};
use intake::{IntakePath, kinds};
use schema::{Documents, Schema, SchemaOptions};
use std::sync::Arc;

use crate::fixture::{Answer, Fixture, open_types};
use crate::trouble::gate;

const COUNT: usize = 100;
/// The record that is another one, from 0.
const BAD: usize = 41;

/// A protocol, and how its records are posted.
struct Protocol {
    kind: &'static str,
    target: &'static str,
    content_type: &'static str,
    /// A body of records. The one at the index is of the second type: it has another type, or another payload.
    body: fn(odd: Option<usize>) -> String,
    /// The types of the others, and of that one.
    types: [&'static str; 2],
    /// The member that the schema of the bad record's type demands.
    schema: &'static str,
    /// The status of a request with a rejected record, and what its body says of it.
    rejected: (u16, &'static str),
    /// How many of the others are stored then.
    stored: usize,
}

fn lines(odd: Option<usize>, line: impl Fn(usize, bool) -> String) -> String {
    (0..COUNT).map(|number| line(number, odd == Some(number))).collect()
}

fn list(odd: Option<usize>, element: impl Fn(usize, bool) -> String) -> String {
    let elements: Vec<String> = (0..COUNT).map(|number| element(number, odd == Some(number))).collect();
    elements.join(",")
}

const PROTOCOLS: &[Protocol] = &[
    Protocol {
        kind: "elasticsearch",
        target: "/es/_bulk",
        content_type: "application/x-ndjson",
        body: |odd| {
            lines(odd, |number, odd| {
                let index = if odd { "odd" } else { "even" };
                format!("{{\"create\":{{\"_index\":\"{index}\",\"_id\":\"{number}\"}}}}\n{{\"n\":{number}}}\n")
            })
        },
        types: ["even", "odd"],
        schema: r#"{"required": ["missing"]}"#,
        rejected: (200, r#""errors":true"#),
        stored: COUNT - 1,
    },
    Protocol {
        kind: "otlp",
        target: "/otlp/v1/logs",
        content_type: "application/json",
        body: |odd| {
            let records = list(odd, |number, odd| format!("{{\"body\":{{\"stringValue\":\"{odd} {number}\"}}}}"));
            format!("{{\"resourceLogs\":[{{\"scopeLogs\":[{{\"logRecords\":[{records}]}}]}}]}}")
        },
        types: ["otlp.log", "otlp.log"],
        schema: r#"{"properties": {"body": {"pattern": "^false"}}}"#,
        rejected: (200, r#""rejectedLogRecords":"1""#),
        stored: COUNT - 1,
    },
    Protocol {
        kind: "cloudevents",
        target: "/cloudevents",
        content_type: "application/cloudevents-batch+json",
        body: |odd| {
            let event = |number, odd| {
                let name = if odd { "odd" } else { "even" };
                format!("{{\"specversion\":\"1.0\",\"id\":\"{number}\",\"source\":\"/s\",\"type\":\"{name}\"}}")
            };
            format!("[{}]", list(odd, event))
        },
        types: ["even", "odd"],
        schema: r#"{"required": ["missing"]}"#,
        rejected: (207, r#""index":41"#),
        stored: COUNT - 1,
    },
    Protocol {
        kind: "splunk_hec",
        target: "/hec/services/collector/event",
        content_type: "application/json",
        body: |odd| {
            lines(odd, |number, odd| {
                let name = if odd { "odd" } else { "even" };
                format!("{{\"time\":{number},\"sourcetype\":\"{name}\",\"event\":{{\"n\":{number}}}}}")
            })
        },
        types: ["even", "odd"],
        schema: r#"{"required": ["missing"]}"#,
        rejected: (400, r#""code":6,"invalid-event-number":41"#),
        stored: 0,
    },
    Protocol {
        kind: "segment",
        target: "/segment/v1/batch",
        content_type: "application/json",
        body: |odd| {
            let message = |number, odd| {
                let name = if odd { "page" } else { "track" };
                format!("{{\"type\":\"{name}\",\"messageId\":\"m{number}\",\"userId\":\"u\",\"event\":\"e\"}}")
            };
            format!("{{\"sentAt\":\"2026-11-28T12:00:00Z\",\"batch\":[{}]}}", list(odd, message))
        },
        types: ["segment.track", "segment.page"],
        schema: r#"{"required": ["missing"]}"#,
        rejected: (200, r#"{"success":true}"#),
        stored: COUNT - 1,
    },
    Protocol {
        kind: "loki",
        target: "/loki/loki/api/v1/push",
        content_type: "application/json",
        body: |odd| {
            let values = list(odd, |number, odd| format!("[\"17958672000000000{number:02}\",\"{odd} {number}\"]"));
            format!("{{\"streams\":[{{\"stream\":{{\"app\":\"a\"}},\"values\":[{values}]}}]}}")
        },
        types: ["loki.log", "loki.log"],
        schema: r#"{"properties": {"line": {"pattern": "^false"}}}"#,
        rejected: (400, "41"),
        stored: COUNT - 1,
    },
];

fn options(protocol: &Protocol) -> GatewayOptions {
    let kind = kinds::find(protocol.kind).unwrap();
    let IntakePath::Fixed(path) = kind.path else { panic!("{} has no fixed path", kind.name) };
    let rule = IntakeRule {
        name: kind.name.into(),
        path: path.into(),
        dedupes: true,
        type_name: None,
        intake: intake::testing::configured(kind, "").unwrap(),
    };
    GatewayOptions { intakes: vec![rule], ..GatewayOptions::default() }
}

/// Types of which the second one has a schema.
fn strict_types(protocol: &Protocol) -> GatewayTypes {
    let documents = Documents::new();
    let options = SchemaOptions { documents: &documents, formats: false };
    let schema = Some(Arc::new(Schema::compile("strict.json", protocol.schema, &options).unwrap()));
    let mut types = open_types();
    types.named.insert(TypeName::new(protocol.types[1]).unwrap(), TypeRules { schema, ..TypeRules::default() });
    types
}

fn post(fixture: &Fixture, protocol: &Protocol, odd: Option<usize>) -> Answer {
    let headers = format!("Content-Type: {}\r\n", protocol.content_type);
    fixture.post(protocol.target, &headers, (protocol.body)(odd))
}

#[test]
fn bad_record_affects_only_itself() {
    for protocol in PROTOCOLS {
        let fixture = Fixture::with(strict_types(protocol), options(protocol));
        let answer = post(&fixture, protocol, Some(BAD));
        let body = String::from_utf8_lossy(&answer.body);
        let (status, names) = protocol.rejected;
        assert_eq!(answer.status, status, "{}: {body}", protocol.kind);
        assert!(body.contains(names), "{}: {body}", protocol.kind);
        assert_eq!(fixture.stored().len(), protocol.stored, "{}", protocol.kind);
        // A sender that repeats the request stores nothing twice.
        assert_eq!(post(&fixture, protocol, Some(BAD)).status, status, "{}", protocol.kind);
        assert_eq!(fixture.stored().len(), protocol.stored, "{}", protocol.kind);
    }
}

#[test]
fn full_backlog_is_retried_as_a_whole() {
    for protocol in PROTOCOLS {
        let fixture = Fixture::with(open_types(), options(protocol));
        for name in protocol.types {
            assert_eq!(fixture.post(&format!("/ingest/event/{name}"), "", "1").status, 200);
        }
        let gate = gate(&fixture, protocol.types[1]);
        gate.set_closed(true);
        let answer = post(&fixture, protocol, Some(BAD));
        let retry_after = answer.header("retry-after");
        assert_eq!((answer.status, retry_after), (503, Some("1")), "{}", protocol.kind);
        assert_eq!(fixture.stored().len(), 2, "{}: nothing is stored", protocol.kind);
        gate.set_closed(false);
        assert!(post(&fixture, protocol, Some(BAD)).status < 300, "{}", protocol.kind);
        assert_eq!(fixture.stored().len(), 2 + COUNT, "{}", protocol.kind);
    }
}

#[test]
fn webhook_is_rejected_or_retried_alone() {
    let kind = kinds::find("webhook").unwrap();
    let rule = IntakeRule {
        name: "hook".into(),
        path: "/hooks/hook".into(),
        dedupes: true,
        type_name: Some(TypeName::new("odd").unwrap()),
        intake: intake::testing::configured(kind, "").unwrap(),
    };
    let options = GatewayOptions { intakes: vec![rule], ..GatewayOptions::default() };
    let fixture = Fixture::with(strict_types(&PROTOCOLS[0]), options);
    let post = |body: &str| fixture.post("/hooks/hook", "", body).status;
    assert_eq!([post("{}"), post(r#"{"missing":1}"#)], [422, 204]);
    let gate = gate(&fixture, "odd");
    gate.set_closed(true);
    assert_eq!(post(r#"{"missing":2}"#), 503);
    gate.set_closed(false);
    assert_eq!(post(r#"{"missing":2}"#), 204);
    assert_eq!(fixture.payloads(), [r#"{"missing":1}"#, r#"{"missing":2}"#]);
}
