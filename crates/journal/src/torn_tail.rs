//! The end of the log as the last process left it, and the part of it that is carried over into the new segment.
//!
//! The last block is carried over, unless a seal proves that it was complete: its fdatasync may have failed, and then
//! only the page cache has it. The whole requests of a torn block after it are carried over too.

use std::io;
use std::path::{Path, PathBuf};

use crate::block::{Block, BlockKind, OpenBlock};
use crate::damaged::Damaged;
use crate::disk::DiskFile;
use crate::recovery_report::{Finding, LOG_ENDS_EARLY, SEGMENT_TRUNCATED};
use crate::scan::{KnownExtent, Scan, ScanItem};
use crate::segment::{self, SegmentHeader};
use crate::shard_options::ShardOptions;
use crate::survey::Survey;

/// Sequences left unused if it is unknown how many were used: more than a segment can hold, since a record has at least
/// 56 bytes, of at most 64 MiB. A store's cursor may be at one of them.
const UNKNOWN_SPAN: u32 = 1 << 21;

/// The state that recovery continues from.
pub(crate) struct Tail {
    /// The blocks to be written again, in order.
    pub(crate) carried: Vec<OpenBlock>,
    /// The header checksum of the block before the first of these.
    pub(crate) previous: u64,
    /// The sequence of the next new event.
    pub(crate) next: u64,
}

impl Tail {
    /// Leaves `count` sequences unused, permanently.
    fn leave_unused(&mut self, count: u32) {
        self.carry(OpenBlock::carried(self.next, count, std::iter::empty()));
    }

    fn carry(&mut self, block: OpenBlock) {
        self.next = block.end();
        self.carried.push(block);
    }

    /// Keeps the requests of a torn block of which every record is undamaged.
    fn carry_requests(&mut self, damaged: &Damaged) {
        let known = damaged.sequences.end - damaged.sequences.start;
        let span = if known == 0 { UNKNOWN_SPAN } else { u32::try_from(known).unwrap_or(u32::MAX) };
        self.carry(OpenBlock::carried(damaged.sequences.start, span, damaged.survivors().into_iter()));
    }
}

pub(crate) fn read(options: &ShardOptions, survey: &mut Survey) -> io::Result<Tail> {
    let (mut tail, truncated) = match survey.headers.back().copied() {
        Some(newest) => read_newest(options, newest, &mut survey.findings)?,
        None => (Tail { carried: Vec::new(), previous: 0, next: 1 }, false),
    };
    let ends_early = tail.next < options.next_at_least;
    if ends_early {
        let generation = survey.headers.back().map_or(0, |newest| newest.generation);
        let mut finding = Finding::of_segment(LOG_ENDS_EARLY, generation, None);
        finding.lost.push(tail.next..options.next_at_least);
        survey.findings.push(finding);
    }
    while tail.next < options.next_at_least {
        let missing = options.next_at_least - tail.next;
        tail.leave_unused(u32::try_from(missing).unwrap_or(u32::MAX));
    }
    // Each of these may have held events that aren't counted yet: none of their sequences is used again.
    for _ in 0..survey.unreadable_newest + usize::from(truncated) + usize::from(ends_early) {
        tail.leave_unused(UNKNOWN_SPAN);
    }
    Ok(tail)
}

/// The tail of the newest segment, and whether its file is shorter than its header says.
fn read_newest(options: &ShardOptions, newest: SegmentHeader, findings: &mut Vec<Finding>) -> io::Result<(Tail, bool)> {
    let file = options.disk.open(&segment::path(&options.directory, newest.generation))?;
    file.sync()?;
    let truncated = file.length()? < newest.length;
    let mut scan = Scan::new(file, newest);
    let mut last = None;
    let mut torn = Vec::new();
    loop {
        match scan.step(KnownExtent::default())? {
            ScanItem::Block(block) => last = Some(block),
            ScanItem::Quarantined(damaged) => findings.push(Finding::of(newest.generation, &damaged, None)),
            ScanItem::Torn(damaged) => torn.push(damaged),
            ScanItem::End => break,
        }
    }
    let mut tail = after_last_block(&newest, last.as_ref());
    for damaged in &torn {
        let saved = save_aside(options, newest.generation, damaged)?;
        findings.push(Finding::of(newest.generation, &known(damaged, options.next_at_least), saved));
        tail.carry_requests(damaged);
    }
    if truncated {
        findings.push(Finding::of_segment(SEGMENT_TRUNCATED, newest.generation, None));
    }
    Ok((tail, truncated))
}

/// A torn block without a valid header holds at least the events that were counted earlier.
fn known(damaged: &Damaged, next_at_least: u64) -> Damaged {
    let mut known = damaged.clone();
    if known.sequences.is_empty() {
        known.sequences.end = known.sequences.start.max(next_at_least);
    }
    known
}

fn after_last_block(segment: &SegmentHeader, last: Option<&Block>) -> Tail {
    let Some(last) = last else {
        return Tail { carried: Vec::new(), previous: segment.previous, next: segment.first };
    };
    let header = last.header();
    if header.kind == BlockKind::Seal {
        return Tail { carried: Vec::new(), previous: header.header_sum, next: header.end() };
    }
    let again = OpenBlock::carried(header.first, header.span, last.records());
    Tail { previous: header.previous, next: header.end(), carried: vec![again] }
}

/// Saves the bytes of a torn block to a separate file, for inspection. On a full disk it doesn't: the segment still has
/// them for as long as it is retained.
fn save_aside(options: &ShardOptions, generation: u64, damaged: &Damaged) -> io::Result<Option<PathBuf>> {
    let path = options.directory.join(format!("{generation:016x}-{:x}.torn", damaged.offset));
    match write_aside(options, &path, damaged) {
        Ok(()) => Ok(Some(path)),
        Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(None),
        Err(error) => Err(error),
    }
}

fn write_aside(options: &ShardOptions, path: &Path, damaged: &Damaged) -> io::Result<()> {
    let file: Box<dyn DiskFile> = match options.disk.create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => options.disk.open(path)?,
        created => created?,
    };
    file.write_all_at(&damaged.bytes, 0)?;
    file.sync()
}
