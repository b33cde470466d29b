//! Decides what a lane does next with a batch, from what happened to it. It does no I/O and has no clock: the driver does what the core says,
//! and reports the result with the time.
//!
//! Each record of a batch ends in one of three ways: the store accepts it, it becomes a dead letter, or the lane defers it. The cursor
//! passes the batch after all of its records have ended.

mod parts;
mod rejections;
mod resends;
mod schedule;
#[cfg(test)]
mod tests;

use std::time::Duration;

use sink::{Batch, Claim, Held, Reason, RejectedRecord, Retry, RetryScope, SinkError, WriteOutcome};

pub(crate) use parts::left;
pub(crate) use resends::{Resent, dead_after_resend};
pub(crate) use schedule::{NextStep, is_batch_due, is_object_due, when_caught_up};

use rejections::Rejections;

/// A transactional store gets the batch again this long after a later event arrives, if only later events can show what
/// is at fault.
const RETRY_AFTER_EVENT: Duration = Duration::from_millis(500);
/// An idempotent store that accepts nothing gets a sample again this long after a later event arrives.
const SAMPLE_AFTER_EVENT: Duration = Duration::from_secs(1);

/// The facts that the decisions depend on and that do not change while a lane runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    /// This process's claim on the lane.
    pub(crate) claim: Claim,
    /// The store keeps the lane's cursor.
    pub(crate) fenced: bool,
    /// The lane can defer events: the store accepts them out of order and recognises each by its id.
    pub(crate) defers: bool,
    /// A record that the store rejects for now for so long, while it accepts others, becomes a dead letter.
    pub(crate) alone_max: Duration,
}

impl Policy {
    /// Whether the store holds the lane for this process alone, with its cursor at `position`.
    pub(crate) fn is_held_at(&self, held: &Held, position: u64) -> bool {
        held.claims == [self.claim] && held.position == position
    }
}

/// What happened since the last decision.
#[derive(Debug)]
pub(crate) enum Happened {
    /// The store answered to these records, or the call failed.
    Answered(Batch, Result<WriteOutcome, SinkError>),
    /// The first records, as many as this, are durable as deferred. There is no room for the others.
    Deferred(Judgement, usize),
    /// The rejected records are durable as dead letters.
    DeadLettered(Judgement),
    /// The wait is over. `is_full`: the batch has no room for later events.
    Waited { wait: Wait, is_full: bool },
    /// The store says what it holds: `None` if it keeps no cursors. The journal is durable up to `durable`.
    Asked { needs_later: bool, held: Option<Held>, durable: u64 },
    /// The batch with all records that it has, ended ones too.
    Grown(Batch),
    /// The newest events were sent to the store.
    TriedNewest(Newest),
}

/// What the driver does next.
#[derive(Debug)]
pub(crate) enum Next {
    /// Write these records to the store.
    Send(Batch),
    /// Make the records in `deferred` durable as deferred, as many as there is room for.
    Defer(Judgement),
    /// Make the records in `rejected` durable as dead letters.
    DeadLetter(Judgement),
    Wait(Wait),
    /// Ask the store what it holds: the failed call may have had an effect.
    AskStore {
        needs_later: bool,
    },
    /// Add later events to the batch.
    Grow,
    /// Send the newest events of the log: if the store accepts one of them, the records of the batch are at fault.
    TryNewest,
    /// Move the cursor past the batch.
    Advance,
    /// Add the events that have arrived, and begin again with the larger batch.
    AddLater,
    /// Read the lane's position from the store again: it holds something that this lane has not written.
    Moved,
}

/// How the store handles events that are newer than the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Newest {
    /// There are none, or they don't fit into a batch.
    Missing,
    Accepted,
    NotAccepted,
}

/// The judgement about the records of `part` that the store did not accept.
#[derive(Debug)]
pub(crate) struct Judgement {
    /// The records that were sent.
    pub(crate) part: Batch,
    pub(crate) rejected: Vec<RejectedRecord>,
    pub(crate) deferred: Vec<Retry>,
    /// The records that stay in the batch; `None` if these are all but the rejected ones.
    again: Option<Vec<Retry>>,
}

/// Is logged instead of a store's message that may quote an event.
const OF_EVENT: &str = "the store rejects an event temporarily: the list of routes shows its message";

/// A pause before the next attempt. A stop ends it early.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) reason: Reason,
    /// What is logged instead of a reason that is about an event, which it may quote.
    pub(crate) logged: Option<&'static str>,
    then: AfterWait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterWait {
    Send,
    AskStore { needs_later: bool },
    SendWithNeighbours,
}

impl Wait {
    /// Whether the store accepts nothing. This time does not count for deferred events.
    pub(crate) fn is_outage(&self) -> bool {
        self.then != AfterWait::Send
    }

    /// How soon after the next event the pause ends, if an event ends it. `is_full`: the batch has no room for later events. `has_read_all`:
    /// there is none in the log yet.
    pub(crate) fn ends_after_event(&self, is_full: bool, has_read_all: bool) -> Option<Duration> {
        match self.then {
            AfterWait::SendWithNeighbours => (!is_full).then_some(SAMPLE_AFTER_EVENT),
            AfterWait::AskStore { needs_later } => (needs_later && has_read_all).then_some(RETRY_AFTER_EVENT),
            AfterWait::Send => None,
        }
    }
}

/// One batch, from its first attempt to the end of its last record.
#[derive(Debug)]
pub(crate) struct BatchProgress {
    policy: Policy,
    /// The records that haven't ended.
    open: Batch,
    /// The position up to which this lane has brought a transactional store.
    store_at: u64,
    rejections: Rejections,
    /// The store has accepted a record since the first attempt.
    has_accepted: bool,
    /// The store has accepted a newer event just before this attempt.
    newer_accepted: bool,
    /// The next attempt is a sample, because the store accepts nothing.
    sends_sample: bool,
}

impl BatchProgress {
    /// Begins with the records of `open`. A transactional store holds the lane's events up to `store_at`.
    pub(crate) fn new(policy: Policy, open: Batch, store_at: u64) -> Self {
        Self {
            policy,
            open,
            store_at,
            rejections: Rejections::default(),
            has_accepted: false,
            newer_accepted: false,
            sends_sample: false,
        }
    }

    /// The position up to which a transactional store holds the lane's events.
    pub(crate) const fn store_at(&self) -> u64 {
        self.store_at
    }

    /// Whether the last attempt stored a record that the store had not rejected before.
    pub(crate) const fn accepts_others(&self) -> bool {
        self.rejections.accepts_others
    }

    /// The first attempt, or the next one.
    pub(crate) fn send(&self) -> Next {
        Next::Send(if self.sends_sample { parts::sample(&self.open) } else { self.open.clone() })
    }

    /// Decides what comes next. `now` is the time since the lane began.
    pub(crate) fn step(&mut self, happened: Happened, now: Duration) -> Next {
        match happened {
            Happened::Answered(part, Ok(outcome)) => self.answered(part, outcome, now),
            Happened::Answered(_, Err(error)) => self.failed(error),
            Happened::Deferred(judgement, count) => self.defer(judgement, count, now),
            Happened::DeadLettered(judgement) => self.end_records(judgement),
            Happened::Waited { wait, is_full } => self.waited(wait.then, is_full),
            Happened::Asked { needs_later, held, durable } => self.asked(needs_later, held, durable),
            Happened::Grown(all) => {
                self.open = parts::grown(&self.open, &all);
                self.send()
            }
            Happened::TriedNewest(newest) => self.tried_newest(newest),
        }
    }

    fn answered(&mut self, part: Batch, outcome: WriteOutcome, now: Duration) -> Next {
        self.rejections.accepts_others = false;
        match outcome {
            WriteOutcome::Committed if part.len() == self.open.len() => self.advance(self.open.last()),
            WriteOutcome::Committed => {
                self.open = parts::rest(&self.open, &part, &[]);
                (self.has_accepted, self.sends_sample) = (true, false);
                self.send()
            }
            WriteOutcome::Rejected { refused } if refused.is_empty() => {
                let reason = "BUG: the sink rejected a batch without naming a record. Report this".into();
                Next::Wait(Wait { reason, logged: None, then: AfterWait::Send })
            }
            WriteOutcome::Rejected { refused: rejected } => {
                Next::DeadLetter(Judgement { part, rejected, deferred: Vec::new(), again: None })
            }
            WriteOutcome::Partial { refused, retry } => self.judge(part, refused, retry, now),
        }
    }

    /// The store has accepted all records of `part` but these.
    fn judge(&mut self, part: Batch, rejected: Vec<RejectedRecord>, retry: Vec<Retry>, now: Duration) -> Next {
        self.has_accepted |= rejected.len() + retry.len() < part.len();
        let (rejected, mut again) = self.rejections.judge(&part, rejected, retry, self.newer_accepted, now);
        let can_defer = self.has_accepted && self.policy.defers;
        let deferred: Vec<Retry> =
            again.extract_if(.., |retry| can_defer && retry.scope == RetryScope::Record).collect();
        let judgement = Judgement { part, rejected, deferred, again: Some(again) };
        if judgement.deferred.is_empty() { self.reject_expired(judgement, now) } else { Next::Defer(judgement) }
    }

    /// The records without room stay in the batch.
    fn defer(&mut self, mut judgement: Judgement, count: usize, now: Duration) -> Next {
        let without_room = judgement.deferred.split_off(count.min(judgement.deferred.len()));
        if let Some(again) = &mut judgement.again {
            again.extend(without_room.into_iter().map(parts::without_room));
            again.sort_by_key(|retry| retry.index);
        }
        self.reject_expired(judgement, now)
    }

    /// Rejects the records that the store has rejected for now for too long.
    fn reject_expired(&mut self, mut judgement: Judgement, now: Duration) -> Next {
        let Judgement { rejected, again, .. } = &mut judgement;
        if let Some(again) = again {
            rejected.extend(self.rejections.split_expired(again, self.has_accepted, self.policy.alone_max, now));
            rejected.sort_by_key(|rejected| rejected.index);
        }
        if judgement.rejected.is_empty() { self.end_records(judgement) } else { Next::DeadLetter(judgement) }
    }

    /// The records of the judgement have ended, except those that stay in the batch.
    fn end_records(&mut self, Judgement { part, rejected, again, .. }: Judgement) -> Next {
        let Some(again) = again else {
            self.open = parts::without_rejected(&self.open, &part, &rejected);
            return self.send();
        };
        self.open = parts::rest(&self.open, &part, &again);
        self.newer_accepted = false;
        self.sends_sample = needs_neighbours(&again, self.has_accepted);
        match again.into_iter().next() {
            None if self.open.is_empty() => self.advance(self.open.last()),
            None => self.send(),
            Some(first) => {
                let then = if self.sends_sample { AfterWait::SendWithNeighbours } else { AfterWait::Send };
                let logged = logged(&first);
                Next::Wait(Wait { reason: first.reason, logged, then })
            }
        }
    }

    /// The whole call failed.
    fn failed(&mut self, error: SinkError) -> Next {
        self.rejections.outage();
        self.newer_accepted = false;
        let needs_later = self.policy.fenced && matches!(error, SinkError::Misconfigured(_));
        Next::Wait(Wait { reason: error.into_reason(), logged: None, then: AfterWait::AskStore { needs_later } })
    }

    fn waited(&self, then: AfterWait, is_full: bool) -> Next {
        match then {
            AfterWait::Send => self.send(),
            AfterWait::AskStore { needs_later } => Next::AskStore { needs_later },
            AfterWait::SendWithNeighbours if is_full => Next::TryNewest,
            AfterWait::SendWithNeighbours => self.grow(),
        }
    }

    /// A store with another claim or position holds events that are not from this lane, or has lost some.
    fn asked(&mut self, needs_later: bool, held: Option<Held>, durable: u64) -> Next {
        if let Some(held) = held {
            if !self.policy.is_held_at(&held, held.position) {
                return Next::Moved;
            }
            if held.position >= self.open.last() && held.position <= durable {
                return self.advance(held.position);
            }
            if held.position != self.store_at {
                return Next::Moved;
            }
        }
        if needs_later { Next::AddLater } else { self.grow() }
    }

    /// Only a store that distinguishes records gets a larger batch.
    fn grow(&self) -> Next {
        if self.policy.defers { Next::Grow } else { self.send() }
    }

    fn tried_newest(&mut self, newest: Newest) -> Next {
        self.newer_accepted = newest == Newest::Accepted;
        match newest {
            Newest::Accepted => (self.has_accepted, self.sends_sample) = (true, false),
            // The store accepts nothing, so an earlier rejection says nothing about its record.
            Newest::NotAccepted => self.rejections.clear_suspects(),
            Newest::Missing => {}
        }
        self.send()
    }

    fn advance(&mut self, position: u64) -> Next {
        self.store_at = self.store_at.max(position);
        Next::Advance
    }
}

/// What to log instead of the store's message about a record.
fn logged(retry: &Retry) -> Option<&'static str> {
    match retry.scope {
        RetryScope::Store => None,
        _ if retry.reason.starts_with(parts::NO_ROOM) => Some(parts::NO_ROOM),
        RetryScope::Unclear | RetryScope::Record => Some(OF_EVENT),
    }
}

/// Whether only other events can show what is at fault: the records or the store.
fn needs_neighbours(again: &[Retry], has_accepted: bool) -> bool {
    let is_unclear = again.iter().any(|retry| retry.scope == RetryScope::Unclear);
    (is_unclear || !has_accepted) && again.iter().all(|retry| retry.scope != RetryScope::Store)
}
