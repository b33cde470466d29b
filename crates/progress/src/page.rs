//! A page of a ring: a header, and pairs of time and cursor that are relative to it.
//!
//! Each pair has a check under the page's own checksum. So a page that is reused holds no pair of its earlier use, also
//! after a power cut that kept only some of its sectors.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes of a page.
pub(crate) const PAGE_BYTES: usize = 16 * 1024;
/// Bytes of its header.
pub(crate) const HEADER_BYTES: usize = 48;
/// Bytes of a pair.
pub(crate) const PAIR_BYTES: usize = 16;
/// Pairs of a page.
pub(crate) const PAIRS: usize = (PAGE_BYTES - HEADER_BYTES) / PAIR_BYTES;

const MAGIC: [u8; 4] = *b"FBPG";
const VERSION: u32 = 1;
const TIME_BYTES: usize = 5;
const CURSOR_BYTES: usize = 6;
const CHECKED_BYTES: usize = TIME_BYTES + CURSOR_BYTES;

/// A cursor at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressSample {
    /// Microseconds since 1970, UTC.
    pub time: i64,
    /// The position up to which everything was done.
    pub cursor: u64,
}

/// The header of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageHeader {
    /// Its number among all pages that the ring ever had.
    pub(crate) number: u64,
    /// Grows when the cursor went back.
    pub(crate) generation: u64,
    /// The first pair of the page.
    pub(crate) first: ProgressSample,
}

impl PageHeader {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&VERSION.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.number.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.generation.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first.time.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.first.cursor.to_le_bytes());
        let sum = sum_of(&bytes[..40]);
        bytes[40..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// `None` if the bytes are no header of this version.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..HEADER_BYTES)?;
        let is_valid = bytes[..4] == MAGIC && word(bytes, 40) == sum_of(&bytes[..40]);
        let version = u32::from_le_bytes(bytes[4..8].try_into().ok()?);
        (is_valid && version == VERSION).then(|| Self {
            number: word(bytes, 8),
            generation: word(bytes, 16),
            first: ProgressSample { time: word(bytes, 24).cast_signed(), cursor: word(bytes, 32) },
        })
    }

    /// The seed of the checks of its pairs.
    fn seed(&self) -> u64 {
        sum_of(&self.encode()[..40])
    }

    /// A pair in a slot; `None` if it is too far from the header's, or before it.
    pub(crate) fn encode_pair(&self, slot: usize, sample: ProgressSample) -> Option<[u8; PAIR_BYTES]> {
        let time = sample.time.checked_sub(self.first.time).and_then(|delta| u64::try_from(delta).ok())?;
        let cursor = sample.cursor.checked_sub(self.first.cursor)?;
        if time >> (8 * TIME_BYTES) != 0 || cursor >> (8 * CURSOR_BYTES) != 0 {
            return None;
        }
        let mut bytes = [0; PAIR_BYTES];
        bytes[..TIME_BYTES].copy_from_slice(&time.to_le_bytes()[..TIME_BYTES]);
        bytes[TIME_BYTES..CHECKED_BYTES].copy_from_slice(&cursor.to_le_bytes()[..CURSOR_BYTES]);
        let check = check_of(self.seed(), slot, &bytes[..CHECKED_BYTES]);
        bytes[CHECKED_BYTES..].copy_from_slice(&check);
        Some(bytes)
    }

    /// The valid pairs of the page, with their slots. `bytes` begins with the header.
    pub(crate) fn pairs<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = (usize, ProgressSample)> + use<'a> {
        let (seed, first) = (self.seed(), self.first);
        let slots = bytes.get(HEADER_BYTES..).unwrap_or_default().chunks_exact(PAIR_BYTES).take(PAIRS);
        slots.enumerate().filter_map(move |(slot, bytes)| {
            let is_valid = check_of(seed, slot, &bytes[..CHECKED_BYTES]) == bytes[CHECKED_BYTES..];
            is_valid.then_some(())?;
            let time = i64::try_from(short_word(&bytes[..TIME_BYTES])).ok()?;
            Some((
                slot,
                ProgressSample {
                    time: first.time.checked_add(time)?,
                    cursor: first.cursor.checked_add(short_word(&bytes[TIME_BYTES..CHECKED_BYTES]))?,
                },
            ))
        })
    }
}

/// The checksum of a header or a record.
pub(crate) fn sum_of(bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, u64::from(VERSION))
}

fn check_of(seed: u64, slot: usize, bytes: &[u8]) -> [u8; PAIR_BYTES - CHECKED_BYTES] {
    let sum = xxh3_64_with_seed(bytes, seed ^ slot as u64).to_le_bytes();
    [sum[0], sum[1], sum[2], sum[3], sum[4]]
}

/// The number at an offset of `bytes`, which are long enough.
pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    short_word(&bytes[at..at + 8])
}

fn short_word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: PageHeader =
        PageHeader { number: 5, generation: 2, first: ProgressSample { time: 1_000_000, cursor: 70 } };

    #[test]
    fn header_is_read_back() {
        let bytes = HEADER.encode();
        assert_eq!(PageHeader::decode(&bytes), Some(HEADER));
        for bit in 0..8 * HEADER_BYTES {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(PageHeader::decode(&damaged), None, "bit {bit}");
        }
        assert_eq!(PageHeader::decode(&bytes[1..]), None);
    }

    #[test]
    fn pairs_of_an_earlier_use_are_ignored() {
        let sample = ProgressSample { time: 1_500_000, cursor: 90 };
        let page = |header: &PageHeader| {
            let pair = HEADER.encode_pair(1, sample).unwrap();
            [&header.encode()[..], &[7; PAIR_BYTES], &pair, &pair].concat()
        };
        assert_eq!(HEADER.pairs(&page(&HEADER)).collect::<Vec<_>>(), [(1, sample)]);
        let later = PageHeader { number: 69, ..HEADER };
        assert_eq!(later.pairs(&page(&later)).count(), 0);
    }

    #[test]
    fn distant_pairs_begin_another_page() {
        let pair = |time, cursor| HEADER.encode_pair(0, ProgressSample { time, cursor }).is_some();
        assert!(pair(1_000_000, 70) && pair(1_000_000 + (1 << 40) - 1, 69 + (1 << 48)));
        assert!(!pair(999_999, 70) && !pair(1_000_000, 69));
        assert!(!pair(1_000_000 + (1 << 40), 70) && !pair(1_000_000, 70 + (1 << 48)));
        assert!(!pair(i64::MIN, 70));
    }
}
