//! What is found in texts and replaced.

use std::borrow::Cow;

use super::{Changed, check_room, string};
use crate::pattern::Pattern;
use crate::transform::step::Budget;
use crate::transform::text;

/// Replaces what is found in a string.
#[derive(Clone, Debug)]
pub(in crate::transform) struct Replace {
    pub(in crate::transform) needle: Needle,
    pub(in crate::transform) with: String,
}

/// What is looked for.
#[derive(Clone, Debug)]
pub(in crate::transform) enum Needle {
    Text(String),
    /// In what replaces it, `$1` and `${name}` stand for groups.
    Pattern(Pattern),
}

impl Replace {
    pub(super) fn apply(&self, json: &str, out: &mut String, budget: &mut Budget) -> Changed {
        let text = string(json)?;
        let replaced = match &self.needle {
            Needle::Text(needle) => replace_text(&text, needle, &self.with)?,
            Needle::Pattern(pattern) => replace_pattern(&text, pattern, &self.with, budget)?,
        };
        write_replaced(json, replaced.as_deref(), out);
        Ok(())
    }
}

/// Replaces what is found in every string of a value, however deep.
#[derive(Clone, Debug)]
pub(in crate::transform) struct Redact {
    pub(in crate::transform) patterns: Vec<Pattern>,
    pub(in crate::transform) with: String,
}

impl Redact {
    pub(super) fn apply(&self, json: &str, out: &mut String, budget: &mut Budget) -> Changed {
        match json.as_bytes().first() {
            Some(b'"') => self.redact_string(json, out, budget),
            Some(b'[') => {
                out.push('[');
                for (number, element) in text::elements(json).enumerate() {
                    out.push_str(if number == 0 { "" } else { "," });
                    self.apply(element, out, budget)?;
                }
                out.push(']');
                Ok(())
            }
            Some(b'{') => {
                out.push('{');
                for (number, (name, value)) in text::members(json).enumerate() {
                    out.push_str(if number == 0 { "" } else { "," });
                    out.push_str(name);
                    out.push(':');
                    self.apply(value, out, budget)?;
                }
                out.push('}');
                Ok(())
            }
            _ => {
                out.push_str(json);
                Ok(())
            }
        }
    }

    fn redact_string(&self, json: &str, out: &mut String, budget: &mut Budget) -> Changed {
        let text = string(json)?;
        let mut redacted: Option<String> = None;
        for pattern in &self.patterns {
            let text = redacted.as_deref().unwrap_or(&text);
            redacted = replace_pattern(text, pattern, &self.with, budget)?.or(redacted);
        }
        write_replaced(json, redacted.as_deref(), out);
        check_room(out)
    }
}

/// Where nothing was found, a string stays as it is written.
fn write_replaced(json: &str, replaced: Option<&str>, out: &mut String) {
    match replaced {
        Some(text) => text::write_string(text, out),
        None => out.push_str(json),
    }
}

fn replace_text(text: &str, needle: &str, with: &str) -> Result<Option<String>, String> {
    let (mut out, mut end) = (String::new(), 0);
    for (at, _) in text.match_indices(needle) {
        out.push_str(&text[end..at]);
        out.push_str(with);
        end = at + needle.len();
        check_room(&out)?;
    }
    out.push_str(&text[end..]);
    Ok((end > 0).then_some(out))
}

/// Each search is counted as one to the end of the text: what it reads isn't known, and one that reads on behind what it
/// finds would make the whole quadratic.
fn replace_pattern(text: &str, pattern: &Pattern, with: &str, budget: &mut Budget) -> Result<Option<String>, String> {
    let (mut out, mut end, mut from) = (String::new(), None, 0);
    while from <= text.len() {
        budget.spend_pattern(pattern.steps(text.len() - from))?;
        let Some(found) = pattern.regex().captures_at(text, from) else { break };
        let place = found.get_match().range();
        let behind = place.end + text[place.end..].chars().next().map_or(1, char::len_utf8);
        // Nothing directly behind what was found is no find of its own.
        if place.is_empty() && end == Some(place.end) {
            from = behind;
            continue;
        }
        out.push_str(&text[end.unwrap_or(0)..place.start]);
        found.expand(with, &mut out);
        end = Some(place.end);
        check_room(&out)?;
        from = if place.is_empty() { behind } else { place.end };
    }
    Ok(end.map(|end| out + &text[end..]))
}

/// The text in which `$` stands for itself.
pub(in crate::transform) fn literal(with: &str) -> Cow<'_, str> {
    if with.contains('$') { Cow::Owned(with.replace('$', "$$")) } else { Cow::Borrowed(with) }
}
