//! A journal on a real disk: committed events are there after the next start, each once.

use std::path::Path;
use std::sync::Arc;

use event::{EventId, Origin};
use journal::disk::OsDisk;
use journal::{JournalRecord, LogChunk, OpenShard, Reader, RecordBuffer, ShardOptions, open_shard};

fn options(directory: &Path) -> ShardOptions {
    ShardOptions {
        first_segment_bytes: 64 * 1024,
        ..ShardOptions::new(Arc::new(OsDisk), directory.into(), Origin([7; 16]), 0)
    }
}

fn record(number: u64, payload: &[u8]) -> JournalRecord<'_> {
    JournalRecord {
        client: Some([127, 0, 0, 1].into()),
        ..JournalRecord::new(EventId(u128::from(number).to_be_bytes()), 5, "event", payload)
    }
}

fn payload(number: u64) -> Vec<u8> {
    format!("{{\"n\":{number},\"text\":\"{}\"}}", "x".repeat(usize::try_from(number % 300).unwrap())).into_bytes()
}

/// Reads everything from `next` on: sequences and payloads.
fn read_all(shard: &OpenShard, next: u64, durable: u64) -> Vec<(u64, Vec<u8>)> {
    let mut reader = Reader::new(shard.segments.clone(), next);
    let mut all = Vec::new();
    while let Some(chunk) = reader.read(durable).unwrap() {
        let LogChunk::Block(block) = chunk else { panic!("undamaged") };
        all.extend(block.records().filter(|(sequence, _)| *sequence >= next).map(|(s, r)| (s, r.payload.to_vec())));
    }
    all
}

#[test]
fn events_survive_stops_and_kills() {
    let directory = tempfile::tempdir().unwrap();
    let mut expected = Vec::new();
    for round in 0..6_u64 {
        let mut shard = open_shard(&options(directory.path())).unwrap();
        assert!(shard.findings.is_empty(), "{:?}", shard.findings);
        assert_eq!(shard.durable, expected.len() as u64);
        let mut durable = shard.durable;
        for _ in 0..40 {
            for _ in 0..20 {
                let number = expected.len() as u64 + 1;
                let payload = payload(number);
                assert_eq!(shard.appender.push(&record(number, &payload)), number);
                expected.push((number, payload));
            }
            durable = shard.committer.commit(shard.appender.take(), 1).unwrap().header().end() - 1;
        }
        assert_eq!(read_all(&shard, 1, durable), expected);
        assert_eq!(read_all(&shard, 77, durable), expected[76..]);
        if round % 2 == 0 {
            shard.committer.seal(durable + 1, 1).unwrap();
        }
    }
}

#[test]
fn a_batch_is_one_run_of_sequences() {
    let directory = tempfile::tempdir().unwrap();
    let mut shard = open_shard(&options(directory.path())).unwrap();
    let mut records = RecordBuffer::default();
    for number in 0..1000 {
        records.push(&record(number, b"1"));
    }
    assert_eq!(shard.appender.append(&records), 1);
    assert_eq!(shard.appender.append(&records), 1001);
    let block = shard.committer.commit(shard.appender.take(), 1).unwrap();
    assert_eq!(block.records().count(), 2000);
    assert_eq!(read_all(&shard, 1, 2000).len(), 2000);
}

#[test]
fn segments_are_freed_except_the_newest() {
    let directory = tempfile::tempdir().unwrap();
    let mut shard = open_shard(&options(directory.path())).unwrap();
    let text = [b'"'].iter().chain(&[b'x'; 9000]).chain(b"\"").copied().collect::<Vec<u8>>();
    for number in 0..100 {
        shard.appender.push(&record(number, &text));
        shard.committer.commit(shard.appender.take(), 1).unwrap();
    }
    let before = shard.segments.count();
    assert!(before > 3);
    shard.segments.free_up_to(50).unwrap();
    let oldest = shard.segments.oldest().unwrap();
    assert!(oldest > 1 && oldest <= 51, "{oldest}");
    assert_eq!(read_all(&shard, oldest, 100).len() as u64, 101 - oldest);
    shard.segments.free_up_to(u64::MAX).unwrap();
    assert_eq!(shard.segments.count(), 1);
}
