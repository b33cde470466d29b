//! The encoding of a batch between a gateway and a writer: a header, the records, a checksum of everything before it.
//!
//! ```text
//! "FBB1"                                 the format
//! u32 count                              records that follow
//! of each record:
//!   u64 sequence, [u8; 16] id, i64 received_at
//!   u8 flags                             1: event_time follows, 2: revision follows (an upsert)
//!   [i64 event_time] [u64 revision]
//!   u16 type, u16 source, u32 payload    lengths in bytes
//!   type, source, payload
//! u64 checksum                           XXH3-64 of all before it
//! ```
//!
//! Integers are little-endian. The checksum detects corruption in transit. It doesn't protect against forgery: the token does.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use event::{EventId, Lane};
use limits::{DELIVERY_BYTES_MAX, DELIVERY_RECORDS_MAX, EVENT_BYTES_MAX, SOURCE_BYTES_MAX, TYPE_NAME_BYTES_MAX};
use xxhash_rust::xxh3::xxh3_64;

use sink::{Batch, Record, Write};

const MAGIC: &[u8; 4] = b"FBB1";
const HAS_EVENT_TIME: u8 = 1;
const IS_UPSERT: u8 = 2;
/// The largest size of a record without its strings and payload.
const RECORD_BYTES: usize = 8 + 16 + 8 + 1 + 8 + 8 + 2 + 2 + 4;
const CHECKSUM_BYTES: usize = 8;
/// The size of the largest frame: a batch of full size and one more event.
pub const FRAME_BYTES_MAX: usize = MAGIC.len()
    + 4
    + DELIVERY_BYTES_MAX
    + EVENT_BYTES_MAX
    + DELIVERY_RECORDS_MAX * (RECORD_BYTES + TYPE_NAME_BYTES_MAX + SOURCE_BYTES_MAX)
    + CHECKSUM_BYTES;

/// Why bytes are not a valid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    /// It has another magic number.
    #[error("the body is not a batch of a gateway: post events to a gateway")]
    Format,
    /// It is truncated, or has trailing bytes.
    #[error("the batch is truncated, or has bytes after its end: check the proxies between gateway and writer")]
    Length,
    /// The checksum differs.
    #[error("the checksum of the batch differs: check the network and the proxies between gateway and writer")]
    Checksum,
    /// A record is malformed, or its sequence is out of range.
    #[error("record {0} of the batch is malformed: run the same release of gateway and writer")]
    Record(usize),
}

/// The batch's records as a frame. The lane and the positions are in header fields.
#[must_use]
pub fn encode(batch: &Batch) -> Bytes {
    let texts = |record: &Record<'_>| record.type_name.len() + record.source.len();
    let texts: usize = batch.records().map(|record| texts(&record)).sum();
    let bytes = MAGIC.len() + 4 + batch.len() * RECORD_BYTES + texts + batch.payload_bytes() + CHECKSUM_BYTES;
    let mut frame = BytesMut::with_capacity(bytes);
    frame.put_slice(MAGIC);
    frame.put_u32_le(saturated(batch.len()));
    batch.records().for_each(|record| put(&mut frame, &record));
    frame.put_u64_le(xxh3_64(&frame));
    frame.freeze()
}

fn put(frame: &mut BytesMut, record: &Record<'_>) {
    frame.put_u64_le(record.sequence);
    frame.put_slice(&record.id.0);
    frame.put_i64_le(record.received_at);
    let revision = match record.write {
        Write::Insert => None,
        Write::Upsert(revision) => Some(revision),
    };
    let event_time = record.event_time.map_or(0, |_| HAS_EVENT_TIME);
    frame.put_u8(event_time | revision.map_or(0, |_| IS_UPSERT));
    record.event_time.into_iter().for_each(|time| frame.put_i64_le(time));
    revision.into_iter().for_each(|revision| frame.put_u64_le(revision));
    let short = |length: usize| u16::try_from(length).unwrap_or(u16::MAX);
    frame.put_u16_le(short(record.type_name.len()));
    frame.put_u16_le(short(record.source.len()));
    frame.put_u32_le(saturated(record.payload.len()));
    frame.put_slice(record.type_name.as_bytes());
    frame.put_slice(record.source.as_bytes());
    frame.put_slice(record.payload);
}

/// Lengths are far below 4 GiB. The reader would reject a saturated one.
fn saturated(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Decodes the batch of `lane` from position `first` to `last`. Payloads are not copied.
///
/// # Errors
/// [`BadFrame`] names the defect: nothing of such a batch may be stored.
pub fn decode(frame: &Bytes, lane: Lane, first: u64, last: u64) -> Result<Batch, BadFrame> {
    let body = frame.len().checked_sub(CHECKSUM_BYTES).ok_or(BadFrame::Length)?;
    let (body, mut checksum) = frame.split_at(body);
    let mut rest = body.strip_prefix(MAGIC).ok_or(BadFrame::Format)?;
    if xxh3_64(body) != checksum.get_u64_le() {
        return Err(BadFrame::Checksum);
    }
    let count = rest.try_get_u32_le().map_err(|_| BadFrame::Length)?;
    let mut batch = Batch::new(lane, first);
    let mut before = first.saturating_sub(1);
    for index in 0..count as usize {
        let record = take(&mut rest).ok_or(BadFrame::Record(index))?;
        if record.sequence <= before || record.sequence > last {
            return Err(BadFrame::Record(index));
        }
        before = record.sequence;
        batch.push(frame, &record);
    }
    batch.cover(last);
    if rest.is_empty() { Ok(batch) } else { Err(BadFrame::Length) }
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<Record<'a>> {
    let sequence = rest.try_get_u64_le().ok()?;
    let mut id = [0; 16];
    rest.try_copy_to_slice(&mut id).ok()?;
    let received_at = rest.try_get_i64_le().ok()?;
    let flags = rest.try_get_u8().ok().filter(|flags| flags & !(HAS_EVENT_TIME | IS_UPSERT) == 0)?;
    let event_time = if flags & HAS_EVENT_TIME == 0 { None } else { Some(rest.try_get_i64_le().ok()?) };
    let write = if flags & IS_UPSERT == 0 { Write::Insert } else { Write::Upsert(rest.try_get_u64_le().ok()?) };
    let lengths = (rest.try_get_u16_le().ok()?, rest.try_get_u16_le().ok()?, rest.try_get_u32_le().ok()?);
    let mut part = |length: usize| {
        let (part, after) = rest.split_at_checked(length)?;
        *rest = after;
        Some(part)
    };
    let type_name = std::str::from_utf8(part(lengths.0.into())?).ok()?;
    let source = std::str::from_utf8(part(lengths.1.into())?).ok()?;
    let payload = part(lengths.2 as usize)?;
    Some(Record { sequence, id: EventId(id), type_name, source, received_at, event_time, write, payload })
}

#[cfg(test)]
mod tests {
    use event::Origin;
    use proptest::prelude::*;

    use super::*;

    fn lane() -> Lane {
        Lane { origin: Origin([7; 16]), shard: 3, sink: "s".into() }
    }

    #[derive(Clone, Debug)]
    struct Sent {
        step: u64,
        texts: (String, String),
        times: (i64, Option<i64>),
        revision: Option<u64>,
        payload: Vec<u8>,
    }

    fn sent() -> impl Strategy<Value = Sent> {
        let texts = ("[a-z]{1,8}", ".{0,8}");
        let times = (any::<i64>(), any::<Option<i64>>());
        let parts = (1..5_u64, texts, times, any::<Option<u64>>(), proptest::collection::vec(any::<u8>(), 0..40));
        parts.prop_map(|(step, texts, times, revision, payload)| Sent { step, texts, times, revision, payload })
    }

    fn batch(records: &[Sent]) -> Batch {
        let mut batch = Batch::new(lane(), 10);
        let mut sequence = 9;
        for (index, sent) in records.iter().enumerate() {
            sequence += sent.step;
            let block = Bytes::from([sent.texts.0.as_bytes(), sent.texts.1.as_bytes(), &sent.payload].concat());
            let (type_name, rest) = block.split_at(sent.texts.0.len());
            let (source, payload) = rest.split_at(sent.texts.1.len());
            let record = Record {
                sequence,
                id: EventId([u8::try_from(index % 256).unwrap(); 16]),
                type_name: std::str::from_utf8(type_name).unwrap(),
                source: std::str::from_utf8(source).unwrap(),
                received_at: sent.times.0,
                event_time: sent.times.1,
                write: sent.revision.map_or(Write::Insert, Write::Upsert),
                payload,
            };
            batch.push(&block, &record);
        }
        batch.cover(sequence + 2);
        batch
    }

    proptest! {
        #[test]
        fn batch_survives_encoding(records in proptest::collection::vec(sent(), 0..20)) {
            let batch = batch(&records);
            let decoded = decode(&encode(&batch), lane(), batch.first(), batch.last()).unwrap();
            prop_assert!(decoded.records().eq(batch.records()));
            prop_assert_eq!((decoded.first(), decoded.last()), (batch.first(), batch.last()));
        }

        #[test]
        fn damaged_frame_is_rejected(records in proptest::collection::vec(sent(), 1..6), at in any::<usize>(), bit in 0_u8..8) {
            let batch = batch(&records);
            let mut frame = encode(&batch).to_vec();
            let at = at % frame.len();
            frame[at] ^= 1_u8 << bit;
            prop_assert!(decode(&frame.into(), lane(), batch.first(), batch.last()).is_err());
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), forged in any::<bool>()) {
            let mut frame = [&MAGIC[..], &bytes].concat();
            if forged {
                let checksum = xxh3_64(&frame);
                frame.extend(checksum.to_le_bytes());
            }
            let _ = decode(&frame.into(), lane(), 1, u64::MAX);
        }
    }

    #[test]
    fn record_outside_the_positions_is_rejected() {
        let batch = batch(&[Sent {
            step: 1,
            texts: ("t".into(), String::new()),
            times: (0, None),
            revision: None,
            payload: vec![b'1'],
        }]);
        let frame = encode(&batch);
        assert!(decode(&frame, lane(), 10, 12).is_ok());
        assert_eq!(decode(&frame, lane(), 11, 12).map(|_| ()), Err(BadFrame::Record(0)));
        assert_eq!(decode(&frame, lane(), 1, 9).map(|_| ()), Err(BadFrame::Record(0)));
    }
}
