//! A segment's name and header. The header is stored twice, in the first two sectors of the first page; blocks begin at
//! the second page.

use std::io;
use std::path::{Path, PathBuf};

use event::Origin;
use limits::PAGE_BYTES;

use crate::checksum;
use crate::disk::SharedDisk;
use crate::endian::{array, get_u32, get_u64, put};

/// The offset of a segment's first block.
pub(crate) const FIRST_BLOCK_AT: u64 = PAGE_BYTES as u64;
/// The version of the format that this code writes and reads.
pub const FORMAT: u32 = 1;

const HEADER_BYTES: usize = 80;
const SECTOR_BYTES: usize = 512;
const MAGIC: [u8; 8] = *b"FOREBAYJ";
/// Headers are checked under a fixed seed: they contain the segment's seed.
const HEADER_SEED: u64 = 0;

const AT_FORMAT: usize = 8;
const AT_SHARD: usize = 12;
const AT_ORIGIN: usize = 16;
const AT_SEED: usize = 32;
const AT_GENERATION: usize = 40;
const AT_FIRST: usize = 48;
const AT_PREVIOUS: usize = 56;
const AT_LENGTH: usize = 64;
const AT_SUM: usize = 72;

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The shard that the segment belongs to.
    pub shard: u16,
    /// The gateway id of the data directory that it belongs to.
    pub origin: Origin,
    /// The random seed of its blocks' checksums.
    pub seed: u64,
    /// Its number among the shard's segments, from 1.
    pub generation: u64,
    /// The sequence of its first event. Sequences from this on in the segment before are cut off.
    pub first: u64,
    /// The header checksum of the last block before it, 0 if there is none.
    pub previous: u64,
    /// The file's length in bytes.
    pub length: u64,
}

/// The content of a segment's first page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderPage {
    /// Both copies are valid, or one of them: then the other is damaged.
    Valid { header: SegmentHeader, one_copy_damaged: bool },
    /// The header is valid, but of a format that this code doesn't know.
    OtherFormat(u32),
    /// Neither copy is valid.
    Damaged,
}

impl SegmentHeader {
    /// The first page of the segment's file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut page = vec![0; PAGE_BYTES];
        put(&mut page, 0, &MAGIC);
        put(&mut page, AT_FORMAT, &FORMAT.to_le_bytes());
        put(&mut page, AT_SHARD, &self.shard.to_le_bytes());
        put(&mut page, AT_ORIGIN, &self.origin.0);
        put(&mut page, AT_SEED, &self.seed.to_le_bytes());
        put(&mut page, AT_GENERATION, &self.generation.to_le_bytes());
        put(&mut page, AT_FIRST, &self.first.to_le_bytes());
        put(&mut page, AT_PREVIOUS, &self.previous.to_le_bytes());
        put(&mut page, AT_LENGTH, &self.length.to_le_bytes());
        let sum = checksum::seeded(HEADER_SEED, &page[..AT_SUM]);
        put(&mut page, AT_SUM, &sum.to_le_bytes());
        page.copy_within(..HEADER_BYTES, SECTOR_BYTES);
        page
    }

    pub(crate) fn decode_page(page: &[u8]) -> HeaderPage {
        let copies = [0, SECTOR_BYTES].map(|at| page.get(at..at + HEADER_BYTES).and_then(Self::valid_copy));
        match copies {
            [Some(format), _] | [None, Some(format)] if get_u32(format, AT_FORMAT) != FORMAT => {
                HeaderPage::OtherFormat(get_u32(format, AT_FORMAT))
            }
            [Some(copy), other] => {
                HeaderPage::Valid { header: Self::decode(copy), one_copy_damaged: other != Some(copy) }
            }
            [None, Some(copy)] => HeaderPage::Valid { header: Self::decode(copy), one_copy_damaged: true },
            [None, None] => HeaderPage::Damaged,
        }
    }

    fn valid_copy(copy: &[u8]) -> Option<&[u8]> {
        let valid =
            copy[..AT_FORMAT] == MAGIC && checksum::seeded(HEADER_SEED, &copy[..AT_SUM]) == get_u64(copy, AT_SUM);
        valid.then_some(copy)
    }

    fn decode(copy: &[u8]) -> Self {
        Self {
            shard: u16::from_le_bytes(array(copy, AT_SHARD)),
            origin: Origin(array(copy, AT_ORIGIN)),
            seed: get_u64(copy, AT_SEED),
            generation: get_u64(copy, AT_GENERATION),
            first: get_u64(copy, AT_FIRST),
            previous: get_u64(copy, AT_PREVIOUS),
            length: get_u64(copy, AT_LENGTH),
        }
    }
}

const SEGMENT_SUFFIX: &str = ".segment";

/// The file of the segment with this generation.
pub(crate) fn path(directory: &Path, generation: u64) -> PathBuf {
    directory.join(format!("{generation:016x}{SEGMENT_SUFFIX}"))
}

/// The generation in a file's name; `None` for any other file.
pub(crate) fn generation_of(file_name: &str) -> Option<u64> {
    let digits = file_name.strip_suffix(SEGMENT_SUFFIX)?;
    let canonical = digits.len() == 16 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    canonical.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}

/// Reads the header page of a segment's file.
pub(crate) fn read_header(disk: &SharedDisk, path: &Path) -> io::Result<HeaderPage> {
    let mut page = vec![0; PAGE_BYTES];
    let filled = disk.open(path)?.read_full_at(&mut page, 0)?;
    Ok(SegmentHeader::decode_page(&page[..filled]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: SegmentHeader = SegmentHeader {
        shard: 3,
        origin: Origin([9; 16]),
        seed: 5,
        generation: 6,
        first: 7,
        previous: 8,
        length: 65536,
    };

    #[test]
    fn one_valid_copy_is_enough() {
        let page = HEADER.encode();
        assert_eq!(SegmentHeader::decode_page(&page), HeaderPage::Valid { header: HEADER, one_copy_damaged: false });
        for (byte, start) in (0..HEADER_BYTES).flat_map(|byte| [(byte, 0), (byte, SECTOR_BYTES)]) {
            let mut damaged = page.clone();
            damaged[start + byte] ^= 1;
            let one = HeaderPage::Valid { header: HEADER, one_copy_damaged: true };
            assert_eq!(SegmentHeader::decode_page(&damaged), one, "byte {byte} of the copy at {start}");
            damaged[SECTOR_BYTES - start] ^= 1;
            assert_eq!(SegmentHeader::decode_page(&damaged), HeaderPage::Damaged);
        }
        assert_eq!(
            SegmentHeader::decode_page(&page[..100]),
            HeaderPage::Valid { header: HEADER, one_copy_damaged: true }
        );
        assert_eq!(SegmentHeader::decode_page(&[]), HeaderPage::Damaged);
    }

    #[test]
    fn other_format_differs_from_damage() {
        let mut page = HEADER.encode();
        put(&mut page, AT_FORMAT, &9_u32.to_le_bytes());
        let sum = checksum::seeded(HEADER_SEED, &page[..AT_SUM]);
        put(&mut page, AT_SUM, &sum.to_le_bytes());
        assert_eq!(SegmentHeader::decode_page(&page), HeaderPage::OtherFormat(9));
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for generation in [1, 0xab, u64::MAX] {
            let path = path(Path::new("/d"), generation);
            assert_eq!(generation_of(path.file_name().unwrap().to_str().unwrap()), Some(generation));
        }
        let others = ["1.segment", "00000000000000AB.segment", "00000000000000ab.torn", "+0000000000000ab.segment", ""];
        assert!(others.into_iter().all(|name| generation_of(name).is_none()));
    }
}
