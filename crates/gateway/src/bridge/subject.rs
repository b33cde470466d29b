//! The subject of a bridge. It is fixed: no part of a request gets into it.

use std::fmt;
use std::str::FromStr;

const BYTES_MAX: usize = 255;

/// A subject without wildcards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject(Box<str>);

/// Why a text isn't such a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSubject {
    /// It has too many bytes.
    #[error("it has more than {BYTES_MAX} bytes")]
    Long,
    /// A word is missing before, after or between dots.
    #[error("expected words between dots, as in shop.orders.get")]
    EmptyWord,
    /// Another character, a wildcard or a parameter.
    #[error("{0:?} isn't allowed: a subject is fixed and has A to Z, a to z, 0 to 9, `-` and `_` between dots")]
    Character(char),
}

impl Subject {
    /// The subject as a text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Subject {
    type Err = InvalidSubject;

    fn from_str(text: &str) -> Result<Self, InvalidSubject> {
        if text.len() > BYTES_MAX {
            return Err(InvalidSubject::Long);
        }
        let is_foreign = |character: &char| !character.is_ascii_alphanumeric() && !"-_.".contains(*character);
        if let Some(foreign) = text.chars().find(is_foreign) {
            return Err(InvalidSubject::Character(foreign));
        }
        if text.split('.').any(str::is_empty) { Err(InvalidSubject::EmptyWord) } else { Ok(Self(text.into())) }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_fixed() {
        for text in ["a", "shop.orders.get", "A-1.b_2"] {
            assert_eq!(text.parse::<Subject>().map(|subject| subject.to_string()), Ok(text.to_owned()));
        }
        for (text, error) in [
            ("", InvalidSubject::EmptyWord),
            ("a..b", InvalidSubject::EmptyWord),
            ("a.", InvalidSubject::EmptyWord),
            ("a.*", InvalidSubject::Character('*')),
            ("a.>", InvalidSubject::Character('>')),
            ("a.{id}", InvalidSubject::Character('{')),
            ("a b", InvalidSubject::Character(' ')),
            ("a\r\nPUB b", InvalidSubject::Character('\r')),
            ("$SRV.PING", InvalidSubject::Character('$')),
        ] {
            assert_eq!(text.parse::<Subject>(), Err(error), "{text}");
        }
        assert_eq!("a".repeat(256).parse::<Subject>(), Err(InvalidSubject::Long));
    }
}
