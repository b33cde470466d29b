//! Dead letters and what became of them, as text for people.

use std::io::{self, Write};

use crate::dead_json::{LetterJson, OutcomeJson};

/// A letter on one line.
pub(super) fn line(output: &mut impl Write, letter: &LetterJson) -> io::Result<()> {
    let LetterJson { received, sink, type_name, id, reason, .. } = letter;
    writeln!(output, "{received}  {sink}  {type_name}  {id}  {}", on_one_line(reason))
}

/// A store's words may have line breaks, and worse.
pub(crate) fn on_one_line(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// A letter with everything that is known of it.
pub(super) fn whole(output: &mut impl Write, letter: &LetterJson) -> io::Result<()> {
    let optional = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
    let source = if letter.source.is_empty() { "-" } else { &letter.source };
    writeln!(output, "sink        {}", letter.sink)?;
    writeln!(output, "id          {}", letter.id)?;
    writeln!(output, "type        {}", letter.type_name)?;
    writeln!(output, "source      {source}")?;
    writeln!(output, "client      {}", optional(&letter.client))?;
    writeln!(output, "received    {}", letter.received)?;
    writeln!(output, "event time  {}", optional(&letter.event_time))?;
    writeln!(output, "position    {}", letter.position)?;
    writeln!(output, "reason      {}", on_one_line(&letter.reason))?;
    writeln!(output, "payload\n{}", letter.payload.as_ref().map_or("-", |payload| payload.get()))
}

/// A letter as JSON on one line. A line break in a payload is white space between tokens, so it may become a blank.
pub(super) fn json(output: &mut impl Write, letter: &LetterJson) -> io::Result<()> {
    let text = serde_json::to_string(letter)?;
    writeln!(output, "{}", text.replace(['\n', '\r'], " "))
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
