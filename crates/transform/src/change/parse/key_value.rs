//! Pairs such as `level=info msg="it works"`.

use super::Repeating;
use crate::change::Changed;
use json::text;

/// Every value becomes a string. In double quotes it may hold what else ends it; a name without a value is true.
pub(super) fn parse(text: &str, between: &str, equals: &str, out: &mut String) -> Changed {
    let mut members = Repeating::default();
    let mut rest = text;
    loop {
        rest = skip(rest, between);
        if rest.is_empty() {
            break;
        }
        let end = rest.find(between).unwrap_or(rest.len());
        match rest.find(equals).filter(|at| *at < end) {
            Some(at) => {
                let value = &rest[at + equals.len()..];
                let (value, following) = read_value(value, between)?;
                members.push(rest[..at].trim().to_owned(), text::string(&value));
                rest = following;
            }
            None => {
                members.push(rest[..end].trim().to_owned(), "true".to_owned());
                rest = &rest[end..];
            }
        }
    }
    members.write(out);
    Ok(())
}

fn skip<'t>(mut text: &'t str, between: &str) -> &'t str {
    loop {
        let trimmed = text.trim_start();
        match trimmed.strip_prefix(between) {
            Some(rest) => text = rest,
            None => return trimmed,
        }
    }
}

/// A value, and what follows it.
fn read_value<'t>(text: &'t str, between: &str) -> Result<(String, &'t str), String> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(between).unwrap_or(text.len());
        return Ok((text[..end].trim().to_owned(), &text[end..]));
    };
    let (mut value, mut is_escaped) = (String::new(), false);
    for (at, character) in quoted.char_indices() {
        match character {
            '\\' if !is_escaped => {
                is_escaped = true;
                continue;
            }
            '"' if !is_escaped => return Ok((value, &quoted[at + 1..])),
            'n' if is_escaped => value.push('\n'),
            _ => value.push(character),
        }
        is_escaped = false;
    }
    Err("a value in quotes has no end".to_owned())
}
