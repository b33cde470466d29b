//! JSON pointers as settings.

use json::JsonPointer;

use super::reader::Wrong;

/// Reads a JSON pointer.
pub(super) fn parse(text: &str) -> Result<JsonPointer, Wrong> {
    text.parse().map_err(|error: json::InvalidPointer| {
        Wrong::new("is not a JSON pointer", error.to_string()).help("a pointer looks like /user/id; see RFC 6901")
    })
}
