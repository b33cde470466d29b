//! The effect of each step on an event, for users who try a transform.

use std::time::Duration;

use limits::TRACED_BYTES_MAX;

use super::step::Step;
use super::tree::Tree;

/// The effect of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The step, from 1.
    pub step: usize,
    /// Its operation.
    pub operation: &'static str,
    /// Which of several events of `explode` it was: its number at each explosion.
    pub part: Vec<usize>,
    /// Its effect.
    pub did: Did,
    /// How long it took.
    pub took: Duration,
    /// The event after it, or the array of those that it has become; `None` if the earlier ones had
    /// [`TRACED_BYTES_MAX`] together.
    pub payload: Option<String>,
}

/// The effect of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Did {
    /// It ran.
    Done,
    /// Its condition was false.
    NotMet,
    /// It failed, and the event continues.
    Skipped(String),
    /// It failed, and the event is rejected.
    Refused(String),
    /// The event was dropped.
    Filtered,
    /// The event became this many.
    Exploded(usize),
}

/// Reports each step to a closure.
pub(super) struct Tracer<'f> {
    each: &'f mut dyn FnMut(Traced),
    part: Vec<usize>,
    clock: &'f dyn Fn() -> Duration,
    /// When the current step began.
    began: Duration,
    /// Bytes of payloads that may still be reported: reporting each of a hundred steps would cost more than these.
    left: usize,
}

impl<'f> Tracer<'f> {
    pub(super) fn new(clock: &'f dyn Fn() -> Duration, each: &'f mut dyn FnMut(Traced)) -> Self {
        Self { each, part: Vec::new(), clock, began: clock(), left: TRACED_BYTES_MAX }
    }
}

impl Tracer<'_> {
    /// Reports a step, without its payload if the earlier ones had enough bytes.
    fn report(&mut self, step: &Step, did: Did, payload: impl FnOnce() -> String) {
        let took = (self.clock)().saturating_sub(self.began);
        let payload = (self.left > 0).then(payload);
        self.left = self.left.saturating_sub(payload.as_ref().map_or(0, String::len));
        let part = self.part.clone();
        (self.each)(Traced { step: step.number, operation: step.name, part, did, took, payload });
        // The time of the report isn't the next step's.
        self.began = (self.clock)();
    }
}

/// The observer of the steps while a transform runs: usually none.
pub(super) struct Observer<'f>(pub(super) Option<Tracer<'f>>);

impl Observer<'_> {
    /// A step has ended.
    pub(super) fn step(&mut self, step: &Step, did: impl FnOnce() -> Did, tree: &Tree) {
        let Some(tracer) = &mut self.0 else { return };
        tracer.report(step, did(), || {
            let mut payload = String::new();
            tree.write_document(&mut payload);
            payload
        });
    }

    /// A step has ended with these events.
    pub(super) fn exploded(&mut self, step: &Step, events: &[String]) {
        let Some(tracer) = &mut self.0 else { return };
        tracer.report(step, Did::Exploded(events.len()), || format!("[{}]", events.join(",")));
    }

    /// From now on the steps are of one of several events, until `leave`.
    pub(super) fn enter(&mut self, part: usize) {
        let Some(tracer) = &mut self.0 else { return };
        tracer.part.push(part);
        tracer.began = (tracer.clock)();
    }

    /// The end of that.
    pub(super) fn leave(&mut self) {
        if let Some(tracer) = &mut self.0 {
            tracer.part.pop();
        }
    }
}
