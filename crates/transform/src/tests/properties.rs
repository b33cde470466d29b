//! Any steps on any JSON.

use proptest::prelude::*;

use super::*;
use crate::testing::{OPTIONS, document, pointer, step, tables};
use json::value_index::{ValueIndex, ValueView};

/// The outcome of a run as text, after everything in it was checked.
fn checked(
    outcome: Result<TransformOutcome<'_>, StepError>,
    event: &str,
) -> Result<Result<Vec<String>, String>, TestCaseError> {
    let events = match outcome {
        Ok(TransformOutcome::Unchanged) => vec![event.to_owned()],
        Ok(TransformOutcome::Changed(changed)) => vec![changed.to_owned()],
        Ok(TransformOutcome::Filtered(_)) => vec![],
        Ok(TransformOutcome::Several(several)) => several.events.into_iter().map(|part| part.payload).collect(),
        Err(error) => return Ok(Err(error.to_string())),
    };
    for event in &events {
        prop_assert_eq!(json::check(event.as_bytes()), Ok(event.as_str()));
    }
    Ok(Ok(events))
}

proptest! {
    #[test]
    fn result_is_json_with_and_without_trace(
        event in document(),
        steps in prop::collection::vec(step(), 1..6),
    ) {
        let Ok(event) = json::check(event.as_bytes()) else { return Ok(()) };
        let steps = format!("[{}]", steps.join(","));
        let specs: Vec<StepSpec> = serde_json::from_str(&steps).unwrap();
        // Some places are invalid, such as a move into itself.
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
    fn result_is_independent_of_a_value_index(
        event in document(),
        steps in prop::collection::vec(step(), 1..6),
    ) {
        let Ok(event) = json::check(event.as_bytes()) else { return Ok(()) };
        let specs: Vec<StepSpec> = serde_json::from_str(&format!("[{}]", steps.join(","))).unwrap();
        let Ok(transform) = Transform::compile(&specs, &tables()) else { return Ok(()) };
        let (mut values, mut scratch) = (ValueIndex::default(), Scratch::default());
        let [unread, read] = [ValueView::unread(event), values.read(event)].map(|payload| {
            let (mut windows, mut operations) = (transform.windows(1), TRANSFORM_WORK_MAX);
            let outcome = transform.run_within(&mut operations, payload, &Context::UNKNOWN, &mut windows, &mut scratch);
            checked(outcome, event).map(|outcome| (outcome, operations))
        });
        prop_assert_eq!(unread?, read?);
    }

    #[test]
    fn split_transform_has_the_same_result(
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
                Ok(TransformOutcome::Unchanged) => Some(event.to_owned()),
                Ok(TransformOutcome::Changed(changed)) => Some(changed.to_owned()),
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
        prop_assert_eq!(outcome, Ok(TransformOutcome::Unchanged));
    }

    #[test]
    fn set_value_is_found_and_dropped_is_not(event in document(), at in pointer()) {
        let Ok(event) = json::check(event.as_bytes()) else { return Ok(()) };
        let Ok(changed) = run(&format!(r#"[{{"set": "{at}", "value": [7]}}]"#), event) else { return Ok(()) };
        let changed = changed.strip_prefix("= ").unwrap_or(&changed);
        if !at.contains('-') {
            let pointer: json::JsonPointer = at.parse().unwrap();
            prop_assert_eq!(pointer.lookup(changed), Some("[7]"));
            if !at.is_empty() {
                let dropped = run(&format!(r#"[{{"drop": "{at}"}}]"#), changed).unwrap();
                let is_element = changed.contains('[');
                prop_assert!(pointer.lookup(&dropped).is_none() || is_element);
            }
        }
    }

    #[test]
    fn no_text_causes_a_panic(text in "\\PC{0,40}|[a-z=&%+'\"{}:,/\\[\\]\\\\ 0-9-]{0,40}") {
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
    fn pattern_replaces_like_the_library(text in "[ab]{0,12}", pattern in "(a|b|ab|)(a|b|\\*|\\$)?") {
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
