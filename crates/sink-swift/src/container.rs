//! The names of containers.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

const BYTES_MAX: usize = 256;

/// The name of a container by the rules of Swift: 1 to 256 bytes of UTF-8 without a slash. Control characters are
/// rejected as probable mistakes. `.` and `..` are rejected because proxies resolve them as paths. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Container(Arc<str>);

/// Why a text can't be such a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected 1 to {BYTES_MAX} bytes without / and control characters, and not . or ..")]
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
        let good = (1..=BYTES_MAX).contains(&text.len())
            && !text.contains(|character: char| character == '/' || character.is_control())
            && !matches!(text, "." | "..");
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
    fn names_follow_the_rules_of_swift() {
        for good in ["a", "Events_2026", "été à Paris", "-.", "a?b#c%", &"é".repeat(128)] {
            assert!(good.parse::<Container>().is_ok(), "{good}");
        }
        for bad in ["", "a/b", "/", "events\n", "a\0", "a\tb", ".", "..", &"é".repeat(129)] {
            assert!(bad.parse::<Container>().is_err(), "{bad}");
        }
    }
}
