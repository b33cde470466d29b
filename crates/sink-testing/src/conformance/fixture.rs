//! A store with a sink on it, and the helpers of the cases.

use std::time::Duration;

use event::{EventId, Lane};
use tokio::time::Instant;

use super::events::Event;
use super::suite::{Store, Suite};
use sink::{Batch, Cursor, Reason, RejectedRecord, RetryScope, Sink, SinkError, WriteOutcome};

/// The timeout of a recovered store's first write, on a slow machine with a slow disk.
const PATIENCE: Duration = Duration::from_mins(1);
/// The pause between two attempts. The contract has no event for "free again", since another process's lock on a store has none.
const RETRY_EVERY: Duration = Duration::from_millis(2);

pub(super) struct Fixture {
    pub(super) suite: Suite,
    pub(super) subject: Box<dyn Store>,
    pub(super) sink: Sink,
}

impl Fixture {
    pub(super) async fn new(suite: Suite) -> Self {
        let subject = suite.fresh().await;
        let sink = subject.sink();
        assert_eq!(sink.connect().await, Ok(()), "a fresh store can be connected to");
        Self { suite, subject, sink }
    }

    pub(super) fn is_fenced(&self) -> bool {
        self.sink.capabilities().fenced
    }

    /// Whether the store recognises each record of a batch that overlaps an earlier one: by its id, or by its position and the cursor.
    pub(super) fn recognises_records(&self) -> bool {
        self.suite.recognises_ids || self.is_fenced()
    }

    /// Whether a store that failed during a write may answer so: without a cursor, some records may be stored and others not.
    pub(super) fn may_pass_in_part(&self, report: &WriteOutcome) -> bool {
        match report {
            WriteOutcome::Committed => true,
            WriteOutcome::Partial { refused, retry } => !self.is_fenced() && refused.is_empty() && !retry.is_empty(),
            WriteOutcome::Rejected { .. } => false,
        }
    }

    /// Writes a batch, which must be stored at the first attempt.
    pub(super) async fn store(&self, batch: &Batch) {
        assert_eq!(self.sink.write(batch).await, Ok(WriteOutcome::Committed));
    }

    /// Writes a batch of which exactly the records at `expected` must be rejected. If the store has committed nothing,
    /// it sends the rest again. An idempotent store may leave it to delivery whether the records are at fault.
    pub(super) async fn store_without(&self, batch: &Batch, expected: &[usize]) {
        if expected.is_empty() {
            return self.store(batch).await;
        }
        let report = self.sink.write(batch).await.expect("a store at hand answers");
        let rejected: Vec<(usize, &Reason)> = match &report {
            WriteOutcome::Rejected { refused } if self.is_fenced() => refused.iter().map(named).collect(),
            WriteOutcome::Partial { refused, retry } if !self.is_fenced() => {
                assert!(retry.iter().all(|retry| retry.scope == RetryScope::Unclear), "{report:?}");
                let unclear = retry.iter().map(|retry| (retry.index, &retry.reason));
                refused.iter().map(named).chain(unclear).collect()
            }
            _ => Vec::new(),
        };
        let mut indices: Vec<usize> = rejected.iter().map(|(index, _)| *index).collect();
        indices.sort_unstable();
        assert_eq!(indices, expected, "exactly the bad records are rejected: {report:?}");
        assert!(rejected.iter().all(|(_, reason)| !reason.is_empty()), "each rejection has words");
        if self.is_fenced() {
            self.store(&batch.without(expected)).await;
        }
    }

    /// Sends `batch` to a recovered store until it is stored.
    pub(super) async fn resend(&self, batch: &Batch) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.sink.write(batch).await {
                Ok(report) => return assert_eq!(report, WriteOutcome::Committed),
                Err(error) => {
                    assert!(may_pass(&error), "a store that is back answered {error}");
                    assert!(Instant::now() < deadline, "a store that is back still answers {error}");
                }
            }
            tokio::time::sleep(RETRY_EVERY).await;
        }
    }

    pub(super) async fn expect_cursor(&self, lane: &Lane, position: u64) {
        let expected = if self.is_fenced() { Cursor::Store(position) } else { Cursor::Delivery };
        assert_eq!(self.sink.cursor(lane).await, Ok(expected), "the cursor of lane {lane}");
    }

    /// The rows of the store, sorted, with payloads as the store keeps them. Each id must be there once; in a log, which keeps every revision,
    /// each payload of an id.
    pub(super) async fn rows(&self) -> Vec<(EventId, Vec<u8>)> {
        let kept = |(id, payload): (EventId, Vec<u8>)| (id, (self.suite.as_kept)(&payload));
        let mut rows: Vec<_> = self.subject.rows().await.into_iter().map(kept).collect();
        rows.sort();
        let is_log = self.is_fenced() && !self.suite.recognises_ids;
        let differ = |pair: &[(EventId, Vec<u8>)]| if is_log { pair[0] != pair[1] } else { pair[0].0 != pair[1].0 };
        assert!(rows.windows(2).all(differ), "an event is stored twice");
        rows
    }

    pub(super) async fn expect_rows(&self, events: &[Event]) {
        let mut expected: Vec<_> = events.iter().map(|event| event.row(self.suite)).collect();
        expected.sort();
        let rows = self.rows().await;
        assert_eq!(rows.len(), expected.len(), "how many events are stored");
        assert!(rows == expected, "the stored payloads are those that were sent");
    }
}

/// Whether a failure is retryable and has a message.
pub(super) fn may_pass(error: &SinkError) -> bool {
    matches!(error, SinkError::Unavailable(reason) if !reason.is_empty())
}

fn named(refusal: &RejectedRecord) -> (usize, &Reason) {
    (refusal.index, &refusal.reason)
}
