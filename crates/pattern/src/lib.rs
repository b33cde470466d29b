//! Regular expressions whose cost is known before they run: linear in the text, and with a factor that is counted.

mod fault;
mod scout;

use std::str::FromStr;
use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};
use regex_automata::hybrid::dfa::DFA;

pub use fault::find_fault;
pub use scout::{Scout, Scouted};

/// The sizes that a compiled regular expression may have, in KiB. If its automaton has too many states to be kept, each
/// byte of a text may cost as many steps as there are states: so it is counted as its size.
const SIZES_KIB: [usize; 6] = [2, 4, 8, 16, 32, 64];

/// A regular expression, and the steps that it takes for each byte of text.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
    steps_per_byte: usize,
    /// A second copy for [`Scout`]; built when it is needed.
    automaton: OnceLock<Option<Box<DFA>>>,
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPattern {
    /// Its syntax is invalid: how, and where.
    #[error("this is not a regular expression: {0}")]
    Syntax(String),
    /// Its compiled form would need too much memory and time.
    #[error("this regular expression is too large: repeat less, or name fewer characters")]
    TooLarge,
}

impl FromStr for Pattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        for kib in SIZES_KIB {
            match RegexBuilder::new(text).size_limit(kib * 1024).build() {
                Ok(regex) => return Ok(Self { regex, steps_per_byte: kib, automaton: OnceLock::new() }),
                Err(regex::Error::Syntax(said)) => {
                    return Err(InvalidPattern::Syntax(find_fault(text).unwrap_or(said)));
                }
                Err(_) => {}
            }
        }
        Err(InvalidPattern::TooLarge)
    }
}

impl Pattern {
    /// The engine that searches.
    #[must_use]
    pub const fn regex(&self) -> &Regex {
        &self.regex
    }

    /// A scout for texts, to run before a search.
    #[must_use]
    pub const fn scout(&self) -> Scout<'_> {
        Scout::new(self)
    }

    /// The operations of a transform that one search through this many bytes takes at worst.
    const fn operations(&self, bytes: usize) -> usize {
        bytes.saturating_mul(self.steps_per_byte) / 2
    }

    /// The steps that one search through this many bytes may take.
    #[must_use]
    pub const fn steps(&self, bytes: usize) -> usize {
        bytes.saturating_mul(self.steps_per_byte)
    }
}
