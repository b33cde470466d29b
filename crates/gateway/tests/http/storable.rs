//! Payloads that a store can't hold are rejected in the response, or repaired, on every path.

use std::sync::Arc;

use gateway::{GatewayOptions, GatewayTypes, TextRule, TransformHandle};
use json::store_compat::Incompatibilities;
use limits::EVENT_BYTES_MAX;
use transform::{StepSpec, Tables, Transform};

use crate::fixture::{Fixture, named_types};

const FLAWED: &str = r#"{"a":1,"b":"x\u0000","a":2}"#;
const REPAIRED: &str = r#"{"b":"x\ufffd","a":2}"#;

fn fixture(flaws: Incompatibilities, repair: bool) -> Fixture {
    fixture_with(flaws, repair, "[]")
}

fn fixture_with(flaws: Incompatibilities, repair: bool, steps: &str) -> Fixture {
    let specs: Vec<StepSpec> = serde_json::from_str(steps).unwrap();
    let steps = (!specs.is_empty()).then(|| Transform::compile(&specs, &Tables::default()).unwrap());
    let steps = steps.map(|steps| Arc::new(TransformHandle::new(steps, 7)));
    let mut types: GatewayTypes = named_types(&[("a", None), ("free", None)]);
    types.named.iter_mut().filter(|(name, _)| name.as_str() == "a").for_each(|(_, rules)| {
        rules.texts = TextRule { flaws, repair };
        rules.steps.clone_from(&steps);
    });
    Fixture::with(types, GatewayOptions::default())
}

#[test]
fn unstorable_value_is_rejected_with_its_pointer() {
    let fixture = fixture(Incompatibilities::ALL, false);
    let answer = fixture.post("/ingest/event/a", "", FLAWED);
    assert_eq!((answer.status, answer.code().as_str()), (422, "unstorable"));
    assert_eq!((answer.json()["pointer"].clone(), answer.json()["offset"].clone()), ("/b".into(), 13.into()));
    let answer = fixture.post("/ingest/event/a", "", r#"{"a":1,"a":2}"#);
    assert_eq!((answer.status, answer.json()["pointer"].clone()), (422, "/a".into()));
    let batch = format!("1\n{FLAWED}\n{{\"b\":2,\"b\":3}}\n");
    let answer = fixture.post("/ingest/batch/a", "", &batch);
    assert_eq!(answer.status, 207);
    let refused = answer.json()["refused"].clone();
    assert_eq!((refused[0]["line"].clone(), refused[0]["code"].clone()), (2.into(), "unstorable".into()));
    assert_eq!((refused[1]["line"].clone(), refused[1]["pointer"].clone()), (3.into(), "/b".into()));
    assert_eq!(fixture.post("/ingest/event/free", "", FLAWED).status, 200, "another type has another rule");
    assert_eq!(fixture.payloads(), ["1", FLAWED]);
}

#[test]
fn only_checked_values_are_rejected() {
    let fixture = fixture(Incompatibilities::NUL, false);
    assert_eq!(fixture.post("/ingest/event/a", "", r#"{"a":1,"a":2}"#).status, 200);
    assert_eq!(fixture.post("/ingest/event/a", "", r#""\\u0000""#).status, 200);
    assert_eq!(fixture.post("/ingest/event/a", "", r#""\u0000""#).status, 422);
}

#[test]
fn repair_changes_only_unstorable_values() {
    let fixture = fixture(Incompatibilities::ALL, true);
    let sound = r#"{ "n" : 1.50e0, "s":"\u00e9\\u0000" }"#;
    for payload in [FLAWED, sound] {
        assert_eq!(fixture.post("/ingest/event/a", "", payload).status, 200);
    }
    assert_eq!(fixture.post("/ingest/batch/a", "", format!("{FLAWED}\n{sound}\n")).status, 200);
    assert_eq!(fixture.payloads(), [REPAIRED, sound, REPAIRED, sound]);
    // Large enough to be offloaded.
    let long = "x".repeat(EVENT_BYTES_MAX - 100);
    assert_eq!(fixture.post("/ingest/event/a", "", format!(r#"{{"a":1,"l":"{long}","a":2}}"#)).status, 200);
    assert_eq!(fixture.payloads()[4], format!(r#"{{"l":"{long}","a":2}}"#));
}

#[test]
fn lone_surrogates_are_rejected_without_repair() {
    let fixture = fixture(Incompatibilities::ALL, true);
    let payload = r#" {"a":"\ud800x\udc00\ud83d\ude00","b":"\ud800"} "#;
    let repaired = r#"{"a":"\ufffdx\ufffd\ud83d\ude00","b":"\ufffd"}"#;
    assert_eq!(fixture.post("/ingest/event/a", "", payload).status, 200);
    let answer = fixture.post("/ingest/event/free", "", payload);
    assert_eq!((answer.status, answer.code().as_str(), answer.json()["offset"].clone()), (400, "surrogate", 7.into()));
    for (of, status) in [("a", 200), ("free", 422)] {
        assert_eq!(fixture.post(&format!("/ingest/batch/{of}"), "", format!("{payload}\n")).status, status);
        assert_eq!(fixture.post(&format!("/ingest/batch/{of}"), "", format!("[{payload}]")).status, status);
    }
    assert_eq!(fixture.payloads(), [repaired, repaired, repaired]);
    let long = "x".repeat(EVENT_BYTES_MAX - 100);
    assert_eq!(fixture.post("/ingest/event/a", "", format!(r#"["\ud800","{long}"]"#)).status, 200);
    assert_eq!(fixture.payloads()[3], format!(r#"["\ufffd","{long}"]"#));
}

#[test]
fn unstorable_check_sees_transformed_payload() {
    let steps = r#"[{"drop": "/x"}, {"explode": "/items", "when": "items != null"}]"#;
    let refusing = fixture_with(Incompatibilities::ALL, false, steps);
    assert_eq!(refusing.post("/ingest/event/a", "", r#"{"x":"\u0000","y":1}"#).status, 200);
    for body in [r#"{"y":"\u0000"}"#, r#"{"items":[1,"\u0000"]}"#] {
        assert_eq!(refusing.post("/ingest/event/a", "", body).status, 422, "{body}");
        assert_eq!(refusing.post("/ingest/batch/a", "", body).status, 422, "{body}");
    }
    assert_eq!(refusing.payloads(), [r#"{"y":1}"#]);
    let repairing = fixture_with(Incompatibilities::ALL, true, steps);
    assert_eq!(repairing.post("/ingest/event/a", "", r#"{"items":[1,"\u0000"]}"#).status, 200);
    assert_eq!(repairing.post("/ingest/batch/a", "", r#"{"x":1,"y":"\u0000"}"#).status, 200);
    assert_eq!(repairing.payloads(), [r#"{"items":1}"#, r#"{"items":"\ufffd"}"#, r#"{"y":"\ufffd"}"#]);
}
