//! Retries of events that a lane has deferred: an idempotent store rejects them for now while it accepts others.
//!
//! Only the lane sends them, between two batches, so an older revision is never in flight together with a newer one.

use std::collections::BTreeSet;

use dead_letters::{Blocked, DeferredEnd};
use event::TypeName;
use objects::ObjectSink;
use sink::Batch;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::lane::core::{Resent, dead_after_resend, left};
use crate::lane::{Lane, LaneExit};

/// When a lane sends again what it has deferred.
pub(crate) struct Retries {
    backoff: Backoff,
    pub(crate) due: Instant,
    /// The last event that was sent again in this round.
    after: u64,
    /// Whether each event is sent alone in this round.
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

impl Lane {
    /// Whether the store accepts events out of order, and recognises each by its id.
    pub(super) fn defers(&self) -> bool {
        !self.sink.capabilities().fenced && ObjectSink::of(&self.sink).is_none()
    }

    /// Takes over the deferred events when the lane begins; the events `beyond` follow its cursor. If the store does
    /// not accept events out of order, the lane sends those in order, and the others become dead letters.
    pub(crate) fn take_over_deferred(&self, beyond: BTreeSet<u64>) -> Result<BTreeSet<u64>, Blocked> {
        let shard = self.name.shard;
        self.dead.release_discarded()?;
        if self.defers() {
            return Ok(beyond);
        }
        self.dead.end_deferred(shard, &beyond.into_iter().collect::<Vec<_>>(), DeferredEnd::Released)?;
        let mut after = 0;
        while let Some(resent) = self.dead.read_deferred(shard, (after, u64::MAX), usize::MAX)? {
            let reasons: Vec<(usize, String)> =
                (0..resent.len()).map(|index| (index, dead_letters::SINK_CHANGED.to_owned())).collect();
            self.write_dead(&resent.dead_letters(&reasons))?;
            after = resent.last();
        }
        Ok(BTreeSet::new())
    }

    /// When to send deferred events again.
    pub(super) fn retry_at(&self, retries: &Retries) -> Option<Instant> {
        self.dead.has_deferred(self.name.shard).then_some(retries.due)
    }

    /// Sends some of them again, if it is time.
    pub(super) async fn retry_deferred(&mut self, retries: &mut Retries) -> Result<(), LaneExit> {
        if self.retry_at(retries).is_none_or(|due| due > Instant::now()) {
            return Ok(());
        }
        match self.resend(retries).await {
            // The events are still deferred, and are sent again later.
            Err(Blocked::Retry(reason)) => {
                tracing::warn!(
                    lane = %self.name, sink = &*self.name.sink, shard = self.name.shard, reason,
                    "deferred events can't be resent now: the lane retries. If this lasts, correct the reason"
                );
                retries.pause();
                Ok(())
            }
            Err(Blocked::Stop(reason)) => Err(LaneExit::Stop(reason)),
            Ok(()) => Ok(()),
        }
    }

    async fn resend(&self, retries: &mut Retries) -> Result<(), Blocked> {
        let (shard, cursor) = (self.name.shard, self.status.cursor());
        let limit = if retries.are_apart { 1 } else { usize::MAX };
        let Some(events) = self.dead.read_deferred(shard, (retries.after, cursor), limit)? else {
            // A round is over.
            (retries.after, retries.are_apart) = (0, false);
            retries.pause();
            return Ok(());
        };
        if events.is_empty() {
            retries.after = events.last();
            return Ok(());
        }
        let batch = events.batch((&self.name, self.claim));
        let (rejected, retry) = match Resent::of(self.write_batch(batch.clone(), 0).await, batch.len()) {
            Resent::Accepted { rejected, retry } => (rejected, retry),
            Resent::SendApart => {
                retries.are_apart = true;
                return Ok(());
            }
            Resent::Outage => {
                self.dead.outage(shard);
                retries.pause();
                return Ok(());
            }
        };
        let left = left(&rejected, &retry);
        let passed = (0..events.len()).filter(|index| !left.contains(index));
        let passed: Vec<u64> = passed.filter_map(|index| events.sequence(index)).collect();
        self.dead.end_deferred(shard, &passed, DeferredEnd::Stored)?;
        self.supersede(&batch, &left);
        self.count_resent(&batch, &left);
        let rejected_for = |index| Some(self.dead.refused_since(shard, events.sequence(index)?)?.elapsed());
        let dead = dead_after_resend(&rejected, &retry, rejected_for, self.options.alone_max);
        if !dead.is_empty() {
            self.write_dead(&events.dead_letters(&dead))?;
        }
        let reasons = retry.iter().filter_map(|retry| Some((events.sequence(retry.index)?, &*retry.reason)));
        self.dead.refused_for_now(shard, reasons, false);
        if !passed.is_empty() {
            retries.backoff.reset();
        }
        retries.after = events.last();
        Ok(())
    }

    fn count_resent(&self, batch: &Batch, left: &BTreeSet<usize>) {
        let now = (self.options.clock)();
        let receipts = batch.receipts().enumerate().filter(|(index, _)| !left.contains(index));
        for (_, (_, type_name, received_at)) in receipts {
            if let Ok(name) = TypeName::new(type_name) {
                let age = (now.saturating_sub(received_at), 1);
                self.stored_times.add(&name, &self.name.sink, std::iter::once(age));
            }
        }
    }

    /// The store has the records of a batch, except those at the indices in `left`: lower revisions that are deferred
    /// are no longer sent. Only events that the lane has passed: it counts the others itself.
    pub(super) fn supersede(&self, batch: &Batch, left: &BTreeSet<usize>) {
        let shard = self.name.shard;
        if !self.dead.has_deferred(shard) {
            return;
        }
        let stored = batch.records().enumerate().filter(|(index, _)| !left.contains(index)).map(|(_, record)| record);
        let lower = self.dead.superseded(shard, self.status.cursor(), stored);
        if let Err(error) = self.dead.end_deferred(shard, &lower, DeferredEnd::Stored) {
            tracing::warn!(
                lane = %self.name, sink = &*self.name.sink, shard = self.name.shard, reason = %error,
                "an event stays deferred although the store has a later revision: check the disk of the data directory"
            );
        }
    }
}
