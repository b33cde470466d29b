//! The outcome of a transform.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The outcome for one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransformOutcome<'s> {
    /// It is the same, byte for byte.
    Unchanged,
    /// It continues with this payload.
    Changed(&'s str),
    /// It was dropped.
    Filtered(Filtered),
    /// It has become several.
    Several(Several),
}

/// The events that one has become.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Several {
    /// Those that continue.
    pub events: Vec<DerivedEvent>,
    /// Those that were dropped.
    pub filtered: Vec<Filtered>,
}

/// One of the events that one has become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivedEvent {
    /// Its number, from 0, among all events that the event became. Dropped ones are counted too, so an id that is
    /// derived from the number doesn't depend on the others.
    pub number: u32,
    /// The event itself.
    pub payload: String,
    /// The elements that it comes from, the outermost first.
    pub(super) elements: Vec<Origin>,
}

/// An element that `explode` turned into an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// The step, from 1.
    pub(super) step: usize,
    pub(super) array: Arc<str>,
    pub(super) place: Range<usize>,
    /// The number of its first event.
    pub(super) first: u32,
}

/// The element of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'p> {
    /// Its bytes as `explode` found them.
    pub text: &'p str,
    /// The event's number among those of the element, if a later `explode` split it further.
    pub number: Option<u32>,
}

impl DerivedEvent {
    /// The element that the first of these steps that ran turned into this event, see
    /// [`super::Transform::elements_with`].
    #[must_use]
    pub fn element(&self, steps: &[usize]) -> Option<Element<'_>> {
        let found = steps.iter().find_map(|step| self.elements.iter().position(|element| element.step == *step))?;
        let Origin { array, place, first, .. } = self.elements.get(found)?;
        let is_innermost = found + 1 == self.elements.len();
        let number = if is_innermost { None } else { Some(self.number - first) };
        Some(Element { text: array.get(place.clone())?, number })
    }
}

/// The step that dropped an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filtered {
    /// The step, from 1.
    pub step: usize,
    /// Its operation: `filter`, `sample`, `dedupe`, or `explode` if the array was empty.
    pub operation: &'static str,
}

impl Filtered {
    /// Whether another event makes this one a duplicate, and must then be stored.
    #[must_use]
    pub fn is_duplicate(&self) -> bool {
        self.operation == "dedupe"
    }
}

/// Why an event is rejected. As text: the step, the place in the payload, the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepError {
    /// The step, from 1.
    pub step: usize,
    /// Its operation.
    pub operation: &'static str,
    /// The place in the payload, as a JSON pointer; `None` for the whole payload.
    pub pointer: Option<String>,
    /// The error.
    pub detail: String,
    /// Whether it needed more operations than allowed.
    pub exhausted: bool,
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {} ({}", self.step, self.operation)?;
        match &self.pointer {
            Some(pointer) if !pointer.is_empty() => write!(f, " {pointer}")?,
            _ => {}
        }
        write!(f, "): {}", self.detail)
    }
}

impl std::error::Error for StepError {}
