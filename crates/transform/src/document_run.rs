//! One document on its way through the steps, and how a step ends.

use std::ops::Range;
use std::sync::Arc;

use json::JsonPointer;

use super::budget::Budget;
use super::context::Context;
use super::dedupe_window::Windows;
use super::tree::{EditError, Tree};

/// One document on its way through the steps.
pub(super) struct Run<'r, 'c> {
    pub(super) context: &'r Context<'c>,
    pub(super) tree: &'r mut Tree,
    /// What the current step makes.
    pub(super) made: &'r mut String,
    pub(super) windows: &'r mut Windows,
    pub(super) budget: Budget,
    /// The payload as it was received.
    pub(super) received: &'r str,
}

/// Why a step fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) pointer: Option<String>,
    pub(super) detail: String,
    /// The event is refused, whatever the step says of failures.
    pub(super) is_final: bool,
}

impl Failure {
    pub(super) fn new(detail: impl Into<String>) -> Self {
        Self { pointer: None, detail: detail.into(), is_final: false }
    }

    pub(super) fn at(pointer: &JsonPointer, detail: impl Into<String>) -> Self {
        Self { pointer: Some(pointer.as_str().to_owned()), ..Self::new(detail) }
    }
}

impl From<EditError> for Failure {
    fn from(error: EditError) -> Self {
        Self::new(error.to_string())
    }
}

/// Whether an event goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StepOutcome {
    GoesOn,
    IsFiltered,
    /// It becomes these.
    Becomes(Exploded),
}

/// The events that were made of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exploded {
    pub(super) array: Arc<str>,
    /// For each event the bytes of its element.
    pub(super) places: Vec<Range<usize>>,
    pub(super) events: Vec<String>,
}

impl Run<'_, '_> {
    /// What stands at a pointer, if it isn't null.
    pub(super) fn value(&mut self, at: &JsonPointer) -> Result<Option<&str>, Failure> {
        let found = self.tree.get(at).map_err(|error| failure(at, &error))?;
        Ok(found.filter(|json| *json != "null"))
    }

    /// Takes what the last search in the document took.
    pub(super) fn spend_search(&mut self) -> Result<(), Failure> {
        let passed = self.tree.take_passed();
        self.budget.spend(passed).map_err(Failure::new)
    }
}

pub(super) fn failure(at: &JsonPointer, error: &EditError) -> Failure {
    Failure::at(at, error.to_string())
}
