//! Errors of a schema, and the violations of a document.

use std::fmt;
use std::ops::Range;

use serde::Serialize;

/// A mistake in a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{document}{pointer}: {message}", pointer = Fragment(.pointer))]
pub struct InvalidSchema {
    /// The name of the document that contains it.
    pub document: String,
    /// The place in that document, as a JSON pointer.
    pub pointer: String,
    /// The bytes at fault.
    pub span: Range<usize>,
    /// The error message.
    pub message: String,
    /// The document that it refers to, if that isn't among the given ones.
    pub missing: Option<String>,
}

struct Fragment<'a>(&'a str);

impl fmt::Display for Fragment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "#{}", self.0) }
    }
}

/// A violation of a schema in a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The value at fault, as a JSON pointer.
    pub pointer: String,
    /// The violated part of the schema, as a JSON pointer; in another document than the first, with its name and `#` before it.
    pub schema_pointer: String,
    /// What was expected, in words.
    pub expected: String,
    /// What was found: the text of the value, or its beginning.
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, found {}", self.expected, self.found)
    }
}

/// Why a document is invalid, or why that isn't known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValidationError {
    /// It has these violations.
    Wrong(Violations),
    /// The available steps didn't suffice.
    OutOfSteps,
}

/// The violations of a document, up to a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violations {
    /// At least one, in the order in which the schema was followed.
    pub list: Vec<Violation>,
    /// There are more, which aren't listed.
    pub is_cut: bool,
}
