//! What holds for every schema and every document.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{compile, compile_with};
use crate::schema::{Documents, Samples, differences};

/// Values from so few that schemas often meet them.
pub(super) fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..6).prop_map(Value::from),
        Just(json!(1.5)),
        "[ab]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[ab]", inner, 0..3).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn keyword() -> impl Strategy<Value = Value> {
    let kinds = prop::sample::select(vec!["null", "boolean", "integer", "number", "string", "array", "object"]);
    prop_oneof![
        kinds.clone().prop_map(|kind| json!({"type": kind})),
        prop::collection::vec(kinds, 2).prop_map(|kinds| json!({"type": kinds})),
        (-3_i64..6, prop::sample::select(vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]))
            .prop_map(|(limit, keyword)| json!({keyword: limit})),
        (1_i64..4).prop_map(|divisor| json!({"multipleOf": divisor})),
        (
            0_u64..4,
            prop::sample::select(vec![
                "minLength",
                "maxLength",
                "minItems",
                "maxItems",
                "minProperties",
                "maxProperties"
            ])
        )
            .prop_map(|(limit, keyword)| json!({keyword: limit})),
        prop::sample::select(vec!["a", "^b", "^[ab]$"]).prop_map(|pattern| json!({"pattern": pattern})),
        prop::collection::vec(value(), 1..4).prop_map(|values| json!({"enum": values})),
        value().prop_map(|value| json!({"const": value})),
        Just(json!({"uniqueItems": true})),
        Just(json!({"required": ["a"]})),
        Just(json!({"dependentRequired": {"a": ["b"]}})),
        Just(json!({"additionalProperties": false})),
        Just(json!({"unevaluatedProperties": false})),
        Just(json!({"unevaluatedItems": false})),
    ]
}

pub(super) fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![1 => any::<bool>().prop_map(Value::from), 6 => keyword()];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..3);
        let applied = prop_oneof![
            (list, prop::sample::select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]))
                .prop_map(|(list, keyword)| json!({keyword: list})),
            (
                inner.clone(),
                prop::sample::select(vec![
                    "not",
                    "items",
                    "contains",
                    "additionalProperties",
                    "propertyNames",
                    "if",
                    "then",
                    "else"
                ])
            )
                .prop_map(|(inner, keyword)| json!({keyword: inner})),
            (inner.clone(), "[ab]").prop_map(|(inner, name)| json!({"properties": {name: inner}})),
            (inner.clone(), "[ab]").prop_map(|(inner, name)| json!({"patternProperties": {name: inner}})),
            inner.prop_map(|inner| json!({"dependentSchemas": {"a": inner}})),
        ];
        prop::collection::vec(prop_oneof![applied, keyword()], 1..4).prop_map(|parts| {
            let members = parts.into_iter().filter_map(|part| part.as_object().cloned()).flatten();
            Value::Object(members.collect())
        })
    })
}

proptest! {
    #[test]
    fn a_refusal_has_a_reason_that_stands_in_the_document(schema in schema(), value in value()) {
        let (schema, text) = (compile(&schema.to_string()), value.to_string());
        if let Err(found) = schema.check(&text) {
            prop_assert!(!found.list.is_empty());
            for violation in found.list {
                prop_assert!(value.pointer(&violation.pointer).is_some(), "{violation:?} of {text}");
            }
        }
    }

    #[test]
    fn where_nothing_differs_nothing_would_be_refused(old in schema(), new in schema(), values in prop::collection::vec(value(), 8)) {
        let (before, after) = (compile(&old.to_string()), compile(&new.to_string()));
        if !differences(&before, &after).is_empty() {
            return Ok(());
        }
        for value in values {
            let text = value.to_string();
            prop_assert!(before.check(&text).is_err() || after.check(&text).is_ok(), "{old} takes {text}, {new} doesn't");
        }
    }

    #[test]
    fn a_schema_differs_in_nothing_from_itself(schema in schema()) {
        let schema = compile(&schema.to_string());
        let found = differences(&schema, &schema);
        prop_assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_schema_of_samples_takes_all_of_them(values in prop::collection::vec(value(), 1..30), ranges in any::<bool>()) {
        let mut samples = Samples::default();
        values.iter().for_each(|value| samples.add(&value.to_string()));
        let schema = samples.schema(ranges);
        let compiled = compile(&schema);
        for value in values {
            prop_assert!(compiled.check(&value.to_string()).is_ok(), "{value} by {schema}");
        }
    }

    #[test]
    fn no_text_panics(schema in r#"[\[\]{}",:0-9a$e.#/ -]{0,30}"#, payload in r#"[\[\]{}",:0-9a\\ue.-]{0,30}"#) {
        let _ = compile_with(&schema, &Documents::new());
        // Not even one that was never checked.
        let _ = compile(r#"{"properties": {"a": {"minimum": 1, "minLength": 1}}, "items": {"type": "integer"}, "uniqueItems": true}"#).check(&payload);
    }

    #[test]
    fn no_schema_panics(keyword in "(type|\\$ref|\\$id|properties|required|items|enum|pattern|minimum|multipleOf|allOf|if|contains|dependencies|\\$dynamicRef|\\$anchor)", value in value(), payload in value()) {
        if let Ok(schema) = compile_with(&json!({keyword: value}).to_string(), &Documents::new()) {
            let _ = schema.check(&payload.to_string());
        }
    }
}
