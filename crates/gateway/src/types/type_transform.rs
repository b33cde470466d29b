//! The steps that the events of a type are taken through, with what these remember.

use std::fmt;

use event::limits::TRANSFORM_WORK_MAX;
use pipeline::View;
use pipeline::transform::{Context, Filtered, Outcome, Scratch, Transform, Windows};

use crate::error_code::ErrorCode;
use crate::ingest::record_builder::Envelope;
use crate::problem::{Problem, Refused};
use crate::types::cost::{CostBudget, CostEstimator};
use crate::types::type_registry::TypeEntry;

/// What came of a payload that was to be no burden to its shard.
pub(crate) enum Ran<'s> {
    Ingested(Outcome<'s>),
    /// It is one: it takes more operations than others should wait for.
    Stopped,
}

/// The steps of a type. All shards share what they remember.
pub struct TransformHandle {
    transform: Transform,
    asks_for_key: bool,
    windows: Windows,
    effort: CostEstimator,
}

impl fmt::Debug for TransformHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransformHandle").field("transform", &self.transform).finish_non_exhaustive()
    }
}

impl TransformHandle {
    /// `seed` must be random: who knows it can have others' events left out.
    #[must_use]
    pub fn new(transform: Transform, seed: u64) -> Self {
        let (windows, asks_for_key) = (transform.windows(seed), transform.asks_for_key());
        Self { transform, asks_for_key, windows, effort: CostEstimator::new() }
    }

    /// The first `windows` of its steps that remember go on with what those of `before` do.
    pub fn remember_as(&mut self, before: &Self, windows: usize) {
        if windows > 0 {
            self.windows = self.windows.sharing(&before.windows, windows);
        }
    }

    /// The steps themselves.
    #[must_use]
    pub const fn transform(&self) -> &Transform {
        &self.transform
    }

    /// What they usually cost.
    pub(crate) const fn effort(&self) -> &CostEstimator {
        &self.effort
    }

    /// The headers of requests that they ask for, in small letters.
    pub(crate) fn headers(&self) -> impl Iterator<Item = &str> {
        self.transform.headers()
    }

    /// The steps that may take events out.
    pub(crate) fn filters(&self) -> impl Iterator<Item = Filtered> {
        self.transform.filters()
    }

    /// What they remember, for a request before which so many commits had been refused. Of one that is refused nobody knows which
    /// values it had: what was kept by requests that began before it is known to none that begins behind it, and rather an event is
    /// taken twice than none. Who leans on a value waits for its commit, and sees then whether the number is still the same.
    pub(crate) fn windows(&self, refused_commits: u64) -> Windows {
        self.windows.for_request(refused_commits)
    }

    /// Takes a payload of this type through the steps. `key` is what its request says that it is known by.
    ///
    /// # Errors
    /// A step refuses it.
    pub(crate) fn run<'s>(
        &self,
        payload: View<'_>,
        around: (&Envelope, &TypeEntry, impl FnOnce() -> Vec<u8>),
        windows: &mut Windows,
        scratch: &'s mut Scratch,
    ) -> Result<Outcome<'s>, Refused> {
        match self.run_with(TRANSFORM_WORK_MAX, payload, around, windows, scratch).1? {
            Ran::Ingested(outcome) => Ok(outcome),
            // With all operations that there may be nothing is stopped that isn't refused.
            Ran::Stopped => {
                Err(Problem::boxed(ErrorCode::Transform, "the steps take too many operations on this event"))
            }
        }
    }

    /// The same where it may hold up a shard: what takes longer than others should wait is stopped, and has left nothing behind.
    pub(crate) fn run_within<'s>(
        &self,
        work: &mut CostBudget,
        payload: View<'_>,
        around: (&Envelope, &TypeEntry, impl FnOnce() -> Vec<u8>),
        windows: &mut Windows,
        scratch: &'s mut Scratch,
    ) -> Result<Ran<'s>, Refused> {
        let most = work.left().unwrap_or(TRANSFORM_WORK_MAX);
        let (spent, ran) = self.run_with(most, payload, around, windows, scratch);
        match (ran, work.spend(spent)) {
            (Ok(Ran::Stopped), _) => {
                // Of what is left nothing is to be had by others.
                let _ = work.spend(usize::MAX);
                Ok(Ran::Stopped)
            }
            (ran, _) => ran,
        }
    }

    /// How many operations it took, and what came of it.
    fn run_with<'s>(
        &self,
        most: usize,
        payload: View<'_>,
        (envelope, known, key): (&Envelope, &TypeEntry, impl FnOnce() -> Vec<u8>),
        windows: &mut Windows,
        scratch: &'s mut Scratch,
    ) -> (usize, Result<Ran<'s>, Refused>) {
        let own = || known.rules.id.as_ref()?.lookup(payload.payload()).filter(|raw| *raw != "null");
        let key = if self.asks_for_key { own().map_or_else(key, |raw| raw.as_bytes().to_vec()) } else { Vec::new() };
        let header = |name: &str| envelope.headers.get(name);
        let context = Context {
            received_at: envelope.received_at,
            client: Some(envelope.client),
            source: &envelope.source,
            event_type: known.name.as_str(),
            key: &key,
            header: &header,
        };
        let mut spent = most;
        let outcome = self.transform.run_within(&mut spent, payload, &context, windows, scratch);
        self.effort.learn(payload.payload().len(), spent);
        if outcome.as_ref().is_err_and(|error| error.exhausted) && most < TRANSFORM_WORK_MAX {
            return (spent, Ok(Ran::Stopped));
        }
        (spent, outcome.map(Ran::Ingested).map_err(Problem::of_step))
    }
}
