//! Dead letters and the outcome of commands on them, as text for users.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use text::rfc3339;

use crate::figures;
use crate::table::{Column, Table};
use admin_api::dead::{DeadLetterJson, OutcomeJson, PlannedSinkJson, RepeatableJson};

/// Dead letters as a table. In a terminal of this width it has their age instead of the time of receipt, to leave room for the reason.
pub(super) fn table(letters: &[DeadLetterJson], terminal: Option<usize>, now: i64) -> String {
    if letters.is_empty() {
        return "no dead letters\n".to_owned();
    }
    let received = if terminal.is_some() { "AGE" } else { "RECEIVED" };
    let mut table = Table::new([
        Column::whole(received),
        Column::text("SINK"),
        Column::text("TYPE"),
        Column::whole("ID"),
        Column::note("REASON"),
    ]);
    for letter in letters {
        let DeadLetterJson { received, sink, type_name, id, reason, .. } = letter;
        let age = rfc3339::parse(received).ok().filter(|_| terminal.is_some()).map(|at| age(now, at));
        let received = age.unwrap_or_else(|| received.clone());
        table.add([received, sink.clone(), type_name.clone(), id.clone(), reason.clone()]);
    }
    table.text(terminal)
}

/// The time from `at` to `now`, both in microseconds, in its largest unit.
fn age(now: i64, at: i64) -> String {
    let seconds = u64::try_from(now.saturating_sub(at) / 1_000_000).unwrap_or(0);
    figures::age(seconds)
}

/// A line without control characters for a terminal. Dead letters of older versions have a store's message unescaped.
pub fn on_one_line(text: &str) -> Cow<'_, str> {
    text::escape_control(text)
}

/// JSON without anything that a terminal would obey. Within strings the escapes are JSON's own; white space is between tokens.
fn json_shown(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for part in json.split_inclusive(['\n', '\r', '\t']) {
        let text = part.trim_end_matches(['\n', '\r', '\t']);
        shown.push_str(&text::escape_control(text));
        shown.push_str(part[text.len()..].trim_matches('\r'));
    }
    shown
}

/// A dead letter with all its fields.
pub(super) fn whole(output: &mut impl Write, letter: &DeadLetterJson) -> io::Result<()> {
    let optional =
        |text: &Option<String>| text.as_deref().map_or_else(|| "-".into(), |text| on_one_line(text).into_owned());
    let source = if letter.source.is_empty() { "-".into() } else { on_one_line(&letter.source) };
    writeln!(output, "sink        {}", letter.sink)?;
    writeln!(output, "id          {}", letter.id)?;
    writeln!(output, "type        {}", letter.type_name)?;
    writeln!(output, "source      {source}")?;
    writeln!(output, "client      {}", optional(&letter.client))?;
    writeln!(output, "received    {}", letter.received)?;
    writeln!(output, "event time  {}", optional(&letter.event_time))?;
    writeln!(output, "position    {}", letter.position)?;
    writeln!(output, "reason      {}", on_one_line(&letter.reason))?;
    writeln!(output, "payload\n{}", letter.payload.as_ref().map_or("-".into(), |payload| json_shown(payload.get())))
}

/// A dead letter as JSON on one line. A line break in a payload is white space between tokens, so it may become a blank.
pub fn json(output: &mut impl Write, letter: &DeadLetterJson) -> io::Result<()> {
    let text = serde_json::to_string(letter)?.replace(['\n', '\r'], " ");
    // Programs get the bytes as they are.
    let shown = if io::stdout().is_terminal() { json_shown(&text) } else { text };
    writeln!(output, "{shown}")
}

/// How many dead letters of a sink an action would handle.
pub(super) fn planned(output: &mut impl Write, planned: &PlannedSinkJson) -> io::Result<()> {
    let repeated = match planned.repeatable {
        RepeatableJson::Once => "a repeat is stored once",
        RepeatableJson::Again => "a repeat may be stored twice",
    };
    writeln!(output, "{}: {}; {repeated}", planned.sink, text::counted(planned.letters, "dead letter"))
}

/// The outcome for a sink's dead letters.
pub(super) fn outcome(output: &mut impl Write, outcome: &OutcomeJson) -> io::Result<()> {
    let OutcomeJson { sink, stored, refused: rejected, dropped, edited, left, failure } = outcome;
    if *edited > 0 {
        write!(output, "{sink}: {edited} edited")?;
    } else {
        write!(output, "{sink}: {stored} stored, {rejected} rejected again, {dropped} dropped, {left} left for later")?;
    }
    match failure {
        Some(failure) => writeln!(output, "; stopped early: {}", on_one_line(failure)),
        None => writeln!(output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_json_is_unchanged() {
        let payload = "{\n\t\"a\": \"\u{9b}31m \u{7f} \u{202e}\"\r\n}";
        let letter = DeadLetterJson {
            sink: "s".into(),
            id: "1".into(),
            type_name: "t".into(),
            source: "a\u{9b}2J".into(),
            client: None,
            received: "r".into(),
            event_time: None,
            position: "0:1".into(),
            reason: "red \u{1b}[31m\nforged".into(),
            payload: serde_json::value::RawValue::from_string(payload.into()).ok(),
        };
        let mut shown = Vec::new();
        shown.extend(table(std::slice::from_ref(&letter), None, 0).into_bytes());
        whole(&mut shown, &letter).unwrap();
        let shown = String::from_utf8(shown).unwrap();
        assert!(shown.contains("red \\u001b[31m\\nforged") && shown.contains("a\\u009b2J"), "{shown}");
        assert!(!shown.chars().any(|character| !"\n\t".contains(character) && character.is_control()), "{shown:?}");
        let json = json_shown(payload);
        assert!(shown.contains(&json) && !json.contains('\u{202e}'), "{json:?}");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&json), value(payload));
    }

    #[test]
    fn age_of_future_dead_letter_is_zero() {
        assert_eq!([-5, 59].map(|seconds| age(seconds * 1_000_000, 0)), ["0s", "59s"]);
    }

    #[test]
    fn page_shows_the_printed_dead_letters() {
        let letter = |(sink, id, received, reason): (&str, &str, &str, &str)| DeadLetterJson {
            sink: sink.into(),
            id: id.into(),
            type_name: "access".into(),
            source: String::new(),
            client: None,
            received: received.into(),
            event_time: None,
            position: "0:1".into(),
            reason: reason.into(),
            payload: None,
        };
        let mapping = "failed to parse field [number] of type [long]";
        let letters = [
            (
                "local",
                "09a6b9db-02f8-8f2b-9f53-3c6700000000",
                "2026-11-21T10:04:11Z",
                "no bad ones (the table rejects the event)",
            ),
            ("search", "019a2f31-77c0-7a3e-9b1d-5f0c2e8a4411", "2026-11-21T08:00:00Z", mapping),
        ]
        .map(letter);
        let now = rfc3339::parse("2026-11-21T10:07:30Z").unwrap();
        let text = table(&letters, Some(80), now);
        let page = include_str!("../../../../docs/guides/dead-letters.md");
        assert!(page.contains(&format!("```text\n{text}```\n")), "docs/guides/dead-letters.md lacks:\n{text}");
        let whole = table(&letters, None, now);
        assert!(
            whole.starts_with("RECEIVED")
                && whole.contains(&format!(
                    "2026-11-21T08:00:00Z  search  access  019a2f31-77c0-7a3e-9b1d-5f0c2e8a4411  {mapping}\n"
                )),
            "{whole}"
        );
        assert_eq!(table(&[], None, now), "no dead letters\n");
    }
}
