//! Dead letters and what became of them, as text for people.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use crate::admin_json::dead::{LetterJson, OutcomeJson};

/// A letter on one line.
pub(super) fn line(output: &mut impl Write, letter: &LetterJson) -> io::Result<()> {
    let LetterJson { received, sink, type_name, id, reason, .. } = letter;
    writeln!(output, "{received}  {sink}  {type_name}  {id}  {}", on_one_line(reason))
}

/// A line without anything that a terminal would obey. Letters of older versions have a store's words as they came.
pub(crate) fn on_one_line(text: &str) -> Cow<'_, str> {
    event::visible(text)
}

/// JSON without anything that a terminal would obey. Within strings the escapes are JSON's own; white space is between tokens.
fn json_shown(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for part in json.split_inclusive(['\n', '\r', '\t']) {
        let text = part.trim_end_matches(['\n', '\r', '\t']);
        shown.push_str(&event::visible(text));
        shown.push_str(part[text.len()..].trim_matches('\r'));
    }
    shown
}

/// A letter with everything that is known of it.
pub(super) fn whole(output: &mut impl Write, letter: &LetterJson) -> io::Result<()> {
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

/// A letter as JSON on one line. A line break in a payload is white space between tokens, so it may become a blank.
pub(crate) fn json(output: &mut impl Write, letter: &LetterJson) -> io::Result<()> {
    let text = serde_json::to_string(letter)?.replace(['\n', '\r'], " ");
    // Programs get the bytes as they are.
    let shown = if io::stdout().is_terminal() { json_shown(&text) } else { text };
    writeln!(output, "{shown}")
}

/// What became of a sink's letters.
pub(super) fn outcome(output: &mut impl Write, outcome: &OutcomeJson) -> io::Result<()> {
    let OutcomeJson { sink, stored, refused, dropped, edited, left, failure } = outcome;
    if *edited > 0 {
        write!(output, "{sink}: {edited} edited")?;
    } else {
        write!(output, "{sink}: {stored} stored, {refused} refused again, {dropped} dropped, {left} left for later")?;
    }
    match failure {
        Some(failure) => writeln!(output, "; it broke off: {}", on_one_line(failure)),
        None => writeln!(output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_letter_is_obeyed_by_a_terminal_and_its_json_stays_the_same() {
        let payload = "{\n\t\"a\": \"\u{9b}31m \u{7f} \u{202e}\"\r\n}";
        let letter = LetterJson {
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
        line(&mut shown, &letter).unwrap();
        whole(&mut shown, &letter).unwrap();
        let shown = String::from_utf8(shown).unwrap();
        assert!(shown.contains("red \\u001b[31m\\nforged") && shown.contains("a\\u009b2J"), "{shown}");
        assert!(!shown.chars().any(|character| !"\n\t".contains(character) && character.is_control()), "{shown:?}");
        let json = json_shown(payload);
        assert!(shown.contains(&json) && !json.contains('\u{202e}'), "{json:?}");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&json), value(payload));
    }
}
