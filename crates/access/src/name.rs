//! Names of tokens and of the sources that they stand for.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use event::limits::SOURCE_BYTES_MAX;

/// The name of a token or a source: letters, digits, `.`, `_` and `-`, a letter or digit first; at most
/// [`SOURCE_BYTES_MAX`] bytes. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

/// A text that is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a name has 1 to {SOURCE_BYTES_MAX} of A-Z, a-z, 0-9, `.`, `_` and `-`, and begins with a letter or digit")]
pub struct InvalidName;

impl FromStr for Name {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let may_stand = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let begins = text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
        let is_name = begins && text.len() <= SOURCE_BYTES_MAX && text.bytes().all(may_stand);
        is_name.then(|| Self(text.into())).ok_or(InvalidName)
    }
}

impl Name {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name, shared with whoever needs its text.
    #[must_use]
    pub const fn as_arc(&self) -> &Arc<str> {
        &self.0
    }

    /// The same name in memory of its own.
    pub(crate) fn apart(&self) -> Self {
        Self(Arc::from(&*self.0))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
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
