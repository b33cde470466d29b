//! The session of a lane that writes batches: it gathers and sends them, and handles the records that the store does
//! not accept.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use dead_letters::NewDeadLetter;
use ledger::{RouteFilter, Undecided};
use sink::{Batch, Cursor, Reason, Record, SinkError, WriteOutcome};
use tokio::time::{Instant, sleep};

use super::spanned::add_span;
use crate::lane::batch_builder::{BatchBuilder, DeliveryState};
use crate::lane::core::{BatchProgress, Happened, Judgement, Newest, Next, Policy, Wait, is_batch_due, left};
use crate::lane::deferred::Retries;
use crate::lane::session::Session;
use crate::lane::{Lane, LaneExit};
use crate::log_cursor::{BatchReader, FillResult};
use crate::status::LaneState;
use crate::stored_times::BatchTimes;

/// The number of newest events to send: the largest of these that fits into a batch.
const NEWEST: [u64; 4] = [64, 16, 4, 1];

/// What a lane has read and gathered since it took its position.
pub(super) struct BatchSession {
    pub(super) reader: BatchReader,
    pub(super) builder: BatchBuilder,
    pub(super) rules: RouteFilter,
    pub(super) retries: Retries,
    pub(super) known: DeliveryState,
    pub(super) policy: Policy,
    pub(super) times: BatchTimes,
    /// The position up to which this lane has brought a transactional store. With another cursor it is another store.
    pub(super) store_at: u64,
    pub(super) began: Instant,
    /// When the batch was begun.
    opened: Instant,
}

impl BatchSession {
    /// The batch without the records that are dead letters.
    pub(super) fn without_dead(&self) -> Batch {
        let (batch, dead) = (self.builder.batch(), &self.known.dead_lettered);
        if dead.is_empty() {
            return batch.clone();
        }
        let is_dead = |(_, record): &(usize, Record<'_>)| dead.contains(&record.sequence);
        let dead: Vec<usize> = batch.records().enumerate().filter(is_dead).map(|(index, _)| index).collect();
        batch.without(&dead)
    }

    /// Records of `part` as the log has them, with the store's reasons. The indices ascend.
    fn with_reasons<'a>(
        &'a self,
        part: &Batch,
        reasons: impl Iterator<Item = (usize, &'a Reason)>,
    ) -> Vec<NewDeadLetter<'a>> {
        let reasons = reasons.filter_map(|(index, reason)| Some((part.get(index)?.sequence, &**reason)));
        let (sequences, reasons): (Vec<u64>, Vec<&str>) = reasons.unzip();
        let with_reason = |(sequence, record)| {
            let at = sequences.binary_search(&sequence).ok()?;
            Some(NewDeadLetter { sequence, record, reason: reasons[at] })
        };
        self.builder.originals(&sequences).into_iter().filter_map(with_reason).collect()
    }

    fn slot_of(&mut self, record: &Record<'_>) -> Option<usize> {
        self.rules.slot_of(record.type_name, record.sequence)
    }

    /// Whether the store has all of the batch: it keeps no cursor and there is no record, or its cursor is beyond the batch.
    fn needs_no_write(&self) -> bool {
        self.builder.batch().is_empty() && (!self.policy.fenced || self.builder.batch().last() <= self.known.fence)
    }

    /// The position up to which all events that were read are none of this lane's, if the batch waits for its first one.
    fn skipped_to(&self) -> Option<u64> {
        let skips_all = self.builder.covers_any() && self.builder.batch().is_empty() && self.builder.lost() == 0;
        skips_all.then(|| self.builder.batch().last())
    }

    fn is_due(&self, lane: &Lane, fill: FillResult) -> bool {
        let has_records = !self.builder.batch().is_empty();
        let is_old = lane.is_halted() || self.opened.elapsed() >= lane.options.cover_every;
        self.builder.covers_any() && is_batch_due(fill, has_records, is_old, self.needs_no_write())
    }
}

impl Session for BatchSession {
    fn reader(&mut self) -> &mut BatchReader {
        &mut self.reader
    }

    fn fill(&mut self) -> io::Result<FillResult> {
        self.rules.begin_slice();
        self.reader.fill(|chunk| self.builder.add(chunk, &mut self.rules, &self.known))
    }

    fn take_undecided(&mut self) -> Undecided {
        self.builder.take_undecided()
    }

    async fn write_due(&mut self, lane: &mut Lane, fill: FillResult) -> Result<bool, LaneExit> {
        if self.is_due(lane, fill) {
            if !lane.write(self).await? {
                // The events that have arrived go with the batch.
                return Ok(false);
            }
        } else if let Some(position) = self.skipped_to() {
            // The store's cursor follows later, and no request waits for it.
            lane.status.set_settled(position);
            lane.ledger.skip(&lane.name, position);
        }
        lane.retry_deferred(&mut self.retries).await?;
        Ok(true)
    }

    async fn idle(&mut self, lane: &mut Lane) -> Result<(), LaneExit> {
        let probe_at = lane.status.contacts.due_at();
        if probe_at.is_some_and(|at| at <= Instant::now()) {
            return lane.probe(self).await;
        }
        let cover_at = self.builder.covers_any().then_some(self.opened + lane.options.cover_every);
        let wake_at = [cover_at, probe_at, lane.retry_at(&self.retries)].into_iter().flatten().min();
        lane.wait_for_events(&self.reader, wake_at).await;
        Ok(())
    }
}

impl Lane {
    /// Finds the store and the lane's place.
    pub(super) async fn open_batches(&mut self) -> Result<BatchSession, LaneExit> {
        self.enter(LaneState::Connecting);
        let (cursor, known) = loop {
            let cursor = self.claim_cursor().await?;
            self.warn();
            let known = self.reconcile_cursor(cursor);
            if let Some(known) = self.unless_blocked(known).await? {
                break (cursor, known);
            }
        };
        let fenced = cursor != Cursor::Delivery;
        if fenced {
            self.wait_until_answer_saved().await;
        }
        self.note_contact();
        self.enter(LaneState::Delivering);
        let (after, now) = (self.ledger.lane(&self.name).cursor, Instant::now());
        Ok(BatchSession {
            reader: BatchReader::new(self.shard.reader(after)),
            builder: self.builder(after + 1),
            rules: RouteFilter::new(self.ledger.clone(), self.name.clone()),
            retries: Retries::new(self.backoff.another()),
            policy: Policy { claim: self.claim, fenced, defers: self.defers(), alone_max: self.options.alone_max },
            times: BatchTimes::new(self.stored_times.clone(), self.name.sink.clone()),
            store_at: known.fence,
            known,
            began: now,
            opened: now,
        })
    }

    fn builder(&self, first: u64) -> BatchBuilder {
        BatchBuilder::new(Batch::new(self.name.clone(), first).claimed_by(self.claim), self.options.memory)
    }

    /// Writes the batch and begins the next. `false` if the batch is to have later events first.
    async fn write(&mut self, run: &mut BatchSession) -> Result<bool, LaneExit> {
        self.status.set_oldest(run.builder.oldest());
        if !run.needs_no_write() {
            if !self.write_until_ended(run).await? {
                return Ok(false);
            }
            self.status.batches.add(1);
            self.status.batch_records.record(run.builder.batch().len() as u64);
        }
        self.backoff.reset();
        let stored = run.without_dead();
        self.advance_cursor(run);
        // Also the records that were deferred with it.
        self.supersede(&stored, &BTreeSet::new());
        Ok(true)
    }

    /// Writes the batch until each of its records has ended. Returns `false` if a transactional store accepts none:
    /// later events may show whether the events or the store are at fault.
    pub(super) async fn write_until_ended(&mut self, run: &mut BatchSession) -> Result<bool, LaneExit> {
        let mut batch = BatchProgress::new(run.policy, run.without_dead(), run.store_at);
        let mut next = batch.send();
        loop {
            let happened = match next {
                Next::Send(part) => {
                    let answer = self.send(&part, run.store_at).await;
                    Happened::Answered(part, answer)
                }
                Next::Defer(judgement) => {
                    let count = self.defer(run, &judgement).await?;
                    Happened::Deferred(judgement, count)
                }
                Next::DeadLetter(judgement) => {
                    self.write_dead_letters(run, &judgement).await?;
                    Happened::DeadLettered(judgement)
                }
                Next::Wait(wait) => {
                    let is_full = run.reader.rest.is_some();
                    self.wait_as(&run.reader, &wait, is_full).await;
                    Happened::Waited { wait, is_full }
                }
                Next::AskStore { needs_later } => {
                    let held = self.find_held().await;
                    Happened::Asked { needs_later, held, durable: self.shard.durable() }
                }
                Next::Grow => {
                    self.read_on(run).await?;
                    Happened::Grown(run.builder.batch().clone())
                }
                Next::TryNewest => Happened::TriedNewest(self.try_newest(run).await),
                Next::Advance => {
                    run.store_at = batch.store_at();
                    self.note_contact();
                    self.enter(LaneState::Delivering);
                    return Ok(true);
                }
                Next::AddLater => return Ok(false),
                Next::Moved => return Err(LaneExit::Moved),
            };
            next = batch.step(happened, run.began.elapsed());
            if batch.accepts_others() {
                self.backoff.reset();
            }
        }
    }

    /// Pauses before the next attempt, or until an event arrives that the core waits for.
    async fn wait_as(&mut self, reader: &BatchReader, wait: &Wait, is_full: bool) {
        let pause = self.begin_wait(&wait.reason, wait.logged);
        if wait.is_outage() {
            self.dead.outage(self.name.shard);
        }
        let ends_after_event = wait.ends_after_event(is_full, reader.has_ended());
        self.pause(pause, async {
            let Some(after) = ends_after_event else { return std::future::pending().await };
            reader.log.ready().await;
            sleep(after).await;
        })
        .await;
    }

    fn advance_cursor(&self, run: &mut BatchSession) {
        let last = run.builder.batch().last();
        run.builder.count_times(&mut run.rules, &mut run.times, (self.options.clock)());
        self.advance_cursor_to(last, &run.builder.tally(&run.rules), run.builder.lost());
        run.known.dead_lettered = run.known.dead_lettered.split_off(&(last + 1));
        run.builder = self.builder(last + 1);
        run.opened = Instant::now();
    }

    /// Sends a part of the batch. What the store then has of higher revisions supersedes what is deferred.
    pub(super) async fn send(&self, part: &Batch, floor: u64) -> Result<WriteOutcome, SinkError> {
        let started = Instant::now();
        let answer = self.write_batch(part.clone(), floor).await;
        let took = started.elapsed();
        self.status.write_time.record(took);
        self.show_write(part, &answer, took);
        if let Some(spans) = self.options.spans
            && !part.traces().is_empty()
        {
            add_span(spans, &self.name.sink, part, took, &answer);
        }
        if matches!(answer, Ok(WriteOutcome::Committed | WriteOutcome::Partial { .. })) {
            self.status.progress.stored_by(self.sink.server_of(&self.name), part.first());
        }
        match &answer {
            Ok(WriteOutcome::Committed) => self.supersede(part, &BTreeSet::new()),
            Ok(WriteOutcome::Partial { refused, retry }) => self.supersede(part, &left(refused, retry)),
            Ok(WriteOutcome::Rejected { .. }) | Err(_) => {}
        }
        answer
    }

    fn show_write(&self, part: &Batch, answer: &Result<WriteOutcome, SinkError>, took: Duration) {
        tracing::debug!(
            lane = %self.name, sink = &*self.name.sink, shard = self.name.shard, position = part.last(),
            records = part.len(), bytes = part.payload_bytes(), milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            outcome = match answer {
                Ok(WriteOutcome::Committed) => "stored",
                Ok(WriteOutcome::Partial { .. }) => "partly stored",
                Ok(WriteOutcome::Rejected { .. }) => "rejected",
                Err(_) => "failed",
            },
            "lane wrote a batch"
        );
    }

    /// Makes rejected records dead letters, durably.
    pub(super) async fn write_dead_letters(
        &mut self,
        run: &mut BatchSession,
        Judgement { part, rejected, .. }: &Judgement,
    ) -> Result<(), LaneExit> {
        let mut events = run.with_reasons(part, rejected.iter().map(|rejected| (rejected.index, &rejected.reason)));
        events.retain(|event| !run.known.dead_lettered.contains(&event.sequence));
        self.until_written(|lane| lane.write_dead(&events)).await?;
        for record in rejected.iter().filter_map(|rejected| part.get(rejected.index)) {
            run.known.dead_lettered.insert(record.sequence);
            if let Some(slot) = run.slot_of(&record) {
                run.builder.mark_dead(slot, record.sequence);
            }
        }
        Ok(())
    }

    /// Defers records durably, as many as there is room for, and returns how many.
    pub(super) async fn defer(
        &mut self,
        run: &mut BatchSession,
        Judgement { part, deferred, .. }: &Judgement,
    ) -> Result<usize, LaneExit> {
        let events = run.with_reasons(part, deferred.iter().map(|retry| (retry.index, &retry.reason)));
        let count = self.until_written(|lane| lane.dead.defer(lane.name.shard, &events)).await?;
        for record in deferred.iter().take(count).filter_map(|retry| part.get(retry.index)) {
            if let Some(slot) = run.slot_of(&record) {
                run.builder.mark_deferred(slot, record.sequence);
            }
        }
        if count < deferred.len() {
            // Deferred events that are stored now make room.
            self.retry_deferred(&mut run.retries).await?;
        }
        Ok(count)
    }

    /// Sends the newest events. Their lane sends them again in order.
    pub(super) async fn try_newest(&self, run: &BatchSession) -> Newest {
        let Some(batch) = NEWEST.into_iter().find_map(|count| self.newest(run, count)) else { return Newest::Missing };
        let is_accepted = match self.write_batch(batch.clone(), 0).await {
            Ok(WriteOutcome::Committed) => true,
            Ok(WriteOutcome::Partial { refused, retry }) => refused.len() + retry.len() < batch.len(),
            Ok(WriteOutcome::Rejected { .. }) | Err(_) => false,
        };
        if is_accepted { Newest::Accepted } else { Newest::NotAccepted }
    }

    /// This many of the newest events after the batch, if they fit into one.
    fn newest(&self, run: &BatchSession, count: u64) -> Option<Batch> {
        let after = self.shard.durable().saturating_sub(count).max(run.builder.batch().last());
        let (mut reader, mut rules) = (BatchReader::new(self.shard.reader(after)), run.rules.again());
        let mut builder = self.builder(after + 1);
        loop {
            rules.begin_slice();
            match reader.fill(|chunk| builder.add(chunk, &mut rules, &run.known)).ok()? {
                FillResult::CaughtUp => break,
                FillResult::Full => return None,
                // There are few.
                FillResult::Pause | FillResult::Midway => {}
            }
        }
        (!builder.batch().is_empty()).then(|| builder.batch().clone())
    }

    /// Asks a store that may lose its newest events in a failover whether it has lost some, and whether it still holds
    /// this process's claim. Otherwise the lane would notice only with the next event.
    async fn probe(&mut self, run: &BatchSession) -> Result<(), LaneExit> {
        match self.ask_held().await {
            Ok(Some(held)) if !run.policy.is_held_at(&held, run.store_at) => return Err(LaneExit::Moved),
            Ok(_) => {
                self.status.contacts.contacted();
                self.enter(LaneState::Delivering);
                self.backoff.reset();
            }
            Err(error) => self.wait(&error.to_string()).await,
        }
        Ok(())
    }

    /// The store has what this lane has sent. The failover window begins now.
    pub(super) fn note_contact(&self) {
        self.status.contacts.contacted();
        let settle = self.sink.capabilities().settle;
        if settle > Duration::ZERO {
            self.status.contacts.wait_for(settle);
        }
    }
}
