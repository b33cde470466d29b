//! JSON pointers as settings.

use std::fmt::Display;
use std::str::FromStr;

use crate::invalid_value::InvalidValue;

/// Reads a JSON pointer of any type that has one's syntax.
///
/// # Errors
/// It is none.
pub fn parse<P: FromStr<Err: Display>>(text: &str) -> Result<P, InvalidValue> {
    text.parse().map_err(|error: P::Err| {
        InvalidValue::new("is not a JSON pointer", error.to_string())
            .help("a pointer looks like /user/id; see RFC 6901")
    })
}
