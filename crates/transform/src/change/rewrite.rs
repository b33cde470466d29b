//! Search and replace in texts.

use std::borrow::Cow;
use std::ops::Range;

use super::{Changed, check_room, string};
use crate::budget::Budget;
use json::{scan, text};
use pattern::{Pattern, Scout, Scouted};

/// Operations of a search, wherever it ends.
const SEARCH: usize = 32;

/// Replaces matches in a string.
#[derive(Clone, Debug)]
pub(crate) struct Replace {
    pub(crate) needle: Needle,
    pub(crate) with: String,
}

/// The search.
#[derive(Clone, Debug)]
pub(crate) enum Needle {
    Text(String),
    /// In the replacement, `$1` and `${name}` refer to groups.
    Pattern(Pattern),
}

impl Replace {
    pub(super) fn apply(&self, json: &str, out: &mut String, budget: &mut Budget) -> Changed {
        let text = string(json)?;
        let replaced = match &self.needle {
            Needle::Text(needle) => replace_text(&text, needle, &self.with)?,
            Needle::Pattern(pattern) => replace_pattern(&text, &mut pattern.scout(), &self.with, budget)?,
        };
        write_replaced(json, replaced.as_deref(), out);
        Ok(())
    }
}

/// Replaces matches in every string of a value, at any depth.
#[derive(Clone, Debug)]
pub(crate) struct Redact {
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) with: String,
}

impl Redact {
    /// One scan of all strings: one followed by a colon is a name.
    pub(super) fn apply(&self, json: &str, out: &mut String, budget: &mut Budget) -> Changed {
        let bytes = json.as_bytes();
        let mut scouts: Vec<Scout<'_>> = self.patterns.iter().map(Pattern::scout).collect();
        let mut copied = 0;
        while let Some(start) = memchr::memchr(b'"', &bytes[copied..]).map(|at| copied + at) {
            let end = scan::string_end(bytes, start).0;
            out.push_str(&json[copied..start]);
            if bytes.get(scan::skip_blanks(bytes, end)) == Some(&b':') {
                out.push_str(&json[start..end]);
            } else {
                self.redact_string(&json[start..end], &mut scouts, out, budget)?;
            }
            copied = end;
        }
        out.push_str(&json[copied..]);
        Ok(())
    }

    fn redact_string(&self, json: &str, scouts: &mut [Scout<'_>], out: &mut String, budget: &mut Budget) -> Changed {
        let text = string(json)?;
        let mut redacted: Option<String> = None;
        for scout in scouts {
            let text = redacted.as_deref().unwrap_or(&text);
            redacted = replace_pattern(text, scout, &self.with, budget)?.or(redacted);
        }
        write_replaced(json, redacted.as_deref(), out);
        check_room(out)
    }
}

/// A string without a match keeps its text.
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

fn replace_pattern(
    text: &str,
    scout: &mut Scout<'_>,
    with: &str,
    budget: &mut Budget,
) -> Result<Option<String>, String> {
    let (mut out, mut end, mut from) = (String::new(), None, 0);
    while from <= text.len() {
        let Scouted { operations, may_find } = scout.scan(text, from, budget.left());
        budget.spend(operations.saturating_add(SEARCH))?;
        if !may_find {
            break;
        }
        let Some(place) = scout.regex().find_at(text, from).map(|found| found.range()) else { break };
        let behind = place.end + text[place.end..].chars().next().map_or(1, char::len_utf8);
        // An empty match directly after a match doesn't count.
        if place.is_empty() && end == Some(place.end) {
            from = behind;
            continue;
        }
        out.push_str(&text[end.unwrap_or(0)..place.start]);
        write_found(text, &place, scout, with, &mut out, budget)?;
        end = Some(place.end);
        check_room(&out)?;
        from = if place.is_empty() { behind } else { place.end };
    }
    Ok(end.map(|end| out + &text[end..]))
}

/// Writes the replacement of a match. Its groups are found only if they are needed.
fn write_found(
    text: &str,
    place: &Range<usize>,
    scout: &Scout<'_>,
    with: &str,
    out: &mut String,
    budget: &mut Budget,
) -> Changed {
    if !with.contains('$') {
        out.push_str(with);
        return Ok(());
    }
    budget.spend(scout.operations(place.len()))?;
    if let Some(found) = scout.regex().captures_at(text, place.start) {
        found.expand(with, out);
    }
    Ok(())
}

/// The text in which `$` has no special meaning.
pub(crate) fn literal(with: &str) -> Cow<'_, str> {
    if with.contains('$') { Cow::Owned(with.replace('$', "$$")) } else { Cow::Borrowed(with) }
}
