//! JSON texts (RFC 8259) as bytes: checked, split, read, and never built into documents.
//!
//! [`check`] finds out whether a text is JSON that every store can accept. Everything else in this crate reads texts
//! that have passed it: [`mod@pointer`] and [`parts`] find values, [`value_index`] lists all of them in one pass,
//! [`batch`] splits a body into records, and [`store_compat`] finds what JSON allows but some stores reject. The bytes
//! themselves stay unchanged.
//!
//! serde_json checks the syntax without building anything. The checks that it doesn't make are added here, with filters
//! that cost a few nanoseconds if there is nothing to find: UTF-8, depth, halves of surrogate pairs. `docs/reference/json.md`
//! lists how each uncertain text is handled.

pub mod batch;
mod beyond_syntax;
mod error;
mod looks_like;
pub mod parts;
pub mod pointer;
mod rejection;
pub mod scan;
pub mod store_compat;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
pub mod text;
pub mod value_index;
mod words;

use limits::JSON_DEPTH_MAX;
use serde::de::IgnoredAny;

pub use beyond_syntax::too_deep;
pub use error::{JsonError, JsonErrorKind};
pub use pointer::{InvalidPointer, JsonPointer};
pub use rejection::{RecordRejection, RejectionCode};
pub use value_index::{IndexedText, ValueIndex, ValueKind, ValueView};

/// The escape of U+FFFD, which replaces invalid characters.
pub(crate) const REPLACEMENT: &[u8] = b"\\ufffd";

/// Checks one JSON text, a value of any kind, and returns the value without the whitespace around it.
///
/// Numbers are not converted: they may have any size and any number of digits.
///
/// # Errors
/// [`JsonError`] if the text is not UTF-8, is no JSON, nests deeper than [`limits::JSON_DEPTH_MAX`], or has an escape
/// that is half of a surrogate pair. Of several faults of one kind the first is reported; of several kinds, the one
/// that is first in this list.
pub fn check(text: &[u8]) -> Result<&str, JsonError> {
    let value = trim(text);
    check_value(value).map_err(|error| error.moved_by(leading_whitespace(text, value)))
}

/// The text of a payload in which [`check`] has found only halves of surrogate pairs, each replaced by U+FFFD. The
/// escapes have the same length: no other byte moves.
#[must_use]
pub fn replace_surrogates(text: &[u8]) -> String {
    let mut repaired = trim(text).to_vec();
    let mut from = 0;
    while let Some(at) = beyond_syntax::lone_surrogate(&repaired, from) {
        from = at + REPLACEMENT.len();
        repaired[at..from].copy_from_slice(REPLACEMENT);
    }
    // One escape was replaced by another of the same length.
    String::from_utf8(repaired).unwrap_or_default()
}

fn check_value(value: &[u8]) -> Result<&str, JsonError> {
    let value = utf8(value)?;
    if let Err(error) = serde_json::from_str::<IgnoredAny>(value) {
        return Err(JsonError::of_syntax(value, &error));
    }
    check_limits(value)?;
    Ok(value)
}

/// Checks that JSON could begin like this: that the text is cut is no fault.
pub(crate) fn check_beginning(text: &[u8]) -> Result<(), JsonError> {
    let whole = match std::str::from_utf8(text) {
        Err(error) if error.error_len().is_none() => &text[..error.valid_up_to()],
        _ => text,
    };
    let whole = utf8(whole)?;
    match serde_json::from_str::<IgnoredAny>(whole) {
        Err(error) if !error.is_eof() => Err(JsonError::of_syntax(whole, &error)),
        _ => Ok(()),
    }
}

/// Depth and surrogates of a text that is JSON.
pub(crate) fn check_limits(value: &str) -> Result<(), JsonError> {
    let bytes = value.as_bytes();
    if let Some(offset) = too_deep(bytes, JSON_DEPTH_MAX) {
        return Err(JsonError::of_depth(offset));
    }
    match beyond_syntax::lone_surrogate(bytes, 0) {
        Some(offset) => Err(JsonError::of_surrogate(offset)),
        None => Ok(()),
    }
}

pub(crate) fn utf8(text: &[u8]) -> Result<&str, JsonError> {
    std::str::from_utf8(text).map_err(|error| JsonError::of_utf8(text, error.valid_up_to()))
}

/// The byte order mark that some programs begin a UTF-8 text with.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

const fn is_whitespace(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The offset of the first byte that is not JSON whitespace.
pub(crate) fn first_byte(text: &[u8]) -> Option<usize> {
    text.iter().position(|byte| !is_whitespace(*byte))
}

fn trim(mut text: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = text
        && is_whitespace(*first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && is_whitespace(*last)
    {
        text = rest;
    }
    text
}

/// A text of whitespace alone counts as one that ends before its value, at its end.
fn leading_whitespace(text: &[u8], value: &[u8]) -> usize {
    if value.is_empty() { text.len() } else { first_byte(text).unwrap_or(text.len()) }
}
