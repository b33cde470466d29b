//! One lane: reads a shard's log for one sink and writes one batch at a time, until the sink has it.
//!
//! Whatever a sink answers, no event is dropped: it is stored, a dead letter, or sent again.

mod write;

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use eventlog::Shard;
use objects::ObjectSink;
use sink::{Batch, Claim, Cursor, Held, Sink, SinkError, WriteOutcome};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::assembly::{Assembly, Known, Undecided, records_at};
use crate::backoff::Backoff;
use crate::dead_letters::{BuryError, DeadLetters, Home, Letter};
use crate::lanes::Halt;
use crate::ledger::Tally;
use crate::objects::Sending;
use crate::place::NoPlace;
use crate::race::{First, changed, race};
use crate::retries::Retries;
use crate::rules::Rules;
use crate::way::{Fill, Way};
use crate::{LaneState, LaneStatus, Ledger, Options};

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
    pub(crate) sending: Sending,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) dead: Arc<DeadLetters>,
    pub(crate) options: Arc<Options>,
    pub(crate) status: Arc<LaneStatus>,
    pub(crate) halt: watch::Receiver<Halt>,
    pub(crate) backoff: Backoff,
}

/// Why a lane doesn't go on as it was.
pub(crate) enum Turn {
    /// The store stands elsewhere: begin again from there.
    Moved,
    /// A person must act.
    Stop(String),
}

/// A lane's way through the log since it took its place.
pub(crate) struct Run {
    pub(crate) way: Way,
    pub(crate) assembly: Assembly,
    pub(crate) rules: Rules,
    pub(crate) retries: Retries,
    pub(crate) known: Known,
    fenced: bool,
    /// Where a fenced store stands, as far as this lane has brought it: elsewhere it is another store.
    store_at: u64,
    opened: Instant,
}

impl Run {
    fn fill(&mut self) -> std::io::Result<Fill> {
        self.rules.begin_turn();
        self.way.fill(|stretch| self.assembly.add(stretch, &mut self.rules, &self.known))
    }

    /// The batch without the dead letters that were made of it.
    fn unburied(&self) -> Batch {
        let batch = self.assembly.batch();
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
        self.assembly.originals(&sequences).into_iter().filter_map(with_reason).collect()
    }

    /// Whether the store has all of the batch without being asked: it keeps no cursor, or stands beyond.
    fn needs_no_write(&self) -> bool {
        self.assembly.batch().is_empty() && (!self.fenced || self.assembly.batch().last() <= self.known.fence)
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
                Err(Turn::Moved) => {}
                Err(Turn::Stop(reason)) => {
                    self.options.reporter.report(&format!("lane {} stops: {reason}", self.name));
                    self.enter(LaneState::Stopped(reason));
                    return;
                }
            }
        }
    }

    async fn deliver(&mut self) -> Result<(), Turn> {
        if let Some(store) = ObjectSink::of(&self.sink).cloned() {
            return self.deliver_objects(store).await;
        }
        let mut run = self.begin().await?;
        while *self.halt.borrow() != Halt::Now {
            let filled = run.fill();
            let Some(fill) = self.judge_fill(&mut run.way, filled).await else { continue };
            if fill == Fill::Midway {
                tokio::task::yield_now().await;
                continue;
            }
            let undecided = run.assembly.take_undecided();
            self.bury_undecided(&mut run.way, &undecided).await?;
            if self.is_due(&run, fill) && !self.write(&mut run).await? {
                // The events that came in the meantime go with it.
                continue;
            }
            self.retry_set_aside(&mut run).await?;
            match fill {
                Fill::Full => {}
                Fill::Pause | Fill::Midway => tokio::task::yield_now().await,
                Fill::CaughtUp if self.is_halted() && run.way.has_ended() && !self.waits_for_aside() => return Ok(()),
                Fill::CaughtUp if self.touch_at().is_some_and(|at| at <= Instant::now()) => self.touch(&run).await?,
                Fill::CaughtUp => self.idle(&run).await,
            }
        }
        Ok(())
    }

    /// Takes in what has come since the batch was begun, while there is room.
    pub(crate) async fn fill_more(&mut self, run: &mut Run) -> Result<(), Turn> {
        loop {
            let filled = run.fill();
            let Some(fill) = self.judge_fill(&mut run.way, filled).await else { return Ok(()) };
            if fill == Fill::Midway {
                tokio::task::yield_now().await;
                continue;
            }
            let undecided = run.assembly.take_undecided();
            return self.bury_undecided(&mut run.way, &undecided).await;
        }
    }

    /// How far it was filled; `None` after a pause, where the journal can't be read.
    pub(crate) async fn judge_fill(&mut self, way: &mut Way, filled: io::Result<Fill>) -> Option<Fill> {
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
    pub(crate) async fn bury_undecided(&mut self, way: &mut Way, undecided: &Undecided) -> Result<(), Turn> {
        let Some(stretch) = way.doubtful.take() else { return Ok(()) };
        let sequences: Vec<u64> = undecided.iter().map(|(sequence, _)| *sequence).collect();
        let records = records_at(&stretch, &sequences).into_iter().zip(undecided);
        let letters: Vec<Letter<'_>> =
            records.map(|((sequence, record), (_, reason))| Letter { sequence, record, reason }).collect();
        self.until_written(|lane| lane.dead.write(lane.name.shard, &letters)).await?;
        self.enter(LaneState::Delivering);
        Ok(())
    }

    /// Writes to the journal of dead letters until it is durable, however long that can't be done.
    pub(crate) async fn until_written<T>(&mut self, write: impl Fn(&Self) -> Result<T, BuryError>) -> Result<T, Turn> {
        loop {
            match write(self) {
                Ok(written) => return Ok(written),
                Err(BuryError::Later(reason)) => self.wait(&reason).await,
                Err(BuryError::Failed(reason)) => return Err(Turn::Stop(reason)),
            }
        }
    }

    pub(crate) fn is_halted(&self) -> bool {
        *self.halt.borrow() != Halt::No
    }

    /// Finds the store and the lane's place.
    async fn begin(&mut self) -> Result<Run, Turn> {
        self.enter(LaneState::Connecting);
        loop {
            let cursor = self.claim_cursor().await?;
            self.warn();
            match self.take_place(cursor) {
                Ok(known) => {
                    if cursor != Cursor::Delivery {
                        self.answer_is_saved().await;
                    }
                    self.has_touched();
                    self.enter(LaneState::Delivering);
                    let after = self.ledger.lane(&self.name).cursor;
                    let store_at = known.fence;
                    return Ok(Run {
                        way: Way::new(self.shard.lane(after)),
                        assembly: self.assembly(after + 1),
                        rules: Rules::new(self.ledger.clone(), self.name.clone()),
                        retries: Retries::new(self.backoff.another()),
                        known,
                        fenced: cursor != Cursor::Delivery,
                        store_at,
                        opened: Instant::now(),
                    });
                }
                Err(NoPlace::Later(reason)) => self.wait(&reason).await,
                Err(NoPlace::Stop(reason)) => return Err(Turn::Stop(reason)),
            }
        }
    }

    /// Hands a batch to the sink, with what any process that writes it must know: up to where the store has the lane's events, and which of
    /// these may have been handed over before.
    pub(crate) async fn hand(&self, batch: Batch, floor: u64) -> Result<WriteOutcome, SinkError> {
        let again = self.status.hands_over(batch.last());
        self.sink.write(&batch.sent_after(floor, again)).await
    }

    pub(crate) fn assembly(&self, first: u64) -> Assembly {
        Assembly::new(Batch::new(self.name.clone(), first).claimed_by(self.claim), self.options.memory)
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
        if let Some(warning) = self.sink.warning() {
            self.options.reporter.report(&format!("lane {}: {warning}", self.name));
        }
    }

    async fn ask_held(&self) -> Result<Option<Held>, SinkError> {
        self.sink.connect().await?;
        self.note_store().await;
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
        race(sleep(pause), changed(&mut self.halt)).await;
    }

    /// The same; `next` ends the pause a little after it is done.
    async fn wait_or(&mut self, reason: &str, next: impl Future<Output = ()>) {
        let early = async {
            next.await;
            sleep(NEXT_AFTER).await;
        };
        race(self.wait(reason), early).await;
    }

    /// Waits for something to do: events, and some more behind the first; the time to move the store's cursor; or
    /// the order to stop.
    async fn idle(&mut self, run: &Run) {
        let cover_at = run.opened + self.options.cover_every;
        let reader = &run.way.reader;
        let woken = async {
            if !run.assembly.covers_any() {
                reader.ready().await;
            } else if race(reader.ready(), sleep_until(cover_at)).await == First::Other(()) {
                return;
            }
            if reader.durable() + 1 - reader.next() < self.options.memory.delivery_records as u64 {
                gather(&self.options, &self.sink, &self.ledger).await;
            }
        };
        let touch_at = self.touch_at().into_iter().chain(self.retry_at(run)).min();
        let due = async {
            match touch_at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        if !self.is_halted() || self.waits_for_aside() {
            race(race(woken, due), changed(&mut self.halt)).await;
        }
    }

    /// Whether a drain waits for events that this lane has set aside.
    fn waits_for_aside(&self) -> bool {
        *self.halt.borrow() == Halt::WhenDrained && self.dead.has_aside(self.name.shard)
    }

    /// When the store is to be asked where it stands, though there is nothing to write.
    fn touch_at(&self) -> Option<Instant> {
        self.status.contacts.due_at()
    }

    /// Asks a store that may lose a tail whether it has, and whether it is still this process's: else nothing would notice before the next
    /// event.
    async fn touch(&mut self, run: &Run) -> Result<(), Turn> {
        match self.ask_held().await {
            Ok(Some(held)) if !self.is_held(&held, run.store_at) => return Err(Turn::Moved),
            Ok(_) => {
                self.status.contacts.touched();
                self.enter(LaneState::Delivering);
                self.backoff.reset();
            }
            Err(error) => self.wait(&error.to_string()).await,
        }
        Ok(())
    }

    /// The store stands where this lane has brought it; what it has settles from now on.
    fn has_touched(&self) {
        self.status.contacts.touched();
        let settle = self.sink.capabilities().settle;
        if settle > Duration::ZERO {
            self.status.contacts.wait_for(settle);
        }
    }

    fn is_due(&self, run: &Run, fill: Fill) -> bool {
        if !run.assembly.covers_any() {
            return false;
        }
        let has_records = !run.assembly.batch().is_empty();
        let old = run.opened.elapsed() >= self.options.cover_every || self.is_halted();
        fill == Fill::Full || (fill == Fill::CaughtUp && has_records) || (!has_records && (old || run.needs_no_write()))
    }

    /// Brings the batch to its end and begins the next: whether it did, or the batch is to have later events first.
    async fn write(&mut self, run: &mut Run) -> Result<bool, Turn> {
        self.status.set_oldest(run.assembly.oldest());
        if !run.needs_no_write() {
            if !self.write_until_stored(run).await? {
                return Ok(false);
            }
            run.store_at = run.store_at.max(run.assembly.batch().last());
            self.status.batches.add(1);
            self.status.batch_records.record(run.assembly.batch().len() as u64);
        }
        self.backoff.reset();
        let stored = run.unburied();
        self.settle(run);
        // Also those that were set aside with it.
        self.supersede(&stored, &BTreeSet::new());
        Ok(true)
    }

    fn settle(&self, run: &mut Run) {
        let last = run.assembly.batch().last();
        self.settle_up_to(last, &run.assembly.tally(&run.rules), run.assembly.lost());
        run.known.buried = run.known.buried.split_off(&(last + 1));
        run.assembly = self.assembly(last + 1);
        run.opened = Instant::now();
    }

    /// Everything up to `last` has its outcome, but for what is lost.
    pub(crate) fn settle_up_to(&self, last: u64, tally: &Tally, lost: u64) {
        if lost > 0 {
            self.status.lost.add(lost);
            let message = format!(
                "lane {}: {lost} event(s) before position {last} can't be read; the next start counts them as lost",
                self.name
            );
            self.options.reporter.report(&message);
        }
        self.ledger.settle(&self.name, last, tally, lost);
        self.status.set_cursor(last);
        self.status.set_oldest(None);
    }
}

/// Waits for events behind the first. A batch for a writer waits longer while no client waits for the store: each batch costs both
/// processes a request.
async fn gather(options: &Options, sink: &Sink, ledger: &Ledger) {
    sleep(options.linger).await;
    if sink.capabilities().remote && !ledger.is_asked() {
        sleep(options.linger_remote).await;
    }
}
