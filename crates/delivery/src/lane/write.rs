//! Writes one batch until the store has it. Rejected records become dead letters or are set aside.

use std::collections::BTreeSet;

use sink::{Batch, RejectedRecord, Retry, RetryScope, SinkError, WriteOutcome};
use tokio::time::Instant;

use crate::lane::poison_records::PoisonDetector;
use crate::lane::resend::{left, merged, rest, sample};
use crate::lane::suspects::{Judged, Suspects};
use crate::lane::{Lane, LaneExit, LaneSession};
use crate::status::LaneState;

impl Lane {
    /// Writes the batch until the store has accepted each record that it can accept. `false` if a fenced store accepts none: later events may
    /// show whether the events or the store are at fault.
    pub(super) async fn write_until_stored(&mut self, run: &mut LaneSession) -> Result<bool, LaneExit> {
        let mut batch = run.without_dead();
        let (mut alone, mut suspects) = (PoisonDetector::default(), Suspects::default());
        let (mut has_passed, mut is_refused, mut newest_pass) = (false, false, false);
        loop {
            let part = if is_refused { sample(&batch) } else { batch.clone() };
            let started = Instant::now();
            let answer = self.hand(part.clone(), run.store_at).await;
            self.status.write_time.record(started.elapsed());
            match answer {
                Ok(WriteOutcome::Committed) => {
                    self.note_contact();
                    if part.len() == batch.len() {
                        return Ok(self.delivering());
                    }
                    self.supersede(&part, &BTreeSet::new());
                    batch = rest(&batch, &part, &[]);
                    (has_passed, is_refused) = (true, false);
                }
                Ok(WriteOutcome::Rejected { refused }) if !refused.is_empty() => {
                    self.write_dead_letters(run, &part, &refused).await?;
                    batch = batch.without(&indices(&refused));
                }
                Ok(WriteOutcome::Rejected { .. }) => self.wait("the sink withheld a batch and named no record").await,
                Ok(WriteOutcome::Partial { refused, retry }) => {
                    self.supersede(&part, &left(&refused, &retry));
                    has_passed |= refused.len() + retry.len() < part.len();
                    let Judged { refused, mut retry, accepts_others } =
                        suspects.judge(&part, refused, retry, newest_pass);
                    if accepts_others {
                        self.backoff.reset();
                    }
                    if has_passed {
                        retry = self.set_aside(run, &part, retry).await?;
                    }
                    let retry = alone.judge(retry, has_passed, &self.options);
                    let refused = merged(refused, retry.given_up, |refusal| refusal.index);
                    self.write_dead_letters(run, &part, &refused).await?;
                    batch = rest(&batch, &part, &retry.again);
                    is_refused = needs_neighbours(&retry.again, has_passed);
                    (batch, newest_pass) = match retry.again.first() {
                        None if batch.is_empty() => return Ok(self.delivering()),
                        None => (batch, false),
                        Some(first) => self.wait_for_neighbours(run, batch, &first.reason, is_refused).await?,
                    };
                    has_passed |= newest_pass;
                    is_refused &= !newest_pass;
                }
                Err(error) => {
                    alone.outage();
                    suspects.outage();
                    self.dead.outage(self.name.shard);
                    let needs_more = run.fenced && matches!(error, SinkError::Misconfigured(_));
                    self.wait_after(run, &error, needs_more).await;
                    if self.has_stored(run).await? {
                        return Ok(self.delivering());
                    }
                    if needs_more {
                        return Ok(false);
                    }
                    batch = self.grow(run, batch).await?;
                }
            }
        }
    }

    /// Waits for the next attempt, or for a later event if one is needed and there is none yet.
    async fn wait_after(&mut self, run: &LaneSession, error: &SinkError, needs_more: bool) {
        if needs_more && run.way.has_ended() {
            self.wait_or(&error.to_string(), run.way.reader.ready()).await;
        } else {
            self.wait(&error.to_string()).await;
        }
    }

    /// Says so: the batch was written.
    fn delivering(&self) -> bool {
        self.enter(LaneState::Delivering);
        true
    }

    /// After a failed call: whether the store has the batch all the same.
    async fn has_stored(&mut self, run: &mut LaneSession) -> Result<bool, LaneExit> {
        let Some(held) = self.find_held().await else { return Ok(false) };
        let (position, batch) = (held.position, run.builder.batch());
        // What another process has written at these positions is none of these events.
        if !self.is_held(&held, position) {
            return Err(LaneExit::Moved);
        }
        if position >= batch.last() && position <= self.shard.durable() {
            run.store_at = position;
            self.note_contact();
            return Ok(true);
        }
        if position == run.store_at { Ok(false) } else { Err(LaneExit::Moved) }
    }

    /// Makes refused records dead letters, durably.
    async fn write_dead_letters(
        &mut self,
        run: &mut LaneSession,
        batch: &Batch,
        refused: &[RejectedRecord],
    ) -> Result<(), LaneExit> {
        let reasons: Vec<(u64, &str)> =
            refused.iter().filter_map(|refusal| Some((batch.get(refusal.index)?.sequence, &*refusal.reason))).collect();
        if reasons.is_empty() {
            return Ok(());
        }
        let mut letters = run.letters(&reasons);
        letters.retain(|letter| !run.known.buried.contains(&letter.sequence));
        self.until_written(|lane| lane.dead.write(lane.name.shard, &letters)).await?;
        for refusal in refused {
            let Some(record) = batch.get(refusal.index) else { continue };
            run.known.buried.insert(record.sequence);
            if let Some(slot) = run.rules.slot_of(record.type_name, record.sequence) {
                run.builder.has_died(slot);
            }
        }
        Ok(())
    }
}

/// Whether only neighbours can show what is at fault: the records or the store.
fn needs_neighbours(again: &[Retry], has_passed: bool) -> bool {
    let is_unclear = again.iter().any(|retry| retry.scope == RetryScope::Unclear);
    (is_unclear || !has_passed) && again.iter().all(|retry| retry.scope != RetryScope::Store)
}

fn indices(refused: &[RejectedRecord]) -> Vec<usize> {
    refused.iter().map(|refusal| refusal.index).collect()
}
