//! The prefix of objects' names, in a store without directories: a text with placeholders for the type, the day and the
//! hour.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use event::TypeName;
use limits::TYPE_NAME_BYTES_MAX;
use text::rfc3339;

use crate::period::{Period, PeriodUnit};

/// Stores accept names of 1,024 bytes. The part that a manifest adds is shorter than 256.
const BYTES_MAX: usize = 256;
const TYPE: &str = "{type}";
const DAY: &str = "{day}";
const HOUR: &str = "{hour}";

/// The prefix of names: ASCII letters, digits and `. _ - = /`, with `{day}` (`2026-11-21`) and `{hour}` (`13`) of the
/// time when an object's first event was received, in UTC, and `{type}`, with which an object holds events of one type.
/// [By the time of events](Self::by_event_time) an object holds events of one day or hour. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix {
    text: Option<Arc<str>>,
    /// Read for each record.
    has_type: bool,
    /// The part of the events' time that is in names, if they follow it.
    unit: Option<PeriodUnit>,
}

/// Why a text can't be a prefix of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPrefix {
    /// There is something else in braces.
    #[error("only {{type}}, {{day}} and {{hour}} are allowed in braces")]
    Name,
    /// A character that some stores or tools interpret.
    #[error("expected ASCII letters, digits, . _ - = /, {{type}}, {{day}} and {{hour}}")]
    Character,
    /// Names would be too long.
    #[error(
        "expected at most {BYTES_MAX} bytes, where each {{type}} counts as the longest type name: shorten the prefix"
    )]
    Long,
    /// A path that tools would interpret as another one.
    #[error("expected no / at the beginning, no //, and no part that is . or ..")]
    Path,
}

impl Prefix {
    /// No prefix.
    pub const NONE: Self = Self { text: None, has_type: false, unit: None };

    /// Whether objects hold events of one type each.
    #[must_use]
    pub const fn has_type(&self) -> bool {
        self.has_type
    }

    /// Whether a day or an hour is in names.
    #[must_use]
    pub fn has_time(&self) -> bool {
        self.time_unit().is_some()
    }

    /// The same by the time of the events: `{day}` and `{hour}` are those of each event, so an object holds events of one day or hour.
    #[must_use]
    pub fn by_event_time(self) -> Self {
        Self { unit: self.time_unit(), ..self }
    }

    /// Whether objects hold events of one day or hour each.
    #[must_use]
    pub const fn follows_events(&self) -> bool {
        self.unit.is_some()
    }

    /// The period of an event's time, if objects hold events of one period each.
    #[must_use]
    pub fn period(&self, time: i64) -> Option<Period> {
        self.unit.map(|unit| Period::of(unit, time))
    }

    fn time_unit(&self) -> Option<PeriodUnit> {
        let text = self.text.as_deref()?;
        match (text.contains(DAY), text.contains(HOUR)) {
            (false, false) => None,
            (true, false) => Some(PeriodUnit::Day),
            (true, true) => Some(PeriodUnit::Hour),
            (false, true) => Some(PeriodUnit::HourOfDay),
        }
    }

    /// The prefix for an object of this type, if it contains the type, and of this time: microseconds since 1970, UTC.
    #[must_use]
    pub fn at(&self, type_name: &str, time: i64) -> String {
        let Some(text) = &self.text else { return String::new() };
        let (day, hour) = rfc3339::day_and_hour(time);
        text.replace(DAY, &day).replace(HOUR, &hour).replace(TYPE, type_name)
    }

    /// The part before the first placeholder, with which all names begin.
    pub(super) fn fixed(&self) -> &str {
        self.text.as_deref().unwrap_or_default().split('{').next().unwrap_or_default()
    }

    /// Whether the prefix can expand to this text.
    pub(super) fn can_be(&self, text: &str) -> bool {
        can_expand_to(self.text.as_deref().unwrap_or_default(), text)
    }
}

/// Only few placeholders for types fit, so trying each length of their names is little work.
fn can_expand_to(mut left: &str, mut text: &str) -> bool {
    while let Some(next) = left.chars().next() {
        if let Some(rest) = left.strip_prefix(TYPE) {
            let names = (1..=TYPE_NAME_BYTES_MAX).filter_map(|bytes| text.split_at_checked(bytes));
            return names
                .into_iter()
                .any(|(name, rest_of_text)| TypeName::new(name).is_ok() && can_expand_to(rest, rest_of_text));
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

/// How many bytes at the start of a text match `form`, in which `d` is a digit.
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
        let (filled, has_type) = (Some(text.into()).filter(|_| !text.is_empty()), text.contains(TYPE));
        Ok(Self { text: filled, has_type, unit: None })
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
    fn possible_expansions_are_recognised() {
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
    fn event_time_gives_each_prefix_a_period() {
        const HOUR: i64 = 3_600_000_000;
        for (text, same, other) in [
            ("{day}/", Some(HOUR), Some(24 * HOUR)),
            ("{day}/{hour}/", Some(1), Some(24 * HOUR)),
            ("{hour}/", Some(24 * HOUR), Some(HOUR)),
            ("{type}/", Some(HOUR), None),
            ("", Some(HOUR), None),
        ] {
            let plain: Prefix = text.parse().unwrap();
            assert!(plain.period(0).is_none() && !plain.follows_events());
            let prefix = plain.clone().by_event_time();
            assert_eq!(prefix.follows_events(), plain.has_time());
            let has_same_name = |time| prefix.at("a", 0) == prefix.at("a", time);
            let has_same_period = |time| prefix.period(0) == prefix.period(time);
            assert!(same.is_none_or(|time| has_same_name(time) && has_same_period(time)), "{text}");
            assert!(other.is_none_or(|time| !has_same_name(time) && !has_same_period(time)), "{text}");
        }
    }

    #[test]
    fn placeholders_expand_and_other_texts_are_rejected() {
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
