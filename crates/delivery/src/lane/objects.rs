//! The lane of an object store: it collects records, saves the intent, starts the upload, and advances the cursor after it.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use dead_letters::Blocked;
use ledger::{Dispute, RouteFilter, Tally, Undecided};
use objects::{ObjectFormat, ObjectSink, Parts};
use progress::WrittenObject;
use sink::Cursor;
use text::OperatorCommand;
use tokio::time::Instant;

use crate::lane::core::is_object_due;
use crate::lane::session::Session;
use crate::lane::{Lane, LaneExit};
use crate::log_cursor::{BatchReader, FillResult};
use crate::objects::{Account, Attempted, Content, IntentLog, ObjectBuilder, ObjectIntent, UploadAttempt, Uploads};
use crate::status::LaneState;

/// What a lane has read, gathered and begun to upload since it took its position.
pub(super) struct ObjectSession {
    store: ObjectSink,
    limits: ObjectFormat,
    file: IntentLog,
    /// Events that an earlier store of another kind has rejected.
    dead_lettered: Arc<BTreeSet<u64>>,
    reader: BatchReader,
    rules: RouteFilter,
    builder: ObjectBuilder,
    uploads: Uploads,
}

impl ObjectSession {
    /// When the oldest event was received that is not known to be written.
    fn oldest(&self) -> Option<i64> {
        let in_flight = self.uploads.intents().next().map(|intent| intent.received_at);
        in_flight.or_else(|| self.builder.received_at())
    }
}

impl Session for ObjectSession {
    fn reader(&mut self) -> &mut BatchReader {
        &mut self.reader
    }

    fn fill(&mut self) -> io::Result<FillResult> {
        self.rules.begin_slice();
        let store = (&self.store, &self.limits);
        self.reader.fill(|chunk| self.builder.add(chunk, &mut self.rules, &self.dead_lettered, store))
    }

    fn take_undecided(&mut self) -> Undecided {
        let undecided = self.builder.take_undecided();
        if !undecided.is_empty() {
            Arc::make_mut(&mut self.dead_lettered).extend(undecided.iter().map(|(sequence, _)| *sequence));
        }
        undecided
    }

    async fn write_due(&mut self, lane: &mut Lane, fill: FillResult) -> Result<bool, LaneExit> {
        lane.status.set_oldest(self.oldest());
        if self.builder.records() == 0 {
            lane.skip_unwanted(self);
        } else {
            let now = Instant::now();
            let is_old = now >= self.builder.due_at(&self.limits);
            if is_object_due(fill, lane.is_halted(), || now >= lane.due_at(self, now), is_old) {
                // The events that follow were gathered during the upload.
                if self.uploads.is_full() {
                    lane.land(self).await;
                }
                lane.write_gathered(self).await;
            }
        }
        if self.uploads.has_landed() || (fill == FillResult::CaughtUp && !self.uploads.is_empty()) {
            lane.land(self).await;
            return Ok(false);
        }
        Ok(true)
    }

    /// Waits for events, for the age of the gathered ones, or for a stop.
    async fn idle(&mut self, lane: &mut Lane) -> Result<(), LaneExit> {
        let has_records = self.builder.records() > 0;
        let wake_at = has_records.then(|| lane.due_at(self, Instant::now()));
        lane.wait_for_events(&self.reader, wake_at).await;
        Ok(())
    }
}

impl Lane {
    /// Connects to the store and finds the lane's position, and writes the objects that were committed and are not
    /// known to be written.
    pub(super) async fn open_objects(&mut self, store: ObjectSink) -> Result<ObjectSession, LaneExit> {
        self.enter(LaneState::Connecting);
        let (file, dead_lettered) = loop {
            self.find_held().await;
            let place = self.reconcile_with_intents();
            if let Some(place) = self.unless_blocked(place).await? {
                break place;
            }
        };
        self.wait_until_answer_saved().await;
        self.enter(LaneState::Delivering);
        let cursor = self.ledger.lane(&self.name).cursor;
        for open in file.open().iter().filter(|open| open.last > cursor) {
            let attempted = self.attempt(&store, open, &dead_lettered).await;
            self.finish(&store, open, &dead_lettered, attempted).await;
        }
        let after = self.ledger.lane(&self.name).cursor;
        Ok(ObjectSession {
            limits: store.rules(),
            store,
            file,
            dead_lettered,
            reader: BatchReader::new(self.shard.reader(after)),
            rules: self.rules(),
            builder: ObjectBuilder::new(after + 1),
            uploads: Uploads::default(),
        })
    }

    fn rules(&self) -> RouteFilter {
        RouteFilter::new(self.ledger.clone(), self.name.clone())
    }

    /// Moves the ledger to the start of the intent: the events before it are written.
    fn reconcile_with_intents(&self) -> Result<(IntentLog, Arc<BTreeSet<u64>>), Blocked> {
        let (mut file, damaged) = IntentLog::of(&self.files, &self.name)?;
        damaged.iter().for_each(
            |finding| tracing::warn!(lane = %self.name, sink = &*self.name.sink, shard = self.name.shard, "{finding}"),
        );
        let end = self.reach();
        if let Some(open) = file.newest().filter(|open| open.last > end) {
            if self.ledger.lane(&self.name).accept.is_none() {
                self.ledger.dispute(&self.name, Dispute::StoreAhead);
                return Err(Blocked::Stop(format!(
                    "object {} holds positions up to {}, but the journal of shard {} ended at {end}: was the data \
                     directory partly restored from a backup? To keep that object and write the journal's events to \
                     other objects, run {}",
                    open.names(),
                    open.last,
                    self.name.shard,
                    OperatorCommand::RouteAccept(&self.name.sink)
                )));
            }
            let kept = file.open().iter().filter(|open| open.last <= end).cloned().collect();
            file.save(kept).map_err(|error| {
                Blocked::Retry(format!(
                    "can't save the manifest of an object: {error}. Check the disk and permissions of the data \
                     directory"
                ))
            })?;
        }
        self.ledger.accepted(&self.name);
        let dead_lettered = Arc::new(self.reconcile_cursor(Cursor::Delivery)?.dead_lettered);
        let cursor = self.ledger.lane(&self.name).cursor;
        if let Some(open) = file.open().first().filter(|open| open.first > cursor + 1) {
            let run = (cursor + 1, open.first - 1);
            let (tally, lost) = self.count(run, &dead_lettered)?;
            self.advance_cursor_to(run.1, &tally, lost);
        }
        Ok((file, dead_lettered))
    }

    /// The outcomes of events that are not written, or were written before.
    fn count(&self, run: (u64, u64), dead_lettered: &Arc<BTreeSet<u64>>) -> Result<(Tally, u64), Blocked> {
        let mut content = self.content(run, dead_lettered);
        loop {
            match content.next() {
                Ok(Some(_)) => {}
                Ok(None) => {
                    let Account { tally, lost, .. } = content.account();
                    return Ok((tally, lost));
                }
                Err(error) => return Err(Blocked::Retry(error.to_string())),
            }
        }
    }

    fn content(&self, run: (u64, u64), dead_lettered: &Arc<BTreeSet<u64>>) -> Content {
        let counted = self.ledger.lane(&self.name).cursor;
        let segments = self.shard.segments().clone();
        Content::new(segments, self.name.clone(), run, dead_lettered.clone(), self.rules(), counted)
    }

    /// Skips positions without an event for this store.
    fn skip_unwanted(&self, run: &mut ObjectSession) {
        if run.builder.covers_any() && run.uploads.is_empty() {
            let (_, last) = run.builder.run();
            self.advance_cursor_to(last, &run.builder.left_out(&run.rules), run.builder.lost());
            run.builder = ObjectBuilder::new(last + 1);
            Self::forget_dead_letters(run, last);
        }
    }

    /// When a lane that has caught up writes what it has gathered. No event would make the object larger, so the time
    /// that the first event waited in a backlog before it was read also counts.
    fn due_at(&self, run: &ObjectSession, now: Instant) -> Instant {
        let waited = run.builder.received_at().map_or(0, |received| (self.options.clock)().saturating_sub(received));
        // If the clock was set back, only the time since then counts.
        let waited = Duration::from_micros(u64::try_from(waited).unwrap_or(0));
        let by_receipt = now + run.limits.age_max.saturating_sub(waited);
        by_receipt.min(run.builder.due_at(&run.limits))
    }

    /// Commits what was gathered, and begins to write it.
    async fn write_gathered(&mut self, run: &mut ObjectSession) {
        let previous = run.file.newest_name();
        let intent = run.builder.intent((&self.name, self.claim), &run.rules, &run.limits, previous);
        let Some(intent) = intent else { return };
        let open: Vec<ObjectIntent> = run.uploads.intents().chain([&intent]).cloned().collect();
        while let Err(error) = run.file.save(open.clone()) {
            self.wait(&format!(
                "can't save the manifest of object {}: {error}. Check the disk and permissions of the data directory",
                intent.names()
            ))
            .await;
        }
        self.status.batch_records.record(run.builder.records());
        run.builder = ObjectBuilder::new(intent.last + 1);
        let contents = self.contents_of(&intent, &run.dead_lettered);
        let contents = contents.map(|content| content.with_at_hand(run.reader.rest.as_ref())).collect();
        run.uploads.begin(&run.store, intent, contents);
    }

    /// Waits until the oldest object is written, and continues after it.
    async fn land(&mut self, run: &mut ObjectSession) {
        let Some(mut oldest) = run.uploads.pop() else { return };
        let attempted = match oldest.attempt.ended().await {
            (Err(_), _) if oldest.is_stale => self.attempt(&run.store, &oldest.intent, &run.dead_lettered).await,
            attempted => attempted,
        };
        if self.finish(&run.store, &oldest.intent, &run.dead_lettered, attempted).await {
            run.uploads.outlast();
        }
        Self::forget_dead_letters(run, oldest.intent.last);
    }

    /// Forgets the dead letters that the lane has passed.
    fn forget_dead_letters(run: &mut ObjectSession, passed: u64) {
        if run.dead_lettered.first().is_some_and(|first| *first <= passed) {
            let kept = Arc::make_mut(&mut run.dead_lettered).split_off(&(passed + 1));
            run.dead_lettered = Arc::new(kept);
        }
    }

    /// The content of each of its objects.
    fn contents_of(&self, intent: &ObjectIntent, dead_lettered: &Arc<BTreeSet<u64>>) -> impl Iterator<Item = Content> {
        let run = (intent.first, intent.last);
        (0..intent.objects.len()).map(move |object| self.content(run, dead_lettered).keeping(intent, object))
    }

    async fn attempt(
        &self,
        store: &ObjectSink,
        intent: &ObjectIntent,
        dead_lettered: &Arc<BTreeSet<u64>>,
    ) -> Attempted {
        let contents = self.contents_of(intent, dead_lettered).collect();
        UploadAttempt::begin(store, intent, contents).ended().await
    }

    /// Notes the names of written objects for the console.
    fn note_objects(&self, intent: &ObjectIntent) {
        for object in &intent.objects {
            self.status.progress.wrote_object(&WrittenObject {
                first: intent.first,
                last: intent.last,
                name: object.manifest.name.clone(),
                types: object.kept.keys().cloned().collect(),
            });
        }
    }

    /// Writes a committed object after a first attempt, with retries until it succeeds, and continues after it. Returns
    /// whether it had to wait for the store.
    async fn finish(
        &mut self,
        store: &ObjectSink,
        intent: &ObjectIntent,
        dead_lettered: &Arc<BTreeSet<u64>>,
        mut attempted: Attempted,
    ) -> bool {
        let mut has_waited = false;
        let Account { tally, lost, receipts } = loop {
            let (answer, took) = attempted;
            self.status.write_time.record(took);
            tracing::debug!(
                lane = %self.name, sink = &*self.name.sink, shard = self.name.shard, position = intent.last,
                milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX), outcome = if answer.is_ok() { "stored" } else { "failed" },
                "lane wrote an object"
            );
            match answer {
                Ok(written) => break written,
                Err(error) => self.wait(&error.to_string()).await,
            }
            has_waited = true;
            attempted = self.attempt(store, intent, dead_lettered).await;
        };
        self.enter(LaneState::Delivering);
        self.backoff.reset();
        self.status.batches.add(1);
        let now = (self.options.clock)();
        for (name, receipts) in receipts {
            self.stored_times.add(&name, &self.name.sink, receipts.ages(now));
        }
        self.note_objects(intent);
        self.advance_cursor_to(intent.last, &tally, lost);
        has_waited
    }
}
