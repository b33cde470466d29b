//! `forebay journal export`: the payloads of all events as NDJSON, in the order of their positions.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use event::TypeName;
use journal::{DataDirectory, Inspected, JournalRecord};

use super::{EXIT_DAMAGED, inspect, shards};
use crate::errors::at;
use crate::output::Output;

/// Payloads may be private.
const OWNER_ONLY: u32 = 0o600;

pub(super) fn run(directory: &DataDirectory, output: Option<&Path>) -> anyhow::Result<u8> {
    // As other programs have it, and `forebay load` too.
    let output = output.filter(|path| *path != Path::new("-"));
    let name = output.unwrap_or(Path::new("standard output"));
    let target: Box<dyn Write> = match output {
        Some(path) => {
            let mut options = OpenOptions::new();
            Box::new(options.write(true).create_new(true).mode(OWNER_ONLY).open(path).map_err(at(name))?)
        }
        None => Box::new(Output::lock()),
    };
    let mut target = BufWriter::new(target);
    let mut written = Ok(());
    let mut damaged = false;
    for shard in shards(directory)? {
        inspect(directory, shard, &mut |item| {
            damaged |= matches!(item, Inspected::Damaged(_) | Inspected::Torn(_) | Inspected::Finding(_));
            if written.is_ok() {
                written = export(&mut target, &item);
            }
        })?;
    }
    written.and_then(|()| target.flush()).map_err(at(name))?;
    Ok(if damaged { EXIT_DAMAGED } else { 0 })
}

fn export(output: &mut impl Write, item: &Inspected<'_>) -> io::Result<()> {
    match item {
        Inspected::Block { block, .. } => block.records().try_for_each(|(_, record)| export_record(output, &record)),
        Inspected::Damaged(stretch) | Inspected::Torn(stretch) => {
            stretch.survivors().iter().try_for_each(|(_, record)| export_record(output, record))
        }
        Inspected::Segment(_) | Inspected::Finding(_) => Ok(()),
    }
}

/// One line for each payload: a line break in a JSON text is white space between tokens, so it may become a blank.
fn export_record(output: &mut impl Write, record: &JournalRecord<'_>) -> io::Result<()> {
    // Results of aggregates and ticks weren't posted.
    if record.revision.is_some() || TypeName::new(record.type_name).is_err() {
        return Ok(());
    }
    if !record.payload.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        output.write_all(record.payload)?;
        return output.write_all(b"\n");
    }
    let line = record.payload.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte });
    output.write_all(&line.collect::<Vec<u8>>())?;
    output.write_all(b"\n")
}
