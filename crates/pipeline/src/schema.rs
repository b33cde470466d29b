//! JSON Schema: whether a payload is what its type wants, and else all that is wrong with it.
//!
//! A schema is compiled once, with every document that it refers to: nothing is fetched. A check reads the payload once, converts no
//! number, and never takes more than [`event::limits::SCHEMA_STEPS_MAX`] steps. `docs/schemas.md` says what is
//! there, and where it differs from other validators; why this is no crate of others, `docs/decisions/011-schemas.md`.

mod check;
mod compile;
mod cycle;
mod difference;
mod draft;
mod equal;
mod error;
mod format;
mod infer;
mod library;
mod members;
mod number;
mod pattern;
mod reach;
mod same;
mod slips;
#[cfg(test)]
pub(crate) mod tests;
mod tree;
mod uri;

use std::collections::BTreeMap;
use std::fmt;

use compile::Compiled;
pub use difference::{Difference, differences};
pub use error::{Fault, InvalidSchema, Violation, Violations};
pub use infer::Samples;
pub use reach::{Reach, Unreachable};

use crate::values::{Values, View};

/// Documents by the names by which schemas may refer to them.
pub type Documents = BTreeMap<String, String>;

/// How a schema is compiled.
#[derive(Clone, Copy, Debug)]
pub struct Options<'d> {
    /// What it may refer to.
    pub documents: &'d Documents,
    /// Whether `format` is asserted, or says nothing.
    pub formats: bool,
}

/// A compiled schema.
pub struct Schema {
    compiled: Compiled,
    text: String,
}

impl Schema {
    /// Compiles a schema. `name` is what its references lead from, and what mistakes name it by.
    ///
    /// # Errors
    /// Every mistake in it, up to a limit.
    pub fn compile(name: &str, text: &str, options: &Options<'_>) -> Result<Self, Vec<InvalidSchema>> {
        let compiled = compile::compile(name, text, options)?;
        Ok(Self { compiled, text: text.to_owned() })
    }

    /// Checks a payload, which must have passed [`crate::json::check`]: of another text anything may be said.
    ///
    /// # Errors
    /// All that is wrong with it, up to a limit.
    pub fn check(&self, payload: &str) -> Result<(), Violations> {
        let mut values = Values::default();
        let (view, mut steps) = (values.read(payload), usize::MAX);
        self.check_within(view, &mut steps).map_err(|fault| match fault {
            Fault::Wrong(violations) => violations,
            Fault::OutOfSteps => check::too_much(view, "steps"),
        })
    }

    /// The same of a payload whose values were read, with the steps that there are, of which it takes those that it needs: about
    /// 20 ns each.
    ///
    /// # Errors
    /// As [`Schema::check`], or these steps don't suffice, and are fewer than it may take.
    pub fn check_within(&self, payload: View<'_>, steps: &mut usize) -> Result<(), Fault> {
        check::check(&self.compiled, payload, steps)
    }

    /// Names in it that are no keywords, and nearly one: what they say counts for nothing. At most as many as there may be mistakes.
    #[must_use]
    pub fn slips(&self) -> &[InvalidSchema] {
        &self.compiled.slips
    }

    /// The names of the documents that it refers to.
    pub fn documents(&self) -> impl Iterator<Item = &str> {
        self.compiled.documents.iter().map(String::as_str)
    }

    /// The schema as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").field("rules", &self.compiled.rules.len()).finish_non_exhaustive()
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}
