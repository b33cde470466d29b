//! `forebay journal repair`: writes damaged segments anew without what can't be read; the originals are kept.

use std::io::Write;

use journal::{DataDirectory, Inspected, ShardOptions, repair_shard};

use super::{JournalError, inspect, output_error, shards};
use crate::commands::output::Output;

pub(super) fn run(directory: &DataDirectory) -> Result<u8, JournalError> {
    forget_lost_ids(directory)?;
    let mut output = Output::lock();
    let (mut rewritten, mut lost) = (0, 0);
    for shard in shards(directory)? {
        let options = ShardOptions::new(directory.disk().clone(), directory.shard(shard), directory.origin(), shard);
        let repair = repair_shard(&options)?;
        for finding in &repair.findings {
            writeln!(output, "shard {shard}: {finding}").map_err(output_error)?;
            lost += finding.lost_count();
        }
        rewritten += repair.rewritten.len();
    }
    writeln!(output, "ok: {rewritten} segment(s) written anew, {lost} record(s) lost for good")
        .map_err(output_error)?;
    Ok(0)
}

/// Events that are lost may come again. Nothing finds them any more once the journal is repaired, so this comes first: a repair that
/// breaks off can be done again.
fn forget_lost_ids(directory: &DataDirectory) -> Result<(), JournalError> {
    let mut findings = Vec::new();
    for shard in shards(directory)? {
        let mut found = Vec::new();
        inspect(directory, shard, &mut |item| match item {
            Inspected::Damaged(stretch) | Inspected::Torn(stretch) => found.push(stretch.finding().clone()),
            Inspected::Finding(finding) => found.push(finding.clone()),
            Inspected::Segment(_) | Inspected::Block { .. } => {}
        })?;
        findings.push(found);
    }
    let failed = |source| JournalError::Io { path: directory.path().join("duplicates"), source };
    eventlog::forget_lost_ids(directory, &findings).map_err(failed)
}
