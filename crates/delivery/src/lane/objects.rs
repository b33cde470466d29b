//! The lane of an object store: it collects records, saves the intent, starts the upload, and advances the cursor after it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use event::OperatorCommand;
use objects::{ObjectFormat, ObjectSink, Parts};

use sink::Cursor;
use tokio::time::{Instant, sleep, sleep_until};

use crate::blocked::Blocked;
use crate::halt::Halt;
use crate::lane::{Lane, LaneExit};
use crate::ledger::{Dispute, RouteFilter, Tally};
use crate::log_cursor::{BatchReader, FillResult};
use crate::objects::{Attempted, Content, IntentLog, ObjectBuilder, ObjectIntent, UploadAttempt, Uploads};
use crate::status::LaneState;

/// A lane's way through the log since it took its place.
struct ObjectSession {
    store: ObjectSink,
    limits: ObjectFormat,
    file: IntentLog,
    /// Events that a store of another kind has refused.
    buried: Arc<BTreeSet<u64>>,
    way: BatchReader,
    rules: RouteFilter,
    builder: ObjectBuilder,
    uploads: Uploads,
}

impl ObjectSession {
    fn fill(&mut self) -> std::io::Result<FillResult> {
        self.rules.begin_turn();
        let store = (&self.store, &self.limits);
        self.way.fill(|chunk| self.builder.add(chunk, &mut self.rules, &self.buried, store))
    }

    /// When the oldest event was received that isn't known to be written.
    fn oldest(&self) -> Option<i64> {
        let in_flight = self.uploads.intents().next().map(|intent| intent.received_at);
        in_flight.or_else(|| self.builder.received_at())
    }
}

impl Lane {
    /// Delivers to a store of objects until it is told to stop, and has caught up if it is to.
    pub(crate) async fn deliver_objects(&mut self, store: ObjectSink) -> Result<(), LaneExit> {
        let (file, buried) = self.take_up(&store).await?;
        let mut run = self.begin_run(store, file, buried);
        while *self.halt.borrow() != Halt::Now {
            let filled = run.fill();
            let Some(fill) = self.judge_fill(&mut run.way, filled).await else { continue };
            if fill == FillResult::Midway {
                tokio::task::yield_now().await;
                continue;
            }
            let undecided = run.builder.take_undecided();
            if !undecided.is_empty() {
                self.dead_letter_undecided(&mut run.way, &undecided).await?;
                Arc::make_mut(&mut run.buried).extend(undecided.iter().map(|(sequence, _)| *sequence));
            }
            self.status.set_oldest(run.oldest());
            if run.builder.records() == 0 {
                self.pass_by(&mut run);
            } else if fill == FillResult::Full
                || (fill == FillResult::CaughtUp && (self.is_halted() || self.are_due(&run)))
                || Instant::now() >= run.builder.due_at(&run.limits)
            {
                // What comes behind them was gathered meanwhile.
                if run.uploads.is_full() {
                    self.land(&mut run).await;
                }
                self.write_gathered(&mut run).await;
            }
            if run.uploads.has_landed() || (fill == FillResult::CaughtUp && !run.uploads.is_empty()) {
                self.land(&mut run).await;
                continue;
            }
            match fill {
                FillResult::Full => {}
                FillResult::Pause | FillResult::Midway => tokio::task::yield_now().await,
                FillResult::CaughtUp if self.is_halted() && run.way.has_ended() => return Ok(()),
                FillResult::CaughtUp => self.idle_between_objects(&run).await,
            }
        }
        Ok(())
    }

    fn begin_run(&self, store: ObjectSink, file: IntentLog, buried: Arc<BTreeSet<u64>>) -> ObjectSession {
        let after = self.ledger.lane(&self.name).cursor;
        ObjectSession {
            limits: store.rules(),
            store,
            file,
            buried,
            way: BatchReader::new(self.shard.reader(after)),
            rules: self.rules(),
            builder: ObjectBuilder::new(after + 1),
            uploads: Uploads::default(),
        }
    }

    fn rules(&self) -> RouteFilter {
        RouteFilter::new(self.ledger.clone(), self.name.clone())
    }

    /// Finds the store and the lane's place, and writes the objects that were committed and aren't known to be written.
    async fn take_up(&mut self, store: &ObjectSink) -> Result<(IntentLog, Arc<BTreeSet<u64>>), LaneExit> {
        self.enter(LaneState::Connecting);
        let (file, buried) = loop {
            self.find_held().await;
            match self.reconcile_with_intents() {
                Ok(place) => break place,
                Err(Blocked::Retry(reason)) => self.wait(&reason).await,
                Err(Blocked::Stop(reason)) => return Err(LaneExit::Stop(reason)),
            }
        };
        self.answer_is_saved().await;
        self.enter(LaneState::Delivering);
        let cursor = self.ledger.lane(&self.name).cursor;
        for open in file.open().iter().filter(|open| open.last > cursor) {
            let attempted = self.attempt(store, open, &buried).await;
            self.finish(store, open, &buried, attempted).await;
        }
        Ok((file, buried))
    }

    /// Brings the ledger to where the intent begins: what stands before it is written.
    fn reconcile_with_intents(&self) -> Result<(IntentLog, Arc<BTreeSet<u64>>), Blocked> {
        let (mut file, damaged) = IntentLog::of(&self.home, &self.name)?;
        damaged.iter().for_each(|finding| self.options.reporter.report(finding));
        let end = self.reach();
        if let Some(open) = file.newest().filter(|open| open.last > end) {
            if self.ledger.lane(&self.name).accept.is_none() {
                self.ledger.dispute(&self.name, Dispute::StoreAhead);
                return Err(Blocked::Stop(format!(
                    "object {} holds positions up to {}, the journal of shard {} ended at {end}: was a part of the data \
                     directory restored from a copy? To leave that object as it is, and write what the journal has into others: \
                     {}",
                    open.names(),
                    open.last,
                    self.name.shard,
                    OperatorCommand::RouteAccept(&self.name.sink)
                )));
            }
            let kept = file.open().iter().filter(|open| open.last <= end).cloned().collect();
            file.save(kept)
                .map_err(|error| Blocked::Retry(format!("can't save the manifest of an object: {error}")))?;
        }
        self.ledger.accepted(&self.name);
        let buried = Arc::new(self.reconcile_cursor(Cursor::Delivery)?.buried);
        let cursor = self.ledger.lane(&self.name).cursor;
        if let Some(open) = file.open().first().filter(|open| open.first > cursor + 1) {
            let run = (cursor + 1, open.first - 1);
            let (tally, lost) = self.count(run, &buried)?;
            self.advance_cursor_to(run.1, &tally, lost);
        }
        Ok((file, buried))
    }

    /// What events come to that aren't to be written, or were.
    fn count(&self, run: (u64, u64), buried: &Arc<BTreeSet<u64>>) -> Result<(Tally, u64), Blocked> {
        let mut content = self.content(run, buried);
        loop {
            match content.next() {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(content.account()),
                Err(error) => return Err(Blocked::Retry(error.to_string())),
            }
        }
    }

    fn content(&self, run: (u64, u64), buried: &Arc<BTreeSet<u64>>) -> Content {
        let counted = self.ledger.lane(&self.name).cursor;
        let segments = self.shard.segments().clone();
        Content::new(segments, self.name.clone(), run, buried.clone(), self.rules(), counted)
    }

    /// Goes on behind positions without an event for this store.
    fn pass_by(&self, run: &mut ObjectSession) {
        if run.builder.covers_any() && run.uploads.is_empty() {
            let (_, last) = run.builder.run();
            self.advance_cursor_to(last, &run.builder.left_out(&run.rules), run.builder.lost());
            run.builder = ObjectBuilder::new(last + 1);
            Self::forget_buried(run, last);
        }
    }

    /// Whether a lane that has caught up writes what it has gathered.
    fn are_due(&self, run: &ObjectSession) -> bool {
        let now = Instant::now();
        now >= self.due_at(run, now)
    }

    /// When it does: nothing is at hand that would make the object larger, so the time counts that the first event waited before it was
    /// read, in a backlog, too.
    fn due_at(&self, run: &ObjectSession, now: Instant) -> Instant {
        let waited = run.builder.received_at().map_or(0, |received| (self.options.clock)().saturating_sub(received));
        // A clock that was put back: then only what has passed since counts.
        let waited = Duration::from_micros(u64::try_from(waited).unwrap_or(0));
        let by_receipt = now + run.limits.age_max.saturating_sub(waited);
        by_receipt.min(run.builder.due_at(&run.limits))
    }

    /// Commits what was gathered, and begins to write it.
    async fn write_gathered(&mut self, run: &mut ObjectSession) {
        let previous = run.file.newest_name();
        let intent = run.builder.intent((&self.name, self.claim), &run.rules, &run.limits, previous);
        let Some(intent) = intent else { return };
        #[cfg(test)]
        if self.options.mutation == Some(crate::tests::Mutation::LateManifest) {
            let attempted = self.attempt(&run.store, &intent, &run.buried).await;
            self.finish(&run.store, &intent, &run.buried, attempted).await;
        }
        let open: Vec<ObjectIntent> = run.uploads.intents().chain([&intent]).cloned().collect();
        while let Err(error) = run.file.save(open.clone()) {
            self.wait(&format!("can't save the manifest of object {}: {error}", intent.names())).await;
        }
        #[cfg(test)]
        if self.options.mutation == Some(crate::tests::Mutation::LateManifest) {
            run.builder = ObjectBuilder::new(intent.last + 1);
            return;
        }
        self.status.batch_records.record(run.builder.records());
        run.builder = ObjectBuilder::new(intent.last + 1);
        let contents = self.contents_of(&intent, &run.buried);
        let contents = contents.map(|content| content.with_at_hand(run.way.rest.as_ref())).collect();
        run.uploads.begin(&run.store, intent, contents);
    }

    /// Waits until the oldest object is written, and goes on behind it.
    async fn land(&mut self, run: &mut ObjectSession) {
        let Some(mut oldest) = run.uploads.pop() else { return };
        let attempted = match oldest.attempt.ended().await {
            (Err(_), _) if oldest.is_stale => self.attempt(&run.store, &oldest.intent, &run.buried).await,
            attempted => attempted,
        };
        if self.finish(&run.store, &oldest.intent, &run.buried, attempted).await {
            run.uploads.outlast();
        }
        Self::forget_buried(run, oldest.intent.last);
    }

    /// Forgets the dead letters that the lane has passed.
    fn forget_buried(run: &mut ObjectSession, passed: u64) {
        if run.buried.first().is_some_and(|first| *first <= passed) {
            let kept = Arc::make_mut(&mut run.buried).split_off(&(passed + 1));
            run.buried = Arc::new(kept);
        }
    }

    /// What each of its objects holds.
    fn contents_of(&self, intent: &ObjectIntent, buried: &Arc<BTreeSet<u64>>) -> impl Iterator<Item = Content> {
        let run = (intent.first, intent.last);
        (0..intent.objects.len()).map(move |object| self.content(run, buried).keeping(intent, object))
    }

    async fn attempt(&self, store: &ObjectSink, intent: &ObjectIntent, buried: &Arc<BTreeSet<u64>>) -> Attempted {
        let contents = self.contents_of(intent, buried).collect();
        UploadAttempt::begin(store, intent, contents).ended().await
    }

    /// Writes a committed object, of which there was an attempt, however often it takes, and goes on behind it. Whether it had to
    /// wait for the store.
    async fn finish(
        &mut self,
        store: &ObjectSink,
        intent: &ObjectIntent,
        buried: &Arc<BTreeSet<u64>>,
        mut attempted: Attempted,
    ) -> bool {
        let mut has_waited = false;
        let (tally, lost) = loop {
            let (answer, took) = attempted;
            self.status.write_time.record(took);
            match answer {
                Ok(written) => break written,
                Err(error) => self.wait(&error.to_string()).await,
            }
            has_waited = true;
            attempted = self.attempt(store, intent, buried).await;
        };
        self.enter(LaneState::Delivering);
        self.backoff.reset();
        self.status.batches.add(1);
        self.advance_cursor_to(intent.last, &tally, lost);
        has_waited
    }

    /// Waits for events, for the age of those that are gathered, or for the order to stop.
    async fn idle_between_objects(&mut self, run: &ObjectSession) {
        let (reader, due_at) = (&run.way.reader, self.due_at(run, Instant::now()));
        let more = async {
            reader.ready().await;
            if reader.durable() + 1 - reader.next() < self.options.memory.delivery_records as u64 {
                sleep(self.options.linger).await;
            }
        };
        let woken = async {
            if run.builder.records() == 0 {
                more.await;
            } else {
                tokio::select! {
                    biased;
                    () = more => {}
                    () = sleep_until(due_at) => {}
                }
            }
        };
        if !self.is_halted() {
            tokio::select! {
                biased;
                () = woken => {}
                Ok(()) = self.halt.changed() => {}
            }
        }
    }
}
