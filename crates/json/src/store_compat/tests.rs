//! The flaws that are found, and their places. A repair leaves none of them, and changes nothing else.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn found(json: &str, flaws: Incompatibilities) -> Option<(IncompatibilityKind, usize, String)> {
    crate::check(json.as_bytes()).unwrap();
    find(json, flaws).map(|flaw| (flaw.kind, flaw.offset, flaw.pointer))
}

#[test]
fn flaws_are_found_with_their_places() {
    let nul = |offset, pointer: &str| Some((IncompatibilityKind::Nul, offset, pointer.to_owned()));
    let key = |offset, pointer: &str| Some((IncompatibilityKind::DuplicateKey, offset, pointer.to_owned()));
    for (json, expected) in [
        (r#""a\u0000""#, nul(2, "")),
        (r#""\\u0000""#, None),
        (r#""\\\u0000""#, nul(3, "")),
        (r#"{"a":[1,{"b":"x\u0000"}]}"#, nul(15, "/a/1/b")),
        (r#"{"x":1,"a\u0000":1}"#, nul(9, "")),
        (r#"{"o":{"x":1,"\u0000":1}}"#, nul(13, "/o")),
        (r#"{"a":1,"b":2,"a":3}"#, key(13, "/a")),
        (r#"{"a":1,"\u0061":3}"#, key(7, "/a")),
        (r#"{"a":{"a":1},"b":{"a":1}}"#, None),
        (r#"[{},{"x":[{"p/q":1,"~":2,"p/q":3}]}]"#, key(25, "/1/x/0/p~1q")),
        (r#"{"a":1,"a":{"b":1,"b":2}}"#, key(7, "/a")),
        (r#"["a","a",{"a":"b","b":"a"}]"#, None),
        (r#"{"":1,"":2}"#, key(6, "/")),
        ("7", None),
    ] {
        assert_eq!(found(json, Incompatibilities::ALL), expected, "{json}");
    }
    assert_eq!(found(r#"{"a":1,"a":"\u0000"}"#, Incompatibilities::NUL), nul(12, "/a"));
    assert_eq!(found(r#"{"a":1,"a":"\u0000"}"#, Incompatibilities::DUPLICATE_KEYS), key(7, "/a"));
    assert_eq!(found(r#"{"a":1,"a":"\u0000"}"#, Incompatibilities::NONE), None);
}

#[test]
fn a_repair_touches_nothing_else() {
    for (json, repaired) in [
        (r#"{"n": 1.50e0, "s" : "a\u0000\u00e9" }"#, Some(r#"{"n": 1.50e0, "s" : "a\ufffd\u00e9" }"#)),
        (r#"{"a": 1 , "b":2, "a" : 3}"#, Some(r#"{"b":2, "a" : 3}"#)),
        (r#"{"a":1,"a":2,"a":3}"#, Some(r#"{"a":3}"#)),
        (r#"{"a":{"b":1,"b":2},"a":0}"#, Some(r#"{"a":0}"#)),
        (r#"{"a":0,"a":{"b":1,"b":2}}"#, Some(r#"{"a":{"b":2}}"#)),
        (r#"{"x\u0000":1,"x\uFFFD":2}"#, Some(r#"{"x\uFFFD":2}"#)),
        (r#"{"a":"\\u0000"}"#, None),
        ("[1, 2]", None),
    ] {
        assert_eq!(repair(json, Incompatibilities::ALL).as_deref(), repaired, "{json}");
    }
}

/// The table of `docs/reference/json.md`.
#[test]
fn repairs_are_those_of_the_page() {
    let page = include_str!("../../../../docs/reference/json.md");
    let table = page.split("| payload | repaired |\n|---|---|\n").nth(1).unwrap();
    let rows: Vec<_> = table.lines().take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 3);
    for row in rows {
        let cells: Vec<_> = row.split('`').collect();
        let [_, payload, _, repaired, _] = cells[..] else { panic!("{row}") };
        assert_eq!(repair(payload, Incompatibilities::ALL).as_deref().unwrap_or(payload), repaired);
    }
}

#[test]
fn many_members_of_one_name_are_quick() {
    let members: Vec<String> = (0..50_000).map(|number| format!("\"k{}\":{number}", number % 25_000)).collect();
    let repaired = repair(&format!("{{{}}}", members.join(",")), Incompatibilities::ALL).unwrap();
    assert_eq!(repaired, format!("{{{}}}", members[25_000..].join(",")));
}

/// JSON texts with few names, so names repeat, and with escapes and blanks.
fn text() -> impl Strategy<Value = String> {
    let string = || {
        prop::sample::select(vec![
            r#""a""#,
            r#""b""#,
            r#""\u0061""#,
            r#""a\u0000""#,
            r#""\\u0000""#,
            r#""\u0000\u0000""#,
            r#""\"""#,
            r#""a\ufffd""#,
        ])
        .prop_map(str::to_owned)
    };
    let leaf =
        prop_oneof![string(), prop::sample::select(vec!["1", "1.50e0", "null", " true "]).prop_map(str::to_owned)];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        let members = prop::collection::vec((string(), inner.clone()), 0..6);
        let members = members.prop_map(|members| {
            let members: Vec<String> = members.into_iter().map(|(name, value)| format!("{name} : {value}")).collect();
            format!("{{ {} }}", members.join(" , "))
        });
        let elements = prop::collection::vec(inner, 0..6).prop_map(|elements| format!("[{}]", elements.join(", ")));
        prop_oneof![members, elements]
    })
}

/// serde_json's result: of members of one name it keeps the last.
fn read(json: &str) -> Value {
    fn normalise(value: Value) -> Value {
        let text = |text: String| text.replace('\0', "\u{fffd}");
        match value {
            Value::String(string) => Value::String(text(string)),
            Value::Array(elements) => Value::Array(elements.into_iter().map(normalise).collect()),
            other => other,
        }
    }
    normalise(serde_json::from_str(json).unwrap())
}

proptest! {
    #[test]
    fn repair_removes_only_flaws(json in text()) {
        let json = crate::check(json.as_bytes()).unwrap();
        match repair(json, Incompatibilities::ALL) {
            None => prop_assert_eq!(find(json, Incompatibilities::ALL), None),
            Some(repaired) => {
                prop_assert!(find(json, Incompatibilities::ALL).is_some());
                prop_assert_eq!(crate::check(repaired.as_bytes()).unwrap(), &repaired);
                prop_assert_eq!(find(&repaired, Incompatibilities::ALL), None);
                prop_assert_eq!(repair(&repaired, Incompatibilities::ALL), None);
            }
        }
    }

    #[test]
    fn a_repair_of_names_changes_no_value(json in text()) {
        let json = crate::check(json.as_bytes()).unwrap();
        let repaired = repair(json, Incompatibilities::DUPLICATE_KEYS).unwrap_or_else(|| json.to_owned());
        prop_assert_eq!(serde_json::from_str::<Value>(&repaired).unwrap(), serde_json::from_str::<Value>(json).unwrap());
    }

    #[test]
    fn a_repair_of_characters_changes_no_other(json in text()) {
        let json = crate::check(json.as_bytes()).unwrap();
        let repaired = repair(json, Incompatibilities::NUL).unwrap_or_else(|| json.to_owned());
        prop_assert_eq!(repaired.len(), json.len());
        if !json.contains('{') {
            prop_assert_eq!(read(&repaired), read(json));
        }
    }
}

proptest! {
    #[test]
    fn only_halves_of_surrogate_pairs_are_replaced(parts in prop::collection::vec(0..6_usize, 0..20)) {
        let units = [r"\ud83d", r"\ude00", "x", r"\\", r"\u00e9", r#"\""#];
        let text: String = parts.iter().map(|part| units[*part]).collect();
        let json = format!(" \"{text}\" ");
        let repaired = crate::replace_surrogates(json.as_bytes());
        prop_assert_eq!(crate::check(repaired.as_bytes()).unwrap(), &repaired);
        prop_assert_eq!(repaired.len() + 2, json.len());
        match crate::check(json.as_bytes()) {
            Ok(valid) => prop_assert_eq!(valid, &repaired),
            Err(error) => prop_assert_eq!(error.kind, crate::JsonErrorKind::Surrogate),
        }
    }
}

#[test]
fn many_halves_take_no_time_to_speak_of() {
    let halves = r"\ud800".repeat(150_000);
    assert_eq!(
        crate::replace_surrogates(format!("\"{halves}\"").as_bytes()),
        format!("\"{}\"", r"\ufffd".repeat(150_000))
    );
}
