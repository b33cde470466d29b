//! A mistake in a configured step, with its place for the caret.

use std::fmt;
use std::ops::Range;

/// A mistake in a step. As text: the step, the key, the mistake, the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepDiagnostic {
    /// The step, from 1.
    pub step: usize,
    /// The part of the step.
    pub at: StepLocation,
    /// The mistake.
    pub message: String,
    /// The remedy, if it isn't obvious.
    pub help: Option<String>,
}

/// A part of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepLocation {
    /// The step as a whole.
    Step,
    /// A key.
    Key(String),
    /// The value of a key.
    Value(String),
    /// Some bytes of a key's value, which is a text.
    Within(String, Range<usize>),
    /// An element of a key's value, which is a list, from 0.
    Element(String, usize),
}

impl StepDiagnostic {
    /// A diagnostic without help.
    pub fn new(step: usize, at: StepLocation, message: impl Into<String>) -> Self {
        Self { step, at, message: message.into(), help: None }
    }
}

impl StepLocation {
    /// The key, if the place is a key or its value.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Step => None,
            Self::Key(key) | Self::Value(key) | Self::Within(key, _) | Self::Element(key, _) => Some(key),
        }
    }
}

impl fmt::Display for StepDiagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}", self.step)?;
        if let Some(key) = self.at.key() {
            write!(f, ", `{key}`")?;
        }
        write!(f, ": {}", self.message)?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, "; {help}"))
    }
}

impl std::error::Error for StepDiagnostic {}
