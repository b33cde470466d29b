//! Pointers that no valid payload has are reported, and no others.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};

use schema::Documents;
use schema::testing::{schema, value};

use super::{compile, compile_with};
use crate::Reachability;
use json::JsonPointer;

/// Why a pointer is unreachable, and the suggestion; empty if it is reachable.
fn report(schema: &str, pointer: &str) -> String {
    let schema = compile(schema);
    match Reachability::new(&schema).find(&pointer.parse().unwrap()) {
        Ok(()) => String::new(),
        Err(unreachable) => {
            let nearest = unreachable.nearest.map(|nearest| format!(" ({nearest})"));
            unreachable.why + &nearest.unwrap_or_default()
        }
    }
}

const CLOSED: &str = r##"{
    "type": "object",
    "properties": {
        "status": {"type": "integer"},
        "user": {"$ref": "#/$defs/user"},
        "tags": {"type": "array", "prefixItems": [{}, {"type": "string"}], "items": false},
        "list": {"items": {"$ref": "#/$defs/user"}, "maxItems": 3, "type": "array"},
        "gone": false,
        "any": {},
        "maybe": {"type": ["string", "object"]}
    },
    "patternProperties": {"^x_": {"type": "boolean"}},
    "additionalProperties": false,
    "$defs": {"user": {"type": "object", "properties": {"name": {"enum": ["Ann", null]}}, "additionalProperties": false}}
}"##;

#[test]
fn pointers_outside_a_closed_schema_are_reported() {
    for (pointer, wanted) in [
        ("", ""),
        ("/status", ""),
        ("/statsu", "by the schema the payload never has `/statsu` (/status)"),
        ("/x_a", ""),
        ("/x_a/b", "by the schema `/x_a` is a boolean: it has no members or elements"),
        ("/status/0", "by the schema `/status` is an integer: it has no members or elements"),
        ("/gone", "by the schema the payload never has `/gone`"),
        ("/any/thing/0", ""),
        ("/maybe/x", ""),
        ("/user/name", ""),
        ("/user/nmae", "by the schema `/user` never has `/user/nmae` (/user/name)"),
        ("/usr/name", "by the schema the payload never has `/usr` (/user/name)"),
        ("/user/name/x", "by the schema `/user/name` is one of a few values: it has no members or elements"),
        ("/tags/1", ""),
        ("/tags/2", "by the schema `/tags` never has `/tags/2`"),
        ("/tags/-", "by the schema `/tags` never has `/tags/-`"),
        ("/tags/name", "by the schema `/tags` never has `/tags/name`"),
        ("/list/2/name", ""),
        ("/list/3", "by the schema `/list` never has `/list/3`"),
        ("/list/1/nam", "by the schema `/list/1` never has `/list/1/nam` (/list/1/name)"),
    ] {
        assert_eq!(report(CLOSED, pointer), wanted, "{pointer}");
    }
}

#[test]
fn possible_pointers_are_not_reported() {
    for (schema, pointer) in [
        ("{}", "/a/b"),
        ("true", "/a"),
        // It accepts no value, which other messages report.
        ("false", ""),
        (r#"{"properties": {"a": {}}}"#, "/b"),
        (r#"{"properties": {"a": {}}, "additionalProperties": {"type": "object"}}"#, "/b/c"),
        (
            r#"{"properties": {"a": {}}, "unevaluatedProperties": false, "anyOf": [{"properties": {"b": {}}}, {}]}"#,
            "/b",
        ),
        (r#"{"properties": {"a": {}}, "unevaluatedProperties": false, "if": {"properties": {"b": {}}}}"#, "/b"),
        (r#"{"unevaluatedProperties": false, "dependentSchemas": {"a": {"properties": {"b": {}}}}}"#, "/b"),
        (r#"{"unevaluatedProperties": false, "allOf": [{"patternProperties": {"^b": {}}}]}"#, "/b"),
        (r#"{"unevaluatedProperties": false, "allOf": [{"additionalProperties": {}}]}"#, "/b"),
        (r##"{"unevaluatedProperties": false, "$dynamicRef": "#x", "$defs": {"y": {"$dynamicAnchor": "x"}}}"##, "/b"),
        (r#"{"unevaluatedItems": false, "contains": {}}"#, "/3"),
        (r#"{"oneOf": [{"properties": {"a": {}}, "additionalProperties": false}, {"type": "object"}]}"#, "/b"),
        // `required` names no property, and this `not` closes nothing.
        (r#"{"not": {"required": ["a"]}}"#, "/a"),
        (r#"{"type": ["object", "array"], "properties": {"0": false}}"#, "/0"),
        (r#"{"type": ["object", "array"], "items": false}"#, "/0"),
    ] {
        assert_eq!(report(schema, pointer), "", "{schema} {pointer}");
    }
}

#[test]
fn closed_schemas_are_followed_through_references() {
    let union = r#"{"oneOf": [
        {"properties": {"kind": {"const": "a"}, "first": {}}, "additionalProperties": false},
        {"properties": {"kind": {"const": "b"}, "second": {"type": "string"}}, "additionalProperties": false}
    ]}"#;
    let both = r#"{"type": ["object", "array"], "properties": {"0": false}, "items": false}"#;
    let evaluated =
        r#"{"allOf": [{"properties": {"a": {}}}], "properties": {"b": {}}, "unevaluatedProperties": false}"#;
    let both_closed =
        r#"{"allOf": [{"properties": {"a": {}}, "additionalProperties": false}, {"properties": {"b": {}}}]}"#;
    let branches = r#"{"if": {"required": ["a"]}, "then": {"type": "string"}, "else": {"type": "number"}}"#;
    for (schema, pointer, closed) in [
        (union, "/kind", false),
        (union, "/second", false),
        (union, "/third", true),
        (union, "/second/x", true),
        (both, "/0", true),
        (evaluated, "/a", false),
        (evaluated, "/c", true),
        (both_closed, "/a", false),
        (both_closed, "/b", true),
        (branches, "/a", true),
        // It may be an array.
        (r#"{"maxProperties": 0}"#, "/0", false),
        (r#"{"maxProperties": 0}"#, "/a", true),
        (r#"{"const": {"a": 1}}"#, "/a", false),
        (r#"{"enum": [1, "a"]}"#, "/a", true),
        (r#"{"unevaluatedItems": false, "prefixItems": [{}], "type": "array"}"#, "/1", true),
        (
            r#"{"$schema": "http://json-schema.org/draft-07/schema#", "items": [{}], "additionalItems": false, "type": "array"}"#,
            "/1",
            true,
        ),
    ] {
        assert_eq!(!report(schema, pointer).is_empty(), closed, "{schema} {pointer}: {}", report(schema, pointer));
    }
    let documents =
        Documents::from([("user.json".to_owned(), r#"{"type": "object", "additionalProperties": false}"#.to_owned())]);
    let schema = compile_with(r#"{"properties": {"user": {"$ref": "user.json"}}}"#, &documents).unwrap();
    assert!(Reachability::new(&schema).find(&"/user/name".parse().unwrap()).is_err());
}

#[test]
fn costly_schema_is_abandoned() {
    let deep: JsonPointer = "/a".repeat(128).parse().unwrap();
    let doubled = |n| format!(r##""{n}":{{"anyOf":[{{"$ref":"#/$defs/{0}"}},{{"$ref":"#/$defs/{0}"}}]}},"##, n + 1);
    let definitions: String = (0..14).map(doubled).collect();
    let closed = r##""14":{"properties":{"a":{"$ref":"#/$defs/0"}},"additionalProperties":false,"type":"object"}"##;
    let patterns: String = (0..20_000).map(|n| format!("\"^{n}\":{{}},")).collect();
    let values: String = (0..200_000).map(|n| format!("{n},")).collect();
    let chain: String = (0..25).map(|n| format!(r##""{n}":{{"anyOf":[{{"$ref":"#/$defs/{}"}}]}},"##, n + 1)).collect();
    let chain_end = r##""25":{"properties":{"a":{"$ref":"#/$defs/0"}},"type":"object"}"##;
    for schema in [
        format!(r##"{{"$ref":"#/$defs/0","$defs":{{{definitions}{closed}}}}}"##),
        format!(
            r##"{{"type":"object","patternProperties":{{{patterns}"^a":{{"$ref":"#"}}}},"additionalProperties":false}}"##
        ),
        format!(r##"{{"properties":{{"a":{{"$ref":"#"}}}},"anyOf":[{{"enum":[{values}{{}}]}}]}}"##),
        format!(r##"{{"$ref":"#/$defs/0","$defs":{{{chain}{chain_end}}}}}"##),
    ] {
        let schema = compile(&schema);
        let began = Instant::now();
        let mut reach = Reachability::new(&schema);
        for _ in 0..20 {
            assert_eq!(reach.find(&deep), Ok(()), "it is possible, or undecided");
        }
        // Without a bound they would take years.
        assert!(began.elapsed() < Duration::from_mins(2), "{:?}", began.elapsed());
    }
}

/// The pointers to everything in a value.
pub(super) fn pointers(value: &Value) -> Vec<JsonPointer> {
    fn gather(value: &Value, at: &JsonPointer, found: &mut Vec<JsonPointer>) {
        found.push(at.clone());
        match value {
            Value::Object(members) => {
                members.iter().for_each(|(name, value)| gather(value, &at.member(name).unwrap(), found));
            }
            Value::Array(elements) => {
                let each = elements.iter().enumerate();
                each.for_each(|(number, value)| gather(value, &at.member(&number.to_string()).unwrap(), found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    gather(value, &JsonPointer::WHOLE, &mut found);
    found
}

/// Schemas that close what they name, and any others.
fn closing() -> impl Strategy<Value = Value> {
    let close = |schema: Value, keyword: &str| {
        let mut schema = schema.as_object().cloned().unwrap_or_default();
        schema.insert(keyword.to_owned(), json!(false));
        Value::Object(schema)
    };
    let keywords =
        prop::sample::select(vec!["additionalProperties", "unevaluatedProperties", "unevaluatedItems", "items"]);
    prop_oneof![schema(), (schema(), keywords).prop_map(move |(schema, keyword)| close(schema, keyword))]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn values_of_valid_payloads_count_as_reachable(schema in closing(), values in prop::collection::vec(value(), 6)) {
        let compiled = compile(&schema.to_string());
        let mut reach = Reachability::new(&compiled);
        for value in values.into_iter().filter(|value| compiled.check(&value.to_string()).is_ok()) {
            for pointer in pointers(&value) {
                prop_assert_eq!(reach.find(&pointer), Ok(()), "{} in {} by {}", pointer, value, schema);
            }
        }
    }
}
