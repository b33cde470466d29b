//! What names of objects begin with, in a store that has no directories: a text in which the type, the day or the hour may stand.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use event::limits::TYPE_NAME_BYTES_MAX;
use event::rfc3339;

/// Stores take names of 1,024 bytes; what a manifest makes is shorter than 256.
const BYTES_MAX: usize = 256;
const TYPE: &str = "{type}";
const DAY: &str = "{day}";
const HOUR: &str = "{hour}";

/// The beginning of names: letters, digits and `. _ - = /`, with `{day}` (`2026-11-21`) and `{hour}` (`13`) of when an object's first
/// event was received, in UTC, and `{type}`, with which an object holds events of one type. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix(Option<Arc<str>>);

/// Why a text can't be the beginning of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPrefix {
    /// Something else stands between braces.
    #[error("between braces only {{type}}, {{day}} and {{hour}} can stand")]
    Name,
    /// A character that some stores or tools take for something else.
    #[error("wanted letters a-z, digits and . _ - = / beside {{type}}, {{day}} and {{hour}}")]
    Character,
    /// Names would be too long.
    #[error("wanted at most {BYTES_MAX} bytes, with the longest name of a type")]
    Long,
    /// A path that tools would understand as another one.
    #[error("it must not begin with /, nor have //, . or .. as a part")]
    Path,
}

impl Prefix {
    /// Names begin with what tells objects apart.
    pub const NONE: Self = Self(None);

    /// Whether objects hold events of one type each.
    #[must_use]
    pub fn tells_types(&self) -> bool {
        self.0.as_ref().is_some_and(|text| text.contains(TYPE))
    }

    /// The text for an object of this type, if types are told apart, whose first event was received then: microseconds since 1970, UTC.
    #[must_use]
    pub fn at(&self, type_name: &str, received_at: i64) -> String {
        let Some(text) = &self.0 else { return String::new() };
        let (day, hour) = rfc3339::day_and_hour(received_at);
        text.replace(DAY, &day).replace(HOUR, &hour).replace(TYPE, type_name)
    }
}

impl FromStr for Prefix {
    type Err = InvalidPrefix;

    fn from_str(text: &str) -> Result<Self, InvalidPrefix> {
        let plain = text.replace(DAY, "").replace(HOUR, "").replace(TYPE, "");
        if plain.contains(['{', '}']) {
            return Err(InvalidPrefix::Name);
        }
        if !plain.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-=/".contains(&byte)) {
            return Err(InvalidPrefix::Character);
        }
        if text.len() + text.matches(TYPE).count() * (TYPE_NAME_BYTES_MAX - TYPE.len()) > BYTES_MAX {
            return Err(InvalidPrefix::Long);
        }
        let parts = || text.strip_suffix('/').unwrap_or(text).split('/');
        if text.starts_with('/') || (!text.is_empty() && parts().any(|part| matches!(part, "" | "." | ".."))) {
            return Err(InvalidPrefix::Path);
        }
        Ok(Self(Some(text.into()).filter(|_| !text.is_empty())))
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_hours_are_put_in_and_other_texts_refused() {
        let at = |text: &str| text.parse().map(|prefix: Prefix| prefix.at("a.b", 1_760_000_000_123_456));
        for (text, expected) in [
            ("", ""),
            ("a/", "a/"),
            ("access-", "access-"),
            ("logs/day={day}/{hour}/", "logs/day=2025-10-09/08/"),
            ("{day}-{day}", "2025-10-09-2025-10-09"),
            ("{type}/{day}/", "a.b/2025-10-09/"),
        ] {
            assert_eq!(at(text).as_deref(), Ok(expected));
        }
        for (text, why) in [
            ("{month}/", InvalidPrefix::Name),
            ("day}", InvalidPrefix::Name),
            ("a b", InvalidPrefix::Character),
            ("é", InvalidPrefix::Character),
            ("a?b", InvalidPrefix::Character),
            (&"a".repeat(BYTES_MAX + 1), InvalidPrefix::Long),
            (&"{type}/".repeat(4), InvalidPrefix::Long),
            ("/a", InvalidPrefix::Path),
            ("/", InvalidPrefix::Path),
            ("a//b", InvalidPrefix::Path),
            ("a/../b", InvalidPrefix::Path),
            ("./", InvalidPrefix::Path),
        ] {
            assert_eq!(at(text), Err(why), "{text}");
        }
    }
}
