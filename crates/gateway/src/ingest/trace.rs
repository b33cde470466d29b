//! The trace of a dry run: the outcome of a payload, what its transform did, and how long the stages of the pipeline took.

use std::time::{Duration, Instant};

use event::EventId;
use json::ValueView;
use limits::TRACED_STEPS_MAX;
use schema::Violation;
use serde::{Serialize, Serializer};
use transform::{Context, Filtered, Scratch, StepError, Traced, TransformOutcome, Windows};

use super::pipeline::{PipelineObserver, PipelineStage};
use crate::event_types::TransformHandle;
use crate::problem::Refused;

/// The pipeline's result for a payload, and how long its stages took.
#[derive(Debug, Default)]
pub struct DryRunTrace {
    /// How long the JSON check took.
    pub json: Duration,
    /// How long the check against the schema took, if there is one.
    pub schema: Option<Duration>,
    /// What the steps of the transform did: the first [`TRACED_STEPS_MAX`].
    pub steps: Vec<Traced>,
    /// How many more there were.
    pub more_steps: usize,
    /// How long it took to find its ids, if the pipeline got so far.
    pub ids: Option<Duration>,
    /// The outcome.
    pub end: DryRunOutcome,
}

/// The outcome of a payload.
#[derive(Debug, Default)]
pub struct DryRunOutcome {
    /// The events that would be journaled.
    pub taken: Vec<AcceptedEvent>,
    /// What steps have dropped.
    pub filtered: Vec<Filtered>,
    /// Why it would be rejected.
    pub refused: Option<DryRunRejection>,
}

/// An event that would be journaled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedEvent {
    /// Its id; none if one is generated at the append.
    pub id: Option<EventId>,
    /// Its payload.
    pub payload: String,
    /// Why the time in it cannot be read, if so: it counts as happened when it is received.
    pub time_unread: Option<String>,
}

/// Why a payload would be rejected: what its client would be answered.
#[derive(Debug)]
pub struct DryRunRejection(Refused);

impl DryRunRejection {
    pub(crate) const fn new(refused: Refused) -> Self {
        Self(refused)
    }

    /// The code, such as `schema`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.0.code.as_str()
    }

    /// What is wrong, in words.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// Where in the payload, as a JSON pointer.
    #[must_use]
    pub fn pointer(&self) -> Option<&str> {
        self.0.pointer.as_deref()
    }

    /// The step that rejects it, from 1.
    #[must_use]
    pub fn step(&self) -> Option<usize> {
        self.0.step.as_ref().map(|failed| failed.step)
    }

    /// All that its schema finds wrong.
    #[must_use]
    pub fn errors(&self) -> &[Violation] {
        self.0.violations()
    }
}

impl Serialize for DryRunRejection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.document().serialize(serializer)
    }
}

impl PipelineObserver for DryRunTrace {
    fn stage<T>(&mut self, stage: PipelineStage, run: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = run();
        let took = began.elapsed();
        match stage {
            PipelineStage::Json => self.json = took,
            PipelineStage::Schema => self.schema = Some(took),
            PipelineStage::Ids => self.ids = Some(took),
        }
        result
    }

    fn transform<'p>(
        &mut self,
        handle: &TransformHandle,
        payload: ValueView<'p>,
        context: &Context<'_>,
        windows: &mut Windows,
        scratch: &'p mut Scratch,
        _: &mut usize,
    ) -> Result<TransformOutcome<'p>, StepError> {
        let began = Instant::now();
        let each = &mut |step| match self.steps.len() < TRACED_STEPS_MAX {
            true => self.steps.push(step),
            false => self.more_steps += 1,
        };
        handle.transform().trace(payload.payload(), context, windows, scratch, &|| began.elapsed(), each)
    }
}
