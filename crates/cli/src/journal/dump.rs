//! `forebay journal dump`: the headers of segments, blocks and records as text, without payloads.

use std::io::{self, BufWriter, Write};

use event::EventId;
use journal::{Block, DataDirectory, Inspected, JournalRecord, SegmentHeader};

use super::{inspect, shards};
use crate::errors::cannot;
use crate::output::Output;

pub(super) fn run(directory: &DataDirectory) -> anyhow::Result<u8> {
    let mut output = BufWriter::new(Output::lock());
    let mut written = writeln!(output, "origin {}", directory.origin());
    for shard in shards(directory)? {
        inspect(directory, shard, &mut |item| {
            if written.is_ok() {
                written = dump(&mut output, shard, &item);
            }
        })?;
    }
    written.and_then(|()| output.flush()).map_err(cannot("write to the standard output"))?;
    Ok(0)
}

fn dump(output: &mut impl Write, shard: u16, item: &Inspected<'_>) -> io::Result<()> {
    match item {
        Inspected::Segment(header) => dump_segment(output, shard, header),
        Inspected::Block { offset, block } => dump_block(output, *offset, block),
        Inspected::Damaged(stretch) | Inspected::Torn(stretch) => {
            writeln!(output, "  {}", stretch.finding())?;
            stretch.survivors().iter().try_for_each(|(sequence, record)| dump_record(output, *sequence, record))
        }
        Inspected::Finding(finding) => writeln!(output, "{finding}"),
    }
}

fn dump_segment(output: &mut impl Write, shard: u16, header: &SegmentHeader) -> io::Result<()> {
    let SegmentHeader { generation, first, length, .. } = header;
    writeln!(output, "segment {generation:016x} shard {shard} first {first} bytes {length}")
}

fn dump_block(output: &mut impl Write, offset: u64, block: &Block) -> io::Result<()> {
    let header = block.header();
    writeln!(
        output,
        "  block {} at {offset} {:?} first {} span {} bytes {} written_at {}",
        header.number, header.kind, header.first, header.span, header.body_bytes, header.written_at
    )?;
    block.records().try_for_each(|(sequence, record)| dump_record(output, sequence, &record))
}

fn dump_record(output: &mut impl Write, sequence: u64, record: &JournalRecord<'_>) -> io::Result<()> {
    let JournalRecord { id, type_name, source, received_at, payload, .. } = record;
    let id: &EventId = id;
    write!(output, "    {sequence} {id} type {type_name}")?;
    if !source.is_empty() {
        write!(output, " source {source}")?;
    }
    writeln!(output, " received_at {received_at} payload {} bytes", payload.len())
}
