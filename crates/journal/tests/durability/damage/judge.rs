//! The events that a damage may lose, and the reports that it must cause.

use std::collections::BTreeSet;
use std::ops::Range;

use journal::simulated_disk::SimulatedDisk;

use super::log::{Log, Observed, SegmentEnd, observe};
use crate::events::{Event, request};

/// The segment's header copies.
const HEADER_COPIES: [Range<u64>; 2] = [0..80, 512..592];

/// The expected result of a damage of one bit or of the file's end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    /// Exactly the sequences that are lost.
    pub(crate) lost: BTreeSet<u64>,
    /// Whether something must be reported; if not, nothing may be.
    pub(crate) reported: bool,
}

/// The expected result of a flipped bit in this byte.
pub(crate) fn of_flip(log: &Log, byte: u64) -> Expected {
    let reported = HEADER_COPIES.iter().any(|copy| copy.contains(&byte));
    let mut expected = Expected { lost: BTreeSet::new(), reported };
    for (at, block) in log.blocks.iter().enumerate() {
        expected.reported |= block.header.contains(&byte);
        let cut = log.setting == SegmentEnd::Unsealed && at + 1 == log.blocks.len();
        for record in block.records.iter().filter(|record| record.bytes.contains(&byte)) {
            let lost = if cut { record.request.clone() } else { record.sequence..record.sequence + 1 };
            expected.lost.extend(lost);
            expected.reported = true;
        }
    }
    // The seal's header is after the last block.
    let end = log.blocks.last().map_or(0, |block| block.end);
    expected.reported |= log.setting == SegmentEnd::Sealed && (end..end + 80).contains(&byte);
    expected
}

/// The expected result of a file that ends at `length`. In the newest segment nothing proves that a block was complete.
pub(crate) fn of_truncation(log: &Log, length: u64) -> Expected {
    let mut lost = BTreeSet::new();
    for record in log.blocks.iter().flat_map(|block| &block.records) {
        let request_end = record.request.end;
        let ends = |sequence: u64| {
            let mut records = log.blocks.iter().flat_map(|block| &block.records);
            records.find(|record| record.sequence + 1 == sequence).map_or(u64::MAX, |record| record.bytes.end)
        };
        let end = if log.setting == SegmentEnd::Followed { record.bytes.end } else { ends(request_end) };
        if end > length || length < HEADER_COPIES[0].end {
            lost.insert(record.sequence);
        }
    }
    Expected { lost, reported: length < log.length() }
}

/// Compares the rest of a damaged log with the expected one.
pub(crate) fn check(log: &Log, observed: &Observed, expected: &Expected, what: &str) {
    for (sequence, event) in &log.events {
        let there = observed.events.get(sequence);
        if expected.lost.contains(sequence) {
            assert_eq!(there, None, "{what}: damaged event {sequence}");
        } else {
            assert_eq!(there, Some(event), "{what}: undamaged event {sequence}: {:?}", observed.findings);
        }
    }
    assert_eq!(observed.events.len() + expected.lost.len(), log.events.len(), "{what}: events that never were");
    assert_eq!(!observed.findings.is_empty(), expected.reported, "{what}: {:?}", observed.findings);
    let last = log.events.len() as u64;
    assert!(observed.shard.0.durable >= last, "{what}: sequences would be used again");
}

/// The sequences that are reported as lost.
pub(crate) fn reported(observed: &Observed) -> BTreeSet<u64> {
    observed.findings.iter().flat_map(|finding| finding.lost.iter().cloned().flatten()).collect()
}

/// Checks any damage of these bytes: nothing outside of the damaged blocks is lost, nothing is changed, and each loss
/// is reported.
pub(crate) fn check_bounds(log: &Log, disk: &SimulatedDisk, hit: &[Range<u64>], what: &str) {
    let meets = |place: &Range<u64>| hit.iter().any(|hit| hit.start < place.end && place.start < hit.end);
    let headless = HEADER_COPIES.iter().all(meets);
    let observed = observe(disk, 2);
    let unknown = observed.findings.iter().any(|finding| matches!(finding.case, 'E' | 'H' | 'T'));
    let reported = reported(&observed);
    for (sequence, event) in &observed.events {
        assert_eq!(log.events.get(sequence), Some(event), "{what}: event {sequence} is another");
    }
    let last = log.blocks.len() - 1;
    let forgotten = blanks_the_end(log, last, &meets);
    assert!(forgotten || observed.shard.0.durable >= log.events.len() as u64, "{what}: sequences would be used again");
    for (at, block) in log.blocks.iter().enumerate() {
        let silent = blanks_the_end(log, at, &meets);
        for record in block.records.iter().filter(|record| !observed.events.contains_key(&record.sequence)) {
            let sequence = record.sequence;
            assert!(headless || meets(&(block.header.start..block.end)), "{what}: undamaged event {sequence} is gone");
            assert!(
                unknown || silent || reported.contains(&sequence),
                "{what}: {sequence} is missing without a report"
            );
        }
    }
}

/// Whether a damage may have left no header from block `at` on: an end without any header can't be distinguished from
/// one that was never written.
fn blanks_the_end(log: &Log, at: usize, meets: &impl Fn(&Range<u64>) -> bool) -> bool {
    let seal = log.blocks.last().map_or(0..0, |block| block.end..block.end + 80);
    log.blocks[at..].iter().all(|block| meets(&block.header))
        && match log.setting {
            SegmentEnd::Followed => false,
            SegmentEnd::Sealed => meets(&seal),
            SegmentEnd::Unsealed => true,
        }
}

/// Appends to a damaged log, starts again and reads everything.
pub(crate) fn check_goes_on(observed: Observed, disk: &SimulatedDisk, what: &str) {
    let Observed { mut events, shard, .. } = observed;
    let mut shard = shard.0;
    for number in 1_000_000..1_000_003_u64 {
        let event = Event::new(number, 500);
        let sequence = shard.appender.append(&request(std::slice::from_ref(&event)));
        assert!(events.last_key_value().is_none_or(|(last, _)| *last < sequence), "{what}: {sequence} is used again");
        shard.committer.commit(shard.appender.take(), 1).unwrap();
        events.insert(sequence, event);
    }
    drop(shard);
    assert_eq!(observe(disk, 3).events, events, "{what}: after new events and another start");
}
