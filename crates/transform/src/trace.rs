//! What each step did to an event: for people who try a transform out.

use std::time::Duration;

use limits::TRACED_BYTES_MAX;

use super::step::Step;
use super::tree::Tree;

/// What one step did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The step, from 1.
    pub step: usize,
    /// What it does.
    pub operation: &'static str,
    /// Which of several events was meant, where `explode` has made them: its number at each explosion.
    pub part: Vec<usize>,
    /// What it did.
    pub did: Did,
    /// How long it took.
    pub took: Duration,
    /// The event behind it, or the array of those that it has become; nothing where those before had [`TRACED_BYTES_MAX`] together.
    pub payload: Option<String>,
}

/// What a step did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Did {
    /// It was done.
    Done,
    /// Its condition was false.
    NotMet,
    /// It failed, and the event goes on.
    Skipped(String),
    /// It failed, and the event is refused.
    Refused(String),
    /// The event goes no further.
    Filtered,
    /// The event becomes so many.
    Exploded(usize),
}

/// Reports each step to a closure.
pub(super) struct Tracer<'f> {
    each: &'f mut dyn FnMut(Traced),
    part: Vec<usize>,
    clock: &'f dyn Fn() -> Duration,
    /// When the step began that is being done.
    began: Duration,
    /// Bytes of payloads that may still be handed on: a look at each of a hundred steps would cost more than these.
    left: usize,
}

impl<'f> Tracer<'f> {
    pub(super) fn new(clock: &'f dyn Fn() -> Duration, each: &'f mut dyn FnMut(Traced)) -> Self {
        Self { each, part: Vec::new(), clock, began: clock(), left: TRACED_BYTES_MAX }
    }
}

impl Tracer<'_> {
    /// Hands a step on, unless there was enough of payloads with what it has made.
    fn hand_on(&mut self, step: &Step, did: Did, payload: impl FnOnce() -> String) {
        let took = (self.clock)().saturating_sub(self.began);
        let payload = (self.left > 0).then(payload);
        self.left = self.left.saturating_sub(payload.as_ref().map_or(0, String::len));
        let part = self.part.clone();
        (self.each)(Traced { step: step.number, operation: step.name, part, did, took, payload });
        // What it takes to look on isn't the next step's.
        self.began = (self.clock)();
    }
}

/// What observes the steps while a transform runs: most often nothing.
pub(super) struct Observer<'f>(pub(super) Option<Tracer<'f>>);

impl Observer<'_> {
    /// A step is over.
    pub(super) fn step(&mut self, step: &Step, did: impl FnOnce() -> Did, tree: &Tree) {
        let Some(tracer) = &mut self.0 else { return };
        tracer.hand_on(step, did(), || {
            let mut payload = String::new();
            tree.write_document(&mut payload);
            payload
        });
    }

    /// A step is over that has made these of an event.
    pub(super) fn exploded(&mut self, step: &Step, events: &[String]) {
        let Some(tracer) = &mut self.0 else { return };
        tracer.hand_on(step, Did::Exploded(events.len()), || format!("[{}]", events.join(",")));
    }

    /// What follows is about one of several events, until `leave`.
    pub(super) fn enter(&mut self, part: usize) {
        let Some(tracer) = &mut self.0 else { return };
        tracer.part.push(part);
        tracer.began = (tracer.clock)();
    }

    /// That is over.
    pub(super) fn leave(&mut self) {
        if let Some(tracer) = &mut self.0 {
            tracer.part.pop();
        }
    }
}
