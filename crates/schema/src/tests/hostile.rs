//! Schemas and documents that are designed to cost time or stack: rejected when the schema is compiled, or stopped at a bound.

use limits::{JSON_DEPTH_MAX, SCHEMA_CHAIN_MAX};

use super::{compile, compile_with};
use crate::{Documents, ValidationError};
use json::ValueIndex;

fn is_ended(schema: &str, payload: &str) -> bool {
    let found = compile(schema).check(payload);
    found.is_err_and(|violations| violations.list[0].expected.contains("too many"))
}

#[test]
fn exponential_schema_stops_at_the_limit() {
    let doubled = |n| format!(r##""{n}":{{"anyOf":[{{"$ref":"#/$defs/{0}"}},{{"$ref":"#/$defs/{0}"}}]}},"##, n + 1);
    let definitions: String = (0..30).map(doubled).collect();
    assert!(is_ended(&format!(r##"{{"$ref":"#/$defs/0","$defs":{{{definitions}"30":false}}}}"##), "1"));
}

#[test]
fn too_few_steps_leave_the_result_undecided() {
    let schema = compile(r#"{"items": {"type": "integer"}}"#);
    let numbers = format!("[{}1]", "1,".repeat(1_000));
    let wrong = numbers.replace(",1]", ",\"\"]");
    let check = |payload: &str, mut steps: usize| {
        let mut values = ValueIndex::default();
        (schema.check_within(values.read(payload), &mut steps), steps)
    };
    let (checked, left) = check(&numbers, 10_000);
    assert!(checked.is_ok() && (1..9_000).contains(&left), "{checked:?} {left}");
    assert_eq!(check(&numbers, 10_000 - left), (Ok(()), 0));
    assert_eq!(check(&numbers, 10_000 - left - 1).0, Err(ValidationError::OutOfSteps));
    assert!(matches!(check(&wrong, 10_000), (Err(ValidationError::Wrong(_)), _)));
    assert_eq!(
        check(&wrong, 1_500).0,
        Err(ValidationError::OutOfSteps),
        "that there is a fault was found, and not yet where"
    );
}

#[test]
fn costly_pattern_stops_at_the_limit() {
    let text = format!("\"{}\"", "01".repeat(500_000));
    assert!(is_ended(r#"{"pattern": "[01]*1[01]{2000}x"}"#, &text));
    let deep = r#"{"pattern": "((((a{9}){9}){9}){9}){99}"}"#;
    assert!(compile_with(deep, &Documents::new()).is_err());
}

#[test]
fn long_chains_of_references_are_rejected() {
    let chain = |length: usize| {
        let links: String = (0..length).map(|n| format!(r##""{n}":{{"$ref":"#/$defs/{}"}},"##, n + 1)).collect();
        compile_with(&format!(r##"{{"$ref":"#/$defs/0","$defs":{{{links}"{length}":{{}}}}}}"##), &Documents::new())
    };
    assert!(chain(SCHEMA_CHAIN_MAX - 2).is_ok());
    assert!(chain(SCHEMA_CHAIN_MAX).unwrap_err()[0].message.contains("in a row"));
    assert!(chain(20_000).is_err());
}

#[test]
fn recursion_ends_with_document_or_depth_limit() {
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    let one = r##"{"type": "array", "items": {"$ref": "#"}}"##;
    assert!(compile(one).check(&deep(JSON_DEPTH_MAX)).is_ok());
    let links: String = (0..40).map(|n| format!(r##""{n}":{{"$ref":"#/$defs/{}"}},"##, n + 1)).collect();
    let many = format!(r##"{{"items":{{"$ref":"#/$defs/0"}},"$defs":{{{links}"40":{{"$ref":"#"}}}}}}"##);
    assert!(compile(&many).check(&deep(5)).is_ok());
    assert!(is_ended(&many, &deep(JSON_DEPTH_MAX)));
    let dynamic = r##"{"$dynamicAnchor": "a", "anyOf": [{"$dynamicRef": "#a"}, {}]}"##;
    assert!(is_ended(dynamic, "1"), "it refers to itself by a way that is known only when it is followed");
}

#[test]
fn large_documents_are_checked() {
    let numbers = format!("[{}1]", "1,".repeat(500_000));
    assert!(compile(r#"{"items": {"type": "integer", "minimum": 0}}"#).check(&numbers).is_ok());
    assert!(compile(r#"{"uniqueItems": true}"#).check(&numbers).is_err());
    let members: String = (0..50_000).map(|n| format!("\"member{n}\":{n},")).collect();
    let members = format!("{{{members}\"z\":1}}");
    assert!(compile(r#"{"propertyNames": {"minLength": 1}, "unevaluatedProperties": true}"#).check(&members).is_ok());
}

#[test]
fn too_many_schemas_are_rejected() {
    let many: String = (0..60_000).map(|n| format!("\"{n}\":{{}},")).collect();
    let mistakes = compile_with(&format!("{{\"properties\":{{{many}\"z\":{{}}}}}}"), &Documents::new()).unwrap_err();
    assert!(mistakes[0].message.contains("more than"), "{mistakes:?}");
}
