//! A subject without wildcards.

use std::fmt;
use std::str::FromStr;

/// The maximum of bytes of a subject: with an inbox and two sizes it is far below the server's limit of 4 KiB a line.
const SUBJECT_BYTES_MAX: usize = 256;

/// A subject without wildcards: words of visible ASCII characters, separated by dots.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subject(String);

/// Why a text isn't a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSubject {
    /// It is empty or too long.
    #[error("a subject must have 1 to {SUBJECT_BYTES_MAX} bytes")]
    Length,
    /// Two consecutive dots, or one at an end.
    #[error("a word before, between or after its dots is empty")]
    Empty,
    /// A character that has a meaning in subjects, or isn't visible ASCII.
    #[error("{0:?} isn't allowed in it: use visible ASCII characters without `*` and `>`")]
    Character(char),
}

impl Subject {
    /// The subject's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Subject {
    type Err = InvalidSubject;

    fn from_str(text: &str) -> Result<Self, InvalidSubject> {
        if text.is_empty() || text.len() > SUBJECT_BYTES_MAX {
            return Err(InvalidSubject::Length);
        }
        let is_wrong = |symbol: &char| !symbol.is_ascii_graphic() || matches!(symbol, '*' | '>');
        if let Some(symbol) = text.chars().find(is_wrong) {
            return Err(InvalidSubject::Character(symbol));
        }
        if text.split('.').any(str::is_empty) {
            return Err(InvalidSubject::Empty);
        }
        Ok(Self(text.to_owned()))
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
    fn only_words_between_dots_are_subjects() {
        for text in ["a", "shop.orders.get", "$SRV.PING.a-b_c"] {
            assert_eq!(text.parse::<Subject>().map(|subject| subject.to_string()), Ok(text.to_owned()));
        }
        let long = "a".repeat(SUBJECT_BYTES_MAX + 1);
        for (text, why) in [
            ("", InvalidSubject::Length),
            (&long, InvalidSubject::Length),
            (".a", InvalidSubject::Empty),
            ("a..b", InvalidSubject::Empty),
            ("a.", InvalidSubject::Empty),
            ("a.*", InvalidSubject::Character('*')),
            (">", InvalidSubject::Character('>')),
            ("a b", InvalidSubject::Character(' ')),
            ("a\r\nPUB b 0", InvalidSubject::Character('\r')),
            ("é", InvalidSubject::Character('é')),
        ] {
            assert_eq!(text.parse::<Subject>(), Err(why), "{text}");
        }
    }
}
