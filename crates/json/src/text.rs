//! Strings of JSON: from their escapes to characters and back.

use std::borrow::Cow;

/// Writes a string with quotes and what must be escaped.
pub fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        out.push_str(&rest[..at]);
        write_escape(rest.as_bytes()[at], out);
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

fn write_escape(byte: u8, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.push('\\');
    match byte {
        b'\n' => out.push('n'),
        b'\r' => out.push('r'),
        b'\t' => out.push('t'),
        b'"' | b'\\' => out.push(char::from(byte)),
        _ => {
            out.push_str("u00");
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}

/// A string as JSON.
#[must_use]
pub fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_string(text, &mut out);
    out
}

/// The characters of a JSON string; `None` for other values.
#[must_use]
pub fn read_string(json: &str) -> Option<Cow<'_, str>> {
    if json.starts_with('"') { scalar_text(json) } else { None }
}

/// The characters of a string, or a number or boolean as it is written; `None` for others.
#[must_use]
pub fn scalar(json: &str) -> Option<Cow<'_, str>> {
    match json.as_bytes().first()? {
        b'"' => read_string(json),
        b'[' | b'{' | b'n' => None,
        _ => Some(Cow::Borrowed(json)),
    }
}

/// The kind of a value, in words.
#[must_use]
pub fn kind(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'"') => "a string",
        Some(b'[') => "an array",
        Some(b'{') => "an object",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') | None => "null",
        Some(_) => "a number",
    }
}

/// The text of a JSON string, or the digits of a number unchanged; `None` for any other value. `raw` is a result of
/// [`JsonPointer::lookup`](crate::JsonPointer::lookup).
#[must_use]
pub fn scalar_text(raw: &str) -> Option<Cow<'_, str>> {
    match raw.as_bytes().first()? {
        b'"' if raw.contains('\\') => serde_json::from_str(raw).ok().map(Cow::Owned),
        b'"' => raw.strip_prefix('"')?.strip_suffix('"').map(Cow::Borrowed),
        b'-' | b'0'..=b'9' => Some(Cow::Borrowed(raw)),
        _ => None,
    }
}
