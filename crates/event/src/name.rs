//! Type names: what decides an event's schema, transform and routes.

use std::fmt;
use std::sync::Arc;

use crate::limits::TYPE_NAME_BYTES_MAX;

/// The name of an event's type: `[a-z0-9][a-z0-9_-]*` parts joined by `.`, at most
/// [`TYPE_NAME_BYTES_MAX`] bytes. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeName(Arc<str>);

/// Why a text is no type name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTypeName {
    /// The text has no bytes.
    #[error("a type name can't be empty")]
    Empty,
    /// The text is longer than the limit.
    #[error("a type name has at most {TYPE_NAME_BYTES_MAX} bytes, this one has {0}")]
    TooLong(usize),
    /// A byte stands where the grammar doesn't allow it; the offset counts from 0.
    #[error(
        "byte {0} is not allowed there: parts of a-z, 0-9, `_` and `-`, each beginning with a letter or digit, joined by `.`"
    )]
    Byte(usize),
}

impl TypeName {
    /// Checks `text` against the grammar.
    ///
    /// # Errors
    /// [`InvalidTypeName`] says what is wrong and at which byte.
    pub fn new(text: &str) -> Result<Self, InvalidTypeName> {
        check(text.as_bytes())?;
        Ok(Self(text.into()))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check(bytes: &[u8]) -> Result<(), InvalidTypeName> {
    if bytes.is_empty() {
        return Err(InvalidTypeName::Empty);
    }
    if bytes.len() > TYPE_NAME_BYTES_MAX {
        return Err(InvalidTypeName::TooLong(bytes.len()));
    }
    let mut part_begins = true;
    for (offset, byte) in bytes.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' => part_begins = false,
            b'_' | b'-' if !part_begins => {}
            b'.' if !part_begins => part_begins = true,
            _ => return Err(InvalidTypeName::Byte(offset)),
        }
    }
    if part_begins {
        return Err(InvalidTypeName::Byte(bytes.len() - 1));
    }
    Ok(())
}

impl fmt::Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_grammar() {
        for good in ["a", "0", "access", "job_status", "access.hits", "a-b.c_d.9"] {
            assert!(TypeName::new(good).is_ok(), "{good}");
        }
        let long = "a".repeat(TYPE_NAME_BYTES_MAX + 1);
        for (bad, why) in [
            ("", InvalidTypeName::Empty),
            ("..", InvalidTypeName::Byte(0)),
            ("-x", InvalidTypeName::Byte(0)),
            ("a..b", InvalidTypeName::Byte(2)),
            ("a.", InvalidTypeName::Byte(1)),
            ("a._b", InvalidTypeName::Byte(2)),
            ("Access", InvalidTypeName::Byte(0)),
            ("a/b", InvalidTypeName::Byte(1)),
            ("é", InvalidTypeName::Byte(0)),
            (long.as_str(), InvalidTypeName::TooLong(TYPE_NAME_BYTES_MAX + 1)),
        ] {
            assert_eq!(TypeName::new(bad), Err(why), "{bad}");
        }
        assert!(TypeName::new(&"a".repeat(TYPE_NAME_BYTES_MAX)).is_ok());
    }
}
