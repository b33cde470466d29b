//! What names of objects begin with, in a store that has no directories: a text in which the type, the day or the hour may stand.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use event::limits::TYPE_NAME_BYTES_MAX;
use event::{TypeName, rfc3339};

/// Stores take names of 1,024 bytes; what a manifest makes is shorter than 256.
const BYTES_MAX: usize = 256;
const TYPE: &str = "{type}";
const DAY: &str = "{day}";
const HOUR: &str = "{hour}";

/// The beginning of names: letters, digits and `. _ - = /`, with `{day}` (`2026-11-21`) and `{hour}` (`13`) of when an object's first
/// event was received, in UTC, and `{type}`, with which an object holds events of one type. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix {
    text: Option<Arc<str>>,
    /// Asked for each record.
    tells_types: bool,
}

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
    pub const NONE: Self = Self { text: None, tells_types: false };

    /// Whether objects hold events of one type each.
    #[must_use]
    pub const fn tells_types(&self) -> bool {
        self.tells_types
    }

    /// The text for an object of this type, if types are told apart, whose first event was received then: microseconds since 1970, UTC.
    #[must_use]
    pub fn at(&self, type_name: &str, received_at: i64) -> String {
        let Some(text) = &self.text else { return String::new() };
        let (day, hour) = rfc3339::day_and_hour(received_at);
        text.replace(DAY, &day).replace(HOUR, &hour).replace(TYPE, type_name)
    }

    /// What all names begin with, whatever their types and times are.
    pub(super) fn fixed(&self) -> &str {
        self.text.as_deref().unwrap_or_default().split('{').next().unwrap_or_default()
    }

    /// Whether it can come to this text.
    pub(super) fn can_be(&self, text: &str) -> bool {
        can_come_to(self.text.as_deref().unwrap_or_default(), text)
    }
}

/// So few types have room in it that to try each length of their names is little work.
fn can_come_to(mut left: &str, mut text: &str) -> bool {
    while let Some(next) = left.chars().next() {
        if let Some(rest) = left.strip_prefix(TYPE) {
            let names = (1..=TYPE_NAME_BYTES_MAX).filter_map(|bytes| text.split_at_checked(bytes));
            return names.into_iter().any(|(name, behind)| TypeName::new(name).is_ok() && can_come_to(rest, behind));
        }
        let (of_left, of_text) = match () {
            () if left.starts_with(DAY) => (DAY.len(), matching(text, "dddd-dd-dd")),
            () if left.starts_with(HOUR) => (HOUR.len(), matching(text, "dd")),
            () => (next.len_utf8(), text.starts_with(next).then_some(next.len_utf8())),
        };
        let Some(of_text) = of_text else { return false };
        (left, text) = (&left[of_left..], &text[of_text..]);
    }
    text.is_empty()
}

/// How many bytes of a text are as `form` says, if it begins so: `d` is for a digit.
fn matching(text: &str, form: &str) -> Option<usize> {
    let fits = |(byte, form): (u8, u8)| if form == b'd' { byte.is_ascii_digit() } else { byte == form };
    (text.len() >= form.len() && text.bytes().zip(form.bytes()).all(fits)).then_some(form.len())
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
        Ok(Self { text: Some(text.into()).filter(|_| !text.is_empty()), tells_types: text.contains(TYPE) })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.as_deref().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_can_be_is_known_from_what_it_cannot() {
        for (prefix, text, can_be) in [
            ("", "", true),
            ("", "a", false),
            ("a-", "a-", true),
            ("a-", "a", false),
            ("a-", "a--", false),
            ("x/{day}/{hour}-", "x/2025-10-09/08-", true),
            ("x/{day}/{hour}-", "x/2025-10-09/8-", false),
            ("x/{day}/{hour}-", "x/2025-1x-09/08-", false),
            ("{hour}{hour}", "0808", true),
            ("{hour}{hour}", "é08", false),
            ("{day}", "2025-10-0", false),
            ("{type}/{hour}", "a.b-c/08", true),
            ("{type}{type}-", "ab-c-", true),
            ("{type}{type}", "a", false),
            ("{type}/", "../", false),
            ("{type}/", "a/b/", false),
            ("{type}", "é", false),
        ] {
            assert_eq!(prefix.parse::<Prefix>().unwrap().can_be(text), can_be, "{prefix} {text}");
        }
    }

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
