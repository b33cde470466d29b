//! Event ids: 128 bits, written as a UUID.
//!
//! A client's id or key becomes a UUIDv8 whose leading bits are a SHA-256, so the same key always gives the same id.
//! Other events get a UUIDv7 (RFC 9562 §5.7). In both, the last four bytes number the events of one request. Their ids
//! are adjacent in a store's index, which costs a store far less than random ones.

use std::fmt;
use std::str::FromStr;

use random::Random;
use sha2::{Digest, Sha256};

use crate::TypeName;
use limits::BATCH_RECORDS_MAX;

/// The id of an event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub [u8; 16]);

/// A text that is no id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event id is a UUID: 32 hexadecimal digits in groups of 8-4-4-4-12")]
pub struct InvalidEventId;

const HYPHENS: [usize; 4] = [8, 13, 18, 23];

impl FromStr for EventId {
    type Err = InvalidEventId;

    fn from_str(text: &str) -> Result<Self, InvalidEventId> {
        let bytes = text.as_bytes();
        if bytes.len() != 36 || HYPHENS.iter().any(|&at| bytes[at] != b'-') {
            return Err(InvalidEventId);
        }
        let mut digits = bytes.iter().filter(|byte| **byte != b'-');
        let mut id = [0; 16];
        for byte in &mut id {
            let mut digit = || digits.next().and_then(|d| char::from(*d).to_digit(16)).ok_or(InvalidEventId);
            let value = digit()? * 16 + digit()?;
            *byte = u8::try_from(value).map_err(|_| InvalidEventId)?;
        }
        Ok(Self(id))
    }
}

impl EventId {
    /// The id of an event that is identified by its content: a SHA-256 of its source, its type and its payload as the
    /// client sent it.
    #[must_use]
    pub fn of_content(source: &str, type_name: &TypeName, payload: &[u8]) -> Self {
        let digest = KeyedIds::digest(&[source, type_name.as_str(), "content"], payload);
        let (id, _) = digest.split_first_chunk().expect("a SHA-256 is longer than an id");
        Self(with_version(*id, 8))
    }

    /// The id of a batch of which some records were rejected; the receiver is the id of the complete batch. No record
    /// has this id either.
    #[must_use]
    pub fn in_part(self) -> Self {
        let mut bytes = self.0;
        bytes[12..].copy_from_slice(&(u32::MAX - 1).to_be_bytes());
        Self(bytes)
    }
}

impl EventId {
    /// The text of the id, for callers that write many: ASCII.
    #[must_use]
    pub fn text(self) -> [u8; 36] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [b'-'; 36];
        let mut at = 0;
        for byte in self.0 {
            if HYPHENS.contains(&at) {
                at += 1;
            }
            text[at] = DIGITS[usize::from(byte >> 4)];
            text[at + 1] = DIGITS[usize::from(byte & 15)];
            at += 2;
        }
        text
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.text()).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn with_version(mut bytes: [u8; 16], version: u8) -> [u8; 16] {
    bytes[6] = (bytes[6] & 0x0f) | (version << 4);
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    bytes
}

/// Further values on the same line of a batch are numbered from here on. So the first value of each line has the number
/// of its line, regardless of the lines before it.
pub const FURTHER_VALUES_FROM: u32 = 0x8000_0000;
const _: () =
    assert!(BATCH_RECORDS_MAX < FURTHER_VALUES_FROM as usize, "lines and further values have separate numbers");

/// The ids of one key of a client: one for each record number of its request.
#[derive(Clone, Copy, Debug)]
pub struct KeyedIds([u8; 16]);

impl KeyedIds {
    /// Hashes source, type and key. Each part but the last is preceded by its length, so no two different triples are
    /// hashed as the same bytes.
    #[must_use]
    pub fn new(source: &str, type_name: &TypeName, key: &[u8]) -> Self {
        Self::of_parts(&[source, type_name.as_str()], key)
    }

    /// The ids of the events that one event is split into, whose own id is `id`.
    #[must_use]
    pub fn of_event(id: EventId) -> Self {
        Self::of_parts(&["", "", "event"], &id.0)
    }

    fn digest(parts: &[&str], key: &[u8]) -> [u8; 32] {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.update(key);
        hash.finalize().into()
    }

    fn of_parts(parts: &[&str], key: &[u8]) -> Self {
        let digest = Self::digest(parts, key);
        let mut bytes = [0; 16];
        bytes[..12].copy_from_slice(&digest[..12]);
        Self(with_version(bytes, 8))
    }

    /// The id of a batch with this key as a whole; its request names a type for all its records, or doesn't. No record
    /// has this id: their numbers are smaller.
    #[must_use]
    pub fn of_batch(source: &str, type_name: Option<&TypeName>, key: &[u8]) -> EventId {
        Self::of_parts(&[source, type_name.map_or("", TypeName::as_str)], key).id(u32::MAX)
    }

    /// The id of record `number`: from 1 in a batch (further values of a line from [`FURTHER_VALUES_FROM`]), 0 for a single payload or for an
    /// id found in the payload.
    #[must_use]
    pub fn id(&self, number: u32) -> EventId {
        let mut bytes = self.0;
        bytes[12..].copy_from_slice(&number.to_be_bytes());
        EventId(bytes)
    }
}

/// Generates increasing UUIDv7 ids, even if the clock stops or steps back. It is method 1 of RFC 9562 §6.2: the 12 bits
/// after the time and the 30 after the variant count the requests of one millisecond.
#[derive(Debug)]
pub struct IdGenerator {
    milliseconds: u64,
    request: u64,
    node: u32,
    /// Numbers that distinguish generators; ids are no secrets.
    random: Random,
}

/// The bits of the last four bytes that number the records of a request; the bits above are random for each generator.
const NUMBER_BITS: u32 = 17;
const _: () = assert!(BATCH_RECORDS_MAX < 1 << NUMBER_BITS, "each record of a batch has a number");
/// Requests that one millisecond can hold before the time part is advanced without the clock: 42 bits.
const REQUEST_BITS: u32 = 42;
/// Each millisecond begins its count at a random number in the lower half. Together with the generator's 15 bits this
/// distinguishes the ids of gateways that share a millisecond (56 random bits).
const REQUEST_START_MASK: u64 = (1 << (REQUEST_BITS - 1)) - 1;

impl IdGenerator {
    /// `seed` must be random: two generators with the same seed could generate the same ids.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut ids = Self { milliseconds: 0, request: 0, node: 0, random: Random::new(seed) };
        let bytes = ids.random.number().to_le_bytes();
        ids.node = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) << NUMBER_BITS;
        ids
    }

    /// The ids of one request: the first is that of record 0, [`numbered`] counts the others up from it.
    /// `unix_milliseconds` is the wall clock.
    pub fn request(&mut self, unix_milliseconds: u64) -> EventId {
        if unix_milliseconds > self.milliseconds {
            self.milliseconds = unix_milliseconds;
            self.request = self.random.number() & REQUEST_START_MASK;
        } else {
            self.request += 1;
            if self.request >> REQUEST_BITS != 0 {
                self.milliseconds += 1;
                self.request = 0;
            }
        }
        let time = self.milliseconds & 0xffff_ffff_ffff;
        let high = (time << 16) | (self.request >> 30);
        let low = ((self.request & 0x3fff_ffff) << 32) | u64::from(self.node);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&high.to_be_bytes());
        bytes[8..].copy_from_slice(&low.to_be_bytes());
        EventId(with_version(bytes, 7))
    }
}

/// The id of record `number` (at most [`BATCH_RECORDS_MAX`]) of the request whose ids begin at `first`, a result of
/// [`IdGenerator::request`].
#[must_use]
pub fn numbered(first: EventId, number: u32) -> EventId {
    let value = u128::from_be_bytes(first.0) | u128::from(number);
    EventId(value.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(text: &str) -> TypeName {
        TypeName::new(text).unwrap()
    }

    #[test]
    fn keyed_ids_depend_on_each_part() {
        let ids = KeyedIds::new("s", &name("t"), b"key");
        assert_eq!(ids.id(1), KeyedIds::new("s", &name("t"), b"key").id(1));
        assert!(ids.id(1) < ids.id(2) && ids.id(255) < ids.id(256));
        assert_ne!(ids.id(0), KeyedIds::new("", &name("st"), b"key").id(0));
        assert_ne!(ids.id(0), KeyedIds::new("s", &name("tk"), b"ey").id(0));
        assert_eq!(ids.id(0).0[6] >> 4, 8);
        assert_eq!(ids.id(0).0[8] >> 6, 2);
    }

    #[test]
    fn a_known_key_has_a_known_id() {
        // sha256 of 00*8, 05 00*7, "event", "k": a changed id would store old keys twice.
        let id = KeyedIds::new("", &name("event"), b"k").id(7);
        assert_eq!(id.to_string(), KNOWN_ID);
    }

    const KNOWN_ID: &str = "2651fa94-4d60-8482-855f-ec6e00000007";

    #[test]
    fn generated_ids_grow_through_clock_steps() {
        let mut ids = IdGenerator::new(1);
        let mut last = ids.request(1_000);
        for now in [1_000, 1_000, 999, 5, 1_001, 1_000, 2_000] {
            let next = ids.request(now);
            assert!(next > last && next > numbered(last, 100_000));
            assert_eq!((next.0[6] >> 4, next.0[8] >> 6), (7, 2));
            last = next;
        }
    }

    proptest! {
        #[test]
        fn text_round_trips(bytes: [u8; 16]) {
            let id = EventId(bytes);
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = text.parse::<EventId>();
        }
    }
}
