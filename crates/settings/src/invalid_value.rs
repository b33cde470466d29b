//! Why a text is no value of its setting.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Why a text, or a number, is no value of its setting.
#[derive(Clone, Debug)]
pub struct InvalidValue {
    /// Follows the setting's name: "is not an address".
    pub what: String,
    /// Is written under the value.
    pub label: String,
    /// The remedy.
    pub help: Option<String>,
}

impl InvalidValue {
    /// `what` follows the setting's name, `label` is written under the value.
    pub fn new(what: impl Into<String>, label: impl Into<String>) -> Self {
        Self { what: what.into(), label: label.into(), help: None }
    }

    /// Adds the remedy.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

/// A parser of any type that a text can be. The error begins with `what`, which follows the setting's name.
pub fn parsed<T: FromStr<Err: Display>>(what: &'static str) -> impl Fn(&str) -> Result<T, InvalidValue> {
    move |text| text.parse().map_err(|error: T::Err| InvalidValue::new(what, error.to_string()))
}

/// The meaning of a word.
///
/// # Errors
/// It is none of `words`: `what` follows the setting's name.
pub fn one_of<T: Copy>(words: &[(&str, T)], text: &str, what: &str) -> Result<T, InvalidValue> {
    let known = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
    known.ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        InvalidValue::new(what, format!("expected one of {}", words.join(", ")))
    })
}

/// The meaning of the word that a text is.
///
/// # Errors
/// It is none of them. The error begins with `what`.
pub fn word<T: Copy>(text: &str, what: &str, words: &[(&str, T)]) -> Result<T, InvalidValue> {
    let known = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
    known.ok_or_else(|| {
        let quoted: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
        let (last, others) = quoted.split_last().map_or(("", &[][..]), |(last, others)| (last.as_str(), others));
        InvalidValue::new(what, format!("expected {} or {last}", others.join(", ")))
    })
}

/// Checks that a number is in the range.
///
/// # Errors
/// It isn't.
pub fn number_within<N>(number: i64, range: RangeInclusive<N>) -> Result<N, InvalidValue>
where
    N: TryFrom<i64> + PartialOrd + Display,
{
    let (min, max) = (range.start(), range.end());
    let wrong = || InvalidValue::new("is out of range", format!("expected {min} to {max}"));
    N::try_from(number).ok().filter(|number| range.contains(number)).ok_or_else(wrong)
}
