//! Reads a whole shard for operators: its blocks one by one, and all damage. Changes nothing.

use std::io;
use std::path::{Path, PathBuf};

use crate::block::Block;
use crate::disk::SharedDisk;
use crate::reader::DamagedChunk;
use crate::recovery_report::{Finding, SEGMENT_HEADER_COPY_DAMAGED, SEGMENT_HEADER_DAMAGED, SEGMENT_TRUNCATED};
use crate::scan::{KnownExtent, Scan, ScanItem};
use crate::segment::{self, HeaderPage, SegmentHeader};

/// An entry of a shard's directory, in order.
#[derive(Debug)]
pub enum Inspected<'a> {
    /// A segment begins.
    Segment(&'a SegmentHeader),
    /// An intact block.
    Block {
        /// Its offset in its segment's file, in bytes.
        offset: u64,
        /// The block.
        block: &'a Block,
    },
    /// A damaged place in the midst of the log.
    Damaged(&'a DamagedChunk),
    /// A damaged last block: a commit that a crash interrupted, or rot. The next start cuts it.
    Torn(&'a DamagedChunk),
    /// A finding about a whole segment.
    Finding(&'a Finding),
}

/// Visits everything in a shard's directory, oldest first. No process should be writing to it.
///
/// # Errors
/// The file system's error.
pub fn inspect_shard(disk: &SharedDisk, directory: &Path, visit: &mut dyn FnMut(Inspected<'_>)) -> io::Result<()> {
    let segments = readable_segments(disk, directory, visit)?;
    for (at, header) in segments.iter().enumerate() {
        visit(Inspected::Segment(header));
        let next_segment = segments.get(at + 1).map(|next| next.first);
        inspect_segment(disk, directory, header, next_segment, visit)?;
    }
    Ok(())
}

/// The segments with a valid header; the others are visited as findings.
fn readable_segments(
    disk: &SharedDisk,
    directory: &Path,
    visit: &mut dyn FnMut(Inspected<'_>),
) -> io::Result<Vec<SegmentHeader>> {
    let mut generations: Vec<u64> = disk.list(directory)?.iter().filter_map(|n| segment::generation_of(n)).collect();
    generations.sort_unstable();
    let mut segments = Vec::new();
    for generation in generations {
        let case = match segment::read_header(disk, &segment::path(directory, generation))? {
            HeaderPage::Valid { header, one_copy_damaged } if header.generation == generation => {
                segments.push(header);
                one_copy_damaged.then_some(SEGMENT_HEADER_COPY_DAMAGED)
            }
            _ => Some(SEGMENT_HEADER_DAMAGED),
        };
        if let Some(case) = case {
            visit(Inspected::Finding(&Finding::of_segment(case, generation, None)));
        }
    }
    Ok(segments)
}

pub(crate) fn inspect_segment(
    disk: &SharedDisk,
    directory: &Path,
    header: &SegmentHeader,
    next_segment: Option<u64>,
    visit: &mut dyn FnMut(Inspected<'_>),
) -> io::Result<()> {
    let path: PathBuf = segment::path(directory, header.generation);
    let file = disk.open(&path)?;
    if file.length()? < header.length {
        visit(Inspected::Finding(&Finding::of_segment(SEGMENT_TRUNCATED, header.generation, None)));
    }
    let mut scan = Scan::new(file, *header);
    let known = KnownExtent { next_segment, durable: 0 };
    loop {
        let offset = scan.offset();
        match scan.step(known)? {
            ScanItem::Block(block) => visit(Inspected::Block { offset, block: &block }),
            ScanItem::Quarantined(damaged) => {
                visit(Inspected::Damaged(&DamagedChunk::new(header.generation, damaged)));
            }
            ScanItem::Torn(damaged) => visit(Inspected::Torn(&DamagedChunk::new(header.generation, damaged))),
            ScanItem::End => return Ok(()),
        }
    }
}
