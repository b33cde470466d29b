//! A lane into a store of objects: gathers, commits, begins to write, and goes on behind what is written.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use objects::{ObjectRules, ObjectSink, Parts};

use sink::Cursor;
use tokio::time::{Instant, sleep, sleep_until};

use super::commitment::{Commitment, CommitmentFile};
use super::content::{Account, Content};
use super::flight::{Attempt, Attempted, Flight};
use super::gathering::Gathering;
use crate::claims::Dispute;
use crate::lane::{Lane, Turn};
use crate::lanes::Halt;
use crate::ledger::Tally;
use crate::place::NoPlace;
use crate::race::{changed, race};
use crate::rules::Rules;
use crate::way::{Fill, Way};
use crate::{LaneState, SinkName};

/// A lane's way through the log since it took its place.
struct Run {
    store: ObjectSink,
    limits: ObjectRules,
    file: CommitmentFile,
    /// Events that a store of another kind has refused.
    buried: Arc<BTreeSet<u64>>,
    way: Way,
    rules: Rules,
    gathering: Gathering,
    flight: Flight,
}

impl Run {
    fn fill(&mut self) -> std::io::Result<Fill> {
        self.rules.begin_turn();
        let store = (&self.store, &self.limits);
        self.way.fill(|stretch| self.gathering.add(stretch, &mut self.rules, &self.buried, store))
    }

    /// When the oldest event was received that isn't known to be written.
    fn oldest(&self) -> Option<i64> {
        let in_flight = self.flight.commitments().next().map(|commitment| commitment.received_at);
        in_flight.or_else(|| self.gathering.received_at())
    }
}

impl Lane {
    /// Delivers to a store of objects until it is told to stop, and has caught up if it is to.
    pub(crate) async fn deliver_objects(&mut self, store: ObjectSink) -> Result<(), Turn> {
        let (file, buried) = self.take_up(&store).await?;
        let mut run = self.begin_run(store, file, buried);
        while *self.halt.borrow() != Halt::Now {
            if run.gathering.records() == 0 && !run.flight.is_empty() && run.store.lacks_memory() {
                self.land(&mut run).await;
                continue;
            }
            let filled = run.fill();
            let Some(fill) = self.judge_fill(&mut run.way, filled).await else { continue };
            if fill == Fill::Midway {
                tokio::task::yield_now().await;
                continue;
            }
            let undecided = run.gathering.take_undecided();
            if !undecided.is_empty() {
                self.bury_undecided(&mut run.way, &undecided).await?;
                Arc::make_mut(&mut run.buried).extend(undecided.iter().map(|(sequence, _)| *sequence));
            }
            self.status.set_oldest(run.oldest());
            if run.gathering.records() == 0 {
                self.pass_by(&mut run);
            } else if fill == Fill::Full
                || (fill == Fill::CaughtUp && (self.is_halted() || self.are_due(&run)))
                || Instant::now() >= run.gathering.is_due_at(&run.limits)
            {
                // What comes behind them was gathered meanwhile.
                if run.flight.is_full() {
                    self.land(&mut run).await;
                }
                self.write_gathered(&mut run).await;
            }
            if run.flight.has_landed() || (fill == Fill::CaughtUp && !run.flight.is_empty()) {
                self.land(&mut run).await;
                continue;
            }
            match fill {
                Fill::Full => {}
                Fill::Pause | Fill::Midway => tokio::task::yield_now().await,
                Fill::CaughtUp if self.is_halted() && run.way.has_ended() => return Ok(()),
                Fill::CaughtUp => {
                    run.gathering.let_lines_go();
                    self.idle_between_objects(&run).await;
                }
            }
        }
        Ok(())
    }

    fn begin_run(&self, store: ObjectSink, file: CommitmentFile, buried: Arc<BTreeSet<u64>>) -> Run {
        let after = self.ledger.lane(&self.name).cursor;
        Run {
            limits: store.rules(),
            store,
            file,
            buried,
            way: Way::new(self.shard.lane(after)),
            rules: self.rules(),
            gathering: self.gathering(after + 1),
            flight: Flight::default(),
        }
    }

    fn rules(&self) -> Rules {
        Rules::new(self.ledger.clone(), self.name.clone())
    }

    /// Finds the store and the lane's place, and writes the objects that were committed and aren't known to be written.
    async fn take_up(&mut self, store: &ObjectSink) -> Result<(CommitmentFile, Arc<BTreeSet<u64>>), Turn> {
        self.enter(LaneState::Connecting);
        let (file, buried) = loop {
            self.find_held().await;
            match self.take_place_by_commitment() {
                Ok(place) => break place,
                Err(NoPlace::Later(reason)) => self.wait(&reason).await,
                Err(NoPlace::Stop(reason)) => return Err(Turn::Stop(reason)),
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

    /// Brings the ledger to where the commitment begins: what stands before it is written.
    fn take_place_by_commitment(&self) -> Result<(CommitmentFile, Arc<BTreeSet<u64>>), NoPlace> {
        let (mut file, damaged) = CommitmentFile::of(&self.home, &self.name)?;
        damaged.iter().for_each(|finding| self.options.reporter.report(finding));
        let end = self.reach();
        if let Some(open) = file.newest().filter(|open| open.last > end) {
            if self.ledger.lane(&self.name).accept.is_none() {
                self.ledger.dispute(&self.name, Dispute::Ahead);
                return Err(NoPlace::Stop(format!(
                    "object {} holds positions up to {}, the journal of shard {} ended at {end}: was a part of the data \
                     directory restored from a copy? To leave that object as it is, and write what the journal has into others: \
                     forebay route accept {}",
                    open.names(),
                    open.last,
                    self.name.shard,
                    self.name.sink
                )));
            }
            let kept = file.open().iter().filter(|open| open.last <= end).cloned().collect();
            file.save(kept)
                .map_err(|error| NoPlace::Later(format!("can't save the manifest of an object: {error}")))?;
        }
        self.ledger.accepted(&self.name);
        let buried = Arc::new(self.take_place(Cursor::Delivery)?.buried);
        let cursor = self.ledger.lane(&self.name).cursor;
        if let Some(open) = file.open().first().filter(|open| open.first > cursor + 1) {
            let run = (cursor + 1, open.first - 1);
            let (tally, lost) = self.count(run, &buried)?;
            self.settle_up_to(run.1, &tally, lost);
        }
        Ok((file, buried))
    }

    /// What events come to that aren't to be written, or were.
    fn count(&self, run: (u64, u64), buried: &Arc<BTreeSet<u64>>) -> Result<(Tally, u64), NoPlace> {
        let mut content = self.content(run, buried);
        loop {
            match content.next() {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(content.account()),
                Err(error) => return Err(NoPlace::Later(error.to_string())),
            }
        }
    }

    fn content(&self, run: (u64, u64), buried: &Arc<BTreeSet<u64>>) -> Content {
        let counted = self.ledger.lane(&self.name).cursor;
        let segments = self.shard.segments().clone();
        Content::new(segments, self.name.clone(), run, buried.clone(), self.rules(), counted)
    }

    /// Goes on behind positions without an event for this store.
    fn pass_by(&self, run: &mut Run) {
        if run.gathering.covers_any() && run.flight.is_empty() {
            let (_, last) = run.gathering.run();
            self.settle_up_to(last, &run.gathering.left_out(&run.rules), run.gathering.lost());
            run.gathering = self.gathering(last + 1);
            Self::forget_buried(run, last);
        }
    }

    /// Whether a lane that has caught up writes what it has gathered.
    fn are_due(&self, run: &Run) -> bool {
        let now = Instant::now();
        now >= self.due_at(run, now)
    }

    /// When it does: nothing is at hand that would make the object larger, so the time counts that the first event waited before it was
    /// read, in a backlog, too.
    fn due_at(&self, run: &Run, now: Instant) -> Instant {
        let waited = run.gathering.received_at().map_or(0, |received| (self.options.clock)().saturating_sub(received));
        // A clock that was put back: then only what has passed since counts.
        let waited = Duration::from_micros(u64::try_from(waited).unwrap_or(0));
        let by_receipt = now + run.limits.age_max.saturating_sub(waited);
        by_receipt.min(run.gathering.is_due_at(&run.limits))
    }

    /// Commits what was gathered, and begins to write it.
    async fn write_gathered(&mut self, run: &mut Run) {
        let previous = run.file.newest_name();
        let commitment = run.gathering.commitment((&self.name, self.claim), &run.rules, &run.limits, previous);
        let Some(commitment) = commitment else { return };
        #[cfg(test)]
        if self.options.mutation == Some(crate::tests::Mutation::LateManifest) {
            let attempted = self.attempt(&run.store, &commitment, &run.buried).await;
            self.finish(&run.store, &commitment, &run.buried, attempted).await;
        }
        let open: Vec<Commitment> = run.flight.commitments().chain([&commitment]).cloned().collect();
        while let Err(error) = run.file.save(open.clone()) {
            self.wait(&format!("can't save the manifest of object {}: {error}", commitment.names())).await;
        }
        #[cfg(test)]
        if self.options.mutation == Some(crate::tests::Mutation::LateManifest) {
            run.gathering = self.gathering(commitment.last + 1);
            return;
        }
        self.status.batch_records.record(run.gathering.records());
        let gathered = std::mem::replace(&mut run.gathering, self.gathering(commitment.last + 1));
        let contents = self.contents_of_gathered(&commitment, gathered, run);
        run.flight.begin((&run.store, &self.sending), commitment, contents);
    }

    /// What each of its objects holds that were just gathered: their lines, or else their events.
    fn contents_of_gathered(&self, commitment: &Commitment, gathered: Gathering, run: &Run) -> Vec<Content> {
        let contents = self.contents_of(commitment, &run.buried);
        let (account, lines) = gathered.into_written(&run.rules);
        let Some(lines) = lines.filter(|lines| lines.len() == commitment.objects.len()) else {
            return contents.map(|content| content.with_at_hand(run.way.rest.as_ref())).collect();
        };
        // The first one tells what all come to.
        let accounts = std::iter::once(account).chain(std::iter::repeat_with(Account::default));
        let known = lines.into_iter().zip(accounts);
        contents.zip(known).map(|(content, (lines, account))| content.with_lines(lines, account)).collect()
    }

    /// Nothing gathered yet, from a position on.
    fn gathering(&self, first: u64) -> Gathering {
        Gathering::new(first, self.name.shard)
    }

    /// Waits until the oldest object is written, and goes on behind it.
    async fn land(&mut self, run: &mut Run) {
        let Some(mut oldest) = run.flight.pop() else { return };
        let attempted = match oldest.attempt.ended().await {
            (Err(_), _) if oldest.is_stale => self.attempt(&run.store, &oldest.commitment, &run.buried).await,
            attempted => attempted,
        };
        if self.finish(&run.store, &oldest.commitment, &run.buried, attempted).await {
            run.flight.outlast();
        }
        Self::forget_buried(run, oldest.commitment.last);
    }

    /// Forgets the dead letters that the lane has passed.
    fn forget_buried(run: &mut Run, passed: u64) {
        if run.buried.first().is_some_and(|first| *first <= passed) {
            let kept = Arc::make_mut(&mut run.buried).split_off(&(passed + 1));
            run.buried = Arc::new(kept);
        }
    }

    /// What each of its objects holds.
    fn contents_of(&self, commitment: &Commitment, buried: &Arc<BTreeSet<u64>>) -> impl Iterator<Item = Content> {
        let run = (commitment.first, commitment.last);
        (0..commitment.objects.len()).map(move |object| self.content(run, buried).keeping(commitment, object))
    }

    async fn attempt(&self, store: &ObjectSink, commitment: &Commitment, buried: &Arc<BTreeSet<u64>>) -> Attempted {
        let contents = self.contents_of(commitment, buried).collect();
        Attempt::begin((store, &self.sending), commitment, contents).ended().await
    }

    /// Writes a committed object, of which there was an attempt, however often it takes, and goes on behind it. Whether it had to
    /// wait for the store.
    async fn finish(
        &mut self,
        store: &ObjectSink,
        commitment: &Commitment,
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
            attempted = self.attempt(store, commitment, buried).await;
        };
        self.enter(LaneState::Delivering);
        self.backoff.reset();
        self.status.batches.add(1);
        self.settle_up_to(commitment.last, &tally, lost);
        has_waited
    }

    /// Waits for events, for the age of those that are gathered, or for the order to stop.
    async fn idle_between_objects(&mut self, run: &Run) {
        let (reader, due_at) = (&run.way.reader, self.due_at(run, Instant::now()));
        let more = async {
            reader.ready().await;
            if reader.durable() + 1 - reader.next() < self.options.memory.delivery_records as u64 {
                sleep(self.options.linger).await;
            }
        };
        let woken = async {
            if run.gathering.records() == 0 {
                more.await;
            } else {
                race(more, sleep_until(due_at)).await;
            }
        };
        if !self.is_halted() {
            race(woken, changed(&mut self.halt)).await;
        }
    }
}

/// Why dead letters of a sink can't be sent to the store that it is now.
pub(crate) fn no_replay(sink: &SinkName) -> String {
    format!(
        "sink {sink} is a store of objects, to which single events can't be added, so its dead letters can't be sent again: post the \
         payload anew as another event (forebay dead show prints it), and drop the letter. Letters from a store of another kind that \
         had this name before can be sent again when that one is configured under it"
    )
}
