//! The spans of a call of a store.

use std::time::Duration;

use eventlog::unix_microseconds;
use sink::{Batch, SinkError, WriteOutcome};
use spans::{SpanQueue, WriteSpan};

/// Adds a span for each sampled record of a batch whose write has just ended.
pub(super) fn add_span(
    spans: &SpanQueue,
    sink: &str,
    batch: &Batch,
    took: Duration,
    answer: &Result<WriteOutcome, SinkError>,
) {
    let ended = unix_microseconds();
    let began = ended.saturating_sub(i64::try_from(took.as_micros()).unwrap_or(i64::MAX));
    let outcome = match answer {
        Ok(WriteOutcome::Committed) => "stored",
        Ok(WriteOutcome::Partial { .. }) => "partial",
        Ok(WriteOutcome::Rejected { .. }) => "rejected",
        Err(_) => "failed",
    };
    let records = i64::try_from(batch.len()).unwrap_or(i64::MAX);
    let write = WriteSpan { sink, records, outcome, has_failed: answer.is_err(), time: (began, ended) };
    spans.add_writes(batch.traces(), (batch.first(), batch.last()), &write);
}
