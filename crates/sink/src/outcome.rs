//! The results that every sink promises to delivery.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use text::escape_control;

use crate::Mark;

/// Why a store did not accept a record or a call, for the operator: what happened, where, and what to do.
pub type Reason = Arc<str>;

/// A record that the store will never accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedRecord {
    /// The record's index within its batch, from 0.
    pub index: usize,
    /// The store's message.
    pub reason: Reason,
}

/// A record that the store may accept later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The record's index within its batch, from 0.
    pub index: usize,
    /// The store's message.
    pub reason: Reason,
    /// The scope of the answer.
    pub scope: RetryScope,
}

/// The scope of a temporary rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryScope {
    /// The record or the store: the record waits in place while the store accepts no other, and is rejected as soon as it does.
    Unclear,
    /// The record, if the store accepts others at the same time. Delivery then defers the record, so the lane
    /// continues.
    Record,
    /// The store: it is overloaded, unavailable, or did not answer. The records wait in place until it answers.
    Store,
}

/// The outcome of a batch, record by record. Indices ascend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// Every record has its effect, now or in an earlier write; a transactional store's cursor is at the batch's last
    /// position or beyond.
    Committed,
    /// The store rejects these records permanently. Either nothing was committed, or other records were and the lane's
    /// cursor is unchanged; a resend then skips those. Delivery makes the rejected ones dead letters and sends the
    /// batch again without them, so no crash can move a cursor past an event that is nowhere.
    Rejected {
        /// The records that were rejected: at least one.
        refused: Vec<RejectedRecord>,
    },
    /// All records took effect except these. Only idempotent stores answer so.
    Partial {
        /// Rejected permanently.
        refused: Vec<RejectedRecord>,
        /// To be sent again.
        retry: Vec<Retry>,
    },
}

/// Why a whole call failed. It is unknown whether anything is stored; the same batch is sent again later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SinkError {
    /// The store can't be reached, is busy, or failed in a way that may pass.
    #[error("{0}")]
    Unavailable(Reason),
    /// The store is not what the configuration says, or accepts nothing of the batch for a reason that may be its own.
    /// It needs an operator, or a later record shows that these are at fault. The batch is tried again, and a
    /// transactional store gets the later records of its lane with it.
    #[error("{0}")]
    Misconfigured(Reason),
    /// The batch is for another store than the one with this mark: nothing of it was written.
    #[error("the store at this address has the store id {0}, but the batch is for another store: check the address")]
    OtherStore(Mark),
}

impl From<Retry> for RejectedRecord {
    fn from(Retry { index, reason, .. }: Retry) -> Self {
        Self { index, reason }
    }
}

impl WriteOutcome {
    /// Escapes control characters in the store's message: every report of every store passes through here.
    #[must_use]
    pub fn visible(mut self) -> Self {
        let (refused, retry): (&mut [RejectedRecord], &mut [Retry]) = match &mut self {
            Self::Committed => (&mut [], &mut []),
            Self::Rejected { refused } => (refused, &mut []),
            Self::Partial { refused, retry } => (refused, retry),
        };
        refused.iter_mut().for_each(|refusal| make_visible(&mut refusal.reason));
        retry.iter_mut().for_each(|retry| make_visible(&mut retry.reason));
        self
    }
}

impl SinkError {
    /// The message.
    #[must_use]
    pub fn into_reason(self) -> Reason {
        match self {
            Self::Unavailable(reason) | Self::Misconfigured(reason) => reason,
            Self::OtherStore(_) => self.to_string().into(),
        }
    }

    /// Sanitises the store's message, and removes the numbers of the system's errors, whose text is there. Every failure of every store passes through here.
    #[must_use]
    pub fn visible(mut self) -> Self {
        if let Self::Unavailable(reason) | Self::Misconfigured(reason) = &mut self {
            if let Some(plain) = without_error_numbers(reason) {
                *reason = plain.into();
            }
            make_visible(reason);
        }
        self
    }
}

/// A store chooses its message, and some quote what clients sent. Characters that could affect a terminal or a log
/// become visible.
pub fn make_visible(reason: &mut Reason) {
    if let Cow::Owned(shown) = escape_control(reason) {
        *reason = shown.into();
    }
}

/// The text without each ` (os error N)`; `None` if there is none.
fn without_error_numbers(text: &str) -> Option<String> {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(" (os error ")
        && let Some((number, after)) = after.split_once(')')
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        plain.push_str(before);
        rest = after;
    }
    (rest.len() < text.len()).then(|| plain + rest)
}

/// Where a lane's cursor lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// The store keeps it in the transaction of the data (*transactional*), and it is authoritative: everything up to
    /// this position is in the store, 0 if the store knows nothing of the lane.
    Store(u64),
    /// The store keeps none (an *idempotent* store, or the null sink): delivery's own cursor is the best available.
    Delivery,
}

/// What delivery needs to know of a kind of sink before it sends anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The failover window: how long segments stay after their events are stored, because a failover may lose the
    /// newest ones. Zero for a store that lives and dies with the data directory.
    pub settle: Duration,
    /// Whether the store keeps cursors ([`Cursor::Store`]).
    pub fenced: bool,
    /// Whether it stores on a disk of this machine, usually that of the journal.
    pub on_this_disk: bool,
    /// Whether a writer stores its batches.
    pub remote: bool,
    /// Whether a store without cursors recognises an event that it has by its id.
    pub recognises_ids: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_of_store_messages_are_escaped() {
        let (text, shown) = ("red \u{1b}[31m\nforged", "red \\u001b[31m\\nforged");
        let (reason, index) = (Reason::from(text), 3);
        let refused = vec![RejectedRecord { index, reason: reason.clone() }];
        let retry = vec![Retry { index, scope: RetryScope::Record, reason: reason.clone() }];
        for report in [WriteOutcome::Rejected { refused: refused.clone() }, WriteOutcome::Partial { refused, retry }] {
            let (WriteOutcome::Rejected { refused } | WriteOutcome::Partial { refused, .. }) = report.clone().visible()
            else {
                panic!()
            };
            assert_eq!((refused[0].index, &*refused[0].reason), (index, shown));
            if let WriteOutcome::Partial { retry, .. } = report.visible() {
                assert_eq!(&*retry[0].reason, shown);
            }
        }
        assert_eq!(SinkError::Unavailable(reason.clone()).visible().to_string(), shown);
        assert_eq!(SinkError::Misconfigured(reason).visible().to_string(), shown);
    }

    #[test]
    fn failures_have_no_error_numbers() {
        let visible = |text: &str| SinkError::Unavailable(text.into()).visible().to_string();
        assert_eq!(
            visible("a: Connection refused (os error 111); b: no space (os error 28)"),
            "a: Connection refused; b: no space"
        );
        assert_eq!(visible("a (os error x) b"), "a (os error x) b");
    }
}
