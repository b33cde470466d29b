//! Conditions and computed values: CEL, the Common Expression Language, over one JSON document.
//!
//! An expression is compiled once. On a document it reads only the values that it names, and never takes more than
//! [`limits::EXPRESSION_STEPS_MAX`] steps: neither a hostile expression nor a hostile document can block the caller.
//! `docs/reference/expressions.md` describes the language and its differences from CEL; `docs/internals/decisions/010-own-expressions.md`
//! explains why no external crate is used.

mod convert;
mod error;
mod evaluate;
pub mod first_match;
mod literal;
mod number;
mod parse;
mod places;
#[cfg(test)]
mod tests;
mod token;
mod tree;
mod value;

use std::fmt;
use std::str::FromStr;

use error::Fault;
pub use error::{EvaluationError, InvalidExpression};
use evaluate::{BYTES_PER_STEP, Evaluation, Stop};
pub use number::compare;
use tree::Node;
pub use value::{Computed, NotJson, Value};

/// The name of the whole document in an expression.
pub(crate) const ROOT: &str = "payload";

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Expression {
    text: String,
    root: Node,
    /// Members of the document that it names.
    fields: Vec<String>,
    names_document: bool,
}

impl FromStr for Expression {
    type Err = InvalidExpression;

    fn from_str(text: &str) -> Result<Self, InvalidExpression> {
        let parse::Parsed { root, fields, names_document } = parse::parse(text)?;
        Ok(Self { text: text.to_owned(), root, fields, names_document })
    }
}

impl Expression {
    /// Its value on a document, which must have passed [`json::check`]: in another text nothing may be found.
    ///
    /// # Errors
    /// [`EvaluationError`] if an operator or a function can't be applied to the values of the document, or if it would
    /// take too many steps.
    pub fn evaluate<'a>(&'a self, document: &'a str) -> Result<Value<'a>, EvaluationError<'a>> {
        Evaluation::new(document, &self.fields).value(&self.root).map_err(|stop| self.error(stop))
    }

    /// Whether it is true on a document, as with [`Expression::evaluate`].
    ///
    /// # Errors
    /// [`EvaluationError`] as there, and if the value is neither true nor false.
    pub fn holds<'a>(&'a self, document: &'a str) -> Result<bool, EvaluationError<'a>> {
        self.truth(self.evaluate(document)?)
    }

    /// Whether it is true, with fewer `steps`, which become the remaining ones. The scan of the document is one of
    /// them, even if it finds little.
    ///
    /// # Errors
    /// As [`Expression::holds`].
    pub fn holds_within<'a>(&'a self, document: &'a str, steps: &mut usize) -> Result<bool, EvaluationError<'a>> {
        *steps = steps.saturating_sub(document.len() / BYTES_PER_STEP);
        self.holds_with(document, json::parts::fields(document, &self.fields), steps)
    }

    /// The members of the document that it names.
    #[must_use]
    pub fn fields(&self) -> &[String] {
        &self.fields
    }

    /// Whether it reads the document as a whole, and not only members of it.
    #[must_use]
    pub const fn names_document(&self) -> bool {
        self.names_document
    }

    /// Its value on a document that was read already: `fields` are the members that it names. The document may be
    /// anything unless [`Expression::names_document`]. Its steps are subtracted from `steps`.
    ///
    /// # Errors
    /// As [`Expression::evaluate`].
    pub fn evaluate_with<'a>(
        &'a self,
        document: &'a str,
        fields: Vec<Option<&'a str>>,
        steps: &mut usize,
    ) -> Result<Value<'a>, EvaluationError<'a>> {
        let mut evaluation = Evaluation::with_fields(document, fields, *steps);
        let value = evaluation.value(&self.root);
        *steps = evaluation.steps_left();
        value.map_err(|stop| self.error(stop))
    }

    /// Whether it is true, as with [`Expression::evaluate_with`].
    ///
    /// # Errors
    /// As [`Expression::holds`].
    pub fn holds_with<'a>(
        &'a self,
        document: &'a str,
        fields: Vec<Option<&'a str>>,
        steps: &mut usize,
    ) -> Result<bool, EvaluationError<'a>> {
        self.truth(self.evaluate_with(document, fields, steps)?)
    }

    fn truth<'a>(&'a self, value: Value<'a>) -> Result<bool, EvaluationError<'a>> {
        match value.read() {
            Computed::Bool(value) => Ok(value),
            other => {
                let fault = Fault::NoCondition(other.kind());
                Err(self.error(Stop { place: self.root.place.clone(), fault }))
            }
        }
    }

    fn error(&self, stop: Stop) -> EvaluationError<'_> {
        EvaluationError { part: &self.text[stop.place], fault: stop.fault }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
