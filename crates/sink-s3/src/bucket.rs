//! The names of buckets.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

const BYTES_MIN: usize = 3;
const BYTES_MAX: usize = 63;

/// The name of a bucket by the rules of S3: 3 to 63 lower-case letters, digits, `-` and `.`, with a letter or digit at
/// both ends. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bucket(Arc<str>);

/// Why a text can't be such a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {BYTES_MIN} to {BYTES_MAX} of a-z, 0-9, - and ., with a letter or digit at both ends")]
pub struct InvalidBucket;

impl Bucket {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Bucket {
    type Err = InvalidBucket;

    fn from_str(text: &str) -> Result<Self, InvalidBucket> {
        let is_letter_or_digit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let good = (BYTES_MIN..=BYTES_MAX).contains(&text.len())
            && text.bytes().all(|byte| is_letter_or_digit(byte) || b"-.".contains(&byte))
            && text.bytes().next().is_some_and(is_letter_or_digit)
            && text.bytes().last().is_some_and(is_letter_or_digit)
            && !text.contains("..");
        if good { Ok(Self(text.into())) } else { Err(InvalidBucket) }
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules_of_s3() {
        for good in ["abc", "events-2026", "a.b-c", &"a".repeat(63)] {
            assert!(good.parse::<Bucket>().is_ok(), "{good}");
        }
        for bad in ["", "ab", "Abc", "a_b", "a/b", "-ab", "ab-", "a..b", "é12", "abc\n", &"a".repeat(64)] {
            assert!(bad.parse::<Bucket>().is_err(), "{bad}");
        }
    }
}
