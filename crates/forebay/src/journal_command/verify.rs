//! `forebay journal verify`: checks every block and says what is there and what is damaged.

use std::io::Write;

use journal::{DataDirectory, Inspected};

use super::{EXIT_DAMAGED, JournalError, inspect, output_error, shards};
use crate::output::Output;

#[derive(Default)]
struct Totals {
    segments: u64,
    blocks: u64,
    records: u64,
    damaged: u64,
    lost: u64,
}

pub(super) fn run(directory: &DataDirectory) -> Result<u8, JournalError> {
    let mut totals = Totals::default();
    let mut lines = Vec::new();
    for shard in shards(directory)? {
        inspect(directory, shard, &mut |item| totals.count(shard, &item, &mut lines))?;
    }
    let mut output = Output::lock();
    let Totals { segments, blocks, records, damaged, lost } = totals;
    lines.iter().try_for_each(|line| writeln!(output, "{line}")).map_err(output_error)?;
    let summary = format!("{segments} segment(s), {blocks} block(s), {records} record(s)");
    if damaged == 0 {
        writeln!(output, "ok: {summary}").map_err(output_error)?;
        return Ok(0);
    }
    writeln!(output, "damaged: {damaged} place(s), {lost} record(s) lost; {summary} can be read")
        .map_err(output_error)?;
    Ok(EXIT_DAMAGED)
}

impl Totals {
    fn count(&mut self, shard: u16, item: &Inspected<'_>, lines: &mut Vec<String>) {
        let finding = match item {
            Inspected::Segment(_) => {
                self.segments += 1;
                return;
            }
            Inspected::Block { block, .. } => {
                self.blocks += 1;
                self.records += block.records().count() as u64;
                return;
            }
            Inspected::Damaged(stretch) | Inspected::Torn(stretch) => {
                self.records += stretch.survivors().len() as u64;
                stretch.finding()
            }
            Inspected::Finding(finding) => finding,
        };
        self.damaged += 1;
        self.lost += finding.lost_count();
        lines.push(format!("shard {shard}: {finding}"));
    }
}
