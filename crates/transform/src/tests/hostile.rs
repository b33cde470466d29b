//! Steps and events that are designed to cost time: operations are counted and bounded.

use limits::{EVENT_BYTES_MAX, TRANSFORM_WORK_MAX};

use super::super::{Context, Scratch};
use super::compiled;
use json::ValueView;

/// The outcome of steps on an event, and the operations that they spend.
fn spent(steps: &str, event: &str) -> (Result<bool, String>, usize) {
    let transform = compiled(steps);
    let (mut windows, mut scratch) = (transform.windows(1), Scratch::default());
    let mut operations = TRANSFORM_WORK_MAX;
    let outcome =
        transform.run_within(&mut operations, ValueView::unread(event), &Context::UNKNOWN, &mut windows, &mut scratch);
    (outcome.map(|outcome| outcome.goes_on()).map_err(|error| error.to_string()), operations)
}

fn is_too_much(outcome: &Result<bool, String>) -> bool {
    outcome.as_ref().is_err_and(|why| why.contains("need more than 16777216 operations"))
        || outcome.as_ref().is_err_and(|why| why.contains("too many steps"))
}

/// The greatest number of steps.
fn many(step: impl Fn(usize) -> String) -> String {
    format!("[{}]", (0..100).map(step).collect::<Vec<_>>().join(","))
}

fn members(count: usize) -> String {
    let members: String = (0..count).map(|number| format!("\"member{number}\":1,")).collect();
    format!("{{{members}\"z\":1}}")
}

fn deep() -> String {
    let deep = format!("{}1{}", "{\"aaaaaaaa\":".repeat(120), "}".repeat(120));
    format!("[{deep}{}]", format!(",{deep}").repeat(600))
}

#[test]
fn hostile_steps_are_rejected_early() {
    let list = format!("[{}1]", "{},".repeat(300_000));
    let names = members(60_000);
    let text = format!("{{\"s\":\"{}\"}}", "a".repeat(EVENT_BYTES_MAX - 20));
    let rows = format!("{{\"l\":[{}0]}}", "0,".repeat(9_999));
    let on_each = vec![r#"{"lower": "/l/x"}"#; 99].join(",");
    let after_explosion = format!("[{{\"explode\":\"/l\"}},{on_each}]");
    for (what, steps, event) in [
        (
            "compares the whole again and again",
            many(|_| r#"{"set": "/x", "to": "payload == payload"}"#.to_owned()),
            &names,
        ),
        ("compares many small objects", many(|_| r#"{"filter": "payload == payload"}"#.to_owned()), &list),
        ("counts the whole again and again", many(|_| r#"{"set": "/-", "to": "size(payload)"}"#.to_owned()), &list),
        (
            "looks for a member among many",
            many(|number| format!(r#"{{"set": "/new{number}", "to": "member1 == 1"}}"#)),
            &names,
        ),
        ("copies the whole again and again", many(|_| r#"{"copy": "/s", "to": "/t"}"#.to_owned()), &text),
        ("hashes the whole again and again", many(|_| r#"{"hash": "/s", "to": "/h"}"#.to_owned()), &text),
        ("flattens what is deep", r#"[{"flatten": "", "arrays": true}]"#.to_owned(), &deep()),
        ("parses again and again", many(|_| r#"{"parse": "/s", "as": "query", "to": "/h"}"#.to_owned()), &text),
        ("searches again and again", many(|_| r#"{"redact": "/s", "pattern": "[ab]*a[ab]{12}x"}"#.to_owned()), &text),
        ("searches on after each match", r#"[{"replace": "/s", "pattern": "a(.*x)?", "with": ""}]"#.to_owned(), &text),
        ("does much on each of many", after_explosion, &rows),
    ] {
        let (outcome, operations) = spent(&steps, event);
        assert!(is_too_much(&outcome), "{what}: {outcome:?} after {operations}");
        assert!(operations <= TRANSFORM_WORK_MAX, "{what}");
        let again = spent(&steps, event);
        assert_eq!((outcome, operations), again, "{what}: on every machine alike");
    }
}

#[test]
fn exhausted_event_is_rejected_despite_on_error() {
    let event = format!("{{\"s\":\"{}\"}}", "a".repeat(EVENT_BYTES_MAX - 20));
    for on_error in ["skip", "mark"] {
        let step = format!(r#"{{"replace": "/s", "pattern": "a(.*x)?", "with": "", "on_error": "{on_error}"}}"#);
        let (outcome, _) = spent(&format!("[{step}]"), &event);
        assert!(is_too_much(&outcome), "what it was to hide would be stored: {outcome:?}");
        let step = format!(r#"{{"set": "/x", "to": "payload == payload", "on_error": "{on_error}"}}"#);
        let (outcome, _) = spent(&many(|_| step.clone()), &members(60_000));
        assert!(is_too_much(&outcome), "{outcome:?}");
    }
}

#[test]
fn a_large_event_passes_through_heavy_steps() {
    let mut text = String::new();
    for number in 0_u32.. {
        if text.len() > EVENT_BYTES_MAX - 150_000 {
            break;
        }
        let (high, low) = (number / 256 % 256, number % 256);
        text.push_str(&format!("request {number} of 192.0.{high}.{low} by user{number}@example.org took 17 ms; "));
    }
    let rows: Vec<_> =
        (0..2_000).map(|number| format!("{{\"id\":{number},\"host\":\"WEB-01\",\"ms\":{number}}}")).collect();
    let event = format!("{{\"rows\":[{}],\"text\":\"{text}\"}}", rows.join(","));
    let steps = r#"[
        {"redact": "/text", "what": ["email", "ipv4"]},
        {"extract": "/text", "pattern": "request (?<first>[0-9]+) of"},
        {"hash": "/text", "to": "/digest"},
        {"drop": "/text"},
        {"explode": "/rows"},
        {"lower": "/rows/host"},
        {"set": "/slow", "to": "rows.ms > 900"}
    ]"#;
    let (outcome, operations) = spent(steps, &event);
    assert_eq!(outcome, Ok(true), "{operations}");
    let access = r#"{"status":200,"bytes":1,"referrer":null,"method":"GET","client":"192.0.2.1","agent":"a"}"#;
    let five = r#"[{"drop": "/referrer", "when": "referrer == null"}, {"set": "/slow", "to": "bytes > 1000000"},
        {"rename": "/agent", "to": "user_agent"}, {"lower": "/method"}, {"hash": "/client"}]"#;
    let (outcome, operations) = spent(five, access);
    assert!(outcome.is_ok() && operations < TRANSFORM_WORK_MAX / 10_000, "{operations}");
}
