//! Generated schemas and values, for the tests of this crate and of those that analyse schemas.

use proptest::prelude::*;
use serde_json::{Value, json};

/// Values from a small set, so schemas often match them.
pub fn value() -> impl Strategy<Value = Value> {
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

/// Schemas of any keywords.
pub fn schema() -> impl Strategy<Value = Value> {
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
