//! Names that follow a rule. The type is the proof: no other text becomes one.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The rule of one kind of names.
pub trait NameRule {
    /// Why a text is no such name.
    type Error;

    /// Checks a text.
    ///
    /// # Errors
    /// The text breaks the rule.
    fn check(text: &str) -> Result<(), Self::Error>;
}

/// A name that follows the rule `R`. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckedName<R> {
    text: Arc<str>,
    rule: PhantomData<R>,
}

impl<R: NameRule> CheckedName<R> {
    /// The name with this text.
    ///
    /// # Errors
    /// The text breaks the rule.
    pub fn new(text: &str) -> Result<Self, R::Error> {
        R::check(text)?;
        Ok(Self { text: text.into(), rule: PhantomData })
    }

    /// Checks a text without keeping it.
    ///
    /// # Errors
    /// The text breaks the rule.
    pub fn check(text: &str) -> Result<(), R::Error> {
        R::check(text)
    }
}

impl<R> CheckedName<R> {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The name as shared text.
    #[must_use]
    pub const fn as_arc(&self) -> &Arc<str> {
        &self.text
    }

    /// The same name in memory that no clone of this one shares.
    #[must_use]
    pub fn unshared(&self) -> Self {
        Self { text: Arc::from(&*self.text), rule: PhantomData }
    }
}

impl<R: NameRule> FromStr for CheckedName<R> {
    type Err = R::Error;

    fn from_str(text: &str) -> Result<Self, R::Error> {
        Self::new(text)
    }
}

impl<R> fmt::Display for CheckedName<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl<R> Serialize for CheckedName<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, R: NameRule<Error: fmt::Display>> Deserialize<'de> for CheckedName<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'_, str>::deserialize(deserializer)?;
        Self::new(&text).map_err(de::Error::custom)
    }
}

impl<R> fmt::Debug for CheckedName<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.text, f)
    }
}

/// Whether a text has 1 to `bytes_max` bytes, each of which is allowed in the name, and the first one at its beginning.
#[must_use]
pub fn is_name_of(text: &str, bytes_max: usize, may_begin: fn(u8) -> bool, is_allowed: fn(u8) -> bool) -> bool {
    text.len() <= bytes_max && text.bytes().next().is_some_and(may_begin) && text.bytes().all(is_allowed)
}
