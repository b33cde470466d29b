//! Changes events by steps that a configuration names, before they are stored.
//!
//! Steps are compiled once. On an event they open only what they name; everything else stays as it was written, byte for byte.
//! What they may cost is bounded, in time and in bytes, whatever they say and whatever the event holds.
//! `docs/transform.md` says what there is.

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

pub use compile::knows_key;
pub use context::Context;
pub use dedupe_window::{WindowMark, Windows};
pub use diagnostic::{StepDiagnostic, StepLocation};
pub use outcome::{DerivedEvent, Element, Filtered, Several, StepError, TransformOutcome};
pub use place_tracker::PlaceTracker;
pub use spec::{Setting, StepSpec};
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
    /// Every [`StepDiagnostic`] in them.
    pub fn compile(steps: &[StepSpec], tables: &Tables) -> Result<Self, Vec<StepDiagnostic>> {
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

    /// Whether a step takes something out of payloads or makes it unreadable: then what was sent isn't to be stored as it was.
    #[must_use]
    pub fn withholds(&self) -> bool {
        self.steps.iter().any(|step| step.operation.withholds())
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

    /// Takes an event through the steps. `payload` must have passed [`json::check`]. `windows` are those that
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
    ) -> Result<TransformOutcome<'s>, StepError> {
        self.run_within(&mut { TRANSFORM_WORK_MAX }, ValueView::unread(payload), context, windows, scratch)
    }

    /// The same with fewer `operations` than there may be, which become those that it has taken: an event that takes more is stopped,
    /// and can be taken again. Where the payload's values were read, for a schema, they aren't looked for again.
    ///
    /// # Errors
    /// As [`Transform::run`], and a [`StepError`] that is [exhausted](StepError::exhausted) where it was stopped.
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
        // What an event before has left uncounted isn't this one's.
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
