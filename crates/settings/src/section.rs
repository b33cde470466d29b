//! A table of a document, with the span of each part.

use std::fmt;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::diagnostics::{SourceId, SourceSpan};
use crate::environment::variable_name;

/// A value and its span.
#[derive(Clone, Debug)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Its span.
    pub span: SourceSpan,
}

/// A table of a document, or one that the document lacks.
#[derive(Clone, Debug)]
pub struct Section<'d> {
    path: Vec<String>,
    entries: Option<&'d DeTable<'d>>,
    /// The table's own name; for the root its beginning.
    span: SourceSpan,
}

impl<'d> Section<'d> {
    /// The document itself.
    #[must_use]
    pub fn root(source: SourceId, document: &'d DeTable<'d>) -> Self {
        Self { path: Vec::new(), entries: Some(document), span: SourceSpan { source, range: 0..0 } }
    }

    /// The table `name` within `parent`, which the document lacks.
    #[must_use]
    pub fn absent(parent: &Self, name: &str) -> Self {
        Self { path: parent.child_path(name), entries: None, span: parent.span.clone() }
    }

    /// The table at `key` within `parent`.
    #[must_use]
    pub fn child(parent: &Self, key: &Spanned<DeString<'_>>, entries: &'d DeTable<'d>) -> Self {
        Self { path: parent.child_path(key.get_ref()), entries: Some(entries), span: parent.span_of(key) }
    }

    fn child_path(&self, name: &str) -> Vec<String> {
        self.path.iter().map(String::as_str).chain([name]).map(str::to_owned).collect()
    }

    /// The key `name` of this table and its value, both with their ranges.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<(&'d Spanned<DeString<'d>>, &'d Spanned<DeValue<'d>>)> {
        self.entries?.get_key_value(name)
    }

    /// Whether the table is within the table `name` of the document.
    pub fn is_within(&self, name: &str) -> bool {
        self.path.first().is_some_and(|first| first == name)
    }

    /// The span of the table's name.
    #[must_use]
    pub const fn span(&self) -> &SourceSpan {
        &self.span
    }

    /// The last part of the table's path.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    /// A key of this table with its path, to be displayed. It is no text yet, because to build one for every setting takes 0.1 s with
    /// thousands of tables.
    #[must_use]
    pub const fn key_path<'p>(&'p self, key: &'p str) -> KeyPath<'p> {
        KeyPath { section: self.path.as_slice(), key }
    }

    /// The value of `key`, if the document has one.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<(SourceSpan, &'d DeValue<'d>)> {
        let value = self.entries?.get(key)?;
        Some((self.span_of(value), value.get_ref()))
    }

    /// The span of a part of this table.
    #[must_use]
    pub fn span_of<T>(&self, part: &Spanned<T>) -> SourceSpan {
        SourceSpan { source: self.span.source, range: part.span() }
    }

    /// Every key with its value.
    pub fn entries(&self) -> impl Iterator<Item = (&'d Spanned<DeString<'d>>, &'d Spanned<DeValue<'d>>)> + use<'d> {
        self.entries.into_iter().flatten()
    }

    /// The environment variable of `key`.
    #[must_use]
    pub fn variable(&self, key: &str) -> String {
        variable_name(self.path.iter().map(String::as_str).chain([key]))
    }
}

/// A key with its path, as a configuration writes it.
#[derive(Clone, Copy, Debug)]
pub struct KeyPath<'p> {
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
