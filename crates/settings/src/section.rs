//! A table of a document, with the span of each part.

use std::fmt;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::diagnostics::{SourceId, SourceSpan};
use crate::environment::variable_name;
use crate::old_name::OldName;

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
    old_names: &'static [OldName],
}

impl<'d> Section<'d> {
    /// The document itself.
    #[must_use]
    pub fn root(source: SourceId, document: &'d DeTable<'d>) -> Self {
        let span = SourceSpan { source, range: 0..0 };
        Self { path: Vec::new(), entries: Some(document), span, old_names: &[] }
    }

    /// Accepts these old names in the table and in all within it.
    #[must_use]
    pub fn with_old_names(self, old_names: &'static [OldName]) -> Self {
        Self { old_names, ..self }
    }

    /// The table `name` within `parent`, which the document lacks.
    #[must_use]
    pub fn absent(parent: &Self, name: &str) -> Self {
        let (span, old_names) = (parent.span.clone(), parent.old_names);
        Self { path: parent.child_path(name), entries: None, span, old_names }
    }

    /// The table at `key` within `parent`.
    #[must_use]
    pub fn child(parent: &Self, key: &Spanned<DeString<'_>>, entries: &'d DeTable<'d>) -> Self {
        let (span, old_names) = (parent.span_of(key), parent.old_names);
        Self { path: parent.child_path(key.get_ref()), entries: Some(entries), span, old_names }
    }

    /// The table at `index` of the list `name` within `parent`.
    #[must_use]
    pub fn element(parent: &Self, (name, index): (&str, usize), span: SourceSpan, entries: &'d DeTable<'d>) -> Self {
        let path = parent.child_path(&format!("{name}[{index}]"));
        Self { path, entries: Some(entries), span, old_names: parent.old_names }
    }

    fn child_path(&self, name: &str) -> Vec<String> {
        self.path.iter().map(String::as_str).chain([name]).map(str::to_owned).collect()
    }

    /// The key `name` of this table, or its old name, and its value, both with their ranges.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<(&'d Spanned<DeString<'d>>, &'d Spanned<DeValue<'d>>)> {
        self.exact_entry(name).or_else(|| self.exact_entry(self.renamed(name)?.old_key?))
    }

    /// The same without old names.
    pub(crate) fn exact_entry(&self, name: &str) -> Option<(&'d Spanned<DeString<'d>>, &'d Spanned<DeValue<'d>>)> {
        self.entries?.get_key_value(name)
    }

    /// The parts of the setting `key` that had other names.
    pub(crate) fn renamed(&self, key: &str) -> Option<&'static OldName> {
        self.old_names.iter().find(|renamed| renamed.key == key && renamed.is_in(&self.path))
    }

    /// The setting whose old name is `key`.
    pub(crate) fn new_key(&self, key: &str) -> Option<&'static str> {
        let found = self.old_names.iter().find(|renamed| renamed.old_key == Some(key) && renamed.is_in(&self.path));
        found.map(|renamed| renamed.key)
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

    /// A key of this table with its path, to be displayed. It is formatted late, because formatting one for every
    /// setting takes 0.1 s with thousands of tables.
    #[must_use]
    pub const fn key_path<'p>(&'p self, key: &'p str) -> KeyPath<'p> {
        KeyPath { section: self.path.as_slice(), key }
    }

    /// The value of `key`, if the document has one.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<(SourceSpan, &'d DeValue<'d>)> {
        let (_, value) = self.entry(key)?;
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

    /// The old environment variable of `key`, if it had another name.
    pub(crate) fn old_variable(&self, key: &str) -> Option<String> {
        Some(self.variable(self.renamed(key)?.old_key?))
    }
}

/// A key with its path, as a configuration writes it. A table of a list has its index: `list[0].key`.
#[derive(Clone, Copy, Debug)]
pub struct KeyPath<'p> {
    section: &'p [String],
    key: &'p str,
}

impl fmt::Display for KeyPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_bare = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-[]".contains(&byte));
        for (number, part) in self.section.iter().map(String::as_str).chain([self.key]).enumerate() {
            let dot = if number > 0 { "." } else { "" };
            if is_bare(part) && !part.is_empty() { write!(f, "{dot}{part}")? } else { write!(f, "{dot}{part:?}")? }
        }
        Ok(())
    }
}
