//! `forebay journal repair`: writes damaged segments anew without what can't be read; the originals are kept.

use std::io::Write;

use journal::{DataDirectory, ShardOptions, repair_shard};

use super::{JournalError, output_error, shards};
use crate::output::Output;

pub(super) fn run(directory: &DataDirectory) -> Result<u8, JournalError> {
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
