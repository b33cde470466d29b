//! The name of a stream.

use std::fmt;
use std::str::FromStr;

/// Bytes of a stream's name, which is in the subjects of cursors.
const STREAM_BYTES_MAX: usize = 128;

/// The name of a stream: ASCII letters, digits, `_` and `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamName(String);

/// A text that isn't a stream name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a stream name must have 1 to {STREAM_BYTES_MAX} of A-Z, a-z, 0-9, `_` and `-`")]
pub struct InvalidStream;

impl FromStr for StreamName {
    type Err = InvalidStream;

    fn from_str(text: &str) -> Result<Self, InvalidStream> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        let is_name = (1..=STREAM_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_allowed);
        is_name.then(|| Self(text.to_owned())).ok_or(InvalidStream)
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
