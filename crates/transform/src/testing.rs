//! Generated documents and steps, for the tests of this crate and of crates that follow steps.

use json::testing::json_text;
use proptest::prelude::*;

use crate::Tables;

/// Documents with the names that the steps use, and any others.
pub fn document() -> impl Strategy<Value = String> {
    let string = prop::sample::select(vec![
        "\"a=1 b=2\"",
        "\" Text, with, commas \"",
        "\"2026-11-22T10:00:00Z\"",
        "\"{'a': [1]}\"",
        "\"https://example.org:80/a?b=c\"",
        "\"\\u00e9\\ud83d\\ude00\\\"\"",
        "\"42\"",
    ]);
    let leaf = prop_oneof![json_text(), string.prop_map(str::to_owned)];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec((name(), inner.clone()), 0..5).prop_map(|members| {
                let members: Vec<_> = members.iter().map(|(name, value)| format!("{name} :{value}")).collect();
                format!("{{{}}}", members.join(" ,"))
            }),
            prop::collection::vec(inner, 0..4).prop_map(|elements| format!("[ {}]", elements.join(","))),
        ]
    })
}

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "\"a\"",
        "\"b\"",
        "\"c\"",
        "\"\\u0061\"",
        "\"a.b\"",
        "\"\"",
        "\"x y\"",
        "\"transform_errors\"",
    ])
}

/// Pointers that the documents often have.
pub fn pointer() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec!["a", "b", "c", "0", "1", "-", "a.b", "", "x y", "new"]);
    prop::collection::vec(part, 0..4).prop_map(|parts| parts.iter().map(|part| format!("/{part}")).collect())
}

/// The rest of a step after the pointer.
pub const OPTIONS: &[(&str, &str)] = &[
    ("set", r#""value": {"x": [1.5, null]}"#),
    ("set", r#""to": "a == b || c != null""#),
    ("set", r#""to": "payload""#),
    ("set", r#""to": "a""#),
    ("set", r#""to": "size(a)""#),
    ("default", r#""value": "none""#),
    ("enrich", r#""from": "received_time""#),
    ("rename", r#""to": "b""#),
    ("rename", r#""to": "\"é\n""#),
    ("move", r#""to": "/b""#),
    ("move", r#""to": """#),
    ("copy", r#""to": "/a/b""#),
    ("copy", r#""to": "/c/-""#),
    ("drop", r#""when": "a != 1""#),
    ("keep", r#""when": "true""#),
    ("lower", r#""when": "true""#),
    ("upper", r#""to": "/c""#),
    ("trim", r#""when": "b == null""#),
    ("replace", r#""text": "a", "with": "\"\u0000""#),
    ("replace", r#""pattern": "(?<x>.)|$", "with": "$x<>""#),
    ("extract", r#""pattern": "(?<a>\\w+)|(?<b>\\W)""#),
    ("split", r#""by": " ""#),
    ("join", r#""by": "\\""#),
    ("truncate", r#""characters": 3, "end": "…""#),
    ("truncate", r#""bytes": 2"#),
    ("truncate", r#""elements": 1"#),
    ("coerce", r#""as": "number""#),
    ("coerce", r#""as": "integer""#),
    ("coerce", r#""as": "string""#),
    ("coerce", r#""as": "boolean""#),
    ("coerce", r#""as": "time", "write": "unix_ns""#),
    ("coerce", r#""as": "time", "format": "unix""#),
    ("parse", r#""as": "json""#),
    ("parse", r#""as": "json", "single_quotes": true"#),
    ("parse", r#""as": "key_value""#),
    ("parse", r#""as": "url""#),
    ("parse", r#""as": "query""#),
    ("parse", r#""as": "user_agent""#),
    ("parse", r#""as": "access_log""#),
    ("flatten", r#""when": "true""#),
    ("flatten", r#""arrays": true"#),
    ("unflatten", r#""when": "true""#),
    ("hash", r#""digits": 9"#),
    ("mask", r#""keep_first": 1"#),
    ("redact", r#""pattern": "[a-z0-9]", "with": "\\""#),
    ("lookup", r#""table": "t", "otherwise": [1]"#),
    ("dedupe", r#""window": "1m""#),
    ("explode", r#""when": "true""#),
    ("explode", r#""to": "/a""#),
];

/// Steps of any kind, as JSON.
pub fn step() -> impl Strategy<Value = String> {
    let on_error = prop::sample::select(vec!["refuse", "skip", "mark", "mark"]);
    (prop::sample::select(OPTIONS), pointer(), on_error).prop_map(|((name, options), pointer, on_error)| {
        let pointer = if name == "drop" && pointer.is_empty() { "/a" } else { pointer.as_str() };
        format!(r#"{{"{name}": "{pointer}", {options}, "on_error": "{on_error}"}}"#)
    })
}

/// The tables that the steps use.
#[must_use]
pub fn tables() -> Tables {
    let mut tables = Tables::default();
    tables.add_json("t", r#"{"42": {"x": 1}, "": []}"#).expect("it is a table");
    tables
}
