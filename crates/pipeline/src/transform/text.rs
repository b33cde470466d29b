//! Strings of JSON: from their escapes to characters and back.

use std::borrow::Cow;
use std::ops::Range;

/// Writes a string with quotes and what must be escaped.
pub(super) fn write_string(text: &str, out: &mut String) {
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
pub(super) fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_string(text, &mut out);
    out
}

/// The characters of a JSON string; `None` for other values.
pub(super) fn read_string(json: &str) -> Option<Cow<'_, str>> {
    if json.starts_with('"') { crate::pointer::scalar_text(json) } else { None }
}

/// The characters of a string, or a number or boolean as it is written; `None` for others.
pub(crate) fn scalar(json: &str) -> Option<Cow<'_, str>> {
    match json.as_bytes().first()? {
        b'"' => read_string(json),
        b'[' | b'{' | b'n' => None,
        _ => Some(Cow::Borrowed(json)),
    }
}

/// What a value is, in words.
pub(crate) fn kind(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'"') => "a string",
        Some(b'[') => "an array",
        Some(b'{') => "an object",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') | None => "null",
        Some(_) => "a number",
    }
}

/// The members of an object, as they are written: name (with quotes) and value.
pub(super) fn members(json: &str) -> impl Iterator<Item = (&str, &str)> {
    let bytes = json.as_bytes();
    let mut next = if json.starts_with('{') { super::scan::first_part(bytes, 0) } else { None };
    std::iter::from_fn(move || {
        let key = next?;
        let (key_end, _) = super::scan::string_end(bytes, key);
        let value = super::scan::member_value(bytes, key_end);
        let end = super::scan::value_end(bytes, value);
        next = super::scan::next_part(bytes, end);
        Some((json.get(key..key_end)?, json.get(value..end)?))
    })
}

/// The elements of an array, as they are written.
pub(super) fn elements(json: &str) -> impl Iterator<Item = &str> {
    element_places(json).map_while(|place| json.get(place))
}

/// The bytes of each element of an array.
pub(super) fn element_places(json: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = json.as_bytes();
    let mut next = if json.starts_with('[') { super::scan::first_part(bytes, 0) } else { None };
    std::iter::from_fn(move || {
        let value = next?;
        let end = super::scan::value_end(bytes, value);
        next = super::scan::next_part(bytes, end);
        Some(value..end)
    })
}
