//! The progress of an action on the dead letters of several sinks, and the flag that stops it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use ledger::SinkName;

use crate::replay::outcome::DeadOutcome;

/// Why an action ended before its last dead letter, if an operator stopped it.
const STOPPED: &str = "stopped by an operator: repeat the action to handle the rest";

/// The counts of an action so far. They grow after each batch.
#[derive(Debug, Default)]
pub struct DeadProgress {
    is_stopped: AtomicBool,
    outcomes: Mutex<Vec<DeadOutcome>>,
}

impl DeadProgress {
    /// Ends the action after its present batch.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Whether [`Self::stop`] was called.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// The counts of each sink whose dead letters were handled so far.
    #[must_use]
    pub fn outcomes(&self) -> Vec<DeadOutcome> {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The counts of one sink.
    pub(crate) fn of(&self, sink: &SinkName) -> DeadOutcome {
        let known = self.outcomes().into_iter().find(|outcome| outcome.sink == *sink);
        known.unwrap_or_else(|| DeadOutcome::none(sink.clone()))
    }

    /// Replaces the counts of one sink.
    pub(crate) fn publish(&self, outcome: &DeadOutcome) {
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        match outcomes.iter_mut().find(|known| known.sink == outcome.sink) {
            Some(known) => known.clone_from(outcome),
            None => outcomes.push(outcome.clone()),
        }
    }

    /// # Errors
    /// The action is stopped.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.is_stopped() { Err(STOPPED.into()) } else { Ok(()) }
    }
}
