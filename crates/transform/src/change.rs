//! Changes of single values: each is a function from JSON text to JSON text.

mod coerce;
mod hash;
mod lookup;
mod parse;
mod rewrite;
mod shape;
mod words;

use limits::EVENT_BYTES_MAX;

pub(super) use coerce::Coerce;
pub(super) use hash::{DIGITS, Hash};
pub(super) use lookup::Lookup;
pub(super) use parse::Parse;
pub(super) use rewrite::{Needle, Redact, Replace, literal};
pub(super) use shape::{Flatten, Unflatten};
pub(super) use words::{Mask, Truncate};

use super::budget::Budget;
use json::text;

/// A change of one value.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Lower,
    Upper,
    Trim,
    Split(String),
    Join(String),
    Mask(Mask),
    Truncate(Truncate),
    Replace(Replace),
    Redact(Redact),
    Hash(Hash),
    Coerce(Coerce),
    Parse(Parse),
    Flatten(Flatten),
    Unflatten(Unflatten),
    Lookup(Lookup),
}

/// The result of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeResult {
    /// A value, which was written.
    Value,
    /// Nothing: the value stays unchanged.
    Nothing,
}

/// The reason why the value can't be changed.
type Changed = Result<(), String>;

impl Change {
    /// The cost of a byte that is read: it takes about ten nanoseconds if objects are built of it.
    pub(super) const fn weight(&self) -> usize {
        match self {
            Self::Unflatten(_) | Self::Parse(_) => 4,
            _ => 1,
        }
    }

    /// Whether it makes a value unreadable.
    pub(super) const fn hides(&self) -> bool {
        matches!(self, Self::Hash(_) | Self::Mask(_) | Self::Redact(_) | Self::Replace(_) | Self::Truncate(_))
    }

    /// Writes the result for a value that isn't null.
    pub(super) fn apply(&self, json: &str, out: &mut String, budget: &mut Budget) -> Result<ChangeResult, String> {
        match self {
            Self::Lower => words::lower(json, out)?,
            Self::Upper => words::upper(json, out)?,
            Self::Trim => words::each(json, out, |text| text.trim().to_owned())?,
            Self::Split(by) => words::split(json, by, out)?,
            Self::Join(by) => words::join(json, by, out)?,
            Self::Mask(mask) => mask.apply(json, out)?,
            Self::Truncate(truncate) => truncate.apply(json, out)?,
            Self::Replace(replace) => replace.apply(json, out, budget)?,
            Self::Redact(redact) => redact.apply(json, out, budget)?,
            Self::Hash(hash) => hash.apply(json, out)?,
            Self::Coerce(coerce) => coerce.apply(json, out)?,
            Self::Parse(parse) => parse.apply(json, out)?,
            Self::Flatten(flatten) => flatten.apply(json, out, budget)?,
            Self::Unflatten(unflatten) => unflatten.apply(json, out, budget)?,
            Self::Lookup(lookup) => return lookup.apply(json, out),
        }
        check_room(out)?;
        Ok(ChangeResult::Value)
    }
}

/// Whether the output so far is no longer than an event may be.
fn check_room(out: &str) -> Changed {
    if out.len() <= EVENT_BYTES_MAX {
        return Ok(());
    }
    Err(format!("the result has more than {EVENT_BYTES_MAX} bytes: send a smaller event"))
}

/// The reason why a value of another kind isn't accepted.
fn unfit<T>(json: &str, wanted: &str) -> Result<T, String> {
    Err(format!("the value is {}, but should be {wanted}", text::kind(json)))
}

/// The characters of a string.
fn string(json: &str) -> Result<std::borrow::Cow<'_, str>, String> {
    text::read_string(json).map_or_else(|| unfit(json, "a string"), Ok)
}
