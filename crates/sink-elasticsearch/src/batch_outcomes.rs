//! What a batch is stored with, and the combined result of its requests.

use std::collections::{HashMap, HashSet};

use super::config::ElasticsearchConfig;
use super::conflict::{Comparison, Taken};
use super::data_stream::DataStreams;
use super::durability::Durability;
use super::error::Failure;
use super::limiter::Limiter;
use super::outcome::Outcome;
use super::server::Server;
use sink::{Batch, Fault, Reason, RejectedRecord, Retry, RetryScope, Verdict, WriteOutcome};

/// The result of a part of a batch: records that aren't mentioned are stored.
#[derive(Default)]
pub(super) struct Outcomes {
    pub(super) refused: Vec<RejectedRecord>,
    pub(super) retry: Vec<Retry>,
    /// Failures that only neighbours can explain: the documents or their indices may be at fault.
    pub(super) unclear: Vec<(usize, Reason)>,
    pub(super) taken: Vec<Taken>,
    /// How many of the records to resend only wait until the store is less busy.
    pub(super) waiting: usize,
    /// Requests without an outcome: their records are among those to resend.
    pub(super) failures: Vec<Failure>,
}

/// A batch, and what it is stored with.
pub(super) struct Writing<'a> {
    pub(super) config: &'a ElasticsearchConfig,
    pub(super) server: &'a Server,
    pub(super) limiter: &'a Limiter,
    pub(super) streams: &'a DataStreams,
    pub(super) durability: &'a Durability,
    pub(super) batch: &'a Batch,
}

impl Outcomes {
    pub(super) fn of(part: Vec<usize>, done: Vec<Outcome>) -> Self {
        let mut outcomes = Self::default();
        for (index, outcome) in part.into_iter().zip(done) {
            match outcome {
                Outcome::Stored => {}
                Outcome::Taken { index: stored_in } => outcomes.taken.push(Taken { at: index, index: stored_in }),
                Outcome::Failed(Fault::Unclear, reason) => outcomes.unclear.push((index, reason)),
                Outcome::Failed(fault, reason) => {
                    outcomes.waiting += usize::from(fault == Fault::Store);
                    // Neighbours don't matter for the other faults.
                    outcomes.failed_alone(index, reason, fault.verdict(false));
                }
            }
        }
        outcomes
    }

    pub(super) fn failed(part: Vec<usize>, failure: Failure) -> Self {
        let reason: Reason = failure.what().into();
        let retry = |index| Retry { index, reason: reason.clone(), scope: RetryScope::Store };
        let retry = part.into_iter().map(retry).collect();
        Self { retry, failures: vec![failure], ..Self::default() }
    }

    fn failed_alone(&mut self, index: usize, reason: Reason, verdict: Verdict) {
        match verdict {
            Verdict::Rejected => self.refused.push(RejectedRecord { index, reason }),
            Verdict::Retry(scope) => self.retry.push(Retry { index, reason, scope }),
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.refused.extend(other.refused);
        self.retry.extend(other.retry);
        self.unclear.extend(other.unclear);
        self.taken.extend(other.taken);
        self.waiting += other.waiting;
        self.failures.extend(other.failures);
    }

    pub(super) fn judge(&mut self, taken: &Taken, verdict: Comparison) {
        let (index, stored_in) = (taken.at, &taken.index);
        match verdict {
            Comparison::Same => {}
            Comparison::Other => {
                let reason = format!("another document with its id is in index {stored_in}").into();
                self.refused.push(RejectedRecord { index, reason });
            }
            Comparison::Gone => {
                let reason = format!("a document with its id was in index {stored_in}, and has been deleted").into();
                self.retry.push(Retry { index, reason, scope: RetryScope::Record });
            }
        }
    }

    /// Judges the failures that only neighbours can explain: these are documents of the same index.
    ///
    /// An index that isn't there can't be created, and documents of other indices show nothing about it.
    pub(super) async fn judge_unclear(&mut self, writing: &Writing<'_>) {
        let unclear = std::mem::take(&mut self.unclear);
        if unclear.is_empty() {
            return;
        }
        let Writing { config, server, batch, .. } = writing;
        let name = |index: usize| batch.get(index).map(|record| config.index.of(&record)).unwrap_or_default();
        let mut failed: HashSet<usize> = unclear.iter().map(|(index, _)| *index).collect();
        failed
            .extend(self.refused.iter().map(|refusal| refusal.index).chain(self.retry.iter().map(|retry| retry.index)));
        let accepting: HashSet<String> = (0..batch.len()).filter(|index| !failed.contains(index)).map(name).collect();
        let mut existing = HashMap::new();
        for (index, reason) in unclear {
            let name = name(index);
            let fault = if accepting.is_empty() {
                if !existing.contains_key(&name) {
                    existing.insert(name.clone(), server.has_index(&name).await.unwrap_or(false));
                }
                if existing.get(&name).is_some_and(|is_there| *is_there) { Fault::Unclear } else { Fault::Passing }
            } else if accepting.contains(&name) {
                Fault::Unclear
            } else {
                Fault::Passing
            };
            self.failed_alone(index, reason, fault.verdict(false));
        }
    }

    /// The result of a batch of `count` records for delivery.
    pub(super) fn into_write_outcome(mut self, count: usize) -> Result<WriteOutcome, Failure> {
        if self.retry.len() == count {
            // Nothing was stored: records that only wait aren't blamed.
            let worst = self.failures.iter().position(|failure| !failure.is_overload()).unwrap_or(0);
            if !self.failures.is_empty() {
                return Err(self.failures.swap_remove(worst));
            }
            if self.waiting == count
                && let Some(first) = self.retry.first()
            {
                return Err(Failure::Overloaded(first.reason.to_string()));
            }
        }
        if self.refused.is_empty() && self.retry.is_empty() {
            return Ok(WriteOutcome::Committed);
        }
        self.refused.sort_by_key(|refusal| refusal.index);
        // A rejected record isn't resent, and a record that two comparisons have failed for is named once.
        let refused: HashSet<usize> = self.refused.iter().map(|refusal| refusal.index).collect();
        self.retry.retain(|retry| !refused.contains(&retry.index));
        self.retry.sort_by_key(|retry| retry.index);
        self.retry.dedup_by_key(|retry| retry.index);
        Ok(WriteOutcome::Partial { refused: self.refused, retry: self.retry })
    }
}
