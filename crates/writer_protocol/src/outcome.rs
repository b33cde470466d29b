//! The outcome of a batch, or of another call.

use net::http_client::shortened;
use serde::{Deserialize, Serialize};
use sink::{RejectedRecord, Retry, RetryScope, SinkError, WriteOutcome};

use crate::SinkInfo;

/// A rejected record: its index within the batch, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectionJson {
    /// From 0.
    pub index: usize,
    /// The store's error message.
    pub reason: String,
}

/// A record to retry: its index within the batch, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryJson {
    /// From 0.
    pub index: usize,
    /// The store's error message.
    pub reason: String,
    /// Whether the cause is the store, not the record.
    pub of_store: bool,
    /// Whether the cause may be the store or the record.
    pub unclear: bool,
}

/// The outcome of a batch, or of another call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// [`WriteOutcome::Committed`].
    Stored,
    /// [`WriteOutcome::Rejected`].
    Rejected {
        /// The rejected records.
        refused: Vec<RejectionJson>,
    },
    /// [`WriteOutcome::Partial`].
    Partial {
        /// Rejected permanently.
        refused: Vec<RejectionJson>,
        /// To be retried.
        retry: Vec<RetryJson>,
    },
    /// The writer's sink, or its store, isn't the one that the gateway is bound to: nothing was done.
    Differs {
        /// The description of the writer's sink.
        info: SinkInfo,
    },
    /// [`SinkError`].
    Failed {
        /// Whether the operator must correct a setting or the store.
        misconfigured: bool,
        /// The message.
        reason: String,
    },
}

impl From<Result<WriteOutcome, SinkError>> for Outcome {
    fn from(result: Result<WriteOutcome, SinkError>) -> Self {
        let rejection =
            |record: RejectedRecord| RejectionJson { index: record.index, reason: record.reason.to_string() };
        let rejections = |list: Vec<RejectedRecord>| list.into_iter().map(rejection).collect();
        let retry = |retry: Retry| RetryJson {
            index: retry.index,
            reason: retry.reason.to_string(),
            of_store: retry.scope == RetryScope::Store,
            unclear: retry.scope == RetryScope::Unclear,
        };
        let retries = |list: Vec<Retry>| list.into_iter().map(retry).collect();
        match result {
            Ok(WriteOutcome::Committed) => Self::Stored,
            Ok(WriteOutcome::Rejected { refused }) => Self::Rejected { refused: rejections(refused) },
            Ok(WriteOutcome::Partial { refused, retry }) => {
                Self::Partial { refused: rejections(refused), retry: retries(retry) }
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
        let check = |list: &[RejectionJson]| ascends(&list.iter().map(|rejection| rejection.index).collect::<Vec<_>>());
        let check_retries = |list: &[RetryJson]| ascends(&list.iter().map(|retry| retry.index).collect::<Vec<_>>());
        let rejections = |list: Vec<RejectionJson>| {
            list.into_iter()
                .map(|RejectionJson { index, reason }| RejectedRecord { index, reason: shortened(&reason).into() })
                .collect()
        };
        let scope = |retry: &RetryJson| match (retry.of_store, retry.unclear) {
            (true, _) => RetryScope::Store,
            (false, true) => RetryScope::Unclear,
            (false, false) => RetryScope::Record,
        };
        let retry = |retry: RetryJson| Retry {
            index: retry.index,
            reason: shortened(&retry.reason).into(),
            scope: scope(&retry),
        };
        let retries = |list: Vec<RetryJson>| list.into_iter().map(retry).collect();
        match self {
            Self::Stored => Ok(WriteOutcome::Committed),
            Self::Rejected { refused } if check(&refused) => {
                Ok(WriteOutcome::Rejected { refused: rejections(refused) })
            }
            Self::Partial { refused, retry } if check(&refused) && check_retries(&retry) => {
                Ok(WriteOutcome::Partial { refused: rejections(refused), retry: retries(retry) })
            }
            Self::Differs { .. } => Err(SinkError::Misconfigured(
                "the writer's sink differs from the one that this gateway used before: correct its configuration"
                    .into(),
            )),
            Self::Rejected { .. } | Self::Partial { .. } => Err(SinkError::Unavailable(
                "the writer names records that the batch does not have: run the same release of gateway and writer"
                    .into(),
            )),
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
    fn outcome_survives_json() {
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
        let beyond = Outcome::Rejected { refused: vec![RejectionJson { index: 2, reason: String::new() }] };
        assert!(beyond.into_write_outcome(2).is_err());
    }
}
