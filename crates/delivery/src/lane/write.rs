//! Brings one batch to its end: written until the store has it, its refused records dead letters or set aside.

use std::collections::BTreeSet;

use sink::{Batch, RejectedRecord, RetryScope, SinkError, WriteOutcome};
use tokio::time::Instant;

use super::{Lane, Run, Turn};
use crate::LaneState;
use crate::alone::Alone;
use crate::retries::{left, merged, probe, rest};

impl Lane {
    /// Writes the batch until the store has all of it that it takes. `false` if a fenced store takes none of it: later events may show
    /// whether the events or the store are at fault.
    pub(super) async fn write_until_stored(&mut self, run: &mut Run) -> Result<bool, Turn> {
        let mut batch = run.unburied();
        let mut alone = Alone::default();
        let (mut has_passed, mut is_refused) = (false, false);
        loop {
            let part = if is_refused { probe(&batch) } else { batch.clone() };
            let started = Instant::now();
            let answer = self.hand(part.clone(), run.store_at).await;
            self.status.write_time.record(started.elapsed());
            match answer {
                Ok(WriteOutcome::Committed) => {
                    self.has_touched();
                    if part.len() == batch.len() {
                        return Ok(self.delivering());
                    }
                    self.supersede(&part, &BTreeSet::new());
                    batch = rest(&batch, &part, &[]);
                    (has_passed, is_refused) = (true, false);
                }
                Ok(WriteOutcome::Rejected { refused }) if !refused.is_empty() => {
                    self.bury(run, &part, &refused).await?;
                    batch = batch.without(&indices(&refused));
                }
                Ok(WriteOutcome::Rejected { .. }) => self.wait("the sink withheld a batch and named no record").await,
                Ok(WriteOutcome::Partial { refused, mut retry }) => {
                    self.supersede(&part, &left(&refused, &retry));
                    has_passed |= refused.len() + retry.len() < part.len();
                    if has_passed {
                        retry = self.set_aside(run, &part, retry).await?;
                    }
                    let retry = alone.judge(&part, retry, &self.options);
                    let refused = merged(refused, retry.given_up, |refusal| refusal.index);
                    self.bury(run, &part, &refused).await?;
                    batch = rest(&batch, &part, &retry.again);
                    is_refused = !has_passed && retry.again.iter().all(|retry| retry.scope == RetryScope::Record);
                    match retry.again.first() {
                        None if batch.is_empty() => return Ok(self.delivering()),
                        None => {}
                        Some(first) => {
                            let waited = self.wait_for_neighbours(run, batch, &first.reason, is_refused).await?;
                            (batch, has_passed) = (waited.0, has_passed || waited.1);
                            is_refused &= !has_passed;
                        }
                    }
                }
                Err(error) => {
                    alone.outage();
                    self.dead.outage(self.name.shard);
                    let needs_more = run.fenced && matches!(error, SinkError::Misconfigured(_));
                    if needs_more && run.way.has_ended() {
                        self.wait_or(&error.to_string(), run.way.reader.ready()).await;
                    } else {
                        self.wait(&error.to_string()).await;
                    }
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

    /// Says so: the batch was written.
    fn delivering(&self) -> bool {
        self.enter(LaneState::Delivering);
        true
    }

    /// After a failed call: whether the store has the batch all the same.
    async fn has_stored(&mut self, run: &mut Run) -> Result<bool, Turn> {
        let Some(held) = self.find_held().await else { return Ok(false) };
        let (position, batch) = (held.position, run.assembly.batch());
        // What another process has written at these positions is none of these events.
        if !self.is_held(&held, position) {
            return Err(Turn::Moved);
        }
        if position >= batch.last() && position <= self.shard.durable() {
            run.store_at = position;
            self.has_touched();
            return Ok(true);
        }
        if position == run.store_at { Ok(false) } else { Err(Turn::Moved) }
    }

    /// Makes refused records dead letters, durably.
    async fn bury(&mut self, run: &mut Run, batch: &Batch, refused: &[RejectedRecord]) -> Result<(), Turn> {
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
                run.assembly.has_died(slot);
            }
        }
        Ok(())
    }
}

fn indices(refused: &[RejectedRecord]) -> Vec<usize> {
    refused.iter().map(|refusal| refusal.index).collect()
}
