//! JSON in a string, also as Python and JavaScript print it, with single quotes.

use crate::change::{Changed, check_room};

pub(super) fn parse(text: &str, single_quotes: bool, out: &mut String) -> Changed {
    let double = if single_quotes { Some(with_double_quotes(text)?) } else { None };
    let json = double.as_deref().unwrap_or(text);
    match json::check(json.as_bytes()) {
        Ok(value) => {
            out.push_str(value);
            Ok(())
        }
        Err(_) if single_quotes => Err("the string holds no JSON, not even with single quotes".to_owned()),
        Err(error) => Err(format!("the string holds no JSON: {error}")),
    }
}

/// Strings get double quotes; `None`, `True` and `False` their names in JSON.
fn with_double_quotes(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(open) = rest.find(['\'', '"']) {
        write_outside(&rest[..open], &mut out);
        let quote = rest.as_bytes()[open];
        let within = &rest[open + 1..];
        let end = write_string(within, quote, &mut out).ok_or("a string in it has no end")?;
        rest = &within[end..];
        check_room(&out)?;
    }
    write_outside(rest, &mut out);
    Ok(out)
}

/// The text outside of strings.
fn write_outside(text: &str, out: &mut String) {
    out.push_str(&text.replace("None", "null").replace("True", "true").replace("False", "false"));
}

/// Writes a string that ends with this quote; returns the offset after it.
fn write_string(text: &str, quote: u8, out: &mut String) -> Option<usize> {
    out.push('"');
    let mut is_escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            // Only JSON's own quote needs an escape there.
            '\'' if is_escaped => out.push('\''),
            _ if is_escaped => out.extend(['\\', character]),
            '\\' => {}
            _ if character == char::from(quote) => {
                out.push('"');
                return Some(at + 1);
            }
            '"' => out.push_str("\\\""),
            _ => out.push(character),
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    None
}
