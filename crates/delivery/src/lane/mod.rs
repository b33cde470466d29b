//! A lane is a delivery worker: it reads one shard's log for one sink, and writes one batch at a time until the sink has it.
//!
//! Whatever a sink answers, no event is dropped: it is stored, a dead letter, or sent again.

mod aside;
mod batch_builder;
mod batches;
mod claim;
mod core;
mod cursor_sync;
mod driver;
mod objects;

use std::sync::Arc;
use std::time::Duration;

use aggregation::Halt;
use dead_letters::{DeadLetters, DeliveryFiles};
use eventlog::Shard;
use ledger::{Ledger, Tally};
use sink::{Claim, Held, Sink, SinkError};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::backoff::Backoff;
use crate::options::Options;
use crate::status::{LaneState, LaneStatus};
use batch_builder::DeliveryState;
use batches::BatchSession;

/// A lane with all that it needs.
pub(crate) struct Lane {
    pub(crate) name: event::Lane,
    pub(crate) shard: Arc<Shard>,
    pub(crate) sink: Sink,
    /// This process's claim on it.
    pub(crate) claim: Claim,
    pub(crate) files: DeliveryFiles,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) dead: Arc<DeadLetters>,
    pub(crate) options: Arc<Options>,
    pub(crate) status: Arc<LaneStatus>,
    pub(crate) halt: watch::Receiver<Halt>,
    pub(crate) backoff: Backoff,
}

/// Why a lane doesn't go on as it was.
pub(crate) enum LaneExit {
    /// The store stands elsewhere: begin again from there.
    Moved,
    /// A person must act.
    Stop(String),
}

impl Lane {
    /// Delivers until it is told to stop, and has caught up if it is to.
    pub(crate) async fn run(mut self) {
        loop {
            match self.deliver().await {
                Ok(()) => return,
                Err(LaneExit::Moved) => {}
                Err(LaneExit::Stop(reason)) => {
                    self.options.reporter.report(&format!("lane {} stops: {reason}", self.name));
                    self.enter(LaneState::Stopped(reason));
                    return;
                }
            }
        }
    }

    pub(crate) fn is_halted(&self) -> bool {
        *self.halt.borrow() != Halt::No
    }

    /// What the store holds of the lane; none where it keeps no cursor.
    pub(crate) async fn find_held(&mut self) -> Option<Held> {
        loop {
            match self.ask_held().await {
                Ok(held) => return held,
                Err(error) => {
                    // Time in which the store doesn't answer isn't counted against what is set aside.
                    self.dead.outage(self.name.shard);
                    self.wait(&error.to_string()).await;
                }
            }
        }
    }

    /// Says what the store may lose although it has answered: nobody else looks at how it is set up.
    fn warn(&self) {
        if let Some(caution) = self.sink.warning() {
            self.options.reporter.report(&format!("lane {}: {caution}", self.name));
        }
    }

    async fn ask_held(&self) -> Result<Option<Held>, SinkError> {
        self.sink.connect().await?;
        self.save_binding().await;
        self.sink.held(&self.name).await
    }

    /// Enters a state. Whoever reads the log learns why a lane waits, once for each reason, and when that is over.
    pub(crate) fn enter(&self, state: LaneState) {
        let message = match &state {
            LaneState::Waiting(reason) => {
                Some(format!("waits: {reason}; its events stay in the journal, and it tries on"))
            }
            LaneState::Delivering => Some("delivers again".to_owned()),
            LaneState::Connecting | LaneState::Stopped(_) => None,
        };
        let before = self.status.set(state.clone());
        let changed = matches!(before, LaneState::Waiting(_)) || matches!(state, LaneState::Waiting(_));
        if let Some(message) = message.filter(|_| changed && before != state) {
            self.options.reporter.report(&format!("lane {} {message}", self.name));
        }
    }

    /// An attempt has failed: says how long to pause.
    pub(crate) fn begin_wait(&mut self, reason: &str) -> Duration {
        self.status.retries.add(1);
        self.status.contacts.interrupted();
        self.enter(LaneState::Waiting(reason.to_owned()));
        let pause = self.backoff.next();
        self.sink.retry_max().map_or(pause, |longest| pause.min(longest))
    }

    /// Pauses after a failed attempt. The order to stop ends one pause early.
    pub(crate) async fn wait(&mut self, reason: &str) {
        let pause = self.begin_wait(reason);
        tokio::select! {
            biased;
            () = sleep(pause) => {}
            Ok(()) = self.halt.changed() => {}
        }
    }

    /// Everything up to `last` has its outcome, but for what is lost.
    pub(crate) fn advance_cursor_to(&self, last: u64, tally: &Tally, lost: u64) {
        if lost > 0 {
            self.status.lost.add(lost);
            let message = format!(
                "lane {}: {} before position {last} can't be read; the next start counts them as lost",
                self.name,
                event::counted(lost, "event")
            );
            self.options.reporter.report(&message);
        }
        self.ledger.advance_cursor(&self.name, last, tally, lost);
        self.status.set_cursor(last);
        self.status.set_oldest(None);
    }
}
