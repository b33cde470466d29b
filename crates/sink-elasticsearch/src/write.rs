//! A batch as `_bulk` requests, several in flight, and what they came to together.

use std::collections::HashSet;

use futures_util::future::{BoxFuture, FutureExt, join_all};

use super::backing_indices::BackingIndices;
use super::bulk;
use super::config::{Conflict, ElasticsearchConfig, Target};
use super::conflict::{Taken, Verdict, compare, occupied};
use super::error::Failure;
use super::in_doubt::{Made, in_doubt};
use super::limiter::Limiter;
use super::outcome::{Outcome, outcomes};
use super::rollover::Before;
use super::server::Server;
use sink::{Batch, Reason, RejectedRecord, Retry, RetryScope, WriteOutcome};

/// What a part of a batch came to: the records that aren't mentioned are stored.
#[derive(Default)]
pub(super) struct Outcomes {
    refused: Vec<RejectedRecord>,
    pub(super) retry: Vec<Retry>,
    taken: Vec<Taken>,
    /// What was created here and may have been sent before, with where it stands.
    pub(super) made: Vec<(usize, Made)>,
    /// How many of those that are to be sent again only wait until the store has less to do.
    waiting: usize,
    /// Requests without an outcome: their records are among those to be sent again.
    pub(super) failures: Vec<Failure>,
}

/// A batch, and what it is stored with.
pub(super) struct Writing<'a> {
    pub(super) config: &'a ElasticsearchConfig,
    pub(super) server: &'a Server,
    pub(super) limiter: &'a Limiter,
    pub(super) backing_indices: &'a BackingIndices,
    pub(super) batch: &'a Batch,
}

impl Writing<'_> {
    /// Stores the batch.
    ///
    /// # Errors
    /// Nothing of it is known to be stored, and nothing is refused.
    pub(super) async fn store(&self) -> Result<WriteOutcome, Failure> {
        let Self { config, batch, .. } = self;
        let refused = self.refused_results().await?;
        let mut before = self.look_before(in_doubt(config, batch)).await?;
        let taken = std::mem::take(&mut before.found);
        let mut left_out: Vec<usize> = refused.iter().map(|refusal| refusal.index).collect();
        left_out.extend(taken.iter().map(|found| found.at));
        left_out.sort_unstable();
        let mut all = Outcomes { refused, taken, ..Outcomes::default() };
        let parts = bulk::parts(batch, &left_out, config.request_bytes);
        if batch.has_repetitions() {
            for part in parts {
                all.add(self.send(part, &before).await);
            }
        } else {
            let parts = parts.into_iter().map(|part| self.send(part, &before));
            join_all(parts).await.into_iter().for_each(|part| all.add(part));
        }
        // First what was there, since one of a batch's two of one id may be compared with the other.
        self.compare_taken(&mut all).await;
        self.look_behind(before, &mut all).await;
        all.into_write_outcome(batch.len())
    }

    /// Results that would take the place of events.
    async fn refused_results(&self) -> Result<Vec<RejectedRecord>, Failure> {
        let Self { config, server, batch, .. } = self;
        if config.target == Target::DataStream || config.conflict != Conflict::DeadLetter {
            return Ok(Vec::new());
        }
        let occupied = occupied(config, server, batch).await?;
        let reason = |index: String| format!("an event is stored under its id in index {index}").into();
        Ok(occupied
            .into_iter()
            .map(|Taken { at, index }| RejectedRecord { index: at, reason: reason(index) })
            .collect())
    }

    /// Sends the records of a part, in two halves where they are too large for one request.
    fn send<'a>(&'a self, part: Vec<usize>, before: &'a Before) -> BoxFuture<'a, Outcomes> {
        async move {
            let permit = self.limiter.acquire().await;
            let answered = self.request(&part, before).await;
            match answered {
                Ok(done) => {
                    let mut outcomes = Outcomes::of(part, done);
                    outcomes.made.retain(|(at, _)| before.doubts(*at));
                    if outcomes.waiting > 0 {
                        permit.overloaded()
                    } else {
                        permit.passed()
                    }
                    outcomes
                }
                Err(failure) if failure.is_too_large() => {
                    drop(permit);
                    self.send_less(part, before, failure).await
                }
                Err(failure) => {
                    if failure.is_overload() {
                        permit.overloaded();
                    }
                    Outcomes::failed(part, failure)
                }
            }
        }
        .boxed()
    }

    async fn request(&self, part: &[usize], before: &Before) -> Result<Vec<Outcome>, Failure> {
        let count = part.len();
        let with_places = part.iter().any(|at| before.doubts(*at));
        let answer = self.server.bulk(bulk::body(self.config, self.batch, part), with_places).await?;
        outcomes(&answer, count)
    }

    async fn send_less(&self, mut part: Vec<usize>, before: &Before, failure: Failure) -> Outcomes {
        if part.len() <= 1 {
            let reason: Reason = format!("alone it is too large: {}", failure.what()).into();
            let refused = part.into_iter().map(|index| RejectedRecord { index, reason: reason.clone() }).collect();
            return Outcomes { refused, ..Outcomes::default() };
        }
        let rest = part.split_off(part.len() / 2);
        let mut outcomes = self.send(part, before).await;
        outcomes.add(self.send(rest, before).await);
        outcomes
    }

    /// Tells repetitions from other events whose ids are taken.
    async fn compare_taken(&self, all: &mut Outcomes) {
        let taken = std::mem::take(&mut all.taken);
        if taken.is_empty() || self.config.conflict != Conflict::DeadLetter {
            return;
        }
        match compare(self.config, self.server, self.batch, &taken).await {
            Ok(verdicts) => taken.iter().zip(verdicts).for_each(|(taken, verdict)| all.judge(taken, verdict)),
            Err(failure) => {
                let reason: Reason = format!("it can't be compared with what is stored: {}", failure.what()).into();
                let retry = |taken: &Taken| Retry { index: taken.at, reason: reason.clone(), scope: RetryScope::Store };
                all.retry.extend(taken.iter().map(retry));
                all.failures.push(failure);
            }
        }
    }
}

impl Outcomes {
    fn of(part: Vec<usize>, done: Vec<Outcome>) -> Self {
        let mut outcomes = Self::default();
        for (index, outcome) in part.into_iter().zip(done) {
            match outcome {
                Outcome::Stored => {}
                Outcome::Made(made) => outcomes.made.push((index, made)),
                Outcome::Taken { index: stored_in } => outcomes.taken.push(Taken { at: index, index: stored_in }),
                Outcome::Refused(reason) => outcomes.refused.push(RejectedRecord { index, reason }),
                Outcome::NotYet(reason) => outcomes.retry.push(Retry { index, reason, scope: RetryScope::Record }),
                Outcome::Overloaded(reason) => {
                    outcomes.retry.push(Retry { index, reason, scope: RetryScope::Store });
                    outcomes.waiting += 1;
                }
                Outcome::Failing(reason) => {
                    outcomes.retry.push(Retry { index, reason, scope: RetryScope::Store });
                    outcomes.waiting += 1;
                }
                Outcome::Unknown(reason) => {
                    outcomes.retry.push(Retry { index, reason, scope: RetryScope::Record });
                }
            }
        }
        outcomes
    }

    fn failed(part: Vec<usize>, failure: Failure) -> Self {
        let reason: Reason = failure.what().into();
        let retry = |index| Retry { index, reason: reason.clone(), scope: RetryScope::Store };
        let retry = part.into_iter().map(retry).collect();
        Self { retry, failures: vec![failure], ..Self::default() }
    }

    fn add(&mut self, other: Self) {
        self.refused.extend(other.refused);
        self.retry.extend(other.retry);
        self.taken.extend(other.taken);
        self.made.extend(other.made);
        self.waiting += other.waiting;
        self.failures.extend(other.failures);
    }

    pub(super) fn judge(&mut self, taken: &Taken, verdict: Verdict) {
        let (index, stored_in) = (taken.at, &taken.index);
        match verdict {
            Verdict::Same => {}
            Verdict::Other => {
                let reason = format!("another document is stored under its id in index {stored_in}").into();
                self.refused.push(RejectedRecord { index, reason });
            }
            Verdict::Gone => {
                let reason = format!("a document under its id was in index {stored_in}, and is gone").into();
                self.retry.push(Retry { index, reason, scope: RetryScope::Record });
            }
        }
    }

    /// What delivery is told of a batch of `count` records.
    fn into_write_outcome(mut self, count: usize) -> Result<WriteOutcome, Failure> {
        if self.retry.len() == count {
            // Nothing has passed: what only waits isn't held against these records.
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
        // What is refused isn't sent again, and a record that two looks have failed for is named once.
        let refused: HashSet<usize> = self.refused.iter().map(|refusal| refusal.index).collect();
        self.retry.retain(|retry| !refused.contains(&retry.index));
        self.retry.sort_by_key(|retry| retry.index);
        self.retry.dedup_by_key(|retry| retry.index);
        Ok(WriteOutcome::Partial { refused: self.refused, retry: self.retry })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(done: &[Outcome]) -> Outcomes {
        Outcomes::of((0..done.len()).collect(), done.to_vec())
    }

    fn reason() -> Reason {
        "why".into()
    }

    #[test]
    fn a_report_names_what_isn_t_stored() {
        assert_eq!(of(&[Outcome::Stored, Outcome::Stored]).into_write_outcome(2).unwrap(), WriteOutcome::Committed);
        let mut all = Outcomes::of(vec![2, 3], vec![Outcome::Overloaded(reason()), Outcome::Refused(reason())]);
        all.add(of(&[Outcome::Refused(reason()), Outcome::NotYet(reason())]));
        let Ok(WriteOutcome::Partial { refused, retry }) = all.into_write_outcome(4) else { panic!("two are refused") };
        assert_eq!(refused.iter().map(|refusal| refusal.index).collect::<Vec<_>>(), [0, 3]);
        assert_eq!(retry.iter().map(|retry| retry.index).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn a_store_that_takes_nothing_is_unavailable_and_its_records_are_not_to_blame() {
        let overloaded = of(&[Outcome::Overloaded(reason()), Outcome::Overloaded(reason())]);
        assert!(matches!(overloaded.into_write_outcome(2), Err(Failure::Overloaded(_))));
        let mut failed = Outcomes::failed(vec![0], Failure::Overloaded("busy".to_owned()));
        failed.add(Outcomes::failed(vec![1], Failure::Odd("odd".to_owned())));
        assert!(matches!(failed.into_write_outcome(2), Err(Failure::Odd(_))), "what a person may act on goes first");
        // These may be to blame.
        assert!(of(&[Outcome::NotYet(reason())]).into_write_outcome(1).is_ok());
        assert!(of(&[Outcome::NotYet(reason()), Outcome::Overloaded(reason())]).into_write_outcome(2).is_ok());
    }
}
