//! The name of a stream.

use std::fmt;
use std::str::FromStr;

/// Bytes of a stream's name, which stands in the subjects of cursors.
const STREAM_BYTES_MAX: usize = 128;

/// The name of a stream: letters, digits, `_` and `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamName(String);

/// A text that is no name of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name of a stream has 1 to {STREAM_BYTES_MAX} of A-Z, a-z, 0-9, `_` and `-` here")]
pub struct InvalidStream;

impl FromStr for StreamName {
    type Err = InvalidStream;

    fn from_str(text: &str) -> Result<Self, InvalidStream> {
        let can_stand = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        let is_name = (1..=STREAM_BYTES_MAX).contains(&text.len()) && text.bytes().all(can_stand);
        is_name.then(|| Self(text.to_owned())).ok_or(InvalidStream)
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
