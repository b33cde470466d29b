//! One document on its path through the steps, and the outcome of a step.

use std::ops::Range;
use std::sync::Arc;

use json::JsonPointer;

use super::budget::Budget;
use super::context::Context;
use super::dedupe_window::Windows;
use super::tree::{EditError, Tree};

/// One document on its path through the steps.
pub(super) struct Run<'r, 'c> {
    pub(super) context: &'r Context<'c>,
    pub(super) tree: &'r mut Tree,
    /// The output of the current step.
    pub(super) made: &'r mut String,
    pub(super) windows: &'r mut Windows,
    pub(super) budget: Budget,
    /// The payload as received.
    pub(super) received: &'r str,
}

/// Why a step fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) pointer: Option<String>,
    pub(super) detail: String,
    /// The event is rejected, regardless of the step's `on_error`.
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

/// Whether an event continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StepOutcome {
    GoesOn,
    IsFiltered,
    /// It becomes these.
    Becomes(Exploded),
}

/// The events that an array was split into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exploded {
    pub(super) array: Arc<str>,
    /// For each event the bytes of its element.
    pub(super) places: Vec<Range<usize>>,
    pub(super) events: Vec<String>,
}

impl Run<'_, '_> {
    /// The value at a pointer, if it isn't null.
    pub(super) fn value(&mut self, at: &JsonPointer) -> Result<Option<&str>, Failure> {
        let found = self.tree.get(at).map_err(|error| failure(at, &error))?;
        Ok(found.filter(|json| *json != "null"))
    }

    /// Spends the cost of the last search in the document.
    pub(super) fn spend_search(&mut self) -> Result<(), Failure> {
        let passed = self.tree.take_passed();
        self.budget.spend(passed).map_err(Failure::new)
    }
}

pub(super) fn failure(at: &JsonPointer, error: &EditError) -> Failure {
    Failure::at(at, error.to_string())
}
