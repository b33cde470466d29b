//! A table of a document, with the place of everything in it.

use std::fmt;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::environment::variable_name;
use super::report::{SourceId, Spot};

/// A value and where it was found.
#[derive(Clone, Debug)]
pub(super) struct Found<T> {
    pub(super) value: T,
    pub(super) spot: Spot,
}

/// One table of a document, or the nothing in its place.
#[derive(Clone, Debug)]
pub(super) struct Section<'d> {
    path: Vec<String>,
    entries: Option<&'d DeTable<'d>>,
    /// The table's own name; for the root its beginning.
    spot: Spot,
}

impl<'d> Section<'d> {
    /// The document itself.
    pub(super) fn root(source: SourceId, document: &'d DeTable<'d>) -> Self {
        Self { path: Vec::new(), entries: Some(document), spot: Spot { source, span: 0..0 } }
    }

    /// The table `name` within `parent`, absent from the document.
    pub(super) fn absent(parent: &Self, name: &str) -> Self {
        Self { path: parent.child_path(name), entries: None, spot: parent.spot.clone() }
    }

    /// The table that stands as `key` within `parent`.
    pub(super) fn child(parent: &Self, key: &Spanned<DeString<'_>>, entries: &'d DeTable<'d>) -> Self {
        Self { path: parent.child_path(key.get_ref()), entries: Some(entries), spot: parent.spot_of(key) }
    }

    fn child_path(&self, name: &str) -> Vec<String> {
        self.path.iter().map(String::as_str).chain([name]).map(str::to_owned).collect()
    }

    /// The key `name` of this table with its place, and its value.
    pub(super) fn entry(&self, name: &str) -> Option<(&'d Spanned<DeString<'d>>, &'d Spanned<DeValue<'d>>)> {
        self.entries?.get_key_value(name)
    }

    /// Whether the table is one of those within the table `name` of the document.
    pub(super) fn is_within(&self, name: &str) -> bool {
        self.path.first().is_some_and(|first| first == name)
    }

    /// Where the table's name stands.
    pub(super) const fn spot(&self) -> &Spot {
        &self.spot
    }

    /// The last part of the table's path.
    pub(super) fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    /// How a person writes a key of this table. It is a text only where it is shown: with thousands of types, to make one for
    /// every setting takes a tenth of a second.
    pub(super) const fn key_path<'p>(&'p self, key: &'p str) -> KeyPath<'p> {
        KeyPath { section: self.path.as_slice(), key }
    }

    /// The value of `key`, if the document has one.
    pub(super) fn get(&self, key: &str) -> Option<(Spot, &'d DeValue<'d>)> {
        let value = self.entries?.get(key)?;
        Some((self.spot_of(value), value.get_ref()))
    }

    /// Where a part of this table stands.
    pub(super) fn spot_of<T>(&self, part: &Spanned<T>) -> Spot {
        Spot { source: self.spot.source, span: part.span() }
    }

    /// Every key with its value.
    pub(super) fn entries(
        &self,
    ) -> impl Iterator<Item = (&'d Spanned<DeString<'d>>, &'d Spanned<DeValue<'d>>)> + use<'d> {
        self.entries.into_iter().flatten()
    }

    /// The environment variable that stands for `key`.
    pub(super) fn variable(&self, key: &str) -> String {
        variable_name(self.path.iter().map(String::as_str).chain([key]))
    }
}

/// A key with the tables that it stands in, as a person writes it.
#[derive(Clone, Copy)]
pub(super) struct KeyPath<'p> {
    section: &'p [String],
    key: &'p str,
}

impl fmt::Display for KeyPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_bare = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        for (number, part) in self.section.iter().map(String::as_str).chain([self.key]).enumerate() {
            let dot = if number > 0 { "." } else { "" };
            if is_bare(part) && !part.is_empty() { write!(f, "{dot}{part}")? } else { write!(f, "{dot}{part:?}")? }
        }
        Ok(())
    }
}
