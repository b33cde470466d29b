//! Any steps on any JSON.

use proptest::prelude::*;

use super::*;
use crate::json;
use crate::json::tests::json_text;
use crate::values::{Values, View};

/// Documents with the names that the steps ask for, and any others.
pub(super) fn document() -> impl Strategy<Value = String> {
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

fn pointer() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec!["a", "b", "c", "0", "1", "-", "a.b", "", "x y", "new"]);
    prop::collection::vec(part, 0..4).prop_map(|parts| parts.iter().map(|part| format!("/{part}")).collect())
}

/// What stands behind the pointer in a step.
const OPTIONS: &[(&str, &str)] = &[
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

pub(super) fn step() -> impl Strategy<Value = String> {
    let on_error = prop::sample::select(vec!["refuse", "skip", "mark", "mark"]);
    (prop::sample::select(OPTIONS), pointer(), on_error).prop_map(|((name, options), pointer, on_error)| {
        let pointer = if name == "drop" && pointer.is_empty() { "/a" } else { pointer.as_str() };
        format!(r#"{{"{name}": "{pointer}", {options}, "on_error": "{on_error}"}}"#)
    })
}

pub(super) fn tables() -> Tables {
    let mut tables = Tables::default();
    tables.add_json("t", r#"{"42": {"x": 1}, "": []}"#).unwrap();
    tables
}

/// What a run gives, as text, after everything in it was checked.
fn checked(outcome: Result<Outcome<'_>, StepError>, event: &str) -> Result<Result<Vec<String>, String>, TestCaseError> {
    let events = match outcome {
        Ok(Outcome::Unchanged) => vec![event.to_owned()],
        Ok(Outcome::Changed(changed)) => vec![changed.to_owned()],
        Ok(Outcome::Filtered(_)) => vec![],
        Ok(Outcome::Several(several)) => several.events.into_iter().map(|part| part.payload).collect(),
        Err(error) => return Ok(Err(error.to_string())),
    };
    for event in &events {
        prop_assert_eq!(json::check(event.as_bytes()), Ok(event.as_str()));
    }
    Ok(Ok(events))
}

proptest! {
    #[test]
    fn what_comes_out_is_json_and_a_trace_gives_the_same(
        event in document(),
        steps in prop::collection::vec(step(), 1..6),
    ) {
        let Ok(event) = json::check(event.as_bytes()) else { return Ok(()) };
        let steps = format!("[{}]", steps.join(","));
        let specs: Vec<StepSpec> = serde_json::from_str(&steps).unwrap();
        // Some places make no sense, such as a move into itself.
        let Ok(transform) = Transform::compile(&specs, &tables()) else { return Ok(()) };
        let (mut windows, mut scratch) = (transform.windows(1), Scratch::default());
        let ran = checked(transform.run(event, &Context::UNKNOWN, &mut windows, &mut scratch), event)?;

        let (mut windows, mut last) = (transform.windows(1), Vec::new());
        let each = &mut |step: Traced| last.push(step);
        let traced = checked(transform.trace(event, &Context::UNKNOWN, &mut windows, &mut scratch, &|| Duration::ZERO, each), event)?;
        prop_assert_eq!(&ran, &traced);
        for step in &last {
            let payload = step.payload.as_deref().unwrap();
            prop_assert!(json::check(payload.as_bytes()).is_ok(), "{}", payload);
        }
        let is_one = !last.iter().any(|step| matches!(step.did, Did::Exploded(_)));
        if let (true, Ok([event]), Some(last)) = (is_one, ran.as_deref(), last.last()) {
            prop_assert_eq!(Some(event), last.payload.as_ref());
        }
    }

    #[test]
    fn it_makes_no_difference_whether_the_values_were_read_before(
        event in document(),
        steps in prop::collection::vec(step(), 1..6),
    ) {
        let Ok(event) = json::check(event.as_bytes()) else { return Ok(()) };
        let specs: Vec<StepSpec> = serde_json::from_str(&format!("[{}]", steps.join(","))).unwrap();
        let Ok(transform) = Transform::compile(&specs, &tables()) else { return Ok(()) };
        let (mut values, mut scratch) = (Values::default(), Scratch::default());
        let [unread, read] = [View::unread(event), values.read(event)].map(|payload| {
            let (mut windows, mut operations) = (transform.windows(1), TRANSFORM_WORK_MAX);
            let outcome = transform.run_within(&mut operations, payload, &Context::UNKNOWN, &mut windows, &mut scratch);
            checked(outcome, event).map(|outcome| (outcome, operations))
        });
        prop_assert_eq!(unread?, read?);
    }

    #[test]
    fn steps_give_the_same_in_one_transform_as_in_two(
        event in document(),
        steps in prop::collection::vec(step(), 2..8),
        cut: prop::sample::Index,
    ) {
        let Ok(event) = json::check(event.as_bytes()) else { return Ok(()) };
        let cut = cut.index(steps.len());
        let of = |steps: &[String]| {
            let steps = format!("[{}]", steps.join(",")).replace("\"mark\"", "\"skip\"");
            Transform::compile(&serde_json::from_str::<Vec<StepSpec>>(&steps).unwrap(), &tables())
        };
        let (Ok(whole), Ok(first), Ok(second)) = (of(&steps), of(&steps[..cut]), of(&steps[cut..])) else { return Ok(()) };
        let one = |transform: &Transform, event: &str| {
            let (mut windows, mut scratch) = (transform.windows(1), Scratch::default());
            match transform.run(event, &Context::UNKNOWN, &mut windows, &mut scratch) {
                Ok(Outcome::Unchanged) => Some(event.to_owned()),
                Ok(Outcome::Changed(changed)) => Some(changed.to_owned()),
                _ => None,
            }
        };
        if let Some(between) = one(&first, event) {
            prop_assert_eq!(one(&whole, event), one(&second, &between));
        }
    }

    #[test]
    fn steps_that_touch_nothing_leave_every_byte(event in document()) {
        let Ok(event) = json::check(event.as_bytes()) else { return Ok(()) };
        let transform = compiled(r#"[{"drop": "/q/r"}, {"lower": "/q"}, {"filter": "payload == payload"}, {"copy": "/q", "to": "/a"}]"#);
        let (mut windows, mut scratch) = (transform.windows(1), Scratch::default());
        let outcome = transform.run(event, &Context::UNKNOWN, &mut windows, &mut scratch);
        prop_assert_eq!(outcome, Ok(Outcome::Unchanged));
    }

    #[test]
    fn what_is_put_is_found_and_what_is_dropped_is_not(event in document(), at in pointer()) {
        let Ok(event) = json::check(event.as_bytes()) else { return Ok(()) };
        let Ok(changed) = run(&format!(r#"[{{"set": "{at}", "value": [7]}}]"#), event) else { return Ok(()) };
        let changed = changed.strip_prefix("= ").unwrap_or(&changed);
        if !at.contains('-') {
            let pointer: crate::pointer::JsonPointer = at.parse().unwrap();
            prop_assert_eq!(pointer.lookup(changed), Some("[7]"));
            if !at.is_empty() {
                let dropped = run(&format!(r#"[{{"drop": "{at}"}}]"#), changed).unwrap();
                let is_element = changed.contains('[');
                prop_assert!(pointer.lookup(&dropped).is_none() || is_element);
            }
        }
    }

    #[test]
    fn no_text_panics_where_it_is_read(text in "\\PC{0,40}|[a-z=&%+'\"{}:,/\\[\\]\\\\ 0-9-]{0,40}") {
        let event = serde_json::to_string(&text).unwrap();
        for (name, options) in OPTIONS.iter().filter(|(name, _)| !matches!(*name, "drop" | "rename" | "enrich" | "lookup")) {
            let steps = format!(r#"[{{"{name}": "", {options}, "on_error": "skip"}}]"#);
            let specs: Vec<StepSpec> = serde_json::from_str(&steps).unwrap();
            let Ok(transform) = Transform::compile(&specs, &tables()) else { continue };
            let (mut windows, mut scratch) = (transform.windows(1), Scratch::default());
            checked(transform.run(&event, &Context::UNKNOWN, &mut windows, &mut scratch), &event)?.unwrap();
        }
    }

    #[test]
    fn a_pattern_replaces_what_the_library_replaces(text in "[ab]{0,12}", pattern in "(a|b|ab|)(a|b|\\*|\\$)?") {
        let regex = regex::Regex::new(&pattern);
        prop_assume!(regex.is_ok());
        let steps = format!(r#"[{{"replace": "", "pattern": {}, "with": "<$0>"}}]"#, serde_json::to_string(&pattern).unwrap());
        let event = serde_json::to_string(&text).unwrap();
        let replaced = serde_json::to_string(&regex.unwrap().replace_all(&text, "<$0>")).unwrap();
        let ran = run(&steps, &event).unwrap();
        prop_assert_eq!(ran.strip_prefix("= ").unwrap_or(&ran), replaced);
    }

    #[test]
    fn no_table_panics(text in "([a-z,\"\n\r]|\\PC){0,40}") {
        let mut tables = Tables::default();
        let _ = tables.add_csv("t", &text, None, None);
        let _ = tables.add_json("u", &text);
    }
}
