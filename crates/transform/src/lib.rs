//! Changes events by configured steps before they are stored.
//!
//! Steps are compiled once. On an event they open only the values that they name; everything else stays unchanged, byte
//! for byte. Their cost is bounded in time and in bytes, for any steps and any event. `docs/reference/transforms.md` describes
//! them all.

mod budget;
mod change;
mod compile;
mod context;
mod dedupe_window;
mod diagnostic;
mod document_run;
mod execute;
mod explode;
mod extract;
mod options;
mod origin;
mod outcome;
mod place_tracker;
mod sample;
mod spec;
mod step;
mod tables;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod trace;
mod tree;

pub use compile::{is_step_key, step_keys};
pub use context::Context;
pub use dedupe_window::{WindowMark, Windows};
pub use diagnostic::{StepDiagnostic, StepLocation};
pub use outcome::{DerivedEvent, Element, Filtered, Several, StepError, TransformOutcome};
pub use place_tracker::PlaceTracker;
pub use spec::{StepSpec, StepValue};
pub use tables::{InvalidTable, Tables};
pub use trace::{Did, Traced};

use std::time::Duration;

use limits::TRANSFORM_WORK_MAX;

use budget::Budget;
use context::Fact;
use document_run::{Failure, Run};
use execute::{End, Gathered, check_length};
use step::{Operation, Source, Step};
use trace::{Observer, Tracer};
use tree::Tree;

use json::ValueView;

/// Compiled steps.
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
    /// Every [`StepDiagnostic`] in them.
    pub fn compile(steps: &[StepSpec], tables: &Tables) -> Result<Self, Vec<StepDiagnostic>> {
        compile::compile(steps, tables).map(|steps| Self { steps })
    }

    /// The memory of its steps from one event to the next. `seed` must be random.
    #[must_use]
    pub fn windows(&self, seed: u64) -> Windows {
        Windows::new(seed, self.steps.iter().filter_map(Step::window))
    }

    /// The headers of requests that its steps use, in lowercase.
    pub fn headers(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| match &step.operation {
            Operation::Set { value: Source::Fact(Fact::Header(name)), .. } => Some(name.as_str()),
            _ => None,
        })
    }

    /// The names of the steps' operations, in order.
    pub fn operations(&self) -> impl Iterator<Item = &'static str> {
        self.steps.iter().map(|step| step.name)
    }

    /// Whether a step removes a part of payloads or makes it unreadable: then the original must not be stored.
    #[must_use]
    pub fn withholds(&self) -> bool {
        self.steps.iter().any(|step| step.operation.withholds())
    }

    /// The steps that may drop an event.
    pub fn filters(&self) -> impl Iterator<Item = Filtered> {
        self.steps.iter().filter(|step| step.operation.may_filter()).map(Step::filtered)
    }

    /// Whether the event's id or key decides on it, see [`Context::key`].
    #[must_use]
    pub fn asks_for_key(&self) -> bool {
        self.steps.iter().any(|step| matches!(&step.operation, Operation::Sample(_)))
    }

    /// Runs the steps on an event. `payload` must have passed [`json::check`]. `windows` are those of
    /// [`Transform::windows`], or those [for this request](Windows::for_request). If the event isn't stored, their
    /// memory of it must be forgotten, see [`Windows::forget_since`].
    ///
    /// # Errors
    /// [`StepError`] if a step fails, unless the event continues by the step's `on_error`.
    pub fn run<'s>(
        &self,
        payload: &str,
        context: &Context<'_>,
        windows: &mut Windows,
        scratch: &'s mut Scratch,
    ) -> Result<TransformOutcome<'s>, StepError> {
        self.run_within(&mut { TRANSFORM_WORK_MAX }, ValueView::unread(payload), context, windows, scratch)
    }

    /// The same within a smaller budget: `operations` becomes the number that was spent. An event that needs more is
    /// stopped, and can be run again. If the payload's values were read, for a schema, they aren't searched again.
    ///
    /// # Errors
    /// As [`Transform::run`], and a [`StepError`] that is [exhausted](StepError::exhausted) if it was stopped.
    pub fn run_within<'s>(
        &self,
        operations: &mut usize,
        payload: ValueView<'_>,
        context: &Context<'_>,
        windows: &mut Windows,
        scratch: &'s mut Scratch,
    ) -> Result<TransformOutcome<'s>, StepError> {
        self.observed((payload, operations), context, windows, scratch, Observer(None))
    }

    /// The same, and reports each step's result and its duration by `clock`.
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
    ) -> Result<TransformOutcome<'s>, StepError> {
        self.observed(
            (ValueView::unread(payload), &mut { TRANSFORM_WORK_MAX }),
            context,
            windows,
            scratch,
            Observer(Some(Tracer::new(clock, each))),
        )
    }

    fn observed<'s>(
        &self,
        (payload, operations): (ValueView<'_>, &mut usize),
        context: &Context<'_>,
        windows: &mut Windows,
        scratch: &'s mut Scratch,
        mut observer: Observer<'_>,
    ) -> Result<TransformOutcome<'s>, StepError> {
        let Some(last) = self.steps.last() else {
            *operations = 0;
            return Ok(TransformOutcome::Unchanged);
        };
        let mark = windows.mark();
        let Scratch { tree, made, output } = scratch;
        for buffer in [&mut *made, &mut *output] {
            buffer.clear();
            buffer.shrink_to(tree::KEPT_BYTES);
        }
        // The uncounted cost of an earlier event isn't this one's.
        tree.take_passed();
        tree.read(payload.payload());
        tree.take_members(payload);
        let mut gathered = Gathered::default();
        let mut run =
            Run { context, tree, made, windows, budget: Budget::new(*operations), received: payload.payload() };
        let end = run.steps(&self.steps, &mut gathered, &mut observer);
        *operations = run.budget.spent();
        let exhausted = run.budget.is_exhausted();
        let end = end.map_err(|error| StepError { exhausted, ..error });
        let outcome = end.and_then(|end| match end {
            End::Whole if !tree.is_changed() => Ok(TransformOutcome::Unchanged),
            End::Whole => {
                tree.write_document(output);
                check_length(output).map_err(|detail| last.error(Failure::new(detail)))?;
                Ok(TransformOutcome::Changed(output.as_str()))
            }
            End::Filtered(by) => Ok(TransformOutcome::Filtered(by)),
            End::Exploded => Ok(TransformOutcome::Several(gathered.several)),
        });
        if outcome.as_ref().map_or(true, |outcome| !outcome.goes_on()) {
            windows.forget_since(mark);
        }
        outcome
    }
}

impl Step {
    const fn window(&self) -> Option<dedupe_window::Bounds> {
        match &self.operation {
            Operation::Dedupe { bounds, .. } => Some(*bounds),
            _ => None,
        }
    }
}

impl TransformOutcome<'_> {
    /// Whether any part of the event is to be stored.
    #[must_use]
    pub const fn goes_on(&self) -> bool {
        match self {
            Self::Unchanged | Self::Changed(_) => true,
            Self::Filtered(_) => false,
            Self::Several(several) => !several.events.is_empty(),
        }
    }
}
