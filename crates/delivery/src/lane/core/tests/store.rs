//! A model of a store: it decides which records it accepts, and remembers what it has.

use std::collections::BTreeSet;
use std::time::Duration;

use sink::{Batch, Claim, RejectedRecord, Retry, RetryScope, SinkError, WriteOutcome};

/// What the store does with a record while it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nature {
    Good,
    /// The record goes to another sink.
    NotRouted,
    /// The store rejects it, and says that the record is at fault.
    Invalid,
    /// The store rejects it with an error that may be the store's.
    Odd,
    /// The store rejects it for now, up to this time.
    Passing(Duration),
}

/// How the store works at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Healthy,
    Unreachable,
    Misconfigured,
    /// It rejects each record with an error of this scope, from the record at this index on.
    Rejects(RetryScope, usize),
    /// Calls take effect and fail.
    LosesAnswers,
}

#[derive(Clone, Debug)]
pub(super) struct ModelStore {
    pub(super) fenced: bool,
    /// It answers `Rejected` to a batch with invalid records, and accepts no other record of it.
    pub(super) rejects_batches: bool,
    pub(super) mode: Mode,
    pub(super) stored: BTreeSet<u64>,
    pub(super) cursor: u64,
    pub(super) claim: Claim,
}

fn unavailable(reason: &str) -> SinkError {
    SinkError::Unavailable(reason.into())
}

impl ModelStore {
    pub(super) fn write(&mut self, batch: &Batch, log: &[Nature], now: Duration) -> Result<WriteOutcome, SinkError> {
        match self.mode {
            Mode::Unreachable => return Err(unavailable("unreachable")),
            Mode::Misconfigured => return Err(SinkError::Misconfigured("misconfigured".into())),
            Mode::Healthy | Mode::Rejects(..) | Mode::LosesAnswers => {}
        }
        let answer = if self.fenced { self.write_fenced(batch, log, now)? } else { self.write_keyed(batch, log, now) };
        if self.mode == Mode::LosesAnswers { Err(unavailable("the answer is lost")) } else { Ok(answer) }
    }

    fn write_keyed(&mut self, batch: &Batch, log: &[Nature], now: Duration) -> WriteOutcome {
        let (mut refused, mut retry) = (Vec::new(), Vec::new());
        let mut accepted = Vec::new();
        for (index, record) in batch.records().enumerate() {
            let nature = nature(log, record.sequence);
            let scope = match (self.mode, nature) {
                _ if self.stored.contains(&record.sequence) => None,
                (Mode::Rejects(scope, from), _) if index >= from => Some(scope),
                (_, Nature::Odd) => Some(RetryScope::Unclear),
                (_, Nature::Passing(until)) if now < until => Some(RetryScope::Record),
                (_, Nature::Invalid) => {
                    refused.push(RejectedRecord { index, reason: "invalid".into() });
                    continue;
                }
                (_, Nature::Good | Nature::Passing(_) | Nature::NotRouted) => None,
            };
            match scope {
                Some(scope) => retry.push(Retry { index, reason: "rejected".into(), scope }),
                None => accepted.push(record.sequence),
            }
        }
        if self.rejects_batches && !refused.is_empty() {
            return WriteOutcome::Rejected { refused };
        }
        self.stored.extend(accepted);
        if refused.is_empty() && retry.is_empty() {
            WriteOutcome::Committed
        } else {
            WriteOutcome::Partial { refused, retry }
        }
    }

    fn write_fenced(&mut self, batch: &Batch, log: &[Nature], now: Duration) -> Result<WriteOutcome, SinkError> {
        if batch.claim() != Some(self.claim) {
            return Err(unavailable("another process has claimed the lane"));
        }
        if self.cursor < batch.floor() {
            return Err(unavailable("the store has lost events"));
        }
        if batch.last() <= self.cursor {
            return Ok(WriteOutcome::Committed);
        }
        match self.mode {
            Mode::Rejects(RetryScope::Unclear, _) => return Err(SinkError::Misconfigured("rejected".into())),
            Mode::Rejects(..) => return Err(unavailable("busy")),
            _ => {}
        }
        let new: Vec<(usize, u64)> =
            batch.records().map(|record| record.sequence).enumerate().filter(|(_, at)| *at > self.cursor).collect();
        let natures = || new.iter().map(|(_, at)| nature(log, *at));
        if natures().any(|nature| matches!(nature, Nature::Passing(until) if now < until)) {
            return Err(unavailable("a record can't be stored now"));
        }
        let accepts_one = natures().any(|nature| matches!(nature, Nature::Good | Nature::Passing(_)));
        let is_rejected = |nature| nature == Nature::Invalid || (nature == Nature::Odd && accepts_one);
        let rejected = new.iter().filter(|(_, at)| is_rejected(nature(log, *at)));
        let refused: Vec<RejectedRecord> =
            rejected.map(|(index, _)| RejectedRecord { index: *index, reason: "invalid".into() }).collect();
        if !refused.is_empty() {
            return Ok(WriteOutcome::Rejected { refused });
        }
        if !new.is_empty() && !accepts_one {
            return Err(SinkError::Misconfigured("none of the records can be stored".into()));
        }
        self.stored.extend(new.into_iter().map(|(_, at)| at));
        self.cursor = batch.last();
        Ok(WriteOutcome::Committed)
    }

    /// Loses the events after `cursor`, as a standby that takes over, and returns them.
    pub(super) fn lose_from(&mut self, cursor: u64) -> BTreeSet<u64> {
        self.cursor = cursor;
        self.stored.split_off(&(cursor + 1))
    }
}

fn nature(log: &[Nature], sequence: u64) -> Nature {
    log[usize::try_from(sequence).unwrap() - 1]
}
