//! What every sink promises delivery.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use text::escape_control;

use crate::Mark;

/// Why a store didn't take something, in words for a person: what happened, where, and what to do.
pub type Reason = Arc<str>;

/// A record that the store won't ever take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedRecord {
    /// The record's index within its batch, from 0.
    pub index: usize,
    /// The store's words.
    pub reason: Reason,
}

/// A record that the store may take later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The record's index within its batch, from 0.
    pub index: usize,
    /// The store's words.
    pub reason: Reason,
    /// What the answer is about.
    pub scope: RetryScope,
}

/// What a temporary refusal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryScope {
    /// The record or the store: the record waits in place while the store accepts no other, and is rejected as soon as it does.
    Unclear,
    /// The record, if the store takes others at the same time. Delivery then defers the record, so the lane continues.
    Record,
    /// The store: it is overloaded, unavailable, or did not answer. The records wait in place until it answers.
    Store,
}

/// What became of a batch, record by record. Indices ascend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// Every record has taken effect, now or when it was written before; a transactional store's cursor is at the
    /// batch's last position or beyond.
    Committed,
    /// Nothing was committed, because the store rejects these records permanently; or others of the batch were, the
    /// lane's cursor is where it was, and they are left out when they come again. Delivery makes the rejected ones dead
    /// letters and sends the batch again without them, so no crash can move a cursor past an event that is nowhere.
    Rejected {
        /// The records that were rejected: at least one.
        refused: Vec<RejectedRecord>,
    },
    /// All records took effect but these. Only stores that are keyed, not fenced, answer so.
    Partial {
        /// Rejected permanently.
        refused: Vec<RejectedRecord>,
        /// To be sent again.
        retry: Vec<Retry>,
    },
}

/// Why a whole call failed. Nothing is known to be stored; the same batch is sent again later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SinkError {
    /// The store can't be reached, is busy, or failed in a way that may pass.
    #[error("{0}")]
    Unavailable(Reason),
    /// The store is not what the configuration says, or takes none of the batch for a reason that may be its own: a
    /// person must act, or a later record shows that these are at fault. It is tried again, and a transactional store
    /// gets the later records of its lane with them.
    #[error("{0}")]
    Misconfigured(Reason),
    /// The batch is for another store than the one with this mark: nothing of it was written.
    #[error("another store is expected than the one with the mark {0}: look where its address leads")]
    OtherStore(Mark),
}

impl From<Retry> for RejectedRecord {
    fn from(Retry { index, reason, .. }: Retry) -> Self {
        Self { index, reason }
    }
}

impl WriteOutcome {
    /// With what stores say made harmless: every report of every store goes through here.
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
    /// Its words.
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

/// A store chooses its words, and some quote what clients sent: what they would do to a terminal or a log becomes visible instead.
pub fn make_visible(reason: &mut Reason) {
    if let Cow::Owned(shown) = escape_control(reason) {
        *reason = shown.into();
    }
}

/// The text without each ` (os error N)`; none if it has none.
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
    /// The store keeps it in the transaction of the data (*fenced*), and it is the truth: everything up to this
    /// position is in the store, 0 if the store knows nothing of the lane.
    Store(u64),
    /// The store keeps none (*keyed*, or nothing at all): delivery's own cursor is the best there is.
    Delivery,
}

/// What delivery must know of a kind of sink before it sends anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// How long segments stay after their events are stored, in case the store loses a tail (a failover).
    /// Zero for a store that lives and dies with the data directory.
    pub settle: Duration,
    /// Whether the store keeps cursors ([`Cursor::Store`]).
    pub fenced: bool,
    /// Whether it keeps what it stores on a disk of this machine, as a rule the journal's.
    pub on_this_disk: bool,
    /// Whether a writer stores its batches.
    pub remote: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_store_says_has_no_effect_on_a_terminal_or_a_log() {
        let (words, shown) = ("red \u{1b}[31m\nforged", "red \\u001b[31m\\nforged");
        let (reason, index) = (Reason::from(words), 3);
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
