//! Names of tokens and of their sources.

use limits::SOURCE_BYTES_MAX;
use text::{CheckedName, NameRule, is_name_of};

/// The name of a token or a source. Cheap to clone.
pub type Name = CheckedName<TokenNameRule>;

/// The rule of these names: `A-Z`, `a-z`, `0-9`, `.`, `_` and `-`, a letter or digit first; at most [`SOURCE_BYTES_MAX`] bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TokenNameRule {}

/// A text that isn't a valid name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a name must have 1 to {SOURCE_BYTES_MAX} characters of A-Z, a-z, 0-9, `.`, `_` and `-`, and begin with a letter or digit"
)]
pub struct InvalidName;

impl NameRule for TokenNameRule {
    type Error = InvalidName;

    fn check(text: &str) -> Result<(), InvalidName> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        is_name_of(text, SOURCE_BYTES_MAX, |first| first.is_ascii_alphanumeric(), is_allowed)
            .then_some(())
            .ok_or(InvalidName)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        for name in ["a", "Web-1.eu_west", "0", &"x".repeat(SOURCE_BYTES_MAX)] {
            assert_eq!(name.parse::<Name>().unwrap().as_str(), name);
        }
        for wrong in ["", "-a", ".", "a b", "é", "a\n", "a/b", &"x".repeat(SOURCE_BYTES_MAX + 1)] {
            assert_eq!(wrong.parse::<Name>(), Err(InvalidName), "{wrong:?}");
        }
    }
}
