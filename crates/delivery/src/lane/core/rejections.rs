//! Decides which rejected records of a batch become dead letters.
//!
//! A store can begin or cease to fail during an attempt. So a record with an error that may be the store's becomes a dead letter only if the
//! store rejects it twice while it accepts others.

use std::collections::BTreeSet;
use std::time::Duration;

use sink::{Batch, RejectedRecord, Retry, RetryScope};

use super::parts::{left, sequences};

/// If there is no other record, a second rejection counts this long after the store has accepted others.
const ALONE: Duration = Duration::from_secs(5);

/// The rejections of one batch.
#[derive(Clone, Debug, Default)]
pub(super) struct Rejections {
    /// The records that the store rejected once while it accepted others.
    pub(super) suspects: BTreeSet<u64>,
    /// When the store last accepted others.
    pub(super) accepted_at: Option<Duration>,
    /// When the store first rejected a record for now; no outage since.
    pub(super) since: Option<Duration>,
    /// The store has accepted a record in the last answer that isn't a suspect.
    pub(super) accepts_others: bool,
}

impl Rejections {
    /// The store accepts nothing: earlier rejections and their time don't count.
    pub(super) fn outage(&mut self) {
        (self.since, self.accepts_others) = (None, false);
        self.clear_suspects();
    }

    pub(super) fn clear_suspects(&mut self) {
        self.suspects.clear();
    }

    /// Moves the records from `retry` to `rejected` that the store has rejected twice. `newer_accepted` is whether it accepted newer events
    /// just before.
    pub(super) fn judge(
        &mut self,
        part: &Batch,
        mut rejected: Vec<RejectedRecord>,
        mut retry: Vec<Retry>,
        newer_accepted: bool,
        now: Duration,
    ) -> (Vec<RejectedRecord>, Vec<Retry>) {
        let left = left(&rejected, &retry);
        let others = || part.records().enumerate().filter(|(_, record)| !self.suspects.contains(&record.sequence));
        let has_others = newer_accepted || others().next().is_some();
        self.accepts_others = newer_accepted || others().any(|(index, _)| !left.contains(&index));
        let is_alone_for_long = self.accepted_at.is_some_and(|at| now.saturating_sub(at) >= ALONE);
        let is_proven = self.accepts_others || is_alone_for_long;
        if has_others && !self.accepts_others {
            self.clear_suspects();
        }
        let suspects = &self.suspects;
        let is_suspect = |retry: &Retry| part.get(retry.index).is_some_and(|at| suspects.contains(&at.sequence));
        let dead = retry.extract_if(.., |retry| is_suspect(retry) && retry.scope.is_rejected(is_proven));
        rejected.extend(dead.map(RejectedRecord::from));
        rejected.sort_by_key(|rejected| rejected.index);
        if self.accepts_others {
            let unclear = retry.iter().filter(|retry| retry.scope == RetryScope::Unclear);
            self.suspects = sequences(part, unclear.map(|retry| retry.index));
            self.accepted_at = Some(now);
        }
        (rejected, retry)
    }

    /// Splits off the records that the store has rejected for now for `alone_max`, if it has accepted others. An error of the store says nothing
    /// about a record, however long it lasts.
    pub(super) fn split_expired(
        &mut self,
        retry: &mut Vec<Retry>,
        has_accepted: bool,
        alone_max: Duration,
        now: Duration,
    ) -> impl Iterator<Item = RejectedRecord> {
        let elapsed = now.saturating_sub(*self.since.get_or_insert(now));
        let is_too_long = has_accepted && elapsed >= alone_max;
        let expired = retry.extract_if(.., move |retry| is_too_long && retry.scope == RetryScope::Record);
        expired.map(move |Retry { index, reason, .. }| {
            let reason = dead_letters::not_stored_in_time(elapsed.as_secs(), &reason).into();
            RejectedRecord { index, reason }
        })
    }
}
