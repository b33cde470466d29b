//! A batch as concurrent `_bulk` requests, and their combined result.

use futures_util::future::{BoxFuture, FutureExt, join_all};

use super::batch_outcomes::{Outcomes, Writing};
use super::bulk;
use super::config::{DocumentConflictPolicy, IndexTarget};
use super::conflict::{Taken, compare, occupied};
use super::error::Failure;
use super::outcome::{Outcome, outcomes};
use sink::{Reason, RejectedRecord, Retry, RetryScope, WriteOutcome};

impl Writing<'_> {
    /// Stores the batch.
    ///
    /// # Errors
    /// None of it is known to be stored, and none is rejected.
    pub(super) async fn store(&self) -> Result<WriteOutcome, Failure> {
        let Self { config, batch, .. } = self;
        let refused = self.rejected_results().await?;
        let taken = self.stored_before().await?;
        let mut left_out: Vec<usize> = refused.iter().map(|refusal| refusal.index).collect();
        left_out.extend(taken.iter().map(|found| found.at));
        left_out.sort_unstable();
        let mut all = Outcomes { refused, taken, ..Outcomes::default() };
        let parts = bulk::parts(batch, &left_out, config.request_bytes);
        if batch.has_repetitions() {
            for part in parts {
                all.add(self.send(part).await);
            }
        } else {
            let parts = parts.into_iter().map(|part| self.send(part));
            join_all(parts).await.into_iter().for_each(|part| all.add(part));
        }
        self.compare_taken(&mut all).await;
        all.judge_unclear(self).await;
        // Indices may have been created by this batch.
        self.durability.check(config, self.server, batch).await?;
        all.into_write_outcome(batch.len())
    }

    /// Results that would replace events.
    async fn rejected_results(&self) -> Result<Vec<RejectedRecord>, Failure> {
        let Self { config, server, batch, .. } = self;
        if config.target == IndexTarget::DataStream || config.conflict != DocumentConflictPolicy::DeadLetter {
            return Ok(Vec::new());
        }
        let occupied = occupied(config, server, batch).await?;
        let reason = |index: String| format!("an event with its id is in index {index}").into();
        Ok(occupied
            .into_iter()
            .map(|Taken { at, index }| RejectedRecord { index: at, reason: reason(index) })
            .collect())
    }

    /// Sends the records of a part, in two halves if they are too large for one request.
    fn send(&self, part: Vec<usize>) -> BoxFuture<'_, Outcomes> {
        async move {
            let permit = self.limiter.acquire().await;
            let answered = self.request(&part).await;
            match answered {
                Ok(done) => {
                    let outcomes = Outcomes::of(part, done);
                    if outcomes.waiting > 0 {
                        permit.overloaded()
                    } else {
                        permit.passed()
                    }
                    outcomes
                }
                Err(failure) if failure.is_too_large() => {
                    drop(permit);
                    self.send_less(part, failure).await
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

    async fn request(&self, part: &[usize]) -> Result<Vec<Outcome>, Failure> {
        let count = part.len();
        let answer = self.server.bulk(bulk::body(self.config, self.batch, part)).await?;
        if self.config.target == IndexTarget::DataStream {
            self.streams.check_answer(&answer, self.batch, part, self.config)?;
        }
        outcomes(&answer, count)
    }

    async fn send_less(&self, mut part: Vec<usize>, failure: Failure) -> Outcomes {
        if part.len() <= 1 {
            let reason: Reason = format!("it is too large, even alone: {}", failure.what()).into();
            // A proxy may reject everything as too large.
            let unclear = part.into_iter().map(|index| (index, reason.clone())).collect();
            return Outcomes { unclear, ..Outcomes::default() };
        }
        let rest = part.split_off(part.len() / 2);
        let mut outcomes = self.send(part).await;
        outcomes.add(self.send(rest).await);
        outcomes
    }

    /// Distinguishes duplicates from other events whose ids have documents.
    async fn compare_taken(&self, all: &mut Outcomes) {
        let taken = std::mem::take(&mut all.taken);
        if taken.is_empty() || self.config.conflict != DocumentConflictPolicy::DeadLetter {
            return;
        }
        match compare(self.config, self.server, self.batch, &taken).await {
            Ok(verdicts) => taken.iter().zip(verdicts).for_each(|(taken, verdict)| all.judge(taken, verdict)),
            Err(failure) => {
                let reason: Reason =
                    format!("it can't be compared with the stored document: {}", failure.what()).into();
                let retry = |taken: &Taken| Retry { index: taken.at, reason: reason.clone(), scope: RetryScope::Store };
                all.retry.extend(taken.iter().map(retry));
                all.failures.push(failure);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sink::Fault;

    fn of(done: &[Outcome]) -> Outcomes {
        Outcomes::of((0..done.len()).collect(), done.to_vec())
    }

    fn reason() -> Reason {
        "why".into()
    }

    fn failed(fault: Fault) -> Outcome {
        Outcome::Failed(fault, reason())
    }

    #[test]
    fn outcome_names_records_that_are_not_stored() {
        assert_eq!(of(&[Outcome::Stored, Outcome::Stored]).into_write_outcome(2).unwrap(), WriteOutcome::Committed);
        let mut all = Outcomes::of(vec![2, 3], vec![failed(Fault::Store), failed(Fault::Record)]);
        all.add(of(&[failed(Fault::Record), failed(Fault::Passing)]));
        let Ok(WriteOutcome::Partial { refused, retry }) = all.into_write_outcome(4) else {
            panic!("two are rejected")
        };
        assert_eq!(refused.iter().map(|refusal| refusal.index).collect::<Vec<_>>(), [0, 3]);
        assert_eq!(retry.iter().map(|retry| retry.index).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn store_that_rejects_all_is_unavailable() {
        let overloaded = of(&[failed(Fault::Store), failed(Fault::Store)]);
        assert!(matches!(overloaded.into_write_outcome(2), Err(Failure::Overloaded(_))));
        let mut down = Outcomes::failed(vec![0], Failure::Overloaded("busy".to_owned()));
        down.add(Outcomes::failed(vec![1], Failure::Unexpected("odd".to_owned())));
        assert!(matches!(down.into_write_outcome(2), Err(Failure::Unexpected(_))), "an operator's errors go first");
        // These may be at fault.
        assert!(of(&[failed(Fault::Passing)]).into_write_outcome(1).is_ok());
        assert!(of(&[failed(Fault::Passing), failed(Fault::Store)]).into_write_outcome(2).is_ok());
    }
}
