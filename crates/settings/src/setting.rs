//! Declarations of settings. The parser, `forebay config keys`, the pages and the JSON Schema all read them.

use std::fmt;
use std::time::Duration;

/// A setting: one key of a table.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// The values that it takes.
    pub kind: Kind,
    /// The value that it has if it isn't set.
    pub default: Unset,
    /// A value as TOML, if the default is none.
    pub example: &'static str,
    /// When a changed value takes effect.
    pub takes_effect: TakesEffect,
    /// What it does, in Markdown. Links start at `docs/reference/configuration`.
    pub text: &'static str,
}

/// The values of a setting.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A string; the word says what it is, as `text`, `JSON pointer` or `URL`.
    Text(&'static str),
    /// `true` or `false`.
    Boolean,
    /// A whole number from the first to the second.
    Integer(i64, i64),
    /// Bytes with a unit, from the first to the second.
    Size(u64, u64),
    /// A time with a unit, from the first to the second.
    Duration(Duration, Duration),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list.
    List(&'static Kind),
    /// A table with a value for each name, which the operator chooses.
    Names(&'static Kind),
    /// A table with these settings.
    Table(&'static [Setting]),
    /// One of several kinds.
    Either(&'static [Kind]),
    /// A table with some of these keys, whose values may be anything.
    Open(fn() -> Vec<&'static str>),
}

/// What a setting is if it isn't set.
#[derive(Clone, Copy, Debug)]
pub enum Unset {
    /// Nothing: the setting has no effect.
    None,
    /// It must be set.
    Required,
    /// This string.
    Text(&'static str),
    /// This value.
    Boolean(bool),
    /// This number.
    Integer(i64),
    /// As many bytes.
    Size(u64),
    /// This time.
    Duration(Duration),
    /// Not a fixed value: the words, in Markdown.
    Described(&'static str),
}

/// When a changed value takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakesEffect {
    /// With a reload.
    Reload,
    /// With a restart.
    Restart,
}

/// A JSON pointer.
pub const POINTER: Kind = Kind::Text("JSON pointer");
/// The path of a file or of a directory.
pub const PATH: Kind = Kind::Text("path");
/// A URL.
pub const URL: Kind = Kind::Text("URL");
/// An IP address and a port.
pub const ADDRESS: Kind = Kind::Text("IP address and port");
/// A condition.
pub const EXPRESSION: Kind = Kind::Text("expression");
/// A list of strings.
pub const TEXTS: Kind = Kind::List(&Kind::Text("text"));

impl Setting {
    /// A setting of this kind that has no effect if it isn't set.
    #[must_use]
    pub const fn new(name: &'static str, kind: Kind, text: &'static str) -> Self {
        Self { name, kind, default: Unset::None, example: "", takes_effect: TakesEffect::Reload, text }
    }

    /// A string.
    #[must_use]
    pub const fn text(name: &'static str, text: &'static str) -> Self {
        Self::new(name, Kind::Text("text"), text)
    }

    /// `false` unless it is set.
    #[must_use]
    pub const fn flag(name: &'static str, text: &'static str) -> Self {
        Self::new(name, Kind::Boolean, text).or(Unset::Boolean(false))
    }

    /// A whole number.
    #[must_use]
    pub const fn integer(name: &'static str, (min, max): (i64, i64), text: &'static str) -> Self {
        Self::new(name, Kind::Integer(min, max), text)
    }

    /// A number of bytes.
    #[must_use]
    pub const fn size(name: &'static str, (min, max): (u64, u64), text: &'static str) -> Self {
        Self::new(name, Kind::Size(min, max), text)
    }

    /// A length of time.
    #[must_use]
    pub const fn duration(name: &'static str, (min, max): (Duration, Duration), text: &'static str) -> Self {
        Self::new(name, Kind::Duration(min, max), text)
    }

    /// One of a few words.
    #[must_use]
    pub const fn choice(name: &'static str, words: &'static [&'static str], text: &'static str) -> Self {
        Self::new(name, Kind::Choice(words), text)
    }

    /// Sets the default.
    #[must_use]
    pub const fn or(self, default: Unset) -> Self {
        Self { default, ..self }
    }

    /// It must be set.
    #[must_use]
    pub const fn required(self) -> Self {
        self.or(Unset::Required)
    }

    /// Sets the example, as TOML.
    #[must_use]
    pub const fn example(self, example: &'static str) -> Self {
        Self { example, ..self }
    }

    /// Another value needs a restart.
    #[must_use]
    pub const fn restart(self) -> Self {
        Self { takes_effect: TakesEffect::Restart, ..self }
    }

    /// The bounds of a length of time; without one none.
    pub(crate) const fn times(&self) -> (Duration, Duration) {
        match self.kind {
            Kind::Duration(min, max) => (min, max),
            _ => (Duration::ZERO, Duration::MAX),
        }
    }

    /// The bounds of a number of bytes; without one none.
    pub(crate) const fn sizes(&self) -> (u64, u64) {
        match self.kind {
            Kind::Size(min, max) => (min, max),
            _ => (0, u64::MAX),
        }
    }

    /// The bounds of a number; without one none.
    pub(crate) const fn numbers(&self) -> (i64, i64) {
        match self.kind {
            Kind::Integer(min, max) => (min, max),
            _ => (i64::MIN, i64::MAX),
        }
    }
}

/// The words of a list of words with their meanings.
#[must_use]
pub const fn words<T, const N: usize>(meanings: &[(&'static str, T); N]) -> [&'static str; N] {
    let mut words = [""; N];
    let mut index = 0;
    while index < N {
        words[index] = meanings[index].0;
        index += 1;
    }
    words
}

/// The names of settings, as an array.
#[must_use]
pub const fn name_array<const N: usize>(settings: &[Setting; N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut index = 0;
    while index < N {
        names[index] = settings[index].name;
        index += 1;
    }
    names
}

/// The names of settings.
pub fn names(settings: &'static [Setting]) -> impl Iterator<Item = &'static str> + Clone {
    settings.iter().map(|setting| setting.name)
}

impl Kind {
    /// Whether a variable can set it.
    #[must_use]
    pub fn has_variable(&self) -> bool {
        match self {
            Self::Table(_) | Self::Names(_) | Self::Open(_) => false,
            Self::List(kind) => kind.has_variable(),
            Self::Either(kinds) => kinds.iter().any(Self::has_variable),
            _ => true,
        }
    }
}

impl fmt::Display for Kind {
    /// The kind and its bounds, in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(what) => f.write_str(what),
            Self::Boolean => f.write_str("`true` or `false`"),
            Self::Integer(min, max) => {
                write!(f, "integer{}", bounds(*min, *max, i64::MIN, i64::MAX, |n| n.to_string()))
            }
            Self::Size(min, max) => write!(f, "size{}", bounds(*min, *max, 0, u64::MAX, size)),
            Self::Duration(min, max) => {
                write!(f, "duration{}", bounds(*min, *max, Duration::ZERO, Duration::MAX, duration))
            }
            Self::Choice(words) => {
                let (last, others) = words.split_last().unwrap_or((&"", &[]));
                let others: Vec<String> = others.iter().map(|word| format!("`{word}`")).collect();
                let or = if others.is_empty() { "" } else { " or " };
                write!(f, "{}{or}`{last}`", others.join(", "))
            }
            Self::List(kind) => write!(f, "list: {kind}"),
            Self::Names(kind) => write!(f, "table of names: {kind}"),
            Self::Table(settings) => {
                let names: Vec<String> = names(settings).map(|name| format!("`{name}`")).collect();
                write!(f, "table with {}", names.join(", "))
            }
            Self::Either(kinds) => {
                let kinds: Vec<String> = kinds.iter().map(Self::to_string).collect();
                f.write_str(&kinds.join("; or "))
            }
            Self::Open(_) => f.write_str("table"),
        }
    }
}

fn bounds<N: PartialEq>(min: N, max: N, no_min: N, no_max: N, show: impl Fn(N) -> String) -> String {
    match (min == no_min, max == no_max) {
        (true, true) => String::new(),
        (true, false) => format!(", at most {}", show(max)),
        (false, true) => format!(", at least {}", show(min)),
        (false, false) => format!(", {} to {}", show(min), show(max)),
    }
}

impl fmt::Display for Unset {
    /// The value as it is written, without quotes; or words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Required => f.write_str("required"),
            Self::Text("") => f.write_str("empty"),
            Self::Text(text) | Self::Described(text) => f.write_str(text),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Size(bytes) => f.write_str(&size(*bytes)),
            Self::Duration(length) => f.write_str(&duration(*length)),
        }
    }
}

/// A number of bytes in the largest unit that divides it.
#[must_use]
pub fn size(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|(shift, _)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    unit.map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

/// A length of time in the largest unit that divides it, up to days.
#[must_use]
pub fn duration(length: Duration) -> String {
    let nanos = length.as_nanos();
    let units = [
        (86_400_000_000_000, "d"),
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
    ];
    let unit = units.into_iter().find(|(unit, _)| nanos > 0 && nanos.is_multiple_of(*unit));
    match unit {
        Some((unit, name)) => format!("{}{name}", nanos / unit),
        None if nanos == 0 => "0s".to_owned(),
        None => format!("{nanos}ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_defaults_are_in_words() {
        let seconds = Duration::from_secs;
        for (kind, words) in [
            (Kind::Integer(1, 1024), "integer, 1 to 1024"),
            (Kind::Integer(1, i64::MAX), "integer, at least 1"),
            (Kind::Size(0, 16 << 30), "size, at most 16GiB"),
            (Kind::Size(0, u64::MAX), "size"),
            (Kind::Duration(seconds(1), seconds(300)), "duration, 1s to 5m"),
            (Kind::Choice(&["one", "all"]), "`one` or `all`"),
            (Kind::Choice(&["day"]), "`day`"),
            (TEXTS, "list: text"),
        ] {
            assert_eq!(kind.to_string(), words);
        }
        for (length, text) in [(0, "0s"), (75, "75s"), (60, "1m"), (36_525 * 86_400, "36525d"), (36_000, "10h")] {
            assert_eq!(duration(seconds(length)), text);
            assert_eq!(::text::duration::parse(text), Ok(seconds(length)));
        }
        for (bytes, text) in [(0, "0"), (1000, "1000"), (1 << 16, "64KiB"), (3 << 29, "1536MiB"), (5 << 30, "5GiB")] {
            assert_eq!(size(bytes), text);
            assert_eq!(crate::size::parse(text).ok(), Some(bytes));
        }
    }
}
