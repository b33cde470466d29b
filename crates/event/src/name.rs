//! Type names: a name decides an event's schema, transform and routes.

use limits::TYPE_NAME_BYTES_MAX;
use text::{CheckedName, NameRule};

/// The name of an event's type. Cheap to clone.
pub type TypeName = CheckedName<TypeNameRule>;

/// The rule of type names: `[a-z0-9][a-z0-9_-]*` parts joined by `.`, at most [`TYPE_NAME_BYTES_MAX`] bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TypeNameRule {}

/// Why a text is no type name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTypeName {
    /// The text has no bytes.
    #[error("a type name can't be empty")]
    Empty,
    /// The text is longer than the limit.
    #[error("a type name has at most {TYPE_NAME_BYTES_MAX} bytes, but this one has {0}")]
    TooLong(usize),
    /// A character is not allowed at its place; the offset counts bytes from 0.
    #[error(
        "{found:?} at byte {at} is not allowed: a type name is in lower case, parts of a-z, 0-9, `_` and `-`, each beginning with \
         a letter or digit, joined by `.`"
    )]
    Character {
        /// The character.
        found: char,
        /// Its offset.
        at: usize,
    },
}

impl NameRule for TypeNameRule {
    type Error = InvalidTypeName;

    fn check(text: &str) -> Result<(), InvalidTypeName> {
        let bytes = text.as_bytes();
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
                _ => return Err(not_allowed(text, offset)),
            }
        }
        if part_begins {
            return Err(not_allowed(text, bytes.len() - 1));
        }
        Ok(())
    }
}

/// The character at `at`; all characters before it are ASCII.
fn not_allowed(text: &str, at: usize) -> InvalidTypeName {
    let found = text.get(at..).and_then(|rest| rest.chars().next()).unwrap_or(char::REPLACEMENT_CHARACTER);
    InvalidTypeName::Character { found, at }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_grammar() {
        for good in ["a", "0", "access", "job_status", "access.hits", "a-b.c_d.9"] {
            assert!(TypeName::new(good).is_ok(), "{good}");
        }
        let character = |found, at| InvalidTypeName::Character { found, at };
        let long = "a".repeat(TYPE_NAME_BYTES_MAX + 1);
        for (bad, why) in [
            ("", InvalidTypeName::Empty),
            ("..", character('.', 0)),
            ("-x", character('-', 0)),
            ("a..b", character('.', 2)),
            ("a.", character('.', 1)),
            ("a._b", character('_', 2)),
            ("Access", character('A', 0)),
            ("a/b", character('/', 1)),
            ("é", character('é', 0)),
            (long.as_str(), InvalidTypeName::TooLong(TYPE_NAME_BYTES_MAX + 1)),
        ] {
            assert_eq!(TypeName::new(bad), Err(why), "{bad}");
        }
        assert!(TypeName::new(&"a".repeat(TYPE_NAME_BYTES_MAX)).is_ok());
    }

    #[test]
    fn error_names_the_character_and_the_rule() {
        let said = |text| TypeName::new(text).unwrap_err().to_string();
        assert!(said("Access").starts_with("'A' at byte 0 is not allowed: a type name is in lower case"));
        assert!(said("a b").starts_with("' ' at byte 1 is not allowed"));
    }
}
