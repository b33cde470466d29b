//! Unchanged values, repeated names, paths that end, depth and length.

use limits::{EVENT_BYTES_MAX, EXPLODE_MAX, JSON_DEPTH_MAX, TRANSFORM_BYTES_MAX};

use super::*;

#[test]
fn untouched_values_are_copied_unchanged() {
    let event = "{ \"a\" : 1.50e+01,\"b\":[ 1 , {\"x\" :\t2} ] , \"c\":{\"d\": {\"e\" : \"\\u0041\\/\"} },\"f\":1}";
    for (steps, becomes) in [
        (
            r#"[{"drop": "/nothing"}, {"lower": "/g"}, {"default": "/a", "value": 0}, {"keep": ["/a", "/b", "/c", "/f"]}]"#,
            "=",
        ),
        (r#"[{"set": "/f", "value": 1}, {"coerce": "/a", "as": "number"}, {"rename": "/x", "to": "y"}]"#, "="),
        (
            r#"[{"drop": "/f"}]"#,
            "{\"a\" : 1.50e+01,\"b\":[ 1 , {\"x\" :\t2} ],\"c\":{\"d\": {\"e\" : \"\\u0041\\/\"} }}",
        ),
        (
            r#"[{"set": "/c/d/n", "value": null}]"#,
            "{\"a\" : 1.50e+01,\"b\":[ 1 , {\"x\" :\t2} ],\"c\":{\"d\":{\"e\" : \"\\u0041\\/\",\"n\":null}},\"f\":1}",
        ),
        (
            r#"[{"set": "/b/1/x", "value": 3}]"#,
            "{\"a\" : 1.50e+01,\"b\":[1,{\"x\":3}],\"c\":{\"d\": {\"e\" : \"\\u0041\\/\"} },\"f\":1}",
        ),
    ] {
        let becomes = if becomes == "=" { format!("= {event}") } else { becomes.to_owned() };
        assert_eq!(run(steps, event), Ok(becomes), "{steps}");
    }
}

#[test]
fn reverted_change_is_no_change() {
    let steps = r#"[{"copy": "", "to": "/x"}, {"move": "/x", "to": ""}]"#;
    assert_eq!(run(steps, r#"{"a": 1}"#), Ok(r#"= {"a": 1}"#.to_owned()));
}

#[test]
fn last_repeated_member_counts() {
    let event = r#"{"a":1,"b":0,"\u0061":2}"#;
    for (steps, becomes) in [
        (r#"[{"copy": "/a", "to": "/c"}]"#, r#"{"a":1,"b":0,"\u0061":2,"c":2}"#),
        (r#"[{"set": "/a", "value": 3}]"#, r#"{"b":0,"\u0061":3}"#),
        (r#"[{"drop": "/a"}]"#, r#"{"b":0}"#),
        (r#"[{"rename": "/a", "to": "b"}]"#, r#"{"b":2}"#),
        (r#"[{"set": "/c", "to": "a"}]"#, r#"{"a":1,"b":0,"\u0061":2,"c":2}"#),
    ] {
        assert_eq!(run(steps, event).as_deref(), Ok(becomes), "{steps}");
    }
}

#[test]
fn expressions_see_results_of_earlier_steps() {
    let steps = r#"[
        {"set": "/a/b", "value": 2},
        {"set": "/c", "to": "a.b + 1"},
        {"set": "/d", "to": "size(payload)", "when": "has(c) && !has(d)"},
        {"drop": "/a"},
        {"set": "/e", "to": "a == null && payload.c == 3"}
    ]"#;
    assert_eq!(run(steps, r#"{"a":{}}"#).as_deref(), Ok(r#"{"c":3,"d":2,"e":true}"#));
    let steps = r#"[{"set": "/a/b", "value": 2}, {"set": "/c", "to": "payload.a == a && a.b == 2"}]"#;
    assert_eq!(run(steps, r#"{"a":{}}"#).as_deref(), Ok(r#"{"a":{"b":2},"c":true}"#));
}

#[test]
fn paths_through_scalars_are_errors() {
    for (steps, event, why) in [
        (
            r#"[{"set": "/a/b/c", "value": 1}]"#,
            r#"{"a":{"b":1}}"#,
            "step 1 (set /a/b/c): `/a/b` is a number, not an object or an array",
        ),
        (r#"[{"set": "/a", "value": 1}]"#, "7", "step 1 (set /a): the payload is a number, not an object or an array"),
        (
            r#"[{"set": "/3", "value": 1}]"#,
            "[1]",
            "step 1 (set /3): the array has 1 elements: add one with number 1 or `-`",
        ),
        (
            r#"[{"copy": "/0", "to": "/x"}]"#,
            "[1]",
            "step 1 (copy /x): the array has 1 elements: add one with number 1 or `-`",
        ),
    ] {
        assert_eq!(run(steps, event), Err(why.to_owned()), "{steps}");
    }
    assert_eq!(run(r#"[{"set": "/a/b", "value": 1}]"#, r#"{"a":null}"#).as_deref(), Ok(r#"{"a":{"b":1}}"#));
    assert_eq!(run(r#"[{"set": "/1/x/y", "value": 1}]"#, "[0]").as_deref(), Ok(r#"[0,{"x":{"y":1}}]"#));
}

#[test]
fn failed_step_changes_nothing() {
    let steps = r#"[{"move": "/a", "to": "/b/c", "on_error": "skip"}, {"set": "/n", "value": 1}]"#;
    assert_eq!(run(steps, r#"{"a":1,"b":2}"#).as_deref(), Ok(r#"{"a":1,"b":2,"n":1}"#));
    let steps = r#"[{"lower": ["/a", "/b", "/c"], "on_error": "skip"}]"#;
    assert_eq!(run(steps, r#"{"a":"A","b":1,"c":"C"}"#).as_deref(), Ok(r#"{"a":"a","b":1,"c":"c"}"#));
}

#[test]
fn depth_and_length_of_events_are_bounded() {
    let deepest = format!("{}1{}", "[".repeat(JSON_DEPTH_MAX), "]".repeat(JSON_DEPTH_MAX));
    let why = run(r#"[{"set": "/-", "value": []}, {"copy": "", "to": "/0"}]"#, &deepest).unwrap_err();
    assert!(why.ends_with("nest deeper than 128 levels"), "{why}");

    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(EVENT_BYTES_MAX / 2));
    let why = run(r#"[{"copy": "/a", "to": "/b"}, {"copy": "/a", "to": "/c"}]"#, &long).unwrap_err();
    assert!(why.contains("the transformed event has"), "{why}");
    let copies: Vec<_> = (0..40).map(|number| format!(r#"{{"copy": "", "to": "/c{number}"}}"#)).collect();
    let why = run(&format!("[{}]", copies.join(",")), &long).unwrap_err();
    assert!(why.contains(&format!("create more than {TRANSFORM_BYTES_MAX} bytes")), "{why}");
    let why = run(r#"[{"replace": "/a", "text": "x", "with": "1234567890"}]"#, &long).unwrap_err();
    assert!(why.contains("the result has more"), "{why}");
}

#[test]
fn explosions_are_bounded() {
    let list = |elements: usize| format!("[{}0]", "0,".repeat(elements - 1));
    let explode = r#"[{"explode": "/l"}]"#;
    assert!(run(explode, &format!("{{\"l\":{}}}", list(EXPLODE_MAX))).is_ok());
    let why = run(explode, &format!("{{\"l\":{}}}", list(EXPLODE_MAX + 1))).unwrap_err();
    assert!(why.contains("more than 10000 elements"), "{why}");
    let why = run(explode, &format!("{{\"l\":{},\"rest\":\"{}\"}}", list(100), "x".repeat(100_000))).unwrap_err();
    assert!(why.contains("bytes together"), "{why}");
    let twice = r#"[{"explode": "/a"}, {"explode": "/b"}]"#;
    let why = run(twice, &format!("{{\"a\":{},\"b\":{}}}", list(101), list(101))).unwrap_err();
    assert!(why.contains("more than 10000 events"), "{why}");
}

#[test]
fn derived_events_keep_their_numbers_when_others_drop() {
    let steps = r#"[{"explode": "/l"}, {"filter": "l != 2"}, {"explode": "/m"}]"#;
    let events =
        r#"[(0, "{\"l\":1,\"m\":7}"), (1, "{\"l\":1,\"m\":8}"), (3, "{\"l\":3,\"m\":7}"), (4, "{\"l\":3,\"m\":8}")]"#;
    assert_eq!(run(steps, r#"{"l":[1,2,3],"m":[7,8]}"#).as_deref(), Ok(events));
}

#[test]
fn value_is_remembered_if_its_event_continues() {
    let transform = compiled(r#"[{"dedupe": "/id", "window": "1m"}, {"filter": "keep"}, {"lower": "/name"}]"#);
    let (mut windows, mut scratch) = (transform.windows(7), Scratch::default());
    let mut goes_on = |event: &str, second: i64| {
        let context = Context { received_at: second * 1_000_000, ..Context::UNKNOWN };
        let goes_on = transform.run(event, &context, &mut windows, &mut scratch).map(|outcome| outcome.goes_on());
        windows.keep();
        goes_on
    };
    assert_eq!(goes_on(r#"{"id":1,"keep":false}"#, 0), Ok(false), "the filter takes it out");
    assert!(goes_on(r#"{"id":1,"keep":true,"name":1}"#, 0).is_err(), "it is refused");
    assert_eq!(goes_on(r#"{"id":1,"keep":true}"#, 0), Ok(true), "the first that continues");
    assert_eq!(goes_on(r#"{"id":1,"keep":true}"#, 60), Ok(false), "the second");
    assert_eq!(goes_on(r#"{"id":"1","keep":true}"#, 60), Ok(true), "a string is no number");
    assert_eq!(goes_on(r#"{"keep":true}"#, 60), Ok(true), "nothing to compare");
    assert_eq!(goes_on(r#"{"id":1,"keep":true}"#, 61), Ok(true), "the minute is over");
}

#[test]
fn value_of_a_dropped_part_is_forgotten() {
    let transform = compiled(
        r#"[{"explode": "/a"}, {"dedupe": "/a/k", "window": "1h"}, {"explode": "/a/b"}, {"filter": "a.b > 3"}]"#,
    );
    let (mut windows, mut scratch) = (transform.windows(7), Scratch::default());
    let mut left = |event: &str| {
        let outcome = transform.run(event, &Context::UNKNOWN, &mut windows, &mut scratch).unwrap();
        let TransformOutcome::Several(several) = outcome else { panic!("it is exploded") };
        let left = several.events.iter().map(|part| part.payload.clone()).collect::<Vec<_>>();
        windows.keep();
        left
    };
    let first = left(r#"{"a":[{"k":1,"b":[1]},{"k":1,"b":[5]},{"k":1,"b":[6]},{"k":2,"b":[2]}]}"#);
    assert_eq!(first, [r#"{"a":{"k":1,"b":5}}"#], "the first part with an event that continues");
    assert_eq!(left(r#"{"a":[{"k":1,"b":[7]},{"k":2,"b":[8]}]}"#), [r#"{"a":{"k":2,"b":8}}"#]);
}

#[test]
fn sample_is_a_stable_part() {
    let transform = compiled(r#"[{"sample": 0.25, "by": "/n"}]"#);
    let (mut windows, mut scratch) = (transform.windows(7), Scratch::default());
    let mut draw =
        |event: String| transform.run(&event, &Context::UNKNOWN, &mut windows, &mut scratch).unwrap().goes_on();
    let first: Vec<_> = (0..4_000).map(|n| draw(format!("{{\"n\":{n},\"x\":1}}"))).collect();
    let again: Vec<_> = (0..4_000).map(|n| draw(format!("{{\"x\":2,\"n\": {n}}}"))).collect();
    assert_eq!(first, again, "by the value alone");
    let part = first.iter().filter(|goes_on| **goes_on).count();
    assert!((850..1_150).contains(&part), "{part} of 4000");
}

#[test]
fn sample_without_values_is_drawn_by_key() {
    let transform = compiled(r#"[{"sample": 0.5}]"#);
    let (mut windows, mut scratch) = (transform.windows(7), Scratch::default());
    let mut draw = |event: &str, key: &[u8]| {
        let context = Context { key, ..Context::UNKNOWN };
        transform.run(event, &context, &mut windows, &mut scratch).unwrap().goes_on()
    };
    let fates: Vec<_> = (0_u8..64).map(|key| draw("1", &[key, 1])).collect();
    assert!(fates.contains(&true) && fates.contains(&false));
    for (key, fate) in (0_u8..64).zip(fates) {
        assert_eq!(draw("{\"other\":true}", &[key, 1]), fate);
    }
}

#[test]
fn value_in_a_new_element_is_found() {
    for (steps, event, wanted) in [
        (r#"[{"set": "/-/a", "value": 1}]"#, "[null]", r#"[null,{"a":1}]"#),
        (r#"[{"set": "/l/-/a/b", "value": 1}]"#, r#"{"l":[]}"#, r#"{"l":[{"a":{"b":1}}]}"#),
        (r#"[{"set": "/-/a", "value": 1}, {"set": "/1/a", "value": 1}]"#, "[null]", r#"[null,{"a":1}]"#),
    ] {
        assert_eq!(run(steps, event).as_deref(), Ok(wanted), "{steps}");
    }
}

#[test]
fn trace_shows_the_effect_of_each_step() {
    let steps = r#"[
        {"set": "/a", "value": 1},
        {"lower": "/n", "on_error": "skip"},
        {"drop": "/a", "when": "a == 2"},
        {"explode": "/l"},
        {"filter": "l != 2"},
        {"upper": "/n"}
    ]"#;
    let transform = compiled(steps);
    let (mut windows, mut scratch, mut traced) = (transform.windows(1), Scratch::default(), Vec::new());
    let event = r#"{"n":1,"l":[2,3]}"#;
    let each = &mut |step: Traced| traced.push(step);
    let outcome = transform.trace(event, &Context::UNKNOWN, &mut windows, &mut scratch, &|| Duration::ZERO, each);
    assert!(outcome.is_err());
    let wrong = "the value is a number, but should be a string".to_owned();
    let trace: Vec<_> =
        traced.into_iter().map(|step| (step.step, step.part, step.did, step.payload.unwrap())).collect();
    let whole = r#"{"n":1,"l":[2,3],"a":1}"#.to_owned();
    let third = r#"{"n":1,"l":3,"a":1}"#.to_owned();
    assert_eq!(
        trace,
        [
            (1, vec![], Did::Done, whole.clone()),
            (2, vec![], Did::Skipped(wrong.clone()), whole.clone()),
            (3, vec![], Did::NotMet, whole),
            (4, vec![], Did::Exploded(2), format!("[{},{third}]", r#"{"n":1,"l":2,"a":1}"#)),
            (5, vec![0], Did::Filtered, r#"{"n":1,"l":2,"a":1}"#.to_owned()),
            (5, vec![1], Did::Done, third.clone()),
            (6, vec![1], Did::Refused(wrong), third),
        ]
    );
}

#[test]
fn trace_bounds_its_payloads() {
    let steps: Vec<_> = (0..20).map(|n| format!(r#"{{"set": "/n", "value": {n}}}"#)).collect();
    let transform = compiled(&format!("[{}]", steps.join(",")));
    let (mut windows, mut scratch, mut shown) = (transform.windows(1), Scratch::default(), Vec::new());
    let payload = format!("{{\"text\":\"{}\"}}", "x".repeat(1_000_000));
    let each = &mut |step: Traced| shown.push(step.payload.map(|payload| payload.len()));
    transform.trace(&payload, &Context::UNKNOWN, &mut windows, &mut scratch, &|| Duration::ZERO, each).unwrap();
    assert_eq!(shown.len(), 20, "each step is traced");
    let (bytes, most) = (shown.iter().flatten().sum::<usize>(), limits::TRACED_BYTES_MAX);
    assert!((most..most + payload.len() + 10).contains(&bytes), "{shown:?}");
    assert!(shown[0].is_some() && shown[19].is_none(), "{shown:?}");
}
