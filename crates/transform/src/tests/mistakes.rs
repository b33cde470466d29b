//! Mistakes name the step, the key and the remedy.

use super::super::compile::OPERATIONS;
use super::*;

fn messages(steps: &str) -> Vec<String> {
    let mistakes = Transform::compile(&specs(steps), &Tables::default()).unwrap_err();
    mistakes.iter().map(StepDiagnostic::to_string).collect()
}

#[test]
fn mistake_names_its_place_and_remedy() {
    for (steps, wanted) in [
        (r#"[{"lower": "/a"}, {"drp": "/a"}]"#, "step 2, `drp`: the step names no operation; did you mean `drop`?"),
        (r#"[{"lower": "/a", "whem": "true"}]"#, "step 1, `whem`: `lower` has no such key; did you mean `when`?"),
        (r#"[{"lower": "/a", "by": ","}]"#, "step 1, `by`: `lower` has no such key; its keys are to, when, on_error"),
        (
            r#"[{"lower": "/a", "upper": "/b"}]"#,
            "step 1, `upper`: a step has one operation, and this one also has `lower`; write two steps, one after the other",
        ),
        (r#"[{"drop": "a"}]"#, "step 1, `drop`: a JSON pointer is empty or begins with `/`; write \"/a\""),
        (
            r#"[{"drop": ""}]"#,
            "step 1, `drop`: the whole payload can't be dropped; write filter = \"false\" to drop the event",
        ),
        (r#"[{"drop": 7}]"#, "step 1, `drop`: should be a JSON pointer or a list of them, but is an integer"),
        (r#"[{"set": "/a"}]"#, "step 1: needs a value; add value = \"text\", or to = \"an expression\""),
        (
            r#"[{"set": "/a", "to": "b =", "value": 1}]"#,
            "step 1, `value`: conflicts with the expression in `to`: remove one of them",
        ),
        (
            r#"[{"rename": "/a", "to": "/b"}]"#,
            "step 1, `to`: should be a name, but is a JSON pointer; leave the `/` out, or use `move` to put the value elsewhere",
        ),
        (r#"[{"move": "/a", "to": "/a/b"}]"#, "step 1, `to`: is within the moved value: name a place outside of it"),
        (r#"[{"move": "/a"}]"#, "step 1: `to` is missing; add it, such as to = \"/new/place\""),
        (
            r#"[{"coerce": "/a", "as": "float"}]"#,
            "step 1, `as`: should be one of \"number\", \"integer\", \"string\", \"boolean\", \"time\"",
        ),
    ] {
        assert_eq!(messages(steps), [wanted], "{steps}");
    }
}

#[test]
fn mistake_of_an_option_names_its_remedy() {
    for (steps, wanted) in [
        (
            r#"[{"coerce": "/a", "as": "number", "zone": "UTC"}]"#,
            "step 1, `zone`: is only for as = \"time\": remove it",
        ),
        (
            r#"[{"coerce": "/a", "as": "time", "format": "%H:%M"}]"#,
            "step 1, `format`: has no date: it needs %Y, %m and %d, or %s",
        ),
        (
            r#"[{"parse": "/a", "as": "url", "between": ","}]"#,
            "step 1, `between`: is not used with this `as`: remove it",
        ),
        (
            r#"[{"replace": "/a", "with": "", "pattern": "("}]"#,
            "step 1, `pattern`: this is not a regular expression: unclosed group, at character 1 (`(`)",
        ),
        (r#"[{"replace": "/a", "with": "", "text": ""}]"#, "step 1, `text`: should have at least one character"),
        (
            r#"[{"redact": "/a", "pattern": "(\\w{100}){100}"}]"#,
            "step 1, `pattern`: this regular expression is too large: repeat less, or name fewer characters",
        ),
        (
            r#"[{"redact": "/a", "what": ["mail"]}]"#,
            "step 1, `what`: should be one of \"email\", \"card\", \"ipv4\", \"bearer\"",
        ),
        (
            r#"[{"extract": "/a", "pattern": "(x)"}]"#,
            "step 1: has neither named groups nor `to`; name a group, as in (?<user>\\w+), or add to = \"/place\"",
        ),
        (
            r#"[{"lookup": "/a", "table": "t"}]"#,
            "step 1, `table`: there is no such table; add [tables.t] with the path of a CSV or JSON file",
        ),
        (
            r#"[{"explode": "/a", "to": "/b/-"}]"#,
            "step 1, `to`: names a new element: each event would also have those of all earlier events",
        ),
        (r#"[{"sample": 2}]"#, "step 1, `sample`: should be from 0 (none) to 1 (all)"),
        (r#"[{"dedupe": "/a", "window": "1y"}]"#, "step 1, `window`: should be a time from \"1s\" to \"24h\""),
        (r#"[{"hash": "/a", "digits": 65}]"#, "step 1, `digits`: should be from 8 to 64"),
        (
            r#"[{"lower": ["/a", "/b"], "to": "/c"}]"#,
            "step 1, `to`: one place can't hold the results of several values: write a step for each",
        ),
        (
            r#"[{"lower": "/a", "on_error": "ignore"}]"#,
            "step 1, `on_error`: should be one of \"refuse\", \"skip\", \"mark\"",
        ),
    ] {
        assert_eq!(messages(steps), [wanted], "{steps}");
    }
}

#[test]
fn mistakes_are_reported_together() {
    assert_eq!(messages(r#"[{"lower": 1, "when": "a &&", "on_error": "x"}, {"split": "b", "by": 2}, {}]"#).len(), 6);
}

#[test]
fn a_mistake_in_an_expression_has_its_bytes() {
    let mistakes = Transform::compile(&specs(r#"[{"filter": "a = 1"}]"#), &Tables::default()).unwrap_err();
    assert_eq!(mistakes[0].at, StepLocation::Within("filter".to_owned(), 2..3));
    let mistakes = Transform::compile(&specs(r#"[{"drop": ["/a", "b"]}]"#), &Tables::default()).unwrap_err();
    assert_eq!(mistakes[0].at, StepLocation::Element("drop".to_owned(), 1));
}

#[test]
fn a_transform_has_an_end() {
    let steps = format!("[{}]", vec![r#"{"drop": "/a"}"#; 101].join(","));
    assert_eq!(messages(&steps), ["step 101: a transform has at most 100 steps, but this one has 101"]);
}

#[test]
fn no_key_is_an_operation_too() {
    for known in OPERATIONS {
        for key in known.keys {
            assert!(OPERATIONS.iter().all(|other| other.name != *key), "{key} of {}", known.name);
        }
    }
}
