//! What becomes of an event.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// What a transform makes of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransformOutcome<'s> {
    /// It is the same, byte for byte.
    Unchanged,
    /// It goes on like this.
    Changed(&'s str),
    /// It goes no further.
    Filtered(Filtered),
    /// It has become several.
    Several(Several),
}

/// The events that one has become.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Several {
    /// Those that go on.
    pub events: Vec<DerivedEvent>,
    /// Those that go no further.
    pub filtered: Vec<Filtered>,
}

/// One of the events that one has become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivedEvent {
    /// Its number, from 0, among all that the event became. Those that go no further are counted too, so that an id that is derived
    /// from the number doesn't depend on what becomes of the others.
    pub number: u32,
    /// The event itself.
    pub payload: String,
    /// The elements that it was made of, the outermost first.
    pub(super) elements: Vec<Origin>,
}

/// An element of which `explode` made an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// The step, from 1.
    pub(super) step: usize,
    pub(super) array: Arc<str>,
    pub(super) place: Range<usize>,
    /// The number of the first event that was made of it.
    pub(super) first: u32,
}

/// The element that an event was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'p> {
    /// Its bytes as `explode` found them.
    pub text: &'p str,
    /// The event's number among those that were made of the element, if a later `explode` made several of it.
    pub number: Option<u32>,
}

impl DerivedEvent {
    /// The element that the first of these steps made this event of which was done, see [`super::Transform::elements_with`].
    #[must_use]
    pub fn element(&self, steps: &[usize]) -> Option<Element<'_>> {
        let found = steps.iter().find_map(|step| self.elements.iter().position(|element| element.step == *step))?;
        let Origin { array, place, first, .. } = self.elements.get(found)?;
        let is_innermost = found + 1 == self.elements.len();
        let number = if is_innermost { None } else { Some(self.number - first) };
        Some(Element { text: array.get(place.clone())?, number })
    }
}

/// Which step took an event out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filtered {
    /// The step, from 1.
    pub step: usize,
    /// What it does: `filter`, `sample`, `dedupe`, or `explode` where the array was empty.
    pub operation: &'static str,
}

impl Filtered {
    /// Whether another event stands for this one, which must then be stored.
    #[must_use]
    pub fn came_before(&self) -> bool {
        self.operation == "dedupe"
    }
}

/// Why an event is refused. As text: the step, the place in the payload, what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepError {
    /// The step, from 1.
    pub step: usize,
    /// What it does.
    pub operation: &'static str,
    /// Where in the payload, as a JSON pointer; nothing where the whole is meant.
    pub pointer: Option<String>,
    /// What is wrong.
    pub detail: String,
    /// Whether it would have taken more operations than there were.
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
