//! What a store keeps objects in: a container of Swift, a bucket of S3.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Shorter than both allow is never needed; S3 allows at least 3.
const BYTES_MIN: usize = 3;
/// S3 allows 63, Swift 256.
const BYTES_MAX: usize = 63;

/// The name of a container or bucket: 3 to 63 lower-case letters, digits, `-` and `.`, at both ends a letter or digit. What all stores
/// take. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Container(Arc<str>);

/// Why a text can't be such a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("wanted {BYTES_MIN} to {BYTES_MAX} of a-z, 0-9, - and ., a letter or digit at both ends")]
pub struct InvalidContainer;

impl Container {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Container {
    type Err = InvalidContainer;

    fn from_str(text: &str) -> Result<Self, InvalidContainer> {
        let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let good = (BYTES_MIN..=BYTES_MAX).contains(&text.len())
            && text.bytes().all(|byte| letter(byte) || b"-.".contains(&byte))
            && text.bytes().next().is_some_and(letter)
            && text.bytes().last().is_some_and(letter)
            && !text.contains("..");
        if good { Ok(Self(text.into())) } else { Err(InvalidContainer) }
    }
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_all_stores_take() {
        for good in ["abc", "events-2026", "a.b-c", &"a".repeat(63)] {
            assert!(good.parse::<Container>().is_ok(), "{good}");
        }
        for bad in ["", "ab", "Abc", "a_b", "a/b", "-ab", "ab-", "a..b", "é12", &"a".repeat(64)] {
            assert!(bad.parse::<Container>().is_err(), "{bad}");
        }
    }
}
