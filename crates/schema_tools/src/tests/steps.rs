//! Steps that read unreachable pointers are reported, and pointers that a transformed event has are never reported.

use proptest::prelude::*;
use serde_json::{Value, json};

use transform::testing::{document, step, tables};
use transform::{Context, Scratch, StepSpec, Tables, Transform, TransformOutcome};

use super::unreachable::pointers;
use crate::{Reachability, unreachable_steps};
use schema::{Documents, Schema, SchemaOptions};

fn schema(text: &str) -> Schema {
    Schema::compile("schema.json", text, &SchemaOptions { documents: &Documents::new(), formats: false }).unwrap()
}

const CLOSED: &str = r#"{
    "type": "object",
    "properties": {
        "status": {"type": "integer"},
        "user": {"type": "object", "properties": {"name": {"type": "string"}, "age": {}}, "additionalProperties": false},
        "tags": {"type": "array", "items": {"type": "string"}},
        "line": {"type": "string"},
        "pair": {"type": "array", "prefixItems": [
            {"items": {}, "type": "array"}, {"type": "object", "properties": {"b": {}}, "additionalProperties": false}
        ], "items": false}
    },
    "additionalProperties": false
}"#;

/// The reports about steps, and then about a pointer after them.
fn report(steps: &str, pointer: &str) -> (Vec<String>, Option<String>) {
    let (schema, transform) = (
        schema(CLOSED),
        Transform::compile(&serde_json::from_str::<Vec<StepSpec>>(steps).unwrap(), &Tables::default()).unwrap(),
    );
    let mut reach = Reachability::new(&schema);
    let found = unreachable_steps(&transform, &mut reach);
    let place = reach.find(&pointer.parse().unwrap());
    (found.iter().map(ToString::to_string).collect(), place.err().map(|unreachable| unreachable.why))
}

#[test]
fn unreachable_pointers_are_reported_at_their_step() {
    for (steps, wanted) in [
        (
            r#"[{"drop": "/statsu"}]"#,
            "step 1, `drop`: by the schema the payload never has `/statsu`; did you mean `/status`?",
        ),
        (r#"[{"drop": ["/status", "/x"]}]"#, "step 1, `drop`: by the schema the payload never has `/x`"),
        (
            r#"[{"set": "/a", "to": "user.nmae + status"}]"#,
            "step 1, `to`: by the schema `/user` never has `/user/nmae`; did you mean `user.name`?",
        ),
        (
            r#"[{"drop": "/line", "when": "has(stauts)"}]"#,
            "step 1, `when`: by the schema the payload never has `/stauts`; did you mean `status`?",
        ),
        (
            r#"[{"filter": "line.x == 1"}]"#,
            "step 1, `filter`: by the schema `/line` is a string: it has no members or elements",
        ),
        (r#"[{"sample": 0.5, "by": "/id"}]"#, "step 1, `by`: by the schema the payload never has `/id`"),
        (r#"[{"dedupe": "/id", "window": "1h"}]"#, "step 1, `dedupe`: by the schema the payload never has `/id`"),
        (
            r#"[{"explode": "/tag"}]"#,
            "step 1, `explode`: by the schema the payload never has `/tag`; did you mean `/tags`?",
        ),
        (
            r#"[{"extract": "/lin", "pattern": "(?<a>.)"}]"#,
            "step 1, `extract`: by the schema the payload never has `/lin`; did you mean `/line`?",
        ),
        (r#"[{"lower": "/tags/a"}]"#, "step 1, `lower`: by the schema `/tags` never has `/tags/a`"),
        (r#"[{"drop": "/line"}, {"lower": "/line"}]"#, "step 2, `lower`: an earlier step removes `/line`"),
        (
            r#"[{"rename": "/user", "to": "account"}, {"lower": "/user/name"}]"#,
            "step 2, `lower`: an earlier step removes `/user`",
        ),
        (
            r#"[{"rename": "/user", "to": "account"}, {"lower": "/account/nmae"}]"#,
            "step 2, `lower`: by the schema `/account` never has `/account/nmae`; did you mean `/account/name`?",
        ),
        (
            r#"[{"keep": ["/status", "/user/name"]}, {"drop": "/user/age"}]"#,
            "step 2, `drop`: an earlier step removes `/user/age`",
        ),
        (
            r#"[{"move": "/user/name", "to": "/name"}, {"copy": "/user/name", "to": "/b"}]"#,
            "step 2, `copy`: an earlier step removes `/user/name`",
        ),
    ] {
        assert_eq!(report(steps, "").0, [wanted], "{steps}");
    }
}

#[test]
fn values_that_steps_create_are_not_reported() {
    for steps in [
        r#"[{"set": "/new/deep", "value": 1}, {"drop": "/new/deep"}, {"drop": "/new"}]"#,
        r#"[{"set": "/new", "value": 1, "when": "status > 1"}, {"lower": "/new/x"}]"#,
        r#"[{"default": "/user/email", "value": 1}, {"drop": "/user/email"}]"#,
        r#"[{"enrich": "/at", "from": "received_time"}, {"drop": "/at"}]"#,
        r#"[{"rename": "/line", "to": "text"}, {"lower": "/text"}]"#,
        r#"[{"move": "/user", "to": "/a/b"}, {"lower": "/a/b/name"}, {"drop": "/a"}]"#,
        r#"[{"copy": "/user", "to": "/tags"}, {"lower": "/tags/name"}]"#,
        r#"[{"parse": "/line", "as": "json"}, {"drop": "/line/x/0"}]"#,
        r#"[{"parse": "/line", "as": "json", "to": ""}, {"drop": "/x"}]"#,
        r#"[{"split": "/line", "by": ","}, {"drop": "/line/0"}]"#,
        r#"[{"extract": "/line", "pattern": "(?<a>.)", "to": "/found"}, {"lower": "/found/a"}]"#,
        r#"[{"explode": "/tags", "to": "/tag"}, {"lower": "/tag"}, {"drop": "/tags"}]"#,
        r#"[{"flatten": ""}, {"drop": "/user.name"}]"#,
        r#"[{"coerce": "/line", "as": "number", "on_error": "mark"}, {"drop": "/transform_errors"}]"#,
        // These steps may have been skipped.
        r#"[{"drop": "/line", "when": "status > 1"}, {"lower": "/line"}]"#,
        r#"[{"move": "/line", "to": "/status", "when": "status > 1"}, {"lower": "/line"}]"#,
        r#"[{"keep": "/line", "when": "status > 1"}, {"lower": "/user/name"}]"#,
        r#"[{"rename": "/line", "to": "text", "on_error": "skip"}, {"lower": "/line"}]"#,
        r#"[{"drop": "/line"}, {"set": "/line", "value": "x"}, {"lower": "/line"}]"#,
        // Elements move when one goes.
        r#"[{"drop": "/tags/0"}, {"lower": "/tags/0"}]"#,
        r#"[{"keep": "/tags/1"}, {"lower": "/tags/0"}]"#,
        r#"[{"drop": "/pair/0", "when": "status > 1"}, {"drop": "/pair/0/b"}]"#,
        r#"[{"move": "/pair/0", "to": "/first", "when": "status > 1"}, {"drop": "/pair/0/b"}]"#,
        r#"[{"explode": "/pair/0", "to": "/one"}, {"drop": "/pair/0/b"}]"#,
        r#"[{"set": "/x", "to": "tags.exists(t, t == line)"}]"#,
    ] {
        assert_eq!(report(steps, "").0, [""; 0], "{steps}");
    }
}

#[test]
fn pointers_after_steps_match_stored_payload() {
    for (steps, pointer, is_possible) in [
        (r#"[{"drop": "/line"}]"#, "/line", false),
        (r#"[{"drop": "/line"}]"#, "/user/name", true),
        (r#"[{"drop": "/user/name"}]"#, "/user/age", true),
        (r#"[{"drop": "/user/name"}]"#, "/user/x", false),
        (r#"[{"keep": "/user/name"}]"#, "/user/name", true),
        (r#"[{"keep": "/user/name"}]"#, "/status", false),
        (r#"[{"rename": "/status", "to": "code"}]"#, "/code", true),
        (r#"[{"rename": "/status", "to": "code"}]"#, "/code/x", false),
        (r#"[{"move": "/user", "to": ""}]"#, "/anything", true),
        (r#"[{"set": "/a/b", "value": 1}]"#, "/a/b", true),
        (r#"[{"set": "/a/b", "value": 1}]"#, "/a/c", false),
        (r#"[{"redact": "", "what": "email"}]"#, "/statsu", false),
        (r#"[{"hash": "/user"}]"#, "/user/x", false),
    ] {
        let (found, place) = report(steps, pointer);
        assert_eq!((found.len(), place.is_none()), (0, is_possible), "{steps} {pointer}: {place:?}");
    }
}

/// A schema that accepts this value and closes all of it.
fn exactly(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let properties: serde_json::Map<String, Value> =
                members.iter().map(|(name, value)| (name.clone(), exactly(value))).collect();
            json!({"type": "object", "properties": properties, "additionalProperties": false})
        }
        Value::Array(elements) => {
            json!({"type": "array", "prefixItems": elements.iter().map(exactly).collect::<Vec<_>>(), "items": false})
        }
        Value::Null => json!({"type": "null"}),
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Number(_) => json!({"type": "number"}),
        Value::String(_) => json!({"type": "string"}),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn transformed_payload_values_count_as_reachable(
        event in document(),
        steps in prop::collection::vec(step(), 1..6),
    ) {
        let Ok(event) = json::check(event.as_bytes()) else { return Ok(()) };
        let Ok(value) = serde_json::from_str::<Value>(event) else { return Ok(()) };
        let text = exactly(&value).to_string();
        // Numbers that are too large to be read don't matter here, and neither do duplicate members that differ.
        let schema = schema(&text);
        if schema.check(event).is_err() {
            return Ok(());
        }
        let specs: Vec<StepSpec> = serde_json::from_str(&format!("[{}]", steps.join(","))).unwrap();
        let Ok(transform) = Transform::compile(&specs, &tables()) else { return Ok(()) };
        let mut reach = Reachability::new(&schema);
        let _ = unreachable_steps(&transform, &mut reach);
        let (mut windows, mut scratch) = (transform.windows(1), Scratch::default());
        let stored = match transform.run(event, &Context::UNKNOWN, &mut windows, &mut scratch) {
            Ok(TransformOutcome::Unchanged) => vec![event.to_owned()],
            Ok(TransformOutcome::Changed(changed)) => vec![changed.to_owned()],
            Ok(TransformOutcome::Several(several)) => several.events.into_iter().map(|part| part.payload).collect(),
            Ok(TransformOutcome::Filtered(_)) | Err(_) => Vec::new(),
        };
        for stored in stored {
            let Ok(value) = serde_json::from_str::<Value>(&stored) else { continue };
            for pointer in pointers(&value) {
                prop_assert_eq!(reach.find(&pointer), Ok(()), "{} in {} from {} by {:?}", pointer, stored, event, steps);
            }
        }
    }
}
