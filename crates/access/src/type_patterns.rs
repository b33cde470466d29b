//! The types of events that a token is limited to.

use std::fmt;
use std::str::FromStr;

use event::TypeName;
use limits::TYPE_NAME_BYTES_MAX;

/// What ends a pattern of all names that begin in one way.
const ANY: char = '*';

/// A type, or all types whose names begin in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypePattern(Box<str>);

/// A text that isn't such a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a type must be a name as `orders`, or the beginning of one and `*` as `segment.*`: a-z, 0-9, `.`, `_` and `-`, at most 64 bytes"
)]
pub struct InvalidTypePattern;

/// The types that a token may post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypePatterns(Box<[TypePattern]>);

impl TypePattern {
    fn has(&self, name: &str) -> bool {
        self.0.strip_suffix(ANY).map_or_else(|| *self.0 == *name, |beginning| name.starts_with(beginning))
    }
}

impl TypePatterns {
    /// The types of these patterns; `None` without any, which is no limit.
    #[must_use]
    pub fn new(patterns: Vec<TypePattern>) -> Option<Self> {
        (!patterns.is_empty()).then(|| Self(patterns.into()))
    }

    /// Whether events of this type may be posted.
    #[must_use]
    pub fn allow(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| pattern.has(name))
    }

    /// Each pattern as text.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|pattern| &*pattern.0)
    }
}

impl FromStr for TypePattern {
    type Err = InvalidTypePattern;

    fn from_str(text: &str) -> Result<Self, InvalidTypePattern> {
        let is_of_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
        let is_valid = match text.strip_suffix(ANY) {
            Some(beginning) => beginning.len() <= TYPE_NAME_BYTES_MAX && beginning.bytes().all(is_of_name),
            None => TypeName::new(text).is_ok(),
        };
        is_valid.then(|| Self(text.into())).ok_or(InvalidTypePattern)
    }
}

impl fmt::Display for TypePatterns {
    /// The patterns, joined by commas.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, pattern) in self.iter().enumerate() {
            if number > 0 {
                f.write_str(",")?;
            }
            f.write_str(pattern)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(text: &str) -> TypePatterns {
        TypePatterns::new(text.split(',').map(|pattern| pattern.parse().unwrap()).collect()).unwrap()
    }

    #[test]
    fn patterns_allow_names_and_beginnings() {
        let limit = patterns("orders,segment.*,log-*");
        for allowed in ["orders", "segment.track", "segment.", "log-", "log-a.b"] {
            assert!(limit.allow(allowed), "{allowed}");
        }
        for other in ["order", "orders.eu", "segment", "segments.track", "log", "", "*", "segment*", "x.segment.track"]
        {
            assert!(!limit.allow(other), "{other}");
        }
        assert!(patterns("*").allow("a") && patterns("*").allow(""));
        assert_eq!(limit.to_string(), "orders,segment.*,log-*");
        assert_eq!(TypePatterns::new(Vec::new()), None);
    }

    #[test]
    fn wrong_patterns_are_rejected() {
        let longest = "a".repeat(TYPE_NAME_BYTES_MAX);
        for valid in ["a", "a.b", "a*", "a.*", "*", &longest, &format!("{longest}*")] {
            assert!(valid.parse::<TypePattern>().is_ok(), "{valid}");
        }
        for wrong in ["", "A", "a..b", "*a", "a*b", "a**", "a b*", "é*", "a,b", &format!("{longest}a*")] {
            assert_eq!(wrong.parse::<TypePattern>(), Err(InvalidTypePattern), "{wrong}");
        }
    }
}
