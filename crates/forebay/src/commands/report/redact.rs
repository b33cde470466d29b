//! Removes what may come from events: reasons of stores quote them.

use std::collections::BTreeMap;

use admin_api::dead::ListJson;
use serde::Serialize;
use serde_json::Value;

/// What is removed.
const CUT: char = '…';
/// Characters of a reason without the removed parts.
const REASON_CHARACTERS_MAX: usize = 200;
/// Members of a status whose `reason` is a store's message about an event.
const OF_EVENTS: [&str; 2] = ["last_dead", "last_deferred"];

/// Dead letters with one reason.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Group {
    sink: String,
    #[serde(rename = "type")]
    type_name: String,
    reason: String,
    count: u64,
}

/// The dead letters by sink, type and reason.
pub(super) fn groups(list: &ListJson) -> Vec<Group> {
    let mut counts = BTreeMap::new();
    for letter in &list.letters {
        *counts.entry((&letter.sink, &letter.type_name, shape(&letter.reason))).or_insert(0) += 1;
    }
    let group = |((sink, type_name, reason), count): ((&String, &String, String), u64)| Group {
        sink: sink.clone(),
        type_name: type_name.clone(),
        reason,
        count,
    };
    counts.into_iter().map(group).collect()
}

/// A status whose reasons have no parts of events.
pub(super) fn status(mut status: Value) -> Value {
    cut_reasons(&mut status, false);
    status
}

/// A diagnosis whose problems of the process, which are those of its status, have no parts of events.
pub(super) fn diagnosis(mut diagnosis: Value) -> Value {
    let checks = diagnosis.get_mut("checks").and_then(Value::as_array_mut);
    for check in checks.into_iter().flatten().filter(|check| check.get("check").is_some_and(|name| name == "process")) {
        for key in ["seen", "remedy"] {
            if let Some(Value::String(text)) = check.get_mut(key) {
                *text = unquoted(text);
            }
        }
    }
    diagnosis
}

fn cut_reasons(value: &mut Value, is_of_event: bool) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|value| cut_reasons(value, is_of_event)),
        Value::Object(members) => {
            for (key, value) in members {
                match (key.as_str(), value) {
                    ("reason", Value::String(text)) => *text = if is_of_event { shape(text) } else { unquoted(text) },
                    ("problems", Value::Array(list)) => list.iter_mut().for_each(|problem| {
                        if let Value::String(text) = problem {
                            *text = unquoted(text);
                        }
                    }),
                    (key, value) => cut_reasons(value, OF_EVENTS.contains(&key)),
                }
            }
        }
        _ => {}
    }
}

/// A reason without digits, and without all that is quoted or in brackets: PostgreSQL shows rows in parentheses, and others quote values.
fn shape(reason: &str) -> String {
    cut(reason, |character| character.is_ascii_digit()).chars().take(REASON_CHARACTERS_MAX).collect()
}

/// A message without all that is quoted or in brackets. A sink may wait because of one event.
fn unquoted(message: &str) -> String {
    cut(message, |_| false)
}

/// The text with `…` for quoted parts, parts in brackets, and characters for which `is_also_cut` holds. Names of settings are in backticks.
fn cut(reason: &str, is_also_cut: impl Fn(char) -> bool) -> String {
    let mut shape = String::new();
    let mut closings: Vec<char> = Vec::new();
    let mut previous = ' ';
    let mut characters = reason.chars().peekable();
    while let Some(character) = characters.next() {
        // An apostrophe within a word is no quotation mark.
        let is_within_word = previous.is_alphanumeric() && characters.peek().is_some_and(|next| next.is_alphanumeric());
        let is_apostrophe = character == '\'' && is_within_word;
        let is_closing = closings.last() == Some(&character) && !is_apostrophe;
        let is_in_quotes = closings.last().is_some_and(|closing| !")]}".contains(*closing));
        let closing = match character {
            _ if is_in_quotes => None,
            '(' => Some(')'),
            '[' => Some(']'),
            '{' => Some('}'),
            '“' | '„' => Some('”'),
            '«' => Some('»'),
            '"' => Some(character),
            '\'' if !is_apostrophe => Some('\''),
            _ => None,
        };
        previous = character;
        if is_closing {
            closings.pop();
        } else if let Some(closing) = closing {
            closings.push(closing);
        }
        let is_cut = is_closing || closing.is_some() || !closings.is_empty() || is_also_cut(character);
        match is_cut {
            true if !shape.ends_with(CUT) => shape.push(CUT),
            true => {}
            false => shape.push(character),
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reasons_of_stores_have_no_parts_of_events() {
        for (reason, expected) in [
            (
                "row violates check constraint \"no_bad\" (23514): Failing row contains (7, {\"a\": \"p(rivate\"}, x).",
                "row violates check constraint … …: Failing row contains ….",
            ),
            ("the field isn't a number: 'se\"cret'", "the field isn't a number: …"),
            ("Preview of field's value: 's3cret'", "Preview of field's value: …"),
            ("value 17.5 of [a [b] cret] is too large", "value ….… of … is too large"),
            ("it never \"ends (secret)", "it never …"),
            ("no 'it isn't secret' here", "no … here"),
        ] {
            assert_eq!(shape(reason), expected);
        }
    }

    #[test]
    fn dead_letters_are_counted_by_their_reasons() {
        let letter = |reason: &str| {
            json!({"sink": "s", "id": "1", "type": "t", "source": "", "client": null, "received": "", "event_time": null,
                "position": "", "reason": reason})
        };
        let letters = [letter("row 1 is 'bad'"), letter("row 22 is 'worse'"), letter("other")];
        let list: ListJson = serde_json::from_value(json!({"letters": letters, "more": false})).unwrap();
        let found: Vec<_> = groups(&list).into_iter().map(|group| (group.reason, group.count)).collect();
        assert_eq!(found, [("other".to_owned(), 1), ("row … is …".to_owned(), 2)]);
    }

    #[test]
    fn reasons_of_a_status_are_cut() {
        let status_of = |problem: &str, reason: &str, dead: &str| {
            let last_dead = json!({"at": "2026", "reason": dead});
            json!({"problems": [problem], "sinks": [{"reason": reason, "backlog": {"last_dead": last_dead}}]})
        };
        let before = status_of("s waits: x:9200 (event) 'a'", "`url` of x:9200: 'a'", "'secret' 1");
        let after = status_of("s waits: x:9200 … …", "`url` of x:9200: …", "… …");
        assert_eq!(status(before), after);

        let diagnosis_of =
            |seen: &str| json!({"checks": [{"check": "process", "seen": seen}, {"check": "sink", "seen": "'a'"}]});
        assert_eq!(diagnosis(diagnosis_of("s waits: 'a'")), diagnosis_of("s waits: …"));
    }
}
