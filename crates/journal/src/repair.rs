//! Rewrites damaged segments without the unreadable records. Byte-for-byte copies of the originals are kept in the same
//! directory.

use std::path::{Path, PathBuf};

use crate::block::OpenBlock;
use crate::committer::Committer;
use crate::disk::DiskFile;
use crate::inspect::{Inspected, inspect_segment};
use crate::open_error::OpenError;
use crate::recovery::{OpenShard, open_shard};
use crate::recovery_report::Finding;
use crate::segment::{self, SegmentHeader};
use crate::shard_options::ShardOptions;

/// The changes of a repair to a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// The findings, each with the file that has the original bytes.
    pub findings: Vec<Finding>,
    /// The segments that were rewritten.
    pub rewritten: Vec<u64>,
}

/// Recovers a shard as a start would, then rewrites every segment that has damage in the midst of the log.
///
/// # Errors
/// [`OpenError`]: nothing was lost; segments that were rewritten until then stay rewritten.
pub fn repair_shard(options: &ShardOptions) -> Result<Repair, OpenError> {
    let OpenShard { committer, segments, findings, durable, .. } = open_shard(options)?;
    let mut repair = Repair { findings, rewritten: Vec::new() };
    let headers = segments.headers_now();
    for pair in headers.windows(2) {
        repair_segment(options, &committer, &pair[0], pair[1].first, &mut repair)?;
    }
    committer.seal(durable + 1, 0)?;
    Ok(repair)
}

fn repair_segment(
    options: &ShardOptions,
    committer: &Committer,
    header: &SegmentHeader,
    next_segment: u64,
    repair: &mut Repair,
) -> Result<(), OpenError> {
    let io_error = |source| OpenError::Io { directory: options.directory.clone(), source };
    let mut blocks = Vec::new();
    let mut findings = Vec::new();
    inspect_segment(&options.disk, &options.directory, header, Some(next_segment), &mut |item| match item {
        Inspected::Block { block, .. } => {
            let BlockSpan { first, span } = BlockSpan::new(block.header().first, block.header().end());
            blocks.push(OpenBlock::carried(first, span, block.records()));
        }
        Inspected::Damaged(damaged) | Inspected::Torn(damaged) => {
            let sequences = damaged.sequences();
            let BlockSpan { first, span } = BlockSpan::new(sequences.start, sequences.end);
            blocks.push(OpenBlock::carried(first, span, damaged.survivors().into_iter()));
            findings.push(damaged.finding().clone());
        }
        Inspected::Segment(_) | Inspected::Finding(_) => {}
    })
    .map_err(io_error)?;
    if findings.is_empty() {
        return Ok(());
    }
    let aside = keep_original(options, header).map_err(io_error)?;
    committer.rewrite(header, blocks)?;
    // Recovery has reported the newest segment's damage too, before there was a copy of the original.
    let known = |old: &Finding| findings.iter().any(|new| (new.generation, new.offset) == (old.generation, old.offset));
    repair.findings.retain(|old| !known(old));
    repair.findings.extend(findings.into_iter().map(|finding| Finding { saved: Some(aside.clone()), ..finding }));
    repair.rewritten.push(header.generation);
    Ok(())
}

/// The first sequence of a block and how many it covers.
struct BlockSpan {
    first: u64,
    span: u32,
}

impl BlockSpan {
    fn new(first: u64, end: u64) -> Self {
        Self { first, span: u32::try_from(end - first).unwrap_or(u32::MAX) }
    }
}

fn keep_original(options: &ShardOptions, header: &SegmentHeader) -> std::io::Result<PathBuf> {
    let path = segment::path(&options.directory, header.generation);
    let original = options.disk.open(&path)?;
    let (aside, copy) = create_aside(options, &path)?;
    let mut buffer = vec![0; 1024 * 1024];
    let mut offset = 0;
    loop {
        let filled = original.read_full_at(&mut buffer, offset)?;
        if filled == 0 {
            break;
        }
        copy.write_all_at(&buffer[..filled], offset)?;
        offset += filled as u64;
    }
    copy.sync()?;
    options.disk.sync_directory(&options.directory)?;
    Ok(aside)
}

/// A new file next to the segment: the copy of an earlier repair isn't overwritten.
fn create_aside(options: &ShardOptions, segment: &Path) -> std::io::Result<(PathBuf, Box<dyn DiskFile>)> {
    let mut aside = segment.with_extension("damaged");
    let mut number = 1_u64;
    loop {
        match options.disk.create(&aside) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                number += 1;
                aside = segment.with_extension(format!("damaged-{number}"));
            }
            created => return created.map(|file| (aside, file)),
        }
    }
}

#[cfg(test)]
mod tests;
