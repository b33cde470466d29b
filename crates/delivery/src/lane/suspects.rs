//! Records that a keyed store rejects with errors that may be its own. A store can begin or cease to fail in the middle of an attempt. So a
//! record becomes a dead letter only if the store rejects it twice while it accepts others.

use std::collections::BTreeSet;
use std::time::Duration;

use sink::{Batch, RejectedRecord, Retry, RetryScope};
use tokio::time::Instant;

use crate::lane::resend::merged;

/// If no other record comes, a second rejection counts this long after the store has accepted others.
const ALONE: Duration = Duration::from_secs(5);

/// The records of one batch that were rejected while the store accepted others.
#[derive(Default)]
pub(crate) struct Suspects {
    sequences: BTreeSet<u64>,
    since: Option<Instant>,
}

/// The outcome of an attempt.
pub(crate) struct Judged {
    pub(crate) refused: Vec<RejectedRecord>,
    pub(crate) retry: Vec<Retry>,
    /// Whether the store has accepted a record that wasn't suspected.
    pub(crate) accepts_others: bool,
}

impl Suspects {
    /// The whole call failed: the store accepts nothing.
    pub(crate) fn outage(&mut self) {
        self.sequences.clear();
    }

    /// Judges the records of `part` that the store didn't accept. `newest_pass` is whether it accepted newer ones just before.
    pub(crate) fn judge(
        &mut self,
        part: &Batch,
        refused: Vec<RejectedRecord>,
        retry: Vec<Retry>,
        newest_pass: bool,
    ) -> Judged {
        let failed: BTreeSet<usize> =
            refused.iter().map(|refusal| refusal.index).chain(retry.iter().map(|retry| retry.index)).collect();
        let fresh = || part.records().enumerate().filter(|(_, record)| !self.sequences.contains(&record.sequence));
        let (has_fresh, accepts_others) =
            (fresh().next().is_some(), newest_pass || fresh().any(|(index, _)| !failed.contains(&index)));
        let is_proven = if has_fresh || newest_pass { accepts_others } else { self.is_alone_for_long() };
        if has_fresh && !accepts_others {
            self.sequences.clear();
        }
        let sequence = |retry: &Retry| part.get(retry.index).map(|record| record.sequence);
        let is_rejected = |retry: &Retry| {
            let is_suspect = sequence(retry).is_some_and(|sequence| self.sequences.contains(&sequence));
            is_suspect && retry.scope.is_rejected(is_proven)
        };
        let (rejected, retry): (Vec<Retry>, Vec<Retry>) = retry.into_iter().partition(is_rejected);
        if accepts_others {
            let unclear = retry.iter().filter(|retry| retry.scope == RetryScope::Unclear);
            self.sequences = unclear.filter_map(sequence).collect();
            self.since = Some(Instant::now());
        }
        let rejected = rejected.into_iter().map(RejectedRecord::from);
        Judged { refused: merged(refused, rejected.collect(), |refusal| refusal.index), retry, accepts_others }
    }

    fn is_alone_for_long(&self) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= ALONE)
    }
}
