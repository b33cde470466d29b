//! Why and where a text is rejected. A valid record needs nothing of this module.

use std::borrow::Cow;

use limits::JSON_DEPTH_MAX;
use serde::de::IgnoredAny;

use super::looks_like;
use super::words::{ENDS_WITHIN, ENDS_WITHIN_STRING, ESCAPE, TRAILING, Words};

/// A text that is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail} (byte {offset})")]
pub struct JsonError {
    /// The first invalid byte, from 0, within the text as received. If the text ends too early, the text's length
    /// (without whitespace at its end).
    pub offset: usize,
    /// The kind of fault.
    pub kind: JsonErrorKind,
    /// The fault in words, without its place.
    pub detail: Cow<'static, str>,
}

/// The kinds of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonErrorKind {
    /// The text doesn't follow the grammar, or begins with a byte order mark.
    Syntax,
    /// The text is not UTF-8.
    Utf8,
    /// Arrays and objects nest deeper than the limit.
    Depth,
    /// An escape names half of a surrogate pair.
    Surrogate,
}

const BYTE_ORDER_MARK: char = '\u{feff}';

impl JsonError {
    pub(crate) fn of_utf8(text: &[u8], offset: usize) -> Self {
        let detail = looks_like::format(text).unwrap_or("the text is not UTF-8");
        Self { offset, kind: JsonErrorKind::Utf8, detail: detail.into() }
    }

    /// Whether the only fault of `text`, in which this was found, is that another value follows the first one.
    #[must_use]
    pub fn is_second_value(&self, text: &[u8]) -> bool {
        let begins_value = |byte: &u8| matches!(byte, b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n');
        self.is_trailing() && text.get(self.offset).is_some_and(begins_value)
    }

    /// Whether other bytes follow a whole value.
    pub(crate) fn is_trailing(&self) -> bool {
        self.kind == JsonErrorKind::Syntax && self.detail == TRAILING
    }

    /// Whether the text ends early, and not within a string: more lines could complete it.
    pub(crate) fn is_open(&self) -> bool {
        self.kind == JsonErrorKind::Syntax && self.detail.starts_with(ENDS_WITHIN) && self.detail != ENDS_WITHIN_STRING
    }

    pub(super) fn of_depth(offset: usize) -> Self {
        let detail = format!("arrays and objects nest deeper than {JSON_DEPTH_MAX} levels");
        Self { offset, kind: JsonErrorKind::Depth, detail: detail.into() }
    }

    pub(super) fn of_surrogate(offset: usize) -> Self {
        let detail = "the escape is half of a surrogate pair, which is not a character: send both halves".into();
        Self { offset, kind: JsonErrorKind::Surrogate, detail }
    }

    /// The text is in another format, by its first bytes.
    pub(crate) fn of_format(kind: JsonErrorKind, detail: &'static str) -> Self {
        Self { offset: 0, kind, detail: detail.into() }
    }

    /// A fault of syntax with our message.
    pub(crate) fn syntax(offset: usize, detail: &'static str) -> Self {
        Self { offset, kind: JsonErrorKind::Syntax, detail: detail.into() }
    }

    /// The fault that serde_json reports for `text`.
    pub(crate) fn of_syntax(text: &str, error: &serde_json::Error) -> Self {
        if text.is_empty() {
            return Self::syntax(0, "the text is empty");
        }
        if text.starts_with(BYTE_ORDER_MARK) {
            return Self::syntax(0, "the text begins with a byte order mark, which JSON doesn't allow: remove it");
        }
        let words = Words::of(error);
        let offset = if error.is_eof() {
            end_or_bad_digit(text.as_bytes())
        } else {
            bad_byte(text.as_bytes(), index(text.as_bytes(), error), words.as_str())
        };
        if !error.is_eof()
            && let Some(explained) = looks_like::explain(text.as_bytes(), offset)
        {
            return Self::syntax(offset, explained);
        }
        let has_bad_digit = offset < text.len();
        let detail =
            if error.is_eof() && has_bad_digit { ESCAPE.into() } else { words.detail(text.as_bytes(), offset) };
        Self { offset, kind: JsonErrorKind::Syntax, detail }
    }

    /// The same fault in a text that has `bytes` more at its front.
    #[must_use]
    pub(crate) fn moved_by(mut self, bytes: usize) -> Self {
        self.offset += bytes;
        self
    }
}

// serde_json's messages for faults whose place it doesn't give exactly.
const INVALID_ESCAPE: &str = "invalid escape";
const INVALID_NUMBER: &str = "invalid number";
const CONTROL_CHARACTER: &str = "control character";

/// How many bytes serde_json had read when it found the fault.
fn index(text: &[u8], error: &serde_json::Error) -> usize {
    let line_start = match error.line() {
        0 | 1 => 0,
        line => memchr::memchr_iter(b'\n', text).nth(line - 2).map_or(0, |newline| newline + 1),
    };
    line_start + error.column()
}

/// The byte at fault. Usually it is the last one that was read.
fn bad_byte(text: &[u8], index: usize, words: &str) -> usize {
    let last = index.saturating_sub(1);
    if words.starts_with(CONTROL_CHARACTER) {
        return index;
    }
    if words.starts_with(INVALID_ESCAPE) && index >= 6 && is_unicode_escape(text, index - 6) {
        return index - 4 + bad_digit(&text[index - 4..index]).unwrap_or(3);
    }
    if words.starts_with(INVALID_NUMBER) && index == text.len() && ends_within_number(text) {
        return index;
    }
    last
}

/// A `\u` escape that the text's end cuts short may have a bad digit before that end.
fn end_or_bad_digit(text: &[u8]) -> usize {
    for digits in [3, 2, 1] {
        if let Some(start) = text.len().checked_sub(digits + 2)
            && is_unicode_escape(text, start)
        {
            return bad_digit(&text[start + 2..]).map_or(text.len(), |bad| start + 2 + bad);
        }
    }
    text.len()
}

/// Whether `\u` at `at` is an escape: so it is unless the backslash is itself escaped.
fn is_unicode_escape(text: &[u8], at: usize) -> bool {
    let backslashes = text[..=at].iter().rev().take_while(|byte| **byte == b'\\').count();
    text.get(at + 1) == Some(&b'u') && backslashes % 2 == 1
}

fn bad_digit(digits: &[u8]) -> Option<usize> {
    digits.iter().position(|byte| !byte.is_ascii_hexdigit())
}

/// Whether the only fault of the number at the text's end is that it ends.
fn ends_within_number(text: &[u8]) -> bool {
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    let start = text.iter().rposition(|byte| !is_part(byte)).map_or(0, |before| before + 1);
    let mut number = text[start..].to_vec();
    let is_number = !number.is_empty();
    number.push(b'0');
    is_number && serde_json::from_slice::<IgnoredAny>(&number).is_ok()
}
