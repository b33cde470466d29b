//! The places that steps read and change, for tools that follow a transform without an event.

use expression::Expression;
use json::JsonPointer;

use super::Transform;
use super::change::Change;
use super::diagnostic::StepLocation;
use super::execute::ERRORS;
use super::explode::Explode;
use super::step::{OnError, Operation, Source, Step};

/// A tool that tracks which places of a payload can have a value.
pub trait PlaceTracker {
    /// A step reads a place. `in_expression` says whether an expression names it.
    fn read(&mut self, step: usize, at: StepLocation, place: &JsonPointer, in_expression: bool);
    /// From now on, any value may be there.
    fn open(&mut self, place: &JsonPointer);
    /// From now on, no value is there. The whole payload can't be removed.
    fn remove(&mut self, place: &JsonPointer);
    /// The value there may be removed. Later elements move then.
    fn may_go(&mut self, place: &JsonPointer);
    /// From now on, the value at `from` is at `to`. If there was none, the value at `to` stays.
    fn copy(&mut self, from: &JsonPointer, to: &JsonPointer);
    /// From now on, no other place has a value.
    fn keep(&mut self, places: &[JsonPointer]);
}

impl Transform {
    /// Reports to a tracker what each step reads and then what it changes, in the order of the steps.
    pub fn track(&self, tracker: &mut impl PlaceTracker) {
        for step in &self.steps {
            step.reads(tracker);
            step.follow(tracker);
        }
    }
}

impl Step {
    fn reads(&self, tracker: &mut impl PlaceTracker) {
        let mut expression = |key: &str, expression: &Expression| {
            for (place, pointer) in expression.places() {
                tracker.read(self.number, StepLocation::Within(key.to_owned(), place), &pointer, true);
            }
        };
        if let Some(when) = &self.when {
            expression("when", when);
        }
        let (key, pointers) = match &self.operation {
            Operation::Set { value: Source::Computed(computed), .. } => return expression("to", computed),
            Operation::Set { .. } => return,
            Operation::Filter(condition) => return expression(self.name, condition),
            Operation::Rename { at, .. }
            | Operation::Move { at, .. }
            | Operation::Copy { at, .. }
            | Operation::Extract { at, .. }
            | Operation::Explode(Explode { at, .. }) => {
                return tracker.read(self.number, StepLocation::Value(self.name.to_owned()), at, false);
            }
            Operation::Drop(at) | Operation::Keep(at) | Operation::Change { at, .. } | Operation::Dedupe { at, .. } => {
                (self.name, at.as_slice())
            }
            Operation::Sample(sample) => ("by", sample.by()),
        };
        for (number, at) in pointers.iter().enumerate() {
            tracker.read(self.number, StepLocation::Element(key.to_owned(), number), at, false);
        }
    }

    /// The places that can have a value after the step.
    fn follow(&self, tracker: &mut impl PlaceTracker) {
        // Whether every event that continues passed the step.
        let is_always = self.when.is_none() && self.on_error == OnError::Refuse;
        if self.on_error == OnError::Mark
            && let Ok(errors) = ERRORS.parse()
        {
            tracker.open(&errors);
        }
        match &self.operation {
            Operation::Set { at, .. } => tracker.open(at),
            Operation::Rename { at, name } => {
                let parent = at.parent();
                if let Some(to) = parent.and_then(|parent| parent.member(name).ok()).filter(|to| to != at) {
                    relocate(tracker, at, &to, is_always);
                }
            }
            Operation::Move { at, to } => relocate(tracker, at, to, is_always),
            Operation::Copy { at, to } if is_always => tracker.copy(at, to),
            Operation::Copy { to, .. } => tracker.open(to),
            Operation::Drop(pointers) if is_always => pointers.iter().for_each(|at| tracker.remove(at)),
            Operation::Keep(pointers) if is_always => tracker.keep(pointers),
            Operation::Change { at, to: None, change } if change.keeps_places() => {}
            Operation::Change { to: Some(to), .. } => tracker.open(to),
            Operation::Change { at, to: None, .. } => at.iter().for_each(|at| tracker.open(at)),
            Operation::Extract { extract, .. } => extract.groups.iter().for_each(|(_, to)| tracker.open(to)),
            Operation::Explode(explode) => {
                tracker.may_go(&explode.at);
                tracker.open(&explode.to);
            }
            Operation::Drop(pointers) | Operation::Keep(pointers) => pointers.iter().for_each(|at| tracker.may_go(at)),
            Operation::Filter(_) | Operation::Sample(_) | Operation::Dedupe { .. } => {}
        }
    }
}

fn relocate(tracker: &mut impl PlaceTracker, at: &JsonPointer, to: &JsonPointer, is_always: bool) {
    if !is_always {
        tracker.may_go(at);
        return tracker.open(to);
    }
    tracker.copy(at, to);
    // Values that were put around the place, or into it, aren't removed with it.
    if !at.is_within(to) && !to.is_within(at) {
        tracker.remove(at);
    }
}

impl Change {
    /// Whether no new place can have a value after it: its result is the same with other texts, or has no parts.
    const fn keeps_places(&self) -> bool {
        match self {
            Self::Lower
            | Self::Upper
            | Self::Trim
            | Self::Join(_)
            | Self::Mask(_)
            | Self::Truncate(_)
            | Self::Replace(_)
            | Self::Redact(_)
            | Self::Hash(_)
            | Self::Coerce(_) => true,
            Self::Split(_) | Self::Parse(_) | Self::Flatten(_) | Self::Unflatten(_) | Self::Lookup(_) => false,
        }
    }
}
