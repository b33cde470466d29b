//! Types by rule, and events of unknown types.

use event::TypeName;
use gateway::{GatewayOptions, GatewayTypes, TypeResolver, TypeRules};

use crate::fixture::{Fixture, named_types};

fn name(text: &str) -> TypeName {
    TypeName::new(text).unwrap()
}

fn choice(rules: &[(&str, &str)]) -> TypeResolver {
    TypeResolver::new(rules.iter().map(|(of, when)| (name(of), when.parse().unwrap())))
}

fn types(names: &[&str]) -> GatewayTypes {
    named_types(&names.iter().map(|name| (*name, None)).collect::<Vec<_>>())
}

fn stored(fixture: &Fixture) -> Vec<String> {
    fixture.stored().into_iter().map(|event| event.type_name).collect()
}

#[test]
fn type_rule_applies_to_untyped_events() {
    let choice = choice(&[("access", "status >= 100"), ("order", "has(order)"), ("access", "has(method)")]);
    let types = GatewayTypes {
        choice,
        type_pointer: Some("/t".parse().unwrap()),
        ..types(&["access", "order", "named", "event"])
    };
    let fixture = Fixture::with(types, GatewayOptions::default());
    for (path, headers, payload) in [
        ("/ingest/event", "", r#"{"status":200,"order":1}"#),
        ("/ingest/event", "", r#"{"order":1}"#),
        ("/ingest/event", "", r#"{"method":"GET"}"#),
        ("/ingest/event", "", "7"),
        ("/ingest/event", "", r#"{"t":"named","order":1}"#),
        ("/ingest/event", "Forebay-Type: named\r\n", r#"{"order":1}"#),
        ("/ingest/event/named", "", r#"{"order":1}"#),
    ] {
        assert_eq!(fixture.post(path, headers, payload).status, 200, "{payload}");
    }
    assert_eq!(stored(&fixture), ["access", "order", "access", "event", "named", "named", "named"]);
    let batch = "{\"order\":2}\n{\"status\":200}\n{}\n{\"order\":3}\n";
    assert_eq!(fixture.post("/ingest/batch", "", batch).status, 200);
    assert_eq!(stored(&fixture)[7..], ["order", "access", "event", "order"]);
}

#[test]
fn unknown_types_use_the_configured_fallback() {
    let types = GatewayTypes {
        unknown: Some(name("other")),
        results: [(name("a.hits"), TypeRules::default())].into(),
        type_pointer: Some("/t".parse().unwrap()),
        ..types(&["a", "other"])
    };
    let fixture = Fixture::with(types, GatewayOptions::default());
    for (path, headers, payload, status) in [
        ("/ingest/event/a", "", "1", 200),
        ("/ingest/event/b", "", "1", 200),
        ("/ingest/event/No%20Name", "", "1", 200),
        ("/ingest/event", "Forebay-Type: c\r\n", "1", 200),
        ("/ingest/event", "", r#"{"t":"Page View"}"#, 200),
        ("/ingest/event", "", r#"{"t":7}"#, 200),
        ("/ingest/event", "", r#"{"t":[]}"#, 200),
        ("/ingest/event", "", "{}", 200),
        ("/ingest/event/a.hits", "", "1", 404),
    ] {
        let answer = fixture.post(path, headers, payload);
        assert_eq!(answer.status, status, "{path} {headers} {payload}");
    }
    let batch: String = (0..100).map(|number| format!("{{\"t\":\"t{number}\"}}\n")).collect();
    assert_eq!(fixture.post("/ingest/batch", "", &batch).status, 200);
    let stored = stored(&fixture);
    assert_eq!((stored[0].as_str(), stored.len()), ("a", 108));
    assert!(stored[1..].iter().all(|name| name == "other"), "{stored:?}");
    assert_eq!(fixture.stored()[5].payload, r#"{"t":7}"#, "the payload keeps the name");
}

#[test]
fn removed_type_is_unknown_after_reload() {
    let with = |names: &[&str]| GatewayTypes { unknown: Some(name("other")), ..types(names) };
    let fixture = Fixture::with(with(&["a", "b", "other"]), GatewayOptions::default());
    assert_eq!(fixture.post("/ingest/event/b", "", "1").status, 200);
    fixture.gateway().control().configure(&with(&["a", "other"]), &GatewayOptions::default());
    assert_eq!(fixture.post("/ingest/event/b", "", "2").status, 200);
    fixture.gateway().control().configure(&types(&["a"]), &GatewayOptions::default());
    assert_eq!(fixture.post("/ingest/event/b", "", "3").status, 404);
    assert_eq!(stored(&fixture), ["b", "other"]);
}

/// It takes too long to find the type of these on the shard: it is offloaded, without a visible difference.
#[test]
fn costly_type_rule_gives_the_same_result() {
    let choice = choice(&[("a", "l.all(x, l.all(y, x + y < 9))"), ("b", "has(b)")]);
    let types = GatewayTypes { choice, type_pointer: Some("/t".parse().unwrap()), ..types(&["a", "b", "event"]) };
    let fixture = Fixture::with(types, GatewayOptions::default());
    let large = |rest: &str| format!("{{\"l\":[{}1]{rest}}}", "1,".repeat(200));
    for (payload, status) in [
        (large(""), 200),
        (large(",\"t\":\"b\""), 200),
        (large(",\"t\":\"c\""), 404),
        (large(","), 400),
        (format!("{{\"pad\":\"{}\",\"t\":\"a\"}}", "x".repeat(400_000)), 200),
        (format!("{{\"pad\":\"{}\",\"b\":\"\\udc00\"}}", "x".repeat(400_000)), 400),
    ] {
        let headers = if payload.len() > 1000 { "Forebay-Ack: disk\r\n" } else { "" };
        assert_eq!(fixture.post("/ingest/event", headers, &payload).status, status, "{}", &payload[..9]);
    }
    assert_eq!(fixture.post("/ingest/event", "Forebay-Ack: memory\r\n", large("")).code(), "ack_memory");
    let key = "Idempotency-Key: k\r\nAccept: application/json\r\n";
    let first = fixture.post("/ingest/event", key, large(",\"k\":1")).json();
    let again = fixture.post("/ingest/event", key, large(",\"k\":1")).json();
    assert_eq!((&first["duplicate"], &again["duplicate"]), (&false.into(), &true.into()));
    assert_eq!(first["id"], again["id"]);
    assert_eq!(stored(&fixture), ["a", "b", "a", "a"]);
    let batch = format!("{{}}\n{}\n{{\"t\":\"c\"}}\n{}\n{{\"b\":1}}\n{}", large(""), large(",\"l\":0"), large(""));
    let answer = fixture.post("/ingest/batch", "Content-Type: application/x-ndjson\r\n", &batch);
    assert_eq!((answer.status, &answer.json()["accepted"]), (207, &5.into()));
    assert_eq!(answer.json()["refused"][0]["line"], 3);
    assert_eq!(stored(&fixture)[4..], ["event", "a", "event", "b", "a"]);
}
