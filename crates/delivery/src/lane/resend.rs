//! Retries of events that a lane has set aside: a keyed store rejects them for now while it accepts others.
//!
//! Only the lane itself does, between two batches: so an older revision never meets a newer one on its way.

use std::collections::BTreeSet;
use std::time::Duration;

use eventlog::Settled;
use objects::ObjectSink;
use sink::{Batch, Record, RejectedRecord, Retry, RetryScope, SinkError, WriteOutcome};
use tokio::time::{Instant, sleep};

use crate::backoff::Backoff;
use crate::blocked::Blocked;
use crate::dead_letter_reasons;
use crate::dead_letters::Resent;
use crate::lane::{Lane, LaneExit, LaneSession};
use crate::log_cursor::{BatchReader, FillResult};

/// A batch of which nothing was taken is sent again as so many of its records at most, from both of its ends.
const PROBE_RECORDS: usize = 64;
/// So many of the newest events are tried, or fewer if they don't fit into a batch.
const NEWEST: [u64; 4] = [64, 16, 4, 1];
/// With new events a batch of which nothing was taken is sent again after this.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// When a lane sends again what it has set aside.
pub(crate) struct Retries {
    backoff: Backoff,
    pub(crate) due: Instant,
    /// The last event that was sent again in this round.
    after: u64,
    /// Whether each event is sent by itself in this round.
    are_apart: bool,
}

impl Retries {
    pub(crate) fn new(backoff: Backoff) -> Self {
        Self { backoff, due: Instant::now(), after: 0, are_apart: false }
    }

    fn pause(&mut self) {
        self.due = Instant::now() + self.backoff.next();
    }
}

/// The indices of records that the store hasn't taken.
pub(crate) fn left(refused: &[RejectedRecord], retry: &[Retry]) -> BTreeSet<usize> {
    refused.iter().map(|refusal| refusal.index).chain(retry.iter().map(|retry| retry.index)).collect()
}

/// What is sent of a batch of which nothing was taken: enough to see whether the store takes anything.
pub(crate) fn sample(batch: &Batch) -> Batch {
    let (count, half) = (batch.len(), PROBE_RECORDS / 2);
    if count <= PROBE_RECORDS {
        return batch.clone();
    }
    batch.without(&(half..count - half).collect::<Vec<_>>())
}

/// What is left of a batch of which `part` was sent: without what was sent, but for these.
pub(crate) fn rest(batch: &Batch, part: &Batch, left: &[Retry]) -> Batch {
    let sequence = |retry: &Retry| part.get(retry.index).map(|record| record.sequence);
    let left: BTreeSet<u64> = left.iter().filter_map(sequence).collect();
    let done: BTreeSet<u64> = part.records().map(|record| record.sequence).filter(|at| !left.contains(at)).collect();
    let records = batch.records().enumerate().filter(|(_, record)| done.contains(&record.sequence));
    batch.without(&records.map(|(index, _)| index).collect::<Vec<_>>())
}

impl Lane {
    /// Whether its store takes an event out of order, and knows it by its id.
    fn sets_aside(&self) -> bool {
        !self.sink.capabilities().fenced && ObjectSink::of(&self.sink).is_none()
    }

    /// What is set aside when the lane takes its place, of which `beyond` lies behind its cursor. A store that can't take it out of order
    /// gets that from the lane, and the others are dead letters.
    pub(crate) fn take_over_aside(&self, beyond: BTreeSet<u64>) -> Result<BTreeSet<u64>, Blocked> {
        let shard = self.name.shard;
        self.dead.release_given_up()?;
        if self.sets_aside() {
            return Ok(beyond);
        }
        self.dead.end_aside(shard, &beyond.into_iter().collect::<Vec<_>>(), Settled::Released)?;
        let mut after = 0;
        while let Some(resent) = self.dead.read_aside(shard, (after, u64::MAX), usize::MAX)? {
            let reasons: Vec<(usize, String)> =
                (0..resent.len()).map(|index| (index, dead_letter_reasons::SINK_CHANGED.to_owned())).collect();
            self.dead.write(shard, &resent.letters(&reasons))?;
            after = resent.last();
        }
        Ok(BTreeSet::new())
    }

    /// Sets the records aside that the store refuses for now while it takes others, durably. Gives back those that stay in place: what
    /// the store's own state is the reason for, and all if there is no room for more.
    pub(crate) async fn set_aside(
        &mut self,
        run: &mut LaneSession,
        batch: &Batch,
        retry: Vec<Retry>,
    ) -> Result<Vec<Retry>, LaneExit> {
        let (mut of_records, of_store): (Vec<Retry>, Vec<Retry>) =
            retry.into_iter().partition(|retry| retry.scope == RetryScope::Record);
        if of_records.is_empty() || !self.sets_aside() {
            return Ok(merged(of_records, of_store, |retry| retry.index));
        }
        let found = of_records.iter().filter_map(|retry| Some((batch.get(retry.index)?.sequence, &*retry.reason)));
        let reasons: Vec<(u64, &str)> = found.collect();
        let events = run.letters(&reasons);
        let count = self.until_written(|lane| lane.dead.set_aside(lane.name.shard, &events)).await?;
        let in_place: Vec<Retry> = of_records.split_off(count).into_iter().map(without_room).collect();
        for record in of_records.iter().filter_map(|retry| batch.get(retry.index)) {
            if let Some(slot) = run.rules.slot_of(record.type_name, record.sequence) {
                run.builder.is_set_aside(slot);
            }
        }
        if !in_place.is_empty() {
            // What is taken of the others makes room.
            self.retry_set_aside(run).await?;
        }
        Ok(merged(in_place, of_store, |retry| retry.index))
    }

    /// The store has the records of a batch but for those at the indices in `left`: what is set aside of lower revisions isn't sent any
    /// more. Only of events that the lane has passed: the others are counted by it.
    pub(crate) fn supersede(&self, batch: &Batch, left: &BTreeSet<usize>) {
        let shard = self.name.shard;
        if !self.dead.has_aside(shard) {
            return;
        }
        let stored = batch.records().enumerate().filter(|(index, _)| !left.contains(index)).map(|(_, record)| record);
        let lower = self.dead.superseded(shard, self.status.cursor(), stored);
        if let Err(error) = self.dead.end_aside(shard, &lower, Settled::Taken) {
            tracing::warn!(lane = %self.name, sink = &*self.name.sink, shard = self.name.shard, reason = %error, "a lower revision stays set aside");
        }
    }

    /// Waits until the store may take a batch, or for neighbours that it may take. Gives back the batch, and whether the store has taken
    /// a neighbour.
    pub(crate) async fn wait_for_neighbours(
        &mut self,
        run: &mut LaneSession,
        batch: Batch,
        reason: &str,
        is_refused: bool,
    ) -> Result<(Batch, bool), LaneExit> {
        let pause = self.begin_wait(reason);
        if is_refused {
            // The store accepts nothing: that time doesn't count for events that are set aside.
            self.dead.outage(self.name.shard);
        }
        let is_full = run.way.rest.is_some();
        let more = async {
            if !is_refused || is_full {
                return std::future::pending().await;
            }
            run.way.reader.ready().await;
            sleep(PROBE_EVERY).await;
        };
        tokio::select! {
            biased;
            () = sleep(pause) => {}
            () = more => {}
            Ok(()) = self.halt.changed() => {}
        }
        Ok(match (is_refused, is_full) {
            (false, _) => (batch, false),
            (true, false) => (self.grow(run, batch).await?, false),
            (true, true) => (batch, self.takes_newest(run).await),
        })
    }

    /// Whether the store takes any of the newest events. If all of a full batch is to blame, they tell it from a store that takes nothing.
    /// Their lane sends them again in their turn.
    async fn takes_newest(&self, run: &LaneSession) -> bool {
        let Some(batch) = NEWEST.into_iter().find_map(|count| self.newest(run, count)) else { return false };
        match self.hand(batch.clone(), 0).await {
            Ok(WriteOutcome::Committed) => true,
            Ok(WriteOutcome::Partial { refused, retry }) => refused.len() + retry.len() < batch.len(),
            Ok(WriteOutcome::Rejected { .. }) | Err(_) => false,
        }
    }

    /// So many of the newest events that lie behind the batch, if they fit into one.
    fn newest(&self, run: &LaneSession, count: u64) -> Option<Batch> {
        let after = self.shard.durable().saturating_sub(count).max(run.builder.batch().last());
        let (mut way, mut rules) = (BatchReader::new(self.shard.reader(after)), run.rules.again());
        let mut builder = self.builder(after + 1);
        loop {
            rules.begin_turn();
            match way.fill(|chunk| builder.add(chunk, &mut rules, &run.known)).ok()? {
                FillResult::CaughtUp => break,
                FillResult::Full => return None,
                // There are few.
                FillResult::Pause | FillResult::Midway => {}
            }
        }
        (!builder.batch().is_empty()).then(|| builder.batch().clone())
    }

    /// Adds to a batch what has come since, if its store tells one record's failure from another's.
    pub(crate) async fn grow(&mut self, run: &mut LaneSession, batch: Batch) -> Result<Batch, LaneExit> {
        if !self.sets_aside() {
            return Ok(batch);
        }
        let (last, open) = (run.builder.batch().last(), batch.records().map(|record| record.sequence));
        let open: BTreeSet<u64> = open.collect();
        self.fill_more(run).await?;
        let all = run.builder.batch();
        let done = |record: &Record<'_>| record.sequence <= last && !open.contains(&record.sequence);
        let done = all.records().enumerate().filter(|(_, record)| done(record)).map(|(index, _)| index);
        Ok(all.without(&done.collect::<Vec<_>>()))
    }

    /// When events that were set aside are to be sent again.
    pub(crate) fn retry_at(&self, run: &LaneSession) -> Option<Instant> {
        self.dead.has_aside(self.name.shard).then_some(run.retries.due)
    }

    /// Sends some of them again, if it is time.
    pub(crate) async fn retry_set_aside(&mut self, run: &mut LaneSession) -> Result<(), LaneExit> {
        if self.retry_at(run).is_none_or(|due| due > Instant::now()) {
            return Ok(());
        }
        match self.resend(run).await {
            // The events are still set aside, and come again.
            Err(Blocked::Retry(reason)) => {
                tracing::warn!(lane = %self.name, sink = &*self.name.sink, shard = self.name.shard, reason, "events that are set aside wait");
                run.retries.pause();
                Ok(())
            }
            Err(Blocked::Stop(reason)) => Err(LaneExit::Stop(reason)),
            Ok(()) => Ok(()),
        }
    }

    async fn resend(&self, run: &mut LaneSession) -> Result<(), Blocked> {
        let (shard, cursor) = (self.name.shard, self.status.cursor());
        let limit = if run.retries.are_apart { 1 } else { usize::MAX };
        let Some(resent) = self.dead.read_aside(shard, (run.retries.after, cursor), limit)? else {
            // A round is over.
            (run.retries.after, run.retries.are_apart) = (0, false);
            run.retries.pause();
            return Ok(());
        };
        if resent.len() == 0 {
            run.retries.after = resent.last();
            return Ok(());
        }
        let batch = resent.batch((&self.name, self.claim));
        let (refused, retry) = match self.hand(batch.clone(), 0).await {
            Ok(WriteOutcome::Committed) => (Vec::new(), Vec::new()),
            Ok(WriteOutcome::Partial { refused, retry }) => (refused, retry),
            // The answer may be about the events, if they are the only ones that are sent.
            Err(SinkError::Misconfigured(_)) if batch.len() > 1 => {
                run.retries.are_apart = true;
                return Ok(());
            }
            Ok(WriteOutcome::Rejected { .. }) | Err(_) => {
                self.dead.outage(shard);
                run.retries.pause();
                return Ok(());
            }
        };
        let left = left(&refused, &retry);
        let passed = (0..resent.len()).filter(|index| !left.contains(index));
        let passed: Vec<u64> = passed.filter_map(|index| resent.sequence(index)).collect();
        self.dead.end_aside(shard, &passed, Settled::Taken)?;
        self.supersede(&batch, &left);
        let refused = refused.iter().map(|refusal| (refusal.index, refusal.reason.to_string()));
        let given_up = retry.iter().filter_map(|retry| Some((retry.index, self.given_up(&resent, retry)?)));
        // A higher revision may have ended some of them.
        let is_aside = |(index, _): &(usize, String)| {
            resent.sequence(*index).is_some_and(|sequence| self.dead.refused_since(shard, sequence).is_some())
        };
        let mut dead: Vec<(usize, String)> = refused.chain(given_up).filter(is_aside).collect();
        dead.sort_unstable();
        if !dead.is_empty() {
            self.dead.write(shard, &resent.letters(&dead))?;
        }
        let reasons = retry.iter().filter_map(|retry| Some((resent.sequence(retry.index)?, &*retry.reason)));
        self.dead.refused_for_now(shard, reasons, false);
        if !passed.is_empty() {
            run.retries.backoff.reset();
        }
        run.retries.after = resent.last();
        Ok(())
    }

    /// Why an event is given up that the store refuses for now, if it has for too long.
    fn given_up(&self, resent: &Resent, retry: &Retry) -> Option<String> {
        let refused = self.dead.refused_since(self.name.shard, resent.sequence(retry.index)?)?.elapsed();
        let is_old = retry.scope != RetryScope::Store && refused >= self.options.alone_max;
        let seconds = refused.as_secs();
        is_old.then(|| dead_letter_reasons::not_in_time(seconds, &retry.reason))
    }
}

fn without_room(retry: Retry) -> Retry {
    let reason = format!("as many events are set aside as may be, and another is refused for now: {}", retry.reason);
    Retry { reason: reason.into(), ..retry }
}

/// All of both, by their indices.
pub(crate) fn merged<T>(mut one: Vec<T>, other: Vec<T>, index: impl Fn(&T) -> usize) -> Vec<T> {
    one.extend(other);
    one.sort_by_key(index);
    one
}
