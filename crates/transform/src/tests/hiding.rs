//! A step that hides leaves no trace of the hidden value, regardless of which of several members of one name a parser
//! chooses.

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::*;
use expression::Expression;
use json::JsonPointer;
use json::ValueIndex;
use timestamp::TimeRule;

const SECRET: &str = "ann@example.org";
const STEPS: &[(&str, &str)] = &[
    ("drop", r#"[{"drop": "/a/b"}]"#),
    ("hash", r#"[{"hash": "/a/b", "key": "k"}]"#),
    ("mask", r#"[{"mask": "/a/b", "on_error": "skip"}]"#),
    ("redact", r#"[{"redact": "/a/b", "what": ["email"]}]"#),
    ("keep", r#"[{"keep": ["/c/d", "/e"]}]"#),
    ("truncate", r#"[{"truncate": "/a/b", "characters": 2, "on_error": "skip"}]"#),
    ("replace", r#"[{"replace": "/a/b", "pattern": ".+@.+", "with": "-", "on_error": "skip"}]"#),
    ("move", r#"[{"move": "/a/b", "to": "/c/x"}, {"drop": "/c"}]"#),
    ("rename", r#"[{"rename": "/a/b", "to": "x"}, {"drop": "/a/x"}]"#),
];

#[test]
fn hiding_step_keeps_only_last_repeated_members() {
    for (steps, event, becomes) in [
        (r#"[{"drop": "/a/b"}]"#, r#"{"a":{"b":1},"x":2,"a":{}}"#, r#"{"x":2,"a":{}}"#),
        (r#"[{"drop": "/a/b"}]"#, r#"{"a":{"b":1},"a":1}"#, r#"{"a":1}"#),
        (r#"[{"drop": "/a/b"}]"#, r#"{"a":{"b":1},"\u0061":{"b":2,"b":3,"c":4}}"#, r#"{"\u0061":{"c":4}}"#),
        (r#"[{"drop": "/a/b/c"}]"#, r#"{"a":{"b":{"c":1},"b":2}}"#, r#"{"a":{"b":2}}"#),
        (r#"[{"drop": "/l/0/b"}]"#, r#"{"l":[{"b":{"c":1},"b":2},{"b":1,"b":2}]}"#, r#"{"l":[{},{"b":1,"b":2}]}"#),
        (r#"[{"hash": "/a", "digits": 9}]"#, r#"{"a":"x","a":null}"#, r#"{"a":null}"#),
        (r#"[{"mask": "/a/b"}]"#, r#"{"a":{"b":"12"},"a":{"b":"34"}}"#, r#"{"a":{"b":"**"}}"#),
        (r#"[{"redact": "/a", "what": ["email"]}]"#, r#"{"a":"a@b.org","a":7}"#, r#"{"a":7}"#),
        (r#"[{"keep": "/a/b"}]"#, r#"{"a":{"b":1},"x":0,"a":{"b":2,"b":3}}"#, r#"{"a":{"b":3}}"#),
        (r#"[{"keep": ["/a/b", "/x"]}]"#, r#"{"a":{"b":1},"x":0,"a":2}"#, r#"{"x":0}"#),
        (r#"[{"keep": ["/a"]}]"#, r#"{"a":1,"a":{"b":2,"b":3}}"#, r#"{"a":{"b":2,"b":3}}"#),
    ] {
        assert_eq!(run(steps, event).as_deref(), Ok(becomes), "{steps} {event}");
    }
}

#[test]
fn other_steps_and_other_names_keep_their_bytes() {
    for (steps, event) in [
        (r#"[{"lower": "/a/b"}, {"default": "/a/b", "value": 1}]"#, r#"{"a":{"b":"X"},"a":{"b":"x"}}"#),
        (r#"[{"drop": "/a/b"}]"#, r#"{"c":1,"c":2,"a":{"d":1,"d":2}}"#),
        (r#"[{"drop": "/a/b", "when": "has(c)"}]"#, r#"{"a":{"b":1},"a":{"b":2}}"#),
    ] {
        assert_eq!(run(steps, event), Ok(format!("= {event}")), "{steps}");
    }
}

#[test]
fn repeated_name_in_hiding_condition_is_rejected() {
    let refused = |when: &str, event: &str| {
        let steps = format!(r#"[{{"drop": "/secret", "when": "{when}", "on_error": "skip"}}]"#);
        run(&steps, event)
            .is_err_and(|why| why.contains("a name occurs twice in the values that this step's condition"))
    };
    for (when, event) in [
        ("!public", r#"{"secret":1,"public":false,"public":true}"#),
        ("!public", r#"{"secret":1,"public":false,"pub\u006cic":true}"#),
        ("!a.public", r#"{"secret":1,"a":{"public":false},"a":{"public":true}}"#),
        ("!a.public", r#"{"secret":1,"a":{"public":false,"public":true}}"#),
        ("has(a.x)", r#"{"secret":1,"a":{"x":1},"a":{}}"#),
        ("l.exists(i, i.p)", r#"{"secret":1,"l":[{"p":true,"p":false}]}"#),
        ("size(payload) > 1", r#"{"secret":1,"b":{"c":1,"c":2}}"#),
        ("a == {'b': 1} || true", r#"{"secret":1,"a":{"b":1,"b":2}}"#),
    ] {
        if when.parse::<Expression>().is_ok() {
            assert!(refused(when, event), "{when} {event}");
        }
    }
    for (when, event) in [
        ("!public", r#"{"secret":1,"secret":2,"x":{"public":1,"public":2},"public":true}"#),
        ("has(a.x)", r#"{"a":{"x":{"y":1,"y":2}}}"#),
    ] {
        assert!(!refused(when, event), "{when} {event}");
    }
    // A step that hides nothing reads the last.
    let steps = r#"[{"set": "/level", "value": 1, "when": "public"}]"#;
    assert_eq!(
        run(steps, r#"{"public":false,"public":true}"#).as_deref(),
        Ok(r#"{"public":false,"public":true,"level":1}"#)
    );
}

/// Every text that some parser may find at the path: each member of a name counts.
fn found_at<'j>(json: &'j str, path: &[&str]) -> Vec<&'j str> {
    let Some((name, rest)) = path.split_first() else { return vec![json] };
    let named = json::parts::members(json).filter(|member| member.name() == *name);
    named.flat_map(|member| found_at(member.value.trim(), rest)).collect()
}

fn document() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        format!("\"{SECRET}\""),
        "\"ann\\u0040example.org\"".to_owned(),
        "null".to_owned(),
        "1".to_owned(),
        "[]".to_owned(),
    ]);
    let name = prop::sample::select(vec!["\"a\"", "\"\\u0061\"", "\"b\"", "\"\\u0062\"", "\"c\"", "\"x\""]);
    let object = |value: BoxedStrategy<String>| {
        prop::collection::vec((name.clone(), value), 0..5).prop_map(|members| {
            let members: Vec<_> = members.iter().map(|(name, value)| format!("{name} :{value}")).collect();
            format!("{{{}}}", members.join(" ,"))
        })
    };
    let inner = prop_oneof![leaf.clone(), object(leaf.boxed())].boxed();
    object(prop_oneof![inner.clone(), object(inner)].boxed())
}

proptest! {
    #[test]
    fn no_parser_sees_hidden_values((name, steps) in prop::sample::select(STEPS), event in document()) {
        let Ok(becomes) = run(steps, &event) else { return Ok(()) };
        let becomes = becomes.trim_start_matches("= ");
        prop_assert!(json::check(becomes.as_bytes()).is_ok());
        for found in found_at(becomes, &["a", "b"]) {
            match name {
                "drop" | "keep" | "move" | "rename" => prop_assert!(false, "{} {}", event, becomes),
                // A value that is no text is left to `on_error`; the last member is all that there is.
                "mask" | "truncate" | "replace" if !found.starts_with('"') => {}
                _ => prop_assert!(!found.contains(SECRET) && !found.contains("u0040"), "{} {}", event, becomes),
            }
        }
        if name == "keep" {
            prop_assert!(!becomes.contains("\"x\""));
        }
    }
}

#[test]
fn readers_use_the_last_repeated_member() {
    for payload in [
        r#"{"at":{"t":"2020-01-01T00:00:00Z"},"at":{"t":"2020-01-01T00:00:00Z","t":"2026-01-01T00:00:00Z"}}"#,
        r#"{"at":1,"\u0061t":{"t":0,"\u0074":"2026-01-01T00:00:00Z"}}"#,
    ] {
        let pointer: JsonPointer = "/at/t".parse().unwrap();
        let last = "\"2026-01-01T00:00:00Z\"";
        assert_eq!(pointer.lookup(payload), Some(last));
        assert_eq!(TimeRule::from(pointer).read(payload), text::rfc3339::parse("2026-01-01T00:00:00Z").map(Some));
        assert_eq!("at.t == '2026-01-01T00:00:00Z'".parse::<Expression>().unwrap().holds(payload), Ok(true));
        let mut values = ValueIndex::default();
        let view = values.read(payload);
        let found = view.member(0, "at").and_then(|at| view.member(at, "t"));
        assert_eq!(found.map(|at| view.raw(at)), Some(last));
        let serde: std::collections::BTreeMap<String, &RawValue> = serde_json::from_str(payload).unwrap();
        assert!(serde["at"].get().ends_with("2026-01-01T00:00:00Z\"}"));
    }
}
