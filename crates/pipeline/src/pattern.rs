//! Regular expressions whose cost is known before they run: linear in the text, and with a factor that is counted.

use std::str::FromStr;

use regex::{Regex, RegexBuilder};

/// The sizes that a compiled regular expression may have, in KiB. Where its automaton has too many states to be kept,
/// each byte of a text may cost as many steps as there are states: so it is counted as its size.
const SIZES_KIB: [usize; 6] = [2, 4, 8, 16, 32, 64];

/// A regular expression, and the steps that it takes for each byte of text.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    steps_per_byte: usize,
}

/// Why a text is no pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidPattern {
    #[error("this is no regular expression")]
    Syntax,
    #[error("this regular expression is too large: repeat less, or name fewer characters")]
    TooLarge,
}

impl FromStr for Pattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        let mut failure = InvalidPattern::Syntax;
        for kib in SIZES_KIB {
            match RegexBuilder::new(text).size_limit(kib * 1024).build() {
                Ok(regex) => return Ok(Self { regex, steps_per_byte: kib }),
                Err(regex::Error::Syntax(_)) => return Err(InvalidPattern::Syntax),
                Err(_) => failure = InvalidPattern::TooLarge,
            }
        }
        Err(failure)
    }
}

impl Pattern {
    pub(crate) const fn regex(&self) -> &Regex {
        &self.regex
    }

    /// The steps that one search through so many bytes may take.
    pub(crate) const fn steps(&self, bytes: usize) -> usize {
        bytes.saturating_mul(self.steps_per_byte)
    }
}
