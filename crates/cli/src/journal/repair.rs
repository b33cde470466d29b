//! `forebay journal repair`: rewrites damaged segments without their unreadable parts; the originals are kept.

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
    print(|output| writeln!(output, "ok: {rewritten} rewritten, {lost} permanently lost"))?;
    Ok(0)
}

/// Clients may send lost events again, under their ids. After the repair these ids can't be found, so this comes first: an interrupted
/// repair can be repeated.
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
