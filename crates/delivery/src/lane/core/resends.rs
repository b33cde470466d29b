//! Decides about events that were deferred and sent again.

use std::time::Duration;

use sink::{RejectedRecord, Retry, RetryScope, SinkError, WriteOutcome};

/// The result of a resend.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Resent {
    /// The store has accepted all events but these.
    Accepted { rejected: Vec<RejectedRecord>, retry: Vec<Retry> },
    /// The error may be about one of several events: the next ones are sent one at a time.
    SendApart,
    /// The store accepts nothing now.
    Outage,
}

impl Resent {
    /// The result of sending `count` events.
    pub(crate) fn of(answer: Result<WriteOutcome, SinkError>, count: usize) -> Self {
        match answer {
            Ok(WriteOutcome::Committed) => Self::Accepted { rejected: Vec::new(), retry: Vec::new() },
            Ok(WriteOutcome::Partial { refused: rejected, retry }) => Self::Accepted { rejected, retry },
            Err(SinkError::Misconfigured(_)) if count > 1 => Self::SendApart,
            Ok(WriteOutcome::Rejected { .. }) | Err(_) => Self::Outage,
        }
    }
}

/// The indices of the events that become dead letters, with the reasons. `rejected_for` is how long the store has
/// rejected an event for now; `None` if the event is no longer deferred, because the store has a higher revision of it.
pub(crate) fn dead_after_resend(
    rejected: &[RejectedRecord],
    retry: &[Retry],
    rejected_for: impl Fn(usize) -> Option<Duration>,
    alone_max: Duration,
) -> Vec<(usize, String)> {
    let rejected = rejected.iter().filter(|rejected| rejected_for(rejected.index).is_some());
    let rejected = rejected.map(|rejected| (rejected.index, rejected.reason.to_string()));
    let expired = retry.iter().filter(|retry| retry.scope != RetryScope::Store).filter_map(|retry| {
        let time = rejected_for(retry.index).filter(|time| *time >= alone_max)?;
        Some((retry.index, dead_letters::not_stored_in_time(time.as_secs(), &retry.reason)))
    });
    let mut dead: Vec<(usize, String)> = rejected.chain(expired).collect();
    dead.sort_unstable();
    dead
}
