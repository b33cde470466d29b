//! Segments with any damage: a start is possible, and no event is delivered that wasn't written.

use std::path::Path;

use journal::disk::Disk;
use journal::{Inspected, LogChunk, Reader, inspect_shard, open_shard};
use testkit::fuzz::{Corpus, run};

use super::log::{Log, SHARD, SegmentEnd, options};
use crate::events::Event;

/// Beginnings of files and blocks, with numbers at boundaries.
const TOKENS: &[&[u8]] =
    &[&[0; 8], &[0xff; 8], &[0; 4096], &[1, 0, 0, 0, 0, 0, 0, 0], &[0, 16, 0, 0], &[0xff, 0xff, 0xff, 0x7f]];

#[test]
fn fuzz_recovery() {
    let logs = [Log::new(SegmentEnd::Followed), Log::new(SegmentEnd::Sealed), Log::new(SegmentEnd::Unsealed)];
    let contents = logs.each_ref().map(|log| log.disk.content(log.path()).unwrap());
    let samples = contents.each_ref().map(Vec::as_slice);
    let mut count = 0;
    run("recovery", Corpus { samples: &samples, tokens: TOKENS }, |bytes| {
        count += 1;
        let log = &logs[count % logs.len()];
        let disk = log.disk.fork(bytes.len() as u64);
        let file = disk.open(&log.path()).unwrap();
        file.set_length(bytes.len() as u64).unwrap();
        file.write_all_at(bytes, 0).unwrap();
        drop(file);
        recovered(log, &disk)
    });
}

/// The codes of the findings, in order.
fn recovered(log: &Log, disk: &journal::simulated_disk::SimulatedDisk) -> Vec<char> {
    let options = options(disk, 2);
    let mut cases = Vec::new();
    inspect_shard(&options.disk, Path::new(SHARD), &mut |item| match item {
        Inspected::Finding(finding) => cases.push(finding.case),
        Inspected::Damaged(damaged) | Inspected::Torn(damaged) => cases.push(damaged.finding().case),
        Inspected::Segment(_) | Inspected::Block { .. } => {}
    })
    .unwrap();
    let shard = open_shard(&options).unwrap_or_else(|error| panic!("a start must be possible: {error}"));
    let mut reader = Reader::new(shard.segments.clone(), 1);
    while let Some(stretch) = reader.read(shard.durable).unwrap() {
        let check = |sequence: u64, event: Event| {
            let written = log.events.get(&sequence);
            assert_eq!(written, Some(&event), "event {sequence} was never written like this");
        };
        match stretch {
            LogChunk::Block(block) => block.records().for_each(|(s, record)| check(s, Event::of(&record))),
            LogChunk::Damaged(damaged) => {
                damaged.survivors().iter().for_each(|(s, record)| check(*s, Event::of(record)));
                cases.push(damaged.finding().case);
            }
        }
    }
    cases.sort_unstable();
    cases.dedup();
    cases
}
