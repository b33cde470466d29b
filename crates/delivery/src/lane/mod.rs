//! A lane is a delivery worker: it reads one shard's log for one sink, and writes one batch at a time until the sink has it.
//!
//! Whatever a sink answers, no event is dropped: it is stored, a dead letter, or sent again.

mod batch_builder;
mod bound_store;
mod claim;
mod cursor_sync;
mod objects;
mod poison_records;
mod resend;
mod suspects;
mod write;

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ledger::{Ledger, RouteFilter, Tally, Undecided};
use ::objects::ObjectSink;
use eventlog::Shard;
use sink::{Batch, Claim, Cursor, Held, Sink, SinkError, WriteOutcome};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::backoff::Backoff;
use crate::blocked::Blocked;
use crate::dead_letters::{DeadLetters, Letter};
use crate::due::due;
use crate::halt::Halt;
use crate::home::Home;
use crate::log_cursor::{BatchReader, FillResult};
use crate::options::Options;
use crate::sent_record::records_at;
use crate::status::{LaneState, LaneStatus};
use batch_builder::{BatchBuilder, DeliveryState};
use resend::Retries;

/// How soon an event that comes to a batch which the store takes nothing of leads to another attempt.
const NEXT_AFTER: Duration = Duration::from_millis(500);

/// A lane with all that it needs.
pub(crate) struct Lane {
    pub(crate) name: event::Lane,
    pub(crate) shard: Arc<Shard>,
    pub(crate) sink: Sink,
    /// This process's claim on it.
    pub(crate) claim: Claim,
    pub(crate) home: Home,
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

/// A lane's way through the log since it took its place.
pub(crate) struct LaneSession {
    pub(crate) way: BatchReader,
    pub(crate) builder: BatchBuilder,
    pub(crate) rules: RouteFilter,
    pub(crate) retries: Retries,
    pub(crate) known: DeliveryState,
    fenced: bool,
    /// Where a fenced store stands, as far as this lane has brought it: elsewhere it is another store.
    store_at: u64,
    opened: Instant,
}

impl LaneSession {
    fn fill(&mut self) -> std::io::Result<FillResult> {
        self.rules.begin_turn();
        self.way.fill(|chunk| self.builder.add(chunk, &mut self.rules, &self.known))
    }

    /// The batch without the dead letters that were made of it.
    fn without_dead(&self) -> Batch {
        let batch = self.builder.batch();
        if self.known.buried.is_empty() {
            return batch.clone();
        }
        let is_buried = |(_, record): &(usize, sink::Record<'_>)| self.known.buried.contains(&record.sequence);
        let buried: Vec<usize> = batch.records().enumerate().filter(is_buried).map(|(index, _)| index).collect();
        batch.without(&buried)
    }

    /// Records of the batch, with what the store says of each. Their sequences ascend.
    pub(crate) fn letters<'a>(&'a self, reasons: &[(u64, &'a str)]) -> Vec<Letter<'a>> {
        let sequences: Vec<u64> = reasons.iter().map(|(sequence, _)| *sequence).collect();
        let with_reason = |(sequence, record)| {
            let at = sequences.binary_search(&sequence).ok()?;
            Some(Letter { sequence, record, reason: reasons[at].1 })
        };
        self.builder.originals(&sequences).into_iter().filter_map(with_reason).collect()
    }

    /// Whether the store has all of the batch without being asked: it keeps no cursor, or stands beyond.
    fn needs_no_write(&self) -> bool {
        self.builder.batch().is_empty() && (!self.fenced || self.builder.batch().last() <= self.known.fence)
    }
}

impl Lane {
    /// Delivers until it is told to stop, and has caught up if it is to.
    pub(crate) async fn run(mut self) {
        #[cfg(test)]
        assert_ne!(self.options.mutation, Some(crate::tests::Mutation::PanickingLane), "told to");
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

    async fn deliver(&mut self) -> Result<(), LaneExit> {
        if let Some(store) = ObjectSink::of(&self.sink).cloned() {
            return self.deliver_objects(store).await;
        }
        let mut run = self.begin().await?;
        while *self.halt.borrow() != Halt::Now {
            let filled = run.fill();
            let Some(fill) = self.judge_fill(&mut run.way, filled).await else { continue };
            if fill == FillResult::Midway {
                tokio::task::yield_now().await;
                continue;
            }
            let undecided = run.builder.take_undecided();
            self.dead_letter_undecided(&mut run.way, &undecided).await?;
            if self.is_due(&run, fill) && !self.write(&mut run).await? {
                // The events that came in the meantime go with it.
                continue;
            }
            self.retry_set_aside(&mut run).await?;
            match fill {
                FillResult::Full => {}
                FillResult::Pause | FillResult::Midway => tokio::task::yield_now().await,
                FillResult::CaughtUp if self.is_halted() && run.way.has_ended() && !self.waits_for_aside() => {
                    return Ok(());
                }
                FillResult::CaughtUp if self.probe_at().is_some_and(|at| at <= Instant::now()) => {
                    self.probe(&run).await?
                }
                FillResult::CaughtUp => self.idle(&run).await,
            }
        }
        Ok(())
    }

    /// Takes in what has come since the batch was begun, while there is room.
    pub(crate) async fn fill_more(&mut self, run: &mut LaneSession) -> Result<(), LaneExit> {
        loop {
            let filled = run.fill();
            let Some(fill) = self.judge_fill(&mut run.way, filled).await else { return Ok(()) };
            if fill == FillResult::Midway {
                tokio::task::yield_now().await;
                continue;
            }
            let undecided = run.builder.take_undecided();
            return self.dead_letter_undecided(&mut run.way, &undecided).await;
        }
    }

    /// How far it was filled; `None` after a pause, where the journal can't be read.
    pub(crate) async fn judge_fill(
        &mut self,
        way: &mut BatchReader,
        filled: io::Result<FillResult>,
    ) -> Option<FillResult> {
        match filled {
            Ok(fill) => {
                if std::mem::take(&mut way.unreadable) {
                    self.enter(LaneState::Delivering);
                    self.backoff.reset();
                }
                Some(fill)
            }
            Err(error) => {
                way.unreadable = true;
                self.wait(&format!("can't read the journal: {error}")).await;
                None
            }
        }
    }

    /// Makes those events dead letters, durably, of which their route can't say whether they are the sink's: stored they
    /// might be against somebody's will, and passed over they would be lost without a word.
    pub(crate) async fn dead_letter_undecided(
        &mut self,
        way: &mut BatchReader,
        undecided: &Undecided,
    ) -> Result<(), LaneExit> {
        let Some(chunk) = way.undecided.take() else { return Ok(()) };
        let sequences: Vec<u64> = undecided.iter().map(|(sequence, _)| *sequence).collect();
        let records = records_at(&chunk, &sequences).into_iter().zip(undecided);
        let letters: Vec<Letter<'_>> =
            records.map(|((sequence, record), (_, reason))| Letter { sequence, record, reason }).collect();
        self.until_written(|lane| lane.dead.write(lane.name.shard, &letters)).await?;
        self.enter(LaneState::Delivering);
        Ok(())
    }

    /// Writes to the journal of dead letters until it is durable, however long that can't be done.
    pub(crate) async fn until_written<T>(
        &mut self,
        write: impl Fn(&Self) -> Result<T, Blocked>,
    ) -> Result<T, LaneExit> {
        loop {
            match write(self) {
                Ok(written) => return Ok(written),
                Err(Blocked::Retry(reason)) => self.wait(&reason).await,
                Err(Blocked::Stop(reason)) => return Err(LaneExit::Stop(reason)),
            }
        }
    }

    pub(crate) fn is_halted(&self) -> bool {
        *self.halt.borrow() != Halt::No
    }

    /// Finds the store and the lane's place.
    async fn begin(&mut self) -> Result<LaneSession, LaneExit> {
        self.enter(LaneState::Connecting);
        loop {
            let cursor = self.claim_cursor().await?;
            self.warn();
            match self.reconcile_cursor(cursor) {
                Ok(known) => {
                    if cursor != Cursor::Delivery {
                        self.answer_is_saved().await;
                    }
                    self.note_contact();
                    self.enter(LaneState::Delivering);
                    let after = self.ledger.lane(&self.name).cursor;
                    let store_at = known.fence;
                    return Ok(LaneSession {
                        way: BatchReader::new(self.shard.reader(after)),
                        builder: self.builder(after + 1),
                        rules: RouteFilter::new(self.ledger.clone(), self.name.clone()),
                        retries: Retries::new(self.backoff.another()),
                        known,
                        fenced: cursor != Cursor::Delivery,
                        store_at,
                        opened: Instant::now(),
                    });
                }
                Err(Blocked::Retry(reason)) => self.wait(&reason).await,
                Err(Blocked::Stop(reason)) => return Err(LaneExit::Stop(reason)),
            }
        }
    }

    /// Hands a batch to the sink, with what any process that writes it must know: up to where the store has the lane's events, and which of
    /// these may have been handed over before.
    pub(crate) async fn hand(&self, batch: Batch, floor: u64) -> Result<WriteOutcome, SinkError> {
        let again = self.status.hands_over(batch.last());
        self.sink.write(&batch.sent_after(floor, again)).await
    }

    pub(crate) fn builder(&self, first: u64) -> BatchBuilder {
        BatchBuilder::new(Batch::new(self.name.clone(), first).claimed_by(self.claim), self.options.memory)
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
            tracing::warn!(lane = %self.name, sink = &*self.name.sink, shard = self.name.shard, "{caution}");
        }
    }

    async fn ask_held(&self) -> Result<Option<Held>, SinkError> {
        self.sink.connect().await?;
        self.note_store().await;
        self.sink.held(&self.name).await
    }

    /// Enters a state. Whoever reads the log learns why a lane waits, once for each reason, and when that is over.
    pub(crate) fn enter(&self, state: LaneState) {
        let before = self.status.set(state.clone());
        match &state {
            LaneState::Waiting(reason) if before != state => {
                tracing::warn!(lane = %self.name, sink = &*self.name.sink, shard = self.name.shard, reason, "lane waits: events stay in the journal, and the lane retries");
            }
            LaneState::Delivering if matches!(before, LaneState::Waiting(_)) => {
                tracing::warn!(lane = %self.name, sink = &*self.name.sink, shard = self.name.shard, "lane delivers again");
            }
            _ => {}
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

    /// The same; `next` ends the pause a little after it is done.
    async fn wait_or(&mut self, reason: &str, next: impl Future<Output = ()>) {
        let early = async {
            next.await;
            sleep(NEXT_AFTER).await;
        };
        tokio::select! {
            biased;
            () = self.wait(reason) => {}
            () = early => {}
        }
    }

    /// Waits for something to do: events, and some more behind the first; the time to move the store's cursor; or
    /// the order to stop.
    async fn idle(&mut self, run: &LaneSession) {
        let cover_at = run.opened + self.options.cover_every;
        let reader = &run.way.reader;
        let woken = async {
            if !run.builder.covers_any() {
                reader.ready().await;
            } else {
                tokio::select! {
                    biased;
                    () = reader.ready() => {}
                    () = sleep_until(cover_at) => return,
                }
            }
            if reader.durable() + 1 - reader.next() < self.options.memory.delivery_records as u64 {
                gather(&self.options, &self.sink, self.ledger.asked(&self.name)).await;
            }
        };
        let probe_at = self.probe_at().into_iter().chain(self.retry_at(run)).min();
        if !self.is_halted() || self.waits_for_aside() {
            tokio::select! {
                biased;
                () = woken => {}
                () = due(probe_at) => {}
                Ok(()) = self.halt.changed() => {}
            }
        }
    }

    /// Whether a drain waits for events that this lane has set aside.
    fn waits_for_aside(&self) -> bool {
        *self.halt.borrow() == Halt::WhenDrained && self.dead.has_aside(self.name.shard)
    }

    /// When the store is to be asked where it stands, though there is nothing to write.
    fn probe_at(&self) -> Option<Instant> {
        self.status.contacts.due_at()
    }

    /// Asks a store that may lose a tail whether it has, and whether it is still this process's: else nothing would notice before the next
    /// event.
    async fn probe(&mut self, run: &LaneSession) -> Result<(), LaneExit> {
        match self.ask_held().await {
            Ok(Some(held)) if !self.is_held(&held, run.store_at) => return Err(LaneExit::Moved),
            Ok(_) => {
                self.status.contacts.contacted();
                self.enter(LaneState::Delivering);
                self.backoff.reset();
            }
            Err(error) => self.wait(&error.to_string()).await,
        }
        Ok(())
    }

    /// The store stands where this lane has brought it; what it has settles from now on.
    fn note_contact(&self) {
        self.status.contacts.contacted();
        let settle = self.sink.capabilities().settle;
        if settle > Duration::ZERO {
            self.status.contacts.wait_for(settle);
        }
    }

    fn is_due(&self, run: &LaneSession, fill: FillResult) -> bool {
        if !run.builder.covers_any() {
            return false;
        }
        let has_records = !run.builder.batch().is_empty();
        let old = run.opened.elapsed() >= self.options.cover_every || self.is_halted();
        fill == FillResult::Full
            || (fill == FillResult::CaughtUp && has_records)
            || (!has_records && (old || run.needs_no_write()))
    }

    /// Brings the batch to its end and begins the next: whether it did, or the batch is to have later events first.
    async fn write(&mut self, run: &mut LaneSession) -> Result<bool, LaneExit> {
        self.status.set_oldest(run.builder.oldest());
        if !run.needs_no_write() {
            if !self.write_until_stored(run).await? {
                return Ok(false);
            }
            run.store_at = run.store_at.max(run.builder.batch().last());
            self.status.batches.add(1);
            self.status.batch_records.record(run.builder.batch().len() as u64);
        }
        self.backoff.reset();
        let stored = run.without_dead();
        self.advance_cursor(run);
        // Also those that were set aside with it.
        self.supersede(&stored, &BTreeSet::new());
        Ok(true)
    }

    fn advance_cursor(&self, run: &mut LaneSession) {
        let last = run.builder.batch().last();
        self.advance_cursor_to(last, &run.builder.tally(&run.rules), run.builder.lost());
        run.known.buried = run.known.buried.split_off(&(last + 1));
        run.builder = self.builder(last + 1);
        run.opened = Instant::now();
    }

    /// Everything up to `last` has its outcome, but for what is lost.
    pub(crate) fn advance_cursor_to(&self, last: u64, tally: &Tally, lost: u64) {
        if lost > 0 {
            self.status.lost.add(lost);
            let events = event::counted(lost, "event");
            tracing::warn!(lane = %self.name, sink = &*self.name.sink, shard = self.name.shard, "{events} before position {last} can't be read; the next start counts them as lost");
        }
        self.ledger.advance_cursor(&self.name, last, tally, lost);
        self.status.set_cursor(last);
        self.status.set_oldest(None);
    }
}

/// Waits for more events after the first. A batch for a writer waits longer: each batch costs both processes a request. If a client waits for
/// this lane, the wait ends immediately.
async fn gather(options: &Options, sink: &Sink, asked: impl Future<Output = ()>) {
    let Options { linger, linger_remote, .. } = *options;
    let linger = if sink.capabilities().remote { linger + linger_remote } else { linger };
    tokio::select! {
        biased;
        () = asked => {}
        () = sleep(linger) => {}
    }
}
