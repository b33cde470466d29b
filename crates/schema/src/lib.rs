//! JSON Schema: validates payloads, and lists the violations.
//!
//! A schema is compiled once, with every document that it refers to: nothing is fetched. A check reads the payload once, converts no
//! number, and never takes more than [`limits::SCHEMA_STEPS_MAX`] steps. `docs/reference/json-schema.md` lists the features, and the differences from
//! other validators; `docs/internals/decisions/011-own-schema-validator.md` says why this is our own crate.

mod check;
mod compile;
mod cycle;
mod draft;
mod ecma_pattern;
mod equal;
mod error;
mod format;
mod ids;
mod number;
mod property_map;
mod registry;
mod subschema;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod uri;

use std::collections::BTreeMap;
use std::fmt;

use json::{ValueIndex, ValueView};

pub use ecma_pattern::SchemaPattern;
pub use error::{InvalidSchema, ValidationError, Violation, Violations};
pub use format::StringFormat;
pub use ids::{ResourceId, SubschemaId};
pub use number::{Divisor, NumberLiteral, is_plain_number};
pub use property_map::{Property, PropertyMap};
pub use subschema::{
    AllowedTypes, Applicator, ArrayRules, Bound, BoundSide, CompiledSchema, ContainsRule, CountRange, DependentNeeds,
    DependentRule, DynamicRef, EnumValues, NumberRules, ObjectRules, StringRules, Subschema, TYPE_NAMES,
};

/// Documents by the names by which schemas may refer to them.
pub type Documents = BTreeMap<String, String>;

/// How a schema is compiled.
#[derive(Clone, Copy, Debug)]
pub struct SchemaOptions<'d> {
    /// The documents that it may refer to.
    pub documents: &'d Documents,
    /// Whether `format` is asserted, or ignored.
    pub formats: bool,
}

/// A compiled schema.
pub struct Schema {
    compiled: CompiledSchema,
    text: String,
    remarks: Vec<InvalidSchema>,
}

/// A function that returns a remark on a name in a schema, if there is one.
pub type Remark = fn(name: &str) -> Option<String>;

impl Schema {
    /// Compiles a schema. Its references are relative to `name`, and errors show it.
    ///
    /// # Errors
    /// Every mistake in it, up to a limit.
    pub fn compile(name: &str, text: &str, options: &SchemaOptions<'_>) -> Result<Self, Vec<InvalidSchema>> {
        Self::compile_with_remarks(name, text, options, |_| None)
    }

    /// The same, with remarks on names in the schema: see [`Schema::remarks`].
    ///
    /// # Errors
    /// As [`Schema::compile`].
    pub fn compile_with_remarks(
        name: &str,
        text: &str,
        options: &SchemaOptions<'_>,
        remark: Remark,
    ) -> Result<Self, Vec<InvalidSchema>> {
        let (compiled, remarks) = compile::compile(name, text, options, remark)?;
        Ok(Self { compiled, text: text.to_owned(), remarks })
    }

    /// Checks a payload, which must have passed [`json::check`]: for other texts the result is undefined.
    ///
    /// # Errors
    /// Its violations, up to a limit.
    pub fn check(&self, payload: &str) -> Result<(), Violations> {
        let mut values = ValueIndex::default();
        let (view, mut steps) = (values.read(payload), usize::MAX);
        self.check_within(view, &mut steps).map_err(|fault| match fault {
            ValidationError::Wrong(violations) => violations,
            ValidationError::OutOfSteps => check::too_much(view, "steps"),
        })
    }

    /// The same for a payload whose values were read. It subtracts the steps that it needs from `steps`: about 20 ns each.
    ///
    /// # Errors
    /// As [`Schema::check`], or these steps don't suffice, and are fewer than it may use.
    pub fn check_within(&self, payload: ValueView<'_>, steps: &mut usize) -> Result<(), ValidationError> {
        check::check(&self.compiled, payload, steps)
    }

    /// The remarks on names in it, at most as many as there may be mistakes.
    #[must_use]
    pub fn remarks(&self) -> &[InvalidSchema] {
        &self.remarks
    }

    /// Its subschemas, for tools that analyse them.
    #[must_use]
    pub const fn compiled(&self) -> &CompiledSchema {
        &self.compiled
    }

    /// The names of the documents that it refers to.
    pub fn documents(&self) -> impl Iterator<Item = &str> {
        self.compiled.documents.iter().map(String::as_str)
    }

    /// The text of the schema.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").field("rules", &self.compiled.subschemas.len()).finish_non_exhaustive()
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}
