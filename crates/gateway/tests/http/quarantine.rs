//! Rejected events that are stored as events of another type, as clients and the journal see it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use event::TypeName;
use gateway::{ErrorCode, GatewayOptions, GatewayTypes, IdRule, RefusedTo, TypeRules};
use schema::{Documents, Schema, SchemaOptions};
use serde_json::{Value, json};

use crate::fixture::{Fixture, Stored};
use crate::steps::rules;

const NDJSON: &str = "Content-Type: application/x-ndjson\r\n";
const KEY: &str = "Idempotency-Key: order-7\r\n";
const SECRET: &str = "4111111111111111";

fn name(text: &str) -> TypeName {
    TypeName::new(text).unwrap()
}

/// Rules of a type whose events need an integer `n`, and are stored as `refused` if they are rejected.
fn orders(rules: TypeRules) -> TypeRules {
    let (documents, text) = (Documents::new(), r#"{"required": ["n"], "properties": {"n": {"type": "integer"}}}"#);
    let schema = Schema::compile("orders.json", text, &SchemaOptions { documents: &documents, formats: false });
    let hides = rules.steps.as_ref().is_some_and(|steps| steps.transform().withholds());
    let refused_to =
        if hides { RefusedTo::without_bytes(name("refused"), [7; 32]) } else { RefusedTo::new(name("refused")) };
    TypeRules { schema: Some(Arc::new(schema.unwrap())), refused_to: Some(Arc::new(refused_to)), ..rules }
}

fn types(orders: TypeRules, refused: TypeRules) -> GatewayTypes {
    let named = [(name("orders"), orders), (name("refused"), refused), (name("plain"), TypeRules::default())];
    GatewayTypes { named: named.into(), ..GatewayTypes::default() }
}

fn fixture() -> Fixture {
    fixture_of(orders(TypeRules::default()), TypeRules::default())
}

fn fixture_of(orders: TypeRules, refused: TypeRules) -> Fixture {
    Fixture::with(types(orders, refused), GatewayOptions::default())
}

/// The events of `refused`, as soon as there are so many.
fn refused(fixture: &Fixture, count: usize) -> Vec<(Stored, Value)> {
    let all = || fixture.stored().into_iter().filter(|event| event.type_name == "refused").collect::<Vec<_>>();
    fixture.wait("they are stored", |_| all().len() >= count);
    let all: Vec<_> = all();
    assert_eq!(all.len(), count, "{all:?}");
    all.into_iter().map(|event| (event.clone(), serde_json::from_str(&event.payload).unwrap())).collect()
}

/// Members that every document has: type, code, status, pointer and line.
fn reason(document: &Value) -> Value {
    json!([document["type"], document["code"], document["status"], document["pointer"], document["line"]])
}

#[test]
fn corrected_event_is_no_duplicate_of_quarantined_one() {
    let fixture = fixture();
    let answer = fixture.post("/ingest/event/orders", KEY, r#"{"n": "seven"}"#);
    assert_eq!((answer.status, answer.code().as_str()), (422, "schema"));
    let answer = fixture.post("/ingest/event/orders", &format!("{KEY}Accept: application/json\r\n"), r#"{"n": 7}"#);
    assert_eq!((answer.status, &answer.json()["duplicate"]), (200, &json!(false)));

    let stored = refused(&fixture, 1);
    let (event, document) = &stored[0];
    assert_eq!(reason(document), json!(["orders", "schema", 422, "/n", null]));
    assert_eq!((&document["size"], &document["text"]), (&json!(14), &json!(r#"{"n": "seven"}"#)));
    assert_eq!(document["sha256"], json!("adefc389b1b26721626d0e4b069f072f17f9ad07fce7a4fc9373c6f8abaefcab"));
    assert!(document["detail"].as_str().unwrap().starts_with("the schema of type orders: "), "{document}");
    assert!(document["time"].as_str().is_some_and(|time| time.starts_with("20") && time.ends_with('Z')));
    assert_eq!((event.source.as_str(), event.client.as_str()), ("", "127.0.0.1"));
    assert!(fixture.payloads().contains(&r#"{"n": 7}"#.to_owned()));
}

#[test]
fn same_bytes_are_quarantined_once_under_any_key() {
    let fixture = fixture();
    for key in ["", KEY, "Idempotency-Key: other\r\n"] {
        assert_eq!(fixture.post("/ingest/event/orders", key, "{}").status, 422);
    }
    fixture.wait("all are done", |counters| counters.quarantine().repeated.get() == 2);
    assert_eq!(fixture.counters().quarantine().stored.get(), 1);
    let first = refused(&fixture, 1).remove(0).0;
    assert_eq!(fixture.post("/ingest/event/orders", "", "{ }").status, 422);
    let other = refused(&fixture, 2).remove(1).0;
    assert_ne!(first.id, other.id);
}

#[test]
fn batch_quarantines_only_its_invalid_lines() {
    let fixture = fixture();
    let answer = fixture.post("/ingest/batch/orders", NDJSON, "{\"n\":1}\n{\"n\":}\n{\"n\":\"x\"} \n{\"n\":2}\n");
    assert_eq!((answer.status, answer.json()["accepted"].clone()), (207, json!(2)));
    let stored = refused(&fixture, 2);
    assert_eq!(reason(&stored[0].1), json!(["orders", "json", 400, null, 2]));
    assert_eq!(reason(&stored[1].1), json!(["orders", "schema", 422, "/n", 3]));
    assert_eq!([&stored[0].1["text"], &stored[1].1["text"]], [&json!(r#"{"n":}"#), &json!(r#"{"n":"x"}"#)]);
    let answer =
        fixture.post("/ingest/batch/orders", &format!("{NDJSON}Forebay-Atomic: true\r\n"), "{\"n\":3}\n{\"n\":[]}\n");
    assert_eq!(answer.status, 422);
    assert_eq!(reason(&refused(&fixture, 3)[2].1), json!(["orders", "schema", 422, "/n", 2]));
}

#[test]
fn costly_events_and_lines_are_quarantined() {
    let fixture = fixture();
    let large = format!(r#"{{"n":"{}"}}"#, "x".repeat(200_000));
    assert_eq!(fixture.post("/ingest/event/orders", "", &large).status, 422);
    let (_, document) = refused(&fixture, 1).remove(0);
    assert_eq!(reason(&document), json!(["orders", "schema", 422, "/n", null]));
    assert_eq!((&document["size"], document["text"].as_str().unwrap().len()), (&json!(large.len()), 4096));
    let batch = format!("{{\"n\":1}}\n{large}}}\n{large}\n");
    assert_eq!(fixture.post("/ingest/batch/orders", NDJSON, batch).status, 207);
    let codes: Vec<_> = refused(&fixture, 2).iter().map(|(_, document)| reason(document)).collect();
    assert_eq!(codes[1], json!(["orders", "json", 400, null, 2]), "line 3 has the bytes of the first event");
}

#[test]
fn reused_id_is_quarantined_with_its_bytes() {
    let id = || IdRule::Pointer("/id".parse().unwrap());
    let fixture = fixture_of(orders(TypeRules { id: id(), ..TypeRules::default() }), TypeRules::default());
    assert_eq!(fixture.post("/ingest/event/orders", "", r#"{"n":1,"id":"a"}"#).status, 200);
    assert_eq!(fixture.post("/ingest/event/orders", "", r#"{"n":2,"id":"a"}"#).code(), "id_reused");
    let batch = "{\"n\":3,\"id\":\"b\"}{\"n\":5,\"id\":\"c\"}\n{\"n\":4,\"id\":\"a\"}\n";
    assert_eq!(fixture.post("/ingest/batch/orders", NDJSON, batch).status, 207);
    let stored = refused(&fixture, 2);
    assert_eq!(reason(&stored[0].1), json!(["orders", "id_reused", 409, null, null]));
    assert_eq!(reason(&stored[1].1), json!(["orders", "id_reused", 409, null, 2]));
    assert_eq!(stored[0].1["text"], json!(r#"{"n":2,"id":"a"}"#));
    assert_eq!(stored[1].1["text"], json!(r#"{"n":4,"id":"a"}"#));

    let exploding = TypeRules { id: id(), ..rules(r#"[{"explode": "/items"}]"#) };
    let fixture = fixture_of(orders(exploding), TypeRules::default());
    assert_eq!(fixture.post("/ingest/event/orders", "", r#"{"n":1,"id":"a","items":[1,2]}"#).status, 200);
    let again = r#"{"n":2,"id":"a","items":[1,3]}"#;
    assert_eq!(fixture.post("/ingest/event/orders", "", again).code(), "id_reused");
    let (_, document) = refused(&fixture, 1).remove(0);
    assert_eq!(
        (reason(&document), &document["size"]),
        (json!(["orders", "id_reused", 409, null, null]), &json!(again.len()))
    );
    let counted = fixture.counters().refusal_list();
    assert_eq!((counted.len(), &*counted[0].type_name, counted[0].count), (1, "orders", 1));
}

#[test]
fn redacted_type_is_quarantined_without_values() {
    for steps in [r#"[{"mask": "/card"}]"#, r#"[{"drop": "/card"}]"#, r#"[{"hash": "/card"}]"#, r#"[{"keep": "/n"}]"#] {
        let fixture = fixture_of(orders(rules(steps)), TypeRules::default());
        let body = format!(r#"{{"card":"{SECRET}","n":"{SECRET}"}}"#);
        assert_eq!(fixture.post("/ingest/event/orders", "", &body).status, 422);
        assert_eq!(
            fixture.post("/ingest/batch/orders", NDJSON, format!("{body}\n{{\"n\":\"{SECRET}\"}}\n")).status,
            422
        );
        let stored = refused(&fixture, 2);
        for (event, document) in &stored {
            assert_eq!(document["code"], json!("schema"));
            for member in ["base64", "text", "sha256", "detail", "pointer"] {
                assert!(document.get(member).is_none(), "{member} of {document}");
            }
            assert!(!event.payload.contains("4111"), "{event:?}");
        }
        let news = news(&fixture);
        assert!(news.iter().all(|sample| sample.pointer.is_none()), "{news:?}");
    }
}

fn news(fixture: &Fixture) -> Vec<gateway::RefusalSample> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(fixture.counters().refusal_news()).samples
}

#[test]
fn quarantine_rate_limit_does_not_change_responses() {
    let fixture = fixture();
    let lines: String = (0..1_000).map(|number| format!("{{\"n\":\"{number}\"}}\n")).collect();
    let answer = fixture.post("/ingest/batch/orders", NDJSON, lines);
    assert_eq!((answer.status, answer.json()["refused"].as_array().unwrap().len()), (422, 1_000));
    fixture.wait("all are counted", |counters| {
        let quarantine = counters.quarantine();
        quarantine.stored.get() + quarantine.left_out.get() == 1_000
    });
    assert_eq!(refused(&fixture, 100).len(), 100);
    assert_eq!(fixture.counters().refusals(ErrorCode::Schema), 1_000);
}

#[test]
fn only_faults_of_an_event_are_quarantined() {
    let fixture = fixture();
    for (path, headers, body, status) in [
        ("/ingest/event/unknown", "", "{}", 404),
        ("/ingest/event/orders", "Content-Encoding: br\r\n", "{}", 415),
        ("/ingest/event/orders", "Idempotency-Key: \r\n", "{}", 400),
        ("/ingest/event/plain", "", "{", 400),
        ("/ingest/batch/orders", "Content-Type: application/json\r\n", "[{]", 400),
        ("/ingest/event/orders", "", "{\"last\":1}", 422),
    ] {
        assert_eq!(fixture.post(path, headers, body).status, status, "{path} {headers} {body}");
    }
    assert_eq!(refused(&fixture, 1)[0].1["text"], json!(r#"{"last":1}"#));
}

#[test]
fn quarantine_type_applies_its_own_rules() {
    let fixture = fixture_of(
        orders(TypeRules::default()),
        rules(r#"[{"filter": "code != 'json'"}, {"set": "/team", "value": "shop"}]"#),
    );
    for body in ["{", "{}"] {
        assert!(fixture.post("/ingest/event/orders", "", body).status >= 400);
    }
    let (_, document) = refused(&fixture, 1).remove(0);
    assert_eq!((&document["code"], &document["team"]), (&json!("schema"), &json!("shop")));
    assert_eq!(fixture.counters().filtered().iter().map(|(_, count)| count).sum::<u64>(), 1);
}

#[test]
fn event_invalid_for_quarantine_type_is_skipped() {
    let refusing = TypeRules { refused_to: None, ..orders(TypeRules::default()) };
    let fixture = fixture_of(orders(TypeRules::default()), refusing);
    assert_eq!(fixture.post("/ingest/event/orders", "", "{}").code(), "schema");
    fixture.wait("it is left out", |counters| counters.quarantine().left_out.get() == 1);
    assert_eq!(fixture.counters().refusals(ErrorCode::Schema), 1, "only the client's own is counted");

    let mut types = types(orders(TypeRules::default()), TypeRules::default());
    types.named.remove(&name("refused"));
    fixture.gateway().control().configure(&types, &GatewayOptions::default());
    assert_eq!(fixture.post("/ingest/event/orders", "", "{ }").code(), "schema");
    fixture.wait("it is left out", |counters| counters.quarantine().left_out.get() == 2);
    assert!(fixture.stored().is_empty());
}

#[test]
fn queued_quarantine_events_are_stored_on_stop() {
    let mut fixture = fixture();
    let lines: String = (0..90).map(|number| format!("{{\"n\":\"{number}\"}}\n")).collect();
    assert_eq!(fixture.post("/ingest/batch/orders", NDJSON, lines).status, 422);
    assert!(fixture.take_gateway().stop(Instant::now() + Duration::from_secs(60)));
    fixture.log.shards().iter().for_each(|shard| shard.close().unwrap());
    assert_eq!(fixture.stored().len(), 90);
}
