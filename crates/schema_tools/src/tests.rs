//! Inferring and comparing schemas.

mod random;
mod steps;
mod unreachable;

use schema::{Documents, InvalidSchema, Schema, SchemaOptions};

use super::*;

fn compile_with(text: &str, documents: &Documents) -> Result<Schema, Vec<InvalidSchema>> {
    Schema::compile("schema.json", text, &SchemaOptions { documents, formats: true })
}

fn compile(text: &str) -> Schema {
    compile_with(text, &Documents::new()).unwrap_or_else(|mistakes| panic!("{text}: {mistakes:?}"))
}

#[test]
fn inferred_schema_accepts_its_samples() {
    let mut samples = Samples::default();
    for number in 0..40 {
        let method = if number % 2 == 0 { "GET" } else { "POST" };
        let more = if number == 7 { r#", "more": [1, 2.5, null]"# } else { "" };
        samples
            .add(&format!(r#"{{"at": "2026-11-22T00:00:{number:02}Z", "n": {number}, "method": "{method}"{more}}}"#));
    }
    let found: serde_json::Value = serde_json::from_str(&samples.schema(true)).unwrap();
    let expected = serde_json::json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "required": ["at", "method", "n"],
        "properties": {
            "at": {"type": "string", "format": "date-time"},
            "method": {"type": "string", "enum": ["GET", "POST"]},
            "more": {"type": "array", "items": {"type": ["null", "number"], "minimum": 1, "maximum": 2.5}},
            "n": {"type": "integer", "minimum": 0, "maximum": 39},
        },
    });
    assert_eq!(found, expected);
    assert!(!samples.schema(false).contains("minimum"));
}

#[test]
fn comparison_finds_newly_rejected_values() {
    for (old, new, found) in [
        ("{}", "{}", vec![]),
        (r#"{"type": "integer"}"#, r#"{"type": "number"}"#, vec![]),
        (
            r#"{"type": "number"}"#,
            r#"{"type": "integer"}"#,
            vec!["the value: a number with a fraction would be rejected"],
        ),
        (
            r#"{"type": ["string", "null"]}"#,
            r#"{"type": "string"}"#,
            vec!["the value: a value of type null would be rejected"],
        ),
        (
            r#"{"enum": ["a", "b", 1]}"#,
            r#"{"type": "string", "maxLength": 1, "enum": ["b", "c"]}"#,
            vec!["the value: the value \"a\" would be rejected", "the value: the value 1 would be rejected"],
        ),
        (r#"{"maximum": 5}"#, r#"{"maximum": 5.0}"#, vec![]),
        (r#"{"exclusiveMaximum": 5}"#, r#"{"maximum": 5}"#, vec![]),
        (r#"{"maximum": 5}"#, r#"{"exclusiveMaximum": 5}"#, vec!["the value: a number not below 5 would be rejected"]),
        (r#"{"multipleOf": 6}"#, r#"{"multipleOf": 3}"#, vec![]),
        (
            r#"{"properties": {"a": {"maxLength": 5}}}"#,
            r#"{"properties": {"a": {"maxLength": 4}}, "required": ["a"]}"#,
            vec![
                "the value: an object without \"a\" would be rejected",
                "/a: a string of more than 4 characters would be rejected",
            ],
        ),
        (
            r#"{"properties": {"a": {}}, "additionalProperties": false}"#,
            r#"{"properties": {"a": {}, "b": {"type": "null"}}}"#,
            vec![],
        ),
        (
            r#"{"properties": {"a": {}}}"#,
            r#"{"properties": {"a": {}}, "additionalProperties": false}"#,
            vec!["/*: any value would be rejected"],
        ),
        (r##"{"$ref": "#/$defs/a", "$defs": {"a": {"minimum": 1}}}"##, r#"{"allOf": [{"minimum": 1}]}"#, vec![]),
        (
            r#"{"pattern": "a"}"#,
            r#"{"pattern": "a|b"}"#,
            vec!["the value: can't be decided: whether what matched before matches a|b too"],
        ),
        (r#"{"anyOf": [{"type": "null"}]}"#, r#"{"anyOf": [{"type": "string"}, {"type": "null"}]}"#, vec![]),
        (
            r#"{"oneOf": [{"type": "null"}]}"#,
            r#"{"oneOf": [{"type": "string"}, {"type": "null"}]}"#,
            vec!["the value: can't be decided: `oneOf` is new, or has changed"],
        ),
        (
            r#"{"items": {"type": "integer"}}"#,
            r#"{"items": {"type": "string"}}"#,
            vec!["/*: a value of type integer would be rejected"],
        ),
    ] {
        let differences: Vec<String> =
            differences(&compile(old), &compile(new)).iter().map(ToString::to_string).collect();
        assert_eq!(differences, found, "{old} and {new}");
    }
}
