//! The scope of a store's error, and its consequence: the one rule for the dead letters of all stores.
//!
//! Each store's crate has one table that assigns a [`Fault`] to each of its errors, and a test that walks it.

use crate::{RejectedRecord, Retry, RetryScope};

/// The scope of a store's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A value of the record. The store never accepts the record, and the error doesn't concern others.
    Record,
    /// The record or the store: the error doesn't distinguish them. Errors that a table doesn't list are of this kind.
    Unclear,
    /// The record or the store, and it may pass without a change to either.
    Passing,
    /// The store: it is full, damaged, overloaded, unavailable or misconfigured.
    Store,
}

/// The outcome of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It becomes a dead letter.
    Rejected,
    /// It is sent again.
    Retry(RetryScope),
}

impl Fault {
    /// The verdict on a record. `accepts_others` is whether the store accepts another record at the same time. While it accepts none, only
    /// [`Self::Record`] makes a dead letter.
    #[must_use]
    pub const fn verdict(self, accepts_others: bool) -> Verdict {
        match self {
            Self::Record => Verdict::Rejected,
            Self::Unclear if RetryScope::Unclear.is_rejected(accepts_others) => Verdict::Rejected,
            Self::Unclear => Verdict::Retry(RetryScope::Unclear),
            Self::Passing => Verdict::Retry(RetryScope::Record),
            Self::Store => Verdict::Retry(RetryScope::Store),
        }
    }
}

impl RetryScope {
    /// Whether a waiting record becomes a dead letter, after the store accepted others or still accepts none.
    #[must_use]
    pub const fn is_rejected(self, accepts_others: bool) -> bool {
        accepts_others && matches!(self, Self::Unclear)
    }
}

/// Moves the rejected records from `retry` to `refused`, after the store accepted others or still accepts none.
#[must_use]
pub fn judge_unclear(
    mut refused: Vec<RejectedRecord>,
    retry: Vec<Retry>,
    accepts_others: bool,
) -> (Vec<RejectedRecord>, Vec<Retry>) {
    let (rejected, retry): (Vec<Retry>, Vec<Retry>) =
        retry.into_iter().partition(|retry| retry.scope.is_rejected(accepts_others));
    refused.extend(rejected.into_iter().map(RejectedRecord::from));
    refused.sort_by_key(|refusal| refusal.index);
    (refused, retry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_record_errors_reject_during_an_outage() {
        let verdicts = |fault: Fault| [false, true].map(|accepts_others| fault.verdict(accepts_others));
        let always = |scope| [Verdict::Retry(scope); 2];
        assert_eq!(verdicts(Fault::Record), [Verdict::Rejected; 2]);
        assert_eq!(verdicts(Fault::Unclear), [Verdict::Retry(RetryScope::Unclear), Verdict::Rejected]);
        assert_eq!(verdicts(Fault::Passing), always(RetryScope::Record));
        assert_eq!(verdicts(Fault::Store), always(RetryScope::Store));
    }
}
