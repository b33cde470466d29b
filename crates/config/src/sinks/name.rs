//! Names of sinks.

use std::fmt;
use std::sync::Arc;

/// Bytes of a sink's name: every cursor and many metrics have it.
pub(crate) const NAME_BYTES_MAX: usize = 64;

/// The name of a sink: a letter a-z or a digit, then letters, digits, `_` and `-`. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SinkName(Arc<str>);

impl SinkName {
    /// The name with this text, if it can be one.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let first = text.bytes().next().is_some_and(letter);
        let good = first && text.len() <= NAME_BYTES_MAX && text.bytes().all(|b| letter(b) || b"_-".contains(&b));
        good.then(|| Self(text.into()))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as text, to be shared.
    #[must_use]
    pub const fn as_arc(&self) -> &Arc<str> {
        &self.0
    }
}

impl fmt::Display for SinkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SinkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sink_names_follow_the_grammar() {
        for good in ["a", "0", "local", "a-b_c"] {
            assert!(SinkName::new(good).is_some(), "{good}");
        }
        for bad in ["", "-a", "_a", "a.b", "A", "é", &"a".repeat(NAME_BYTES_MAX + 1)] {
            assert!(SinkName::new(bad).is_none(), "{bad}");
        }
    }
}
