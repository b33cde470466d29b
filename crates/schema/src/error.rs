//! What is wrong with a schema, and what a schema finds wrong in a document.

use std::fmt;
use std::ops::Range;

use serde::Serialize;

/// A mistake in a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{document}{pointer}: {message}", pointer = Fragment(.pointer))]
pub struct InvalidSchema {
    /// The name of the document that it stands in.
    pub document: String,
    /// Where in that document, as a JSON pointer.
    pub pointer: String,
    /// The bytes at fault.
    pub span: Range<usize>,
    /// What is wrong, in words.
    pub message: String,
    /// The document that it refers to, where that isn't among those that were given.
    pub missing: Option<String>,
}

struct Fragment<'a>(&'a str);

impl fmt::Display for Fragment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "#{}", self.0) }
    }
}

/// What in a document isn't as its schema wants it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The value at fault, as a JSON pointer.
    pub pointer: String,
    /// What in the schema it offends, as a JSON pointer; in another document than the first with its name and `#` before it.
    pub schema_pointer: String,
    /// What was expected, in words.
    pub expected: String,
    /// What was found: the value as it was written, or its beginning.
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, found {}", self.expected, self.found)
    }
}

/// Why a document isn't taken, or why that isn't known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValidationError {
    /// This is wrong with it.
    Wrong(Violations),
    /// The steps that there were didn't suffice to find out.
    OutOfSteps,
}

/// Why a document isn't taken: all that is wrong with it, up to a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violations {
    /// At least one, in the order in which the schema was followed.
    pub list: Vec<Violation>,
    /// There are more, which aren't listed.
    pub is_cut: bool,
}
