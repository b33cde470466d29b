//! Names of sinks.

use text::{CheckedName, NameRule, is_name_of};

/// Bytes of a sink's name: every cursor and many metrics have it.
pub(crate) const NAME_BYTES_MAX: usize = 64;

/// The name of a sink. Cheap to clone.
pub type SinkName = CheckedName<SinkNameRule>;

/// The rule of sinks' names: a-z or 0-9, then a-z, 0-9, `_` and `-`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SinkNameRule {}

/// A text that is no name of a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidSinkName;

impl NameRule for SinkNameRule {
    type Error = InvalidSinkName;

    fn check(text: &str) -> Result<(), InvalidSinkName> {
        let may_begin = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
        is_name_of(text, NAME_BYTES_MAX, may_begin, is_allowed).then_some(()).ok_or(InvalidSinkName)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sink_names_follow_the_grammar() {
        for good in ["a", "0", "local", "a-b_c"] {
            assert!(SinkName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "_a", "a.b", "A", "é", &"a".repeat(NAME_BYTES_MAX + 1)] {
            assert!(SinkName::new(bad).is_err(), "{bad}");
        }
    }
}
