//! `forebay journal repair`: writes damaged segments anew without what can't be read; the originals are kept.

use std::io::Write;

use journal::{DataDirectory, Finding, Inspected, ShardOptions, repair_shard};
use text::counted;

use super::{inspect, shards};
use crate::errors::at;
use crate::output::print;

pub(super) fn run(directory: &DataDirectory) -> anyhow::Result<u8> {
    forget_lost_ids(directory)?;
    let (mut rewritten, mut lost) = (0, 0);
    for shard in shards(directory)? {
        let options = ShardOptions::new(directory.disk().clone(), directory.shard(shard), directory.origin(), shard);
        let repair = repair_shard(&options)?;
        print(|output| repair.findings.iter().try_for_each(|finding| writeln!(output, "shard {shard}: {finding}")))?;
        lost += repair.findings.iter().map(Finding::lost_count).sum::<u64>();
        rewritten += repair.rewritten.len();
    }
    let (rewritten, lost) = (counted(rewritten, "segment"), counted(lost, "record"));
    print(|output| writeln!(output, "ok: {rewritten} rewritten, {lost} lost for good"))?;
    Ok(0)
}

/// Events that are lost may come again. Nothing finds them any more once the journal is repaired, so this comes first: a repair that
/// breaks off can be done again.
fn forget_lost_ids(directory: &DataDirectory) -> anyhow::Result<()> {
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
    eventlog::forget_lost_ids(directory, &findings).map_err(at(directory.path().join("duplicates")))
}
