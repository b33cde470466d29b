//! One event as in a block: a fixed part, then tagged fields. `docs/internals/journal-format.md` has the layout.
//!
//! The fixed part begins with a *head* of 24 bytes: length, index within the block, checksum of the rest, and a
//! check of these three under the segment's seed. Index and check are filled in when the block is sealed.

use std::net::IpAddr;

use event::{EventId, TraceParent};

use crate::checksum;
use crate::endian::{array, get_i64, get_u32, get_u64, length_field, put, round_up};
use crate::fields::{push_field, split_field};

/// Bytes of a record's head: what its check protects, and the check.
pub(crate) const HEAD_BYTES: usize = 24;
const FIXED_BYTES: usize = 56;
/// Records begin at multiples of this.
pub(crate) const ALIGNMENT: usize = 8;

const AT_LENGTH: usize = 0;
const AT_INDEX: usize = 4;
const AT_CHECKSUM: usize = 8;
const AT_HEAD_CHECK: usize = 16;
const AT_ID: usize = 24;
const AT_RECEIVED: usize = 40;
const AT_FLAGS: usize = 48;

/// The first record of its request: a request's records survive together or not at all.
const FLAG_REQUEST_START: u32 = 1;
/// The last record of its request.
const FLAG_REQUEST_END: u32 = 2;

// Tags 6, 7, 8 and 11 are those of the journals of dead letters.
const TAG_TYPE: u8 = 1;
const TAG_SOURCE: u8 = 2;
const TAG_CLIENT: u8 = 3;
const TAG_EVENT_TIME: u8 = 4;
const TAG_PAYLOAD: u8 = 5;
const TAG_CONTENT: u8 = 9;
const TAG_BATCH: u8 = 10;
const TAG_REVISION: u8 = 12;
const TAG_TRACE: u8 = 13;

/// The key by which a duplicate of a batch is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DedupKey {
    /// The id that the client's key gives the batch as a whole.
    pub id: EventId,
    /// A hash of the batch's bytes as received.
    pub content: u64,
}

/// An event and its envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalRecord<'a> {
    /// Its id.
    pub id: EventId,
    /// When it was received: microseconds since 1970, UTC.
    pub received_at: i64,
    /// When it happened, if its type names a time: microseconds since 1970, UTC.
    pub event_time: Option<i64>,
    /// Its type's name.
    pub type_name: &'a str,
    /// The source that sent it, or empty.
    pub source: &'a str,
    /// The client's address.
    pub client: Option<IpAddr>,
    /// The JSON text.
    pub payload: &'a [u8],
    /// Whether it is the first of its request.
    pub request_start: bool,
    /// Whether it is the last of its request.
    pub request_end: bool,
    /// Fields that the journal doesn't know, encoded ([`push_field`]): those of the journal's owner. Empty in events.
    pub owner_fields: &'a [u8],
    /// If the client gave the event its id, a hash of the bytes that came with it.
    pub content: Option<u64>,
    /// Set in the last record of a batch that the client gave a key.
    pub batch: Option<DedupKey>,
    /// In results of aggregates: of those with the same id, the one with the highest revision is valid.
    pub revision: Option<u64>,
    /// The trace that its request was a part of.
    pub trace: Option<TraceParent>,
}

impl<'a> JournalRecord<'a> {
    /// A record that is its whole request, with the fields that each has. Set the others with
    /// `..JournalRecord::new(…)`.
    #[must_use]
    pub const fn new(id: EventId, received_at: i64, type_name: &'a str, payload: &'a [u8]) -> Self {
        Self {
            id,
            received_at,
            event_time: None,
            type_name,
            source: "",
            client: None,
            payload,
            request_start: true,
            request_end: true,
            owner_fields: &[],
            content: None,
            batch: None,
            revision: None,
            trace: None,
        }
    }
}

/// Appends `record` to `bytes`, padded, without index and head check.
pub(crate) fn encode(record: &JournalRecord<'_>, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    let mut fixed = [0; FIXED_BYTES];
    put(&mut fixed, AT_ID, &record.id.0);
    put(&mut fixed, AT_RECEIVED, &record.received_at.to_le_bytes());
    let start_flag = if record.request_start { FLAG_REQUEST_START } else { 0 };
    let flags = start_flag | if record.request_end { FLAG_REQUEST_END } else { 0 };
    put(&mut fixed, AT_FLAGS, &flags.to_le_bytes());
    bytes.extend_from_slice(&fixed);
    encode_fields(record, bytes);
    finish(bytes, start);
}

/// Pads the record that begins at `start` and fills in its length and checksum.
fn finish(bytes: &mut Vec<u8>, start: usize) {
    let length = bytes.len() - start;
    bytes.resize(start + round_up(length, ALIGNMENT), 0);
    let sum = checksum::seeded(0, &bytes[start + HEAD_BYTES..start + length]);
    put(bytes, start + AT_LENGTH, &length_field(length).to_le_bytes());
    put(bytes, start + AT_CHECKSUM, &sum.to_le_bytes());
}

fn encode_fields(record: &JournalRecord<'_>, bytes: &mut Vec<u8>) {
    push_field(bytes, TAG_TYPE, record.type_name.as_bytes());
    if !record.source.is_empty() {
        push_field(bytes, TAG_SOURCE, record.source.as_bytes());
    }
    match record.client {
        Some(IpAddr::V4(address)) => push_field(bytes, TAG_CLIENT, &address.octets()),
        Some(IpAddr::V6(address)) => push_field(bytes, TAG_CLIENT, &address.octets()),
        None => {}
    }
    if let Some(time) = record.event_time {
        push_field(bytes, TAG_EVENT_TIME, &time.to_le_bytes());
    }
    bytes.extend_from_slice(record.owner_fields);
    if let Some(content) = record.content {
        push_field(bytes, TAG_CONTENT, &content.to_le_bytes());
    }
    if let Some(revision) = record.revision {
        push_field(bytes, TAG_REVISION, &revision.to_le_bytes());
    }
    if let Some(trace) = record.trace {
        push_field(bytes, TAG_TRACE, &trace.to_bytes());
    }
    push_field(bytes, TAG_PAYLOAD, record.payload);
    if let Some(batch) = record.batch {
        push_field(bytes, TAG_BATCH, &batch_value(batch));
    }
}

/// Marks the record at the start of `bytes` as the last of its request, which wasn't known when it was encoded.
pub(crate) fn end_request(bytes: &mut [u8]) {
    set_flag(bytes, FLAG_REQUEST_END);
}

/// Marks the record at the start of `bytes` as the first of its request.
pub(crate) fn start_request(bytes: &mut [u8]) {
    set_flag(bytes, FLAG_REQUEST_START);
}

/// Adds the key of its batch to the record at the end of `bytes`, which begins at `start`: it is known only at the
/// batch's end.
pub(crate) fn set_batch(bytes: &mut Vec<u8>, start: usize, batch: DedupKey) {
    add_field(bytes, start, TAG_BATCH, &batch_value(batch));
}

/// Adds a hash of the bytes that came with its id.
pub(crate) fn set_content(bytes: &mut Vec<u8>, start: usize, content: u64) {
    add_field(bytes, start, TAG_CONTENT, &content.to_le_bytes());
}

fn add_field(bytes: &mut Vec<u8>, start: usize, tag: u8, value: &[u8]) {
    let length = get_u32(bytes, start + AT_LENGTH) as usize;
    bytes.truncate(start + length);
    push_field(bytes, tag, value);
    finish(bytes, start);
}

/// The id of the record at the start of `bytes`.
pub(crate) fn id_of(bytes: &[u8]) -> EventId {
    let mut id = [0; 16];
    id.copy_from_slice(&bytes[AT_ID..AT_ID + 16]);
    EventId(id)
}

fn set_flag(bytes: &mut [u8], flag: u32) {
    let length = get_u32(bytes, AT_LENGTH) as usize;
    let flags = get_u32(bytes, AT_FLAGS) | flag;
    put(bytes, AT_FLAGS, &flags.to_le_bytes());
    let sum = checksum::seeded(0, &bytes[HEAD_BYTES..length]);
    put(bytes, AT_CHECKSUM, &sum.to_le_bytes());
}

/// Fills in the fields that are known only when the block is sealed, and returns the record's padded length.
pub(crate) fn seal(record: &mut [u8], index: u32, seed: u64) -> usize {
    put(record, AT_INDEX, &index.to_le_bytes());
    let check = checksum::seeded(seed, &record[..AT_HEAD_CHECK]);
    put(record, AT_HEAD_CHECK, &check.to_le_bytes());
    round_up(get_u32(record, AT_LENGTH) as usize, ALIGNMENT)
}

/// A record's head that has passed its check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) index: u32,
    pub(crate) length: usize,
}

impl Head {
    /// Reads the head at the start of `bytes` and checks it under the segment's `seed`.
    pub(crate) fn checked(bytes: &[u8], seed: u64) -> Option<Self> {
        let head = bytes.get(..HEAD_BYTES)?;
        if checksum::seeded(seed, &head[..AT_HEAD_CHECK]) != get_u64(head, AT_HEAD_CHECK) {
            return None;
        }
        Self::trusted(bytes)
    }

    /// Reads the head of a record whose block has been checked, or was never on disk.
    pub(crate) fn trusted(bytes: &[u8]) -> Option<Self> {
        let head = bytes.get(..HEAD_BYTES)?;
        let length = get_u32(head, AT_LENGTH) as usize;
        let fits = length >= FIXED_BYTES && length <= bytes.len();
        fits.then(|| Self { index: get_u32(head, AT_INDEX), length })
    }

    pub(crate) const fn padded_length(self) -> usize {
        round_up(self.length, ALIGNMENT)
    }

    /// Whether the bytes after the head are intact.
    pub(crate) fn body_is_intact(self, bytes: &[u8]) -> bool {
        checksum::seeded(0, &bytes[HEAD_BYTES..self.length]) == get_u64(bytes, AT_CHECKSUM)
    }
}

/// Reads the record at the start of `bytes`. `None` if its fields are invalid.
pub(crate) fn decode(bytes: &[u8]) -> Option<JournalRecord<'_>> {
    let length = Head::trusted(bytes)?.length;
    let fields = &bytes[FIXED_BYTES..length];
    let mut record = JournalRecord {
        request_start: get_u32(bytes, AT_FLAGS) & FLAG_REQUEST_START != 0,
        request_end: get_u32(bytes, AT_FLAGS) & FLAG_REQUEST_END != 0,
        ..JournalRecord::new(EventId(array(bytes, AT_ID)), get_i64(bytes, AT_RECEIVED), "", &[])
    };
    decode_fields(fields, &mut record)?;
    Some(record)
}

fn decode_fields<'a>(all: &'a [u8], record: &mut JournalRecord<'a>) -> Option<()> {
    let (mut fields, mut owner_fields) = (all, 0..0);
    while !fields.is_empty() {
        let (tag, value, rest) = split_field(fields)?;
        match tag {
            TAG_TYPE => record.type_name = std::str::from_utf8(value).ok()?,
            TAG_SOURCE => record.source = std::str::from_utf8(value).ok()?,
            TAG_CLIENT => record.client = address(value),
            TAG_EVENT_TIME => record.event_time = Some(i64::from_le_bytes(value.try_into().ok()?)),
            TAG_PAYLOAD => record.payload = value,
            TAG_CONTENT => record.content = Some(u64::from_le_bytes(value.try_into().ok()?)),
            TAG_REVISION => record.revision = Some(u64::from_le_bytes(value.try_into().ok()?)),
            TAG_BATCH => record.batch = Some(batch_of(value)?),
            TAG_TRACE => record.trace = Some(TraceParent::from_bytes(value)?),
            // The first run of them: the journal writes no other.
            _ => {
                let (start, end) = (all.len() - fields.len(), all.len() - rest.len());
                if owner_fields.is_empty() {
                    owner_fields = start..end;
                } else if owner_fields.end == start {
                    owner_fields.end = end;
                }
            }
        }
        fields = rest;
    }
    record.owner_fields = &all[owner_fields];
    Some(())
}

fn batch_value(batch: DedupKey) -> [u8; 24] {
    let mut value = [0; 24];
    put(&mut value, 0, &batch.id.0);
    put(&mut value, 16, &batch.content.to_le_bytes());
    value
}

fn batch_of(value: &[u8]) -> Option<DedupKey> {
    let (id, content) = value.split_first_chunk()?;
    Some(DedupKey { id: EventId(*id), content: u64::from_le_bytes(content.try_into().ok()?) })
}

fn address(value: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(value).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(value).map(IpAddr::from)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record as releases before the field for traces wrote it, after the head, whose checks depend on all bytes.
    const WITHOUT_TRACE: &str = concat!(
        "07070707070707070707070707070707", // id
        "0500000000000000",                 // time of receipt
        "0300000000000000",                 // flags, zero
        "01",
        "06000000",
        "616363657373", // type
        "02",
        "01000000",
        "61", // source
        "05",
        "02000000",
        "7b7d", // payload
    );
    const TRACE: &str = concat!("0d", "19000000", "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "01");

    fn hex(bytes: &[u8]) -> String {
        text::hex::encode(bytes)
    }

    #[test]
    fn trace_is_an_optional_field_before_the_payload() {
        let plain = JournalRecord { source: "a", ..JournalRecord::new(EventId([7; 16]), 5, "access", b"{}") };
        let trace = TraceParent::parse(b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        let payload = WITHOUT_TRACE.len() - "0502000000".len() - "7b7d".len();
        let (before, after) = WITHOUT_TRACE.split_at(payload);
        for (record, expected) in
            [(plain, WITHOUT_TRACE.to_owned()), (JournalRecord { trace, ..plain }, [before, TRACE, after].concat())]
        {
            let mut bytes = Vec::new();
            encode(&record, &mut bytes);
            assert_eq!(hex(&bytes[HEAD_BYTES..HEAD_BYTES + expected.len() / 2]), expected);
            assert_eq!(get_u32(&bytes, AT_LENGTH) as usize, HEAD_BYTES + expected.len() / 2);
            assert_eq!(decode(&bytes), Some(record));
        }
        assert!(trace.is_some());
    }
}
