//! The characters of HTTP, and what is said where they break its rules.

use std::borrow::Cow;

use crate::error_code::ErrorCode;
use crate::problem::{Problem, Refused};

/// A chunked body breaks the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadChunk;

/// The request isn't sound HTTP.
pub(super) fn bad(detail: impl Into<Cow<'static, str>>) -> Refused {
    Problem::boxed(ErrorCode::BadRequest, detail)
}

/// A `tchar` (RFC 9110 §5.6.2).
pub(crate) const fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
}

/// What a field's value may hold (RFC 9110 §5.5).
pub(crate) const fn is_of_value(byte: u8) -> bool {
    byte == b'\t' || byte >= b' ' && byte != 0x7f
}
