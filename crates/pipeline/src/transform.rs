//! Changes events by steps that a configuration names, before they are stored.
//!
//! Steps are compiled once. On an event they open only what they name; everything else stays as it was written, byte for byte.
//! What they may cost is bounded, in time and in bytes, whatever they say and whatever the event holds.
//! `docs/transform.md` says what there is.

mod budget;
mod change;
mod compile;
mod context;
mod explode;
mod extract;
mod mistake;
mod options;
mod origin;
mod outcome;
mod reach;
mod run;
mod sample;
pub(crate) mod scan;
mod spec;
mod step;
mod tables;
#[cfg(test)]
mod tests;
pub(crate) mod text;
pub(crate) mod time;
mod trace;
mod tree;
mod window;

pub use compile::knows_key;
pub use context::Context;
pub use mistake::{Mistake, Spot};
pub use outcome::{Element, Filtered, Outcome, Part, Several, StepError};
pub use spec::{Setting, StepSpec};
pub use tables::{InvalidTable, Tables};
pub use trace::{Did, Traced};
pub use window::{Mark, Windows};

use std::time::Duration;

use event::limits::TRANSFORM_WORK_MAX;

use budget::Budget;
use context::Fact;
use run::{End, Gathered, check_length};
use step::{Failure, Operation, Run, Source, Step};
use trace::{Nobody, Observer, Watcher};
use tree::Tree;

use crate::values::View;

/// Steps that were compiled.
#[derive(Clone, Debug)]
pub struct Transform {
    steps: Vec<Step>,
}

/// Buffers for one event after the other.
#[derive(Debug, Default)]
pub struct Scratch {
    tree: Tree,
    made: String,
    output: String,
}

impl Transform {
    /// Compiles steps.
    ///
    /// # Errors
    /// Every [`Mistake`] in them.
    pub fn compile(steps: &[StepSpec], tables: &Tables) -> Result<Self, Vec<Mistake>> {
        compile::compile(steps, tables).map(|steps| Self { steps })
    }

    /// What its steps remember from one event to the next. `seed` must be random.
    #[must_use]
    pub fn windows(&self, seed: u64) -> Windows {
        Windows::new(seed, self.steps.iter().filter_map(Step::window))
    }

    /// The headers of requests that its steps ask for, in small letters.
    pub fn headers(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| match &step.operation {
            Operation::Set { value: Source::Fact(Fact::Header(name)), .. } => Some(name.as_str()),
            _ => None,
        })
    }

    /// What the steps do, in their order.
    pub fn operations(&self) -> impl Iterator<Item = &'static str> {
        self.steps.iter().map(|step| step.name)
    }

    /// The steps that may take an event out.
    pub fn filters(&self) -> impl Iterator<Item = Filtered> {
        self.steps.iter().filter(|step| step.operation.may_filter()).map(Step::filtered)
    }

    /// Whether what an event is known by decides on it, see [`Context::key`].
    #[must_use]
    pub fn asks_for_key(&self) -> bool {
        self.steps.iter().any(|step| matches!(&step.operation, Operation::Sample(_)))
    }

    /// Takes an event through the steps. `payload` must have passed [`crate::json::check`]. `windows` are those that
    /// [`Transform::windows`] made, or of those [for this request](Windows::for_request); what they remember of an event that
    /// then isn't stored must be forgotten, see [`Windows::forget_since`].
    ///
    /// # Errors
    /// [`StepError`] where a step fails, unless it says that the event goes on then.
    pub fn run<'s>(
        &self,
        payload: &str,
        context: &Context<'_>,
        windows: &mut Windows,
        scratch: &'s mut Scratch,
    ) -> Result<Outcome<'s>, StepError> {
        self.run_within(&mut { TRANSFORM_WORK_MAX }, View::unread(payload), context, windows, scratch)
    }

    /// The same with fewer `operations` than there may be, which become those that it has taken: an event that takes more is stopped,
    /// and can be taken again. Where the payload's values were read, for a schema, they aren't looked for again.
    ///
    /// # Errors
    /// As [`Transform::run`], and a [`StepError`] that is [exhausted](StepError::exhausted) where it was stopped.
    pub fn run_within<'s>(
        &self,
        operations: &mut usize,
        payload: View<'_>,
        context: &Context<'_>,
        windows: &mut Windows,
        scratch: &'s mut Scratch,
    ) -> Result<Outcome<'s>, StepError> {
        self.observed((payload, operations), context, windows, scratch, &mut Nobody)
    }

    /// The same, and hands over what each step did and how long it took by `clock`.
    ///
    /// # Errors
    /// As [`Transform::run`].
    pub fn trace<'s>(
        &self,
        payload: &str,
        context: &Context<'_>,
        windows: &mut Windows,
        scratch: &'s mut Scratch,
        clock: &dyn Fn() -> Duration,
        each: &mut dyn FnMut(Traced),
    ) -> Result<Outcome<'s>, StepError> {
        self.observed(
            (View::unread(payload), &mut { TRANSFORM_WORK_MAX }),
            context,
            windows,
            scratch,
            &mut Watcher::new(clock, each),
        )
    }

    fn observed<'s, O: Observer>(
        &self,
        (payload, operations): (View<'_>, &mut usize),
        context: &Context<'_>,
        windows: &mut Windows,
        scratch: &'s mut Scratch,
        observer: &mut O,
    ) -> Result<Outcome<'s>, StepError> {
        let Some(last) = self.steps.last() else {
            *operations = 0;
            return Ok(Outcome::Unchanged);
        };
        let mark = windows.mark();
        let Scratch { tree, made, output } = scratch;
        for buffer in [&mut *made, &mut *output] {
            buffer.clear();
            buffer.shrink_to(tree::KEPT_BYTES);
        }
        // What an event before has left uncounted isn't this one's.
        tree.take_passed();
        tree.read(payload.payload());
        tree.take_members(payload);
        let mut gathered = Gathered::default();
        let mut run =
            Run { context, tree, made, windows, budget: Budget::new(*operations), received: payload.payload() };
        let end = run.steps(&self.steps, &mut gathered, observer);
        *operations = run.budget.spent();
        let exhausted = run.budget.is_exhausted();
        let end = end.map_err(|error| StepError { exhausted, ..error });
        let outcome = end.and_then(|end| match end {
            End::Whole if !tree.is_changed() => Ok(Outcome::Unchanged),
            End::Whole => {
                tree.write_document(output);
                check_length(output).map_err(|detail| last.error(Failure::new(detail)))?;
                Ok(Outcome::Changed(output.as_str()))
            }
            End::Filtered(by) => Ok(Outcome::Filtered(by)),
            End::Exploded => Ok(Outcome::Several(gathered.several)),
        });
        if outcome.as_ref().map_or(true, |outcome| !outcome.goes_on()) {
            windows.forget_since(mark);
        }
        outcome
    }
}

impl Step {
    const fn window(&self) -> Option<window::Bounds> {
        match &self.operation {
            Operation::Dedupe { bounds, .. } => Some(*bounds),
            _ => None,
        }
    }
}

impl Outcome<'_> {
    /// Whether anything of the event is to be stored.
    #[must_use]
    pub const fn goes_on(&self) -> bool {
        match self {
            Self::Unchanged | Self::Changed(_) => true,
            Self::Filtered(_) => false,
            Self::Several(several) => !several.events.is_empty(),
        }
    }
}
