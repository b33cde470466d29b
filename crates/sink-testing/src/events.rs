//! Events and batches for tests of one store, and delivery's reaction to an answer.

use std::time::{Duration, Instant};

use bytes::Bytes;
use event::{EventId, Lane, Origin};
use sink::{Batch, Cursor, Record, Sink, SinkError, Write, WriteOutcome};

/// The lane of this shard.
#[must_use]
pub fn lane(shard: u16) -> Lane {
    Lane { origin: Origin([9; 16]), shard, sink: "warehouse".into() }
}

/// The id of the event at this position of a shard.
#[must_use]
pub fn id(shard: u16, sequence: u64) -> EventId {
    let mut id = [0x80; 16];
    id[6..8].copy_from_slice(&shard.to_be_bytes());
    id[8..].copy_from_slice(&sequence.to_be_bytes());
    EventId(id)
}

/// A batch with these payloads at the positions from `first` on.
#[must_use]
pub fn batch(shard: u16, first: u64, payloads: &[&str]) -> Batch {
    batch_named(shard, first, payloads, |sequence| id(shard, sequence))
}

/// The same with the ids of other positions: events that arrived on another path before.
#[must_use]
pub fn batch_named(shard: u16, first: u64, payloads: &[&str], name: impl Fn(u64) -> EventId) -> Batch {
    batch_of(shard, first, payloads, |record| Record { id: name(record.sequence), ..record })
}

/// When the event at position 0 would have been received: 2025-10-09T08:53:20Z.
pub const RECEIVED_AT: i64 = 1_760_000_000_000_000;

/// The same with changed records.
pub fn batch_of(shard: u16, first: u64, payloads: &[&str], change: impl for<'a> Fn(Record<'a>) -> Record<'a>) -> Batch {
    let mut batch = Batch::new(lane(shard), first);
    for (sequence, payload) in (first..).zip(payloads) {
        let block = Bytes::from(format!("access{payload}"));
        let type_name = std::str::from_utf8(&block[..6]).expect("a text");
        let record = Record {
            sequence,
            id: id(shard, sequence),
            type_name,
            source: "",
            received_at: RECEIVED_AT + sequence.cast_signed(),
            event_time: None,
            write: Write::Insert,
            payload: &block[6..],
        };
        batch.push(&block, &change(record));
    }
    batch
}

/// A batch of plain events.
#[must_use]
pub fn plain(shard: u16, first: u64, count: usize) -> Batch {
    batch(shard, first, &vec!["{\"status\": 200}"; count])
}

/// The timeout of a batch or a lane in a store that fails and recovers.
const PATIENCE: Duration = Duration::from_mins(3);

/// Sends a batch until it is stored, as delivery does: after a failure it asks for the store's cursor.
///
/// # Panics
/// If the store rejects the batch, or hasn't stored it after some minutes.
pub async fn deliver(sink: &Sink, batch: &Batch) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match sink.write(batch).await {
            Ok(WriteOutcome::Committed) => return,
            // A store without cursors may fail at some records only.
            Ok(WriteOutcome::Partial { refused, retry }) if refused.is_empty() => {
                assert!(Instant::now() < deadline, "records aren't stored: {:?}", retry.first());
            }
            Ok(report) => assert_eq!(report, WriteOutcome::Committed),
            Err(error) => {
                assert!(matches!(error, SinkError::Unavailable(_)), "{error}");
                assert!(Instant::now() < deadline, "the batch isn't stored: {error}");
            }
        }
        if let Ok(Cursor::Store(position)) = sink.cursor(batch.lane()).await
            && position >= batch.last()
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Brings a lane to position `until` as delivery does: it begins at the store's cursor, and again after each failure.
///
/// # Panics
/// If the store rejects a batch, or the lane isn't there after some minutes.
pub async fn bring_to(sink: &Sink, shard: u16, until: u64, make: impl Fn(u64, usize) -> Batch) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < deadline, "the lane doesn't get to {until}");
        let cursor = sink.cursor(&lane(shard)).await;
        assert!(!matches!(cursor, Err(SinkError::Misconfigured(_))), "{cursor:?}");
        let Ok(Cursor::Store(position)) = cursor else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        if position >= until {
            return;
        }
        let mut first = position + 1;
        while first <= until {
            let count = usize::try_from(until + 1 - first).unwrap_or(usize::MAX).min(500);
            let batch = make(first, count);
            match sink.write(&batch).await {
                Ok(report) => assert_eq!(report, WriteOutcome::Committed),
                Err(error) => {
                    assert!(matches!(error, SinkError::Unavailable(_)), "{error}");
                    break;
                }
            }
            first = batch.last() + 1;
        }
    }
}
