//! The core with a planted error: a decision that is wrong, or a state that isn't kept as it should be.

use std::time::Duration;

use sink::{Batch, RejectedRecord, RetryScope, SinkError, WriteOutcome};

use super::super::{BatchProgress, Happened, Judgement, Newest, Next, Policy, Resent};

/// An error of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// The cursor passes a batch whose records wait for another attempt.
    AdvancesEarly,
    /// A failed call counts as one that took effect.
    TrustsFailedCalls,
    /// What follows a sample isn't sent.
    DropsRestOfSample,
    /// A record becomes a dead letter at its first rejection.
    DeadAtFirstRejection,
    /// Rejections before an outage count.
    ForgetsOutage,
    /// That the store accepted newer events before an outage counts after it.
    KeepsNewerAccepted,
    /// Rejections count although the store has since rejected newer events too.
    KeepsSuspects,
    /// A record that is rejected for now becomes a dead letter without delay.
    GivesUpEarly,
    /// Rejected records do not become dead letters.
    SkipsDeadLetters,
    /// Records aren't deferred, and count as such.
    SkipsDeferral,
    /// Records that are deferred stay in the batch.
    DefersAndSends,
    /// The indices of a sample count as those of the batch.
    ConfusesIndices,
    /// The lane continues although the store holds another claim.
    IgnoresLostClaim,
    /// The lane sends again before it asks what the store holds.
    SendsBeforeAsking,
    /// The lane continues although the store has lost events.
    IgnoresLostEvents,
    /// Events that are sent again count as stored although the call failed.
    TrustsFailedResends,
}

impl Bug {
    pub(super) const ALL: [Self; 16] = [
        Self::AdvancesEarly,
        Self::TrustsFailedCalls,
        Self::DropsRestOfSample,
        Self::DeadAtFirstRejection,
        Self::ForgetsOutage,
        Self::KeepsNewerAccepted,
        Self::KeepsSuspects,
        Self::GivesUpEarly,
        Self::SkipsDeadLetters,
        Self::SkipsDeferral,
        Self::DefersAndSends,
        Self::ConfusesIndices,
        Self::IgnoresLostClaim,
        Self::SendsBeforeAsking,
        Self::IgnoresLostEvents,
        Self::TrustsFailedResends,
    ];
}

/// The core, with an error if there is one.
pub(super) struct Core {
    inner: BatchProgress,
    bug: Option<Bug>,
}

impl Core {
    pub(super) fn new(policy: Policy, open: Batch, store_at: u64, bug: Option<Bug>) -> Self {
        let alone_max = if bug == Some(Bug::GivesUpEarly) { Duration::ZERO } else { policy.alone_max };
        Self { inner: BatchProgress::new(Policy { alone_max, ..policy }, open, store_at), bug }
    }

    pub(super) fn send(&self) -> Next {
        self.inner.send()
    }

    pub(super) fn store_at(&self) -> u64 {
        self.inner.store_at()
    }

    pub(super) fn step(&mut self, happened: Happened, now: Duration) -> Next {
        let Some(bug) = self.bug else { return self.inner.step(happened, now) };
        let before = (self.inner.rejections.clone(), self.inner.newer_accepted);
        let (failed, newest) = match &happened {
            Happened::Answered(_, answer) => (answer.is_err(), None),
            Happened::TriedNewest(newest) => (false, Some(*newest)),
            _ => (false, None),
        };
        let unclear = unclear(&happened);
        let happened = self.corrupt_input(bug, happened);
        let part = match &happened {
            Happened::Answered(part, _) => Some(part.clone()),
            _ => None,
        };
        let next = self.inner.step(happened, now);
        match (bug, next) {
            (Bug::ForgetsOutage, next) if failed => {
                self.inner.rejections = before.0;
                next
            }
            (Bug::KeepsNewerAccepted, next) if failed => {
                self.inner.newer_accepted = before.1;
                next
            }
            (Bug::KeepsSuspects, next) if newest == Some(Newest::NotAccepted) => {
                self.inner.rejections = before.0;
                next
            }
            (Bug::DeadAtFirstRejection, Next::Wait(_)) if !unclear.is_empty() => Next::DeadLetter(Judgement {
                part: part.unwrap(),
                rejected: unclear,
                deferred: Vec::new(),
                again: Some(Vec::new()),
            }),
            (Bug::AdvancesEarly, Next::Wait(wait)) if !wait.is_outage() => Next::Advance,
            (Bug::SendsBeforeAsking, Next::AskStore { .. }) | (Bug::IgnoresLostClaim, Next::Moved) => self.inner.send(),
            (Bug::SkipsDeadLetters, Next::DeadLetter(judgement)) => self.step(Happened::DeadLettered(judgement), now),
            (Bug::SkipsDeferral, Next::Defer(judgement)) => {
                let count = judgement.deferred.len();
                self.step(Happened::Deferred(judgement, count), now)
            }
            (Bug::ConfusesIndices, Next::DeadLetter(judgement)) if judgement.again.is_none() => {
                let indices: Vec<usize> = judgement.rejected.iter().map(|rejected| rejected.index).collect();
                self.inner.open = self.inner.open.without(&indices);
                Next::DeadLetter(Judgement { again: None, ..judgement })
            }
            (_, next) => next,
        }
    }

    fn corrupt_input(&mut self, bug: Bug, happened: Happened) -> Happened {
        match (bug, happened) {
            (Bug::TrustsFailedCalls, Happened::Answered(part, Err(_))) => {
                Happened::Answered(part, Ok(WriteOutcome::Committed))
            }
            (Bug::DropsRestOfSample, Happened::Answered(part, Ok(WriteOutcome::Committed))) => {
                self.inner.open = part.clone();
                Happened::Answered(part, Ok(WriteOutcome::Committed))
            }
            (Bug::DefersAndSends, Happened::Deferred(judgement, _)) => Happened::Deferred(judgement, 0),
            (Bug::IgnoresLostEvents, Happened::Asked { needs_later, held: Some(mut held), durable }) => {
                if held.claims == [super::CLAIM] && held.position < self.inner.store_at {
                    held.position = self.inner.store_at;
                }
                Happened::Asked { needs_later, held: Some(held), durable }
            }
            (_, happened) => happened,
        }
    }
}

/// The records that an answer rejects with errors that may be the store's.
fn unclear(happened: &Happened) -> Vec<RejectedRecord> {
    let Happened::Answered(_, Ok(WriteOutcome::Partial { retry, .. })) = happened else { return Vec::new() };
    let unclear = retry.iter().filter(|retry| retry.scope == RetryScope::Unclear);
    unclear.cloned().map(RejectedRecord::from).collect()
}

/// The result of a resend.
pub(super) fn resent(answer: Result<WriteOutcome, SinkError>, count: usize, bug: Option<Bug>) -> Resent {
    match Resent::of(answer, count) {
        Resent::Outage if bug == Some(Bug::TrustsFailedResends) => {
            Resent::Accepted { rejected: Vec::new(), retry: Vec::new() }
        }
        resent => resent,
    }
}
