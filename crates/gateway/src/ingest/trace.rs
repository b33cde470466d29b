//! How long the steps of the sequence took, and what the transform did: for dry runs alone.

use std::time::{Duration, Instant};

use event::limits::TRACED_STEPS_MAX;
use transform::{Context, Scratch, StepError, Traced, Transform, TransformOutcome, Windows};

/// A step of the sequence, its transform apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Json,
    Schema,
    /// All that follows the transform.
    Ids,
}

/// What one payload has gone through.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(super) json: Duration,
    pub(super) schema: Option<Duration>,
    pub(super) ids: Option<Duration>,
    pub(super) steps: Vec<Traced>,
    /// How many more steps of the transform ran.
    pub(super) more_steps: usize,
}

/// Runs a step. Its time is taken only where it is traced.
pub(super) fn step<T>(trace: &mut Option<&mut Trace>, step: Step, run: impl FnOnce() -> T) -> T {
    let Some(trace) = trace else { return run() };
    let began = Instant::now();
    let result = run();
    let took = began.elapsed();
    match step {
        Step::Json => trace.json = took,
        Step::Schema => trace.schema = Some(took),
        Step::Ids => trace.ids = Some(took),
    }
    result
}

impl Trace {
    pub(super) fn transform<'s>(
        &mut self,
        transform: &Transform,
        payload: &str,
        context: &Context<'_>,
        windows: &mut Windows,
        scratch: &'s mut Scratch,
    ) -> Result<TransformOutcome<'s>, StepError> {
        let began = Instant::now();
        let each = &mut |step| match self.steps.len() < TRACED_STEPS_MAX {
            true => self.steps.push(step),
            false => self.more_steps += 1,
        };
        transform.trace(payload, context, windows, scratch, &|| began.elapsed(), each)
    }
}
