//! A lane delivers the events of one shard to one sink: it reads the log, and writes one batch at a time until the sink has it.
//!
//! No answer of a sink drops an event: the event is stored, becomes a dead letter, or is sent again.
//!
//! `core/` decides what comes next, without I/O and without a clock. `driver.rs` is the loop over a session
//! (`session.rs`), which gathers batches (`batches.rs`) or objects (`objects.rs`) and executes. `claim.rs` and
//! `cursor_sync.rs` find the lane's position, `deferred.rs` sends deferred events again.

mod batch_builder;
mod batches;
mod claim;
mod core;
mod cursor_sync;
mod deferred;
mod driver;
mod objects;
mod session;
mod spanned;
mod tapped;

use std::sync::Arc;
use std::time::Duration;

use aggregation::Halt;
use dead_letters::{Blocked, DeadLetters, DeliveryFiles, NewDeadLetter};
use eventlog::Shard;
use ledger::{Ledger, Tally};
use sink::{Batch, Claim, Held, Sink, SinkError, WriteOutcome, offer_stored};
use tap::Point;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::backoff::Backoff;
use crate::options::Options;
use crate::status::{LaneState, LaneStatus};
use crate::stored_times::StoredTimes;
use batch_builder::DeliveryState;

/// A lane and its dependencies.
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
    pub(crate) stored_times: Arc<StoredTimes>,
    pub(crate) halt: watch::Receiver<Halt>,
    pub(crate) backoff: Backoff,
}

/// Why a session of a lane ends.
pub(crate) enum LaneExit {
    /// The store's cursor or claim is another one: the lane begins again from there.
    Moved,
    /// It needs an operator.
    Stop(String),
}

impl Lane {
    /// Delivers until the lane has to stop, and catches up before if it has to.
    pub(crate) async fn run(mut self) {
        loop {
            match self.deliver().await {
                Ok(()) => return,
                Err(LaneExit::Moved) => {}
                Err(LaneExit::Stop(reason)) => {
                    tracing::warn!(lane = %self.name, sink = &*self.name.sink, shard = self.name.shard, reason, "lane stops");
                    self.enter(LaneState::Stopped(reason));
                    return;
                }
            }
        }
    }

    pub(crate) fn is_halted(&self) -> bool {
        *self.halt.borrow() != Halt::No
    }

    /// What the store holds of the lane; `None` if it keeps no cursor.
    pub(crate) async fn find_held(&mut self) -> Option<Held> {
        loop {
            match self.ask_held().await {
                Ok(held) => return held,
                Err(error) => {
                    // An outage of the store does not count against deferred events.
                    self.dead.outage(self.name.shard);
                    self.wait(&error.to_string()).await;
                }
            }
        }
    }

    /// Reports what the store may lose although it has answered. No other part checks how the store is set up.
    fn warn(&self) {
        if let Some(caution) = self.sink.warning() {
            tracing::warn!(lane = %self.name, sink = &*self.name.sink, shard = self.name.shard, "{caution}");
        }
    }

    async fn ask_held(&self) -> Result<Option<Held>, SinkError> {
        self.sink.connect().await?;
        self.save_binding().await;
        self.sink.held(&self.name).await
    }

    /// Enters a state. The log shows why a lane waits, once for each reason, and when the wait is over.
    pub(crate) fn enter(&self, state: LaneState) {
        self.enter_as(state, None);
    }

    /// The same with another reason in the log.
    fn enter_as(&self, state: LaneState, logged: Option<&str>) {
        self.note(&state, logged);
        let before = self.status.set(state.clone());
        match &state {
            LaneState::Waiting(reason) if before != state => {
                let reason = logged.unwrap_or(reason);
                tracing::warn!(lane = %self.name, sink = &*self.name.sink, shard = self.name.shard, reason, "lane waits: events stay in the journal, and the lane retries");
            }
            LaneState::Delivering if matches!(before, LaneState::Waiting(_)) => {
                tracing::warn!(lane = %self.name, sink = &*self.name.sink, shard = self.name.shard, "lane delivers again");
            }
            _ if before != state => {
                let state = state.name();
                tracing::debug!(lane = %self.name, sink = &*self.name.sink, shard = self.name.shard, state, "lane state");
            }
            _ => {}
        }
    }

    /// Notes failures for the console, and their ends.
    fn note(&self, state: &LaneState, logged: Option<&str>) {
        let now = (self.options.clock)();
        match state {
            LaneState::Waiting(reason) | LaneState::Stopped(reason) => {
                let server = self.sink.server_of(&self.name);
                self.status.progress.failed(now, logged.unwrap_or(reason), server.as_ref());
            }
            LaneState::Delivering => self.status.delivers(now),
            LaneState::Connecting => {}
        }
    }

    /// An attempt has failed: returns how long to pause. `logged` is logged instead of a reason that may quote an event.
    pub(crate) fn begin_wait(&mut self, reason: &str, logged: Option<&str>) -> Duration {
        self.status.retries.add(1);
        self.status.contacts.interrupted();
        self.enter_as(LaneState::Waiting(reason.to_owned()), logged);
        let pause = self.backoff.next();
        self.sink.retry_max().map_or(pause, |longest| pause.min(longest))
    }

    /// Pauses after a failed attempt.
    pub(crate) async fn wait(&mut self, reason: &str) {
        let pause = self.begin_wait(reason, None);
        self.pause(pause, std::future::pending()).await;
    }

    /// Pauses for this time, or until `event` happens. A stop ends one pause early.
    async fn pause(&mut self, pause: Duration, event: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            () = sleep(pause) => {}
            () = event => {}
            Ok(()) = self.halt.changed() => {}
        }
    }

    /// Writes a batch to the sink. It carries the position up to which the store has the lane's events, and the highest position
    /// that may have been sent before.
    pub(super) async fn write_batch(&self, batch: Batch, floor: u64) -> Result<WriteOutcome, SinkError> {
        let again = self.status.advance_sent_watermark(batch.last());
        let batch = batch.sent_after(floor, again);
        let answer = self.sink.write(&batch).await;
        if let Ok(outcome) = &answer
            && self.options.taps.want(Point::Stored)
        {
            offer_stored(self.options.taps, &self.name.sink, &batch, outcome);
        }
        answer
    }

    /// Makes events dead letters, durably.
    pub(crate) fn write_dead(&self, events: &[NewDeadLetter<'_>]) -> Result<(), Blocked> {
        self.dead.write(self.name.shard, events)?;
        if self.options.taps.want(Point::Dead) {
            tapped::dead(self.options.taps, &self.name, events);
        }
        Ok(())
    }

    /// Everything up to `last` has its outcome, except what is lost.
    pub(crate) fn advance_cursor_to(&self, last: u64, tally: &Tally, lost: u64) {
        if lost > 0 {
            self.status.lost.add(lost);
            let events = text::counted(lost, "event");
            tracing::warn!(
                lane = %self.name, sink = &*self.name.sink, shard = self.name.shard,
                "{events} before position {last} can't be read: stop Forebay and restore the journal from a copy, or \
                 the next start counts them as lost"
            );
        }
        self.ledger.advance_cursor(&self.name, last, tally, lost);
        self.status.set_cursor(last);
        self.status.set_oldest(None);
    }
}
