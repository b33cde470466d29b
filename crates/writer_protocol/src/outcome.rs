//! The outcome of a batch, or of another call.

use net::http_client::shortened;
use serde::{Deserialize, Serialize};
use sink::{RejectedRecord, Retry, RetryScope, SinkError, WriteOutcome};

use crate::SinkInfo;

/// A refused record: its index within the batch, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    /// From 0.
    pub index: usize,
    /// The store's words.
    pub reason: String,
}

/// A record to retry: its index within the batch, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Again {
    /// From 0.
    pub index: usize,
    /// The store's words.
    pub reason: String,
    /// Whether the cause is the store, not the record.
    pub of_store: bool,
    /// Whether the cause may be the store or the record. Older writers don't send it.
    #[serde(default)]
    pub unclear: bool,
}

/// The outcome of a batch, or of another call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// [`WriteOutcome::Committed`].
    Stored,
    /// [`WriteOutcome::Rejected`].
    Withheld {
        /// The records that were refused.
        refused: Vec<Why>,
    },
    /// [`WriteOutcome::Partial`].
    Except {
        /// Refused permanently.
        refused: Vec<Why>,
        /// To be retried.
        retry: Vec<Again>,
    },
    /// The writer's sink, or its store, isn't the one that the gateway is bound to: nothing was done.
    Differs {
        /// The description of the writer's sink.
        info: SinkInfo,
    },
    /// [`SinkError`].
    Failed {
        /// Whether the operator must act.
        misconfigured: bool,
        /// The message.
        reason: String,
    },
}

impl From<Result<WriteOutcome, SinkError>> for Outcome {
    fn from(result: Result<WriteOutcome, SinkError>) -> Self {
        let why = |refusal: RejectedRecord| Why { index: refusal.index, reason: refusal.reason.to_string() };
        let refused = |list: Vec<RejectedRecord>| list.into_iter().map(why);
        let again = |retry: Retry| Again {
            index: retry.index,
            reason: retry.reason.to_string(),
            of_store: retry.scope == RetryScope::Store,
            unclear: retry.scope == RetryScope::Unclear,
        };
        let retry = |list: Vec<Retry>| list.into_iter().map(again);
        match result {
            Ok(WriteOutcome::Committed) => Self::Stored,
            Ok(WriteOutcome::Rejected { refused: list }) => Self::Withheld { refused: refused(list).collect() },
            Ok(WriteOutcome::Partial { refused: list, retry: left }) => {
                Self::Except { refused: refused(list).collect(), retry: retry(left).collect() }
            }
            Err(error) => error.into(),
        }
    }
}

impl From<SinkError> for Outcome {
    fn from(error: SinkError) -> Self {
        match error {
            SinkError::Unavailable(reason) => Self::Failed { misconfigured: false, reason: reason.to_string() },
            SinkError::Misconfigured(reason) => Self::Failed { misconfigured: true, reason: reason.to_string() },
            error @ SinkError::OtherStore(_) => Self::Failed { misconfigured: true, reason: error.to_string() },
        }
    }
}

impl Outcome {
    /// The report of a batch of `count` records.
    ///
    /// # Errors
    /// The failure of the writer's sink; also if an index is out of the batch's range.
    pub fn into_write_outcome(self, count: usize) -> Result<WriteOutcome, SinkError> {
        let ascends = |indices: &[usize]| {
            indices.is_sorted_by(|one, other| one < other) && indices.last().is_none_or(|last| *last < count)
        };
        let check = |list: &[Why]| ascends(&list.iter().map(|why| why.index).collect::<Vec<_>>());
        let check_again = |list: &[Again]| ascends(&list.iter().map(|again| again.index).collect::<Vec<_>>());
        let refusals = |list: Vec<Why>| {
            list.into_iter()
                .map(|Why { index, reason }| RejectedRecord { index, reason: shortened(&reason).into() })
                .collect()
        };
        let scope = |again: &Again| match (again.of_store, again.unclear) {
            (true, _) => RetryScope::Store,
            (false, true) => RetryScope::Unclear,
            (false, false) => RetryScope::Record,
        };
        let again =
            |again: Again| Retry { index: again.index, reason: shortened(&again.reason).into(), scope: scope(&again) };
        let retries = |list: Vec<Again>| list.into_iter().map(again).collect();
        match self {
            Self::Stored => Ok(WriteOutcome::Committed),
            Self::Withheld { refused } if check(&refused) => Ok(WriteOutcome::Rejected { refused: refusals(refused) }),
            Self::Except { refused, retry } if check(&refused) && check_again(&retry) => {
                Ok(WriteOutcome::Partial { refused: refusals(refused), retry: retries(retry) })
            }
            Self::Differs { .. } => {
                Err(SinkError::Misconfigured("the writer's sink isn't the one that was used before".into()))
            }
            Self::Withheld { .. } | Self::Except { .. } => {
                Err(SinkError::Unavailable("the writer names records that the batch doesn't have".into()))
            }
            Self::Failed { misconfigured: true, reason } => Err(SinkError::Misconfigured(shortened(&reason).into())),
            Self::Failed { misconfigured: false, reason } => Err(SinkError::Unavailable(shortened(&reason).into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sink::Reason;

    #[test]
    fn outcomes_are_the_sinks_own() {
        let reason: Reason = "why".into();
        let reports = [
            Ok(WriteOutcome::Committed),
            Ok(WriteOutcome::Rejected { refused: vec![RejectedRecord { index: 1, reason: reason.clone() }] }),
            Ok(WriteOutcome::Partial {
                refused: Vec::new(),
                retry: vec![
                    Retry { index: 0, reason: reason.clone(), scope: RetryScope::Record },
                    Retry { index: 1, reason: reason.clone(), scope: RetryScope::Unclear },
                ],
            }),
            Err(SinkError::Unavailable(reason.clone())),
            Err(SinkError::Misconfigured(reason.clone())),
        ];
        for report in reports {
            let text = serde_json::to_string(&Outcome::from(report.clone())).unwrap();
            assert_eq!(serde_json::from_str::<Outcome>(&text).unwrap().into_write_outcome(2), report, "{text}");
        }
        let beyond = Outcome::Withheld { refused: vec![Why { index: 2, reason: String::new() }] };
        assert!(beyond.into_write_outcome(2).is_err());
    }
}
