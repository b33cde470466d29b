//! What becomes of an event.

use std::fmt;

/// What a transform makes of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<'s> {
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
    /// Those that go on, each with its number, from 0: their ids are derived from it. The numbers of those that don't are left
    /// out, so that an id doesn't depend on what becomes of the others.
    pub events: Vec<(u32, String)>,
    /// Those that go no further.
    pub filtered: Vec<Filtered>,
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
