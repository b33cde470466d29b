//! Schemas on documents: their messages, and their bounds.

mod hostile;
mod numbers;
mod random;

use super::*;

pub(super) fn compile_with(text: &str, documents: &Documents) -> Result<Schema, Vec<InvalidSchema>> {
    Schema::compile("schema.json", text, &SchemaOptions { documents, formats: true })
}

pub(super) fn compile(text: &str) -> Schema {
    compile_with(text, &Documents::new()).unwrap_or_else(|mistakes| panic!("{text}: {mistakes:?}"))
}

pub(super) fn takes(schema: &str, payload: &str) -> bool {
    compile(schema).check(payload).is_ok()
}

fn errors(schema: &str, payload: &str) -> Vec<String> {
    let payload = json::check(payload.as_bytes()).unwrap();
    let list = compile(schema).check(payload).map_or_else(|violations| violations.list, |()| Vec::new());
    list.iter().map(|v| format!("{} {}: {v}", v.pointer, v.schema_pointer)).collect()
}

#[test]
fn all_errors_are_reported() {
    let schema = r#"{"required": ["a", "b"], "additionalProperties": false, "minProperties": 3, "properties": {
        "a": {"type": "integer", "maximum": 5, "multipleOf": 2}, "b/c": {"items": {"enum": [1, "x"]}}}}"#;
    assert_eq!(
        errors(schema, r#"{"a": 7, "b\u002fc": [1, 2, "x", "y"], "d": {"e": [1]}}"#),
        [
            "/a /properties/a/maximum: expected at most 5, found 7",
            "/a /properties/a/multipleOf: expected a multiple of 2, found 7",
            "/b~1c/1 /properties/b~1c/items/enum: expected one of [1, \"x\"], found 2",
            "/b~1c/3 /properties/b~1c/items/enum: expected one of [1, \"x\"], found \"y\"",
            "/d /additionalProperties: expected no member \"d\", found {\"e\": [1]}",
            " /required: expected a member \"b\", found {\"a\": 7, \"b\\u002fc\": [1, 2, \"x\", \"y\"], \"d\": {\"e\": [1]}}",
        ]
    );
}

#[test]
fn every_keyword_reports_its_expectation() {
    for (schema, payload, expected) in [
        (r#"{"type": ["string", "null"]}"#, "1", "null or string"),
        (r#"{"const": {"a": 1}}"#, "1", r#"{"a": 1}"#),
        (r#"{"minimum": 2}"#, "1", "at least 2"),
        (r#"{"exclusiveMinimum": 1}"#, "1", "more than 1"),
        (r#"{"exclusiveMaximum": 1}"#, "1", "less than 1"),
        (r#"{"minLength": 2}"#, r#""é""#, "at least 2 characters"),
        (r#"{"maxLength": 1}"#, r#""éé""#, "at most 1 characters"),
        (r#"{"pattern": "^a"}"#, r#""b""#, "a string that matches ^a"),
        (r#"{"format": "ipv4"}"#, r#""b""#, "the format ipv4"),
        (r#"{"minItems": 1}"#, "[]", "at least 1 elements"),
        (r#"{"uniqueItems": true}"#, "[1, 1.0]", "elements that differ"),
        (r#"{"contains": {"const": 1}}"#, "[2]", "at least 1 elements that the schema in `contains` accepts"),
        (r#"{"maxProperties": 0}"#, r#"{"a": 1}"#, "at most 0 members"),
        (r#"{"propertyNames": {"maxLength": 1}}"#, r#"{"ab": 1}"#, "at most 1 characters"),
        (r#"{"dependentRequired": {"a": ["b"]}}"#, r#"{"a": 1}"#, r#"a member "b", since there is "a""#),
        (r#"{"anyOf": [{"type": "null"}, {"type": "string"}]}"#, "1", "null, or string"),
        (r#"{"oneOf": [{}, true]}"#, "1", "one of 2 schemas to accept it; numbers 0 and 1 both do"),
        (r#"{"oneOf": [false]}"#, "1", "no value here"),
        (r#"{"not": {}}"#, "1", "a value that the schema in `not` rejects"),
        (r#"{"if": {"minimum": 1}, "then": {"maximum": 0}}"#, "1", "at most 0"),
        (r#"{"prefixItems": [{}], "unevaluatedItems": false}"#, "[1, 2]", "no value here"),
        ("false", "1", "no value here"),
    ] {
        let found = compile(schema).check(payload).unwrap_err();
        assert_eq!(found.list.iter().map(|v| v.expected.as_str()).collect::<Vec<_>>(), [expected], "{schema}");
    }
}

/// A webhook that lacks a member of its event isn't reported as another event.
#[test]
fn closest_alternative_reports_its_errors() {
    let schema = compile(
        r##"{"oneOf": [{"$ref": "#/$defs/closed"}, {"$ref": "#/$defs/opened"}, {"$ref": "#/$defs/moved"}],
             "$defs": {
               "closed": {"required": ["action"], "properties": {"action": {"const": "closed"}, "by": {"type": "string"}}},
               "opened": {"required": ["action"], "properties": {"action": {"const": "opened"}, "by": {"type": "string"}}},
               "moved": {"required": ["action", "to"], "properties": {"action": {"const": "moved"}}}}}"##,
    );
    let found = schema.check(r#"{"action": "opened", "by": 7}"#).unwrap_err();
    let violations: Vec<_> = found.list.iter().map(|violation| (&*violation.pointer, &*violation.expected)).collect();
    let first = "one of 3 schemas to accept it; the closest expects string at /by (/$defs/opened/properties/by/type)";
    assert_eq!(violations, [("", first), ("/by", "string")]);

    let schema = r#"{"anyOf": [{"required": ["a"]}, {"minProperties": 9}, {"maxProperties": 0}]}"#;
    let found = compile(schema).check(r#"{"c": 1}"#).unwrap_err();
    assert_eq!(found.list[0].expected, r#"a member "a", or at least 9 members, or at most 0 members"#);
}

/// Nested schemas that all must be followed: what isn't found within the limit isn't reported.
#[test]
fn search_for_closest_alternative_is_bounded() {
    let mut schema = r#"{"type": "string"}"#.to_owned();
    for _ in 0..40 {
        schema = format!(r#"{{"anyOf": [{schema}, {{"minimum": 5, "multipleOf": 5}}]}}"#);
    }
    let found = compile(&schema).check("1").unwrap_err();
    assert!(found.list[0].expected.starts_with("one of 2 schemas to accept it"), "{found:?}");
}

#[test]
fn number_of_errors_is_limited() {
    let found = compile(r#"{"items": false}"#).check(&format!("[{}1]", "1,".repeat(99))).unwrap_err();
    assert_eq!((found.list.len(), found.is_cut), (limits::SCHEMA_ERRORS_MAX, true));
    let found = compile(r#"{"items": false}"#).check("[1, 2]").unwrap_err();
    assert_eq!((found.list.len(), found.is_cut), (2, false));
}

#[test]
fn references_resolve_to_given_documents() {
    let documents = Documents::from([
        ("defs/a.json".to_owned(), r##"{"$ref": "b.json#/$defs/x"}"##.to_owned()),
        ("defs/b.json".to_owned(), r#"{"$defs": {"x": {"maximum": 3}}}"#.to_owned()),
    ]);
    let schema = compile_with(r#"{"$ref": "defs/a.json"}"#, &documents).unwrap();
    let found = schema.check("4").unwrap_err();
    assert_eq!(found.list[0].schema_pointer, "defs/b.json#/$defs/x/maximum");
    let mistakes = compile_with(r#"{"$ref": "defs/c.json#/a"}"#, &documents).unwrap_err();
    assert_eq!(mistakes[0].missing.as_deref(), Some("defs/c.json"));
}

#[test]
fn schema_mistakes_have_a_pointer() {
    for (schema, pointer, message) in [
        ("{", "", "invalid JSON"),
        ("1", "", "a schema must be an object"),
        (r#"{"$schema": "http://example.org"}"#, "/$schema", "unknown draft"),
        (r#"{"type": "text"}"#, "/type", "a type must be one of"),
        (r#"{"properties": {"a": 1}}"#, "/properties/a", "a schema must be an object"),
        (r#"{"properties": []}"#, "/properties", "an object of schemas"),
        (r#"{"minimum": "1"}"#, "/minimum", "a number"),
        (r#"{"minLength": -1}"#, "/minLength", "a whole number from 0"),
        (r#"{"multipleOf": 0}"#, "/multipleOf", "above 0"),
        (r#"{"multipleOf": 1234567890123456789}"#, "/multipleOf", "18 digits"),
        (r#"{"required": "a"}"#, "/required", "a list of strings"),
        (r#"{"enum": 1}"#, "/enum", "a list of values"),
        (r#"{"allOf": []}"#, "/allOf", "empty"),
        (r#"{"pattern": "("}"#, "/pattern", "not a regular expression: unclosed group, at character 1"),
        (r#"{"patternProperties": {"(": {}}}"#, "/patternProperties/(", "not a regular expression"),
        (r##"{"$ref": "#/a"}"##, "/$ref", "a part that does not exist"),
        (r#"{"$ref": "http://example.org/a"}"#, "/$ref", "which does not exist"),
        (r##"{"$ref": "#"}"##, "", "refers to itself"),
        (r##"{"anyOf": [{"$ref": "#"}, {}]}"##, "", "refers to itself"),
    ] {
        let mistakes = compile_with(schema, &Documents::new()).unwrap_err();
        let InvalidSchema { pointer: at, message: said, span, .. } = &mistakes[0];
        assert!(at == pointer && said.contains(message) && span.end <= schema.len() + 1, "{schema}: {mistakes:?}");
        assert_eq!(mistakes.len(), 1, "{schema}: {mistakes:?}");
    }
}

#[test]
fn duplicate_members_are_all_checked() {
    let schema = r#"{"properties": {"a": {"type": "integer"}}}"#;
    assert!(takes(schema, r#"{"a": 1, "a": 2}"#));
    assert!(!takes(schema, r#"{"a": "1", "a": 2}"#) && !takes(schema, r#"{"a": 1, "a": "2"}"#));
}
