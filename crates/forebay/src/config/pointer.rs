//! JSON pointers (RFC 6901) as settings.

use super::reader::Wrong;

/// Checks that `text` is a JSON pointer.
pub(super) fn parse(text: &str) -> Result<Box<str>, Wrong> {
    let wrong = |label: &str| Wrong::new("is not a JSON pointer", label).help("a pointer looks like /user/id; RFC 6901");
    if !text.is_empty() && !text.starts_with('/') {
        return Err(wrong("wanted a `/` at the beginning"));
    }
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'~' && !matches!(bytes.next(), Some(b'0' | b'1')) {
            return Err(wrong("`~` must be `~0`, and `/` within a name `~1`"));
        }
    }
    Ok(text.into())
}
