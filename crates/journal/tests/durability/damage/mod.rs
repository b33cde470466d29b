//! Damage of every kind: undamaged records are delivered unchanged, damaged ones are reported, nothing is ever
//! delivered wrong, and a start is always possible.
//!
//! The short form takes every bit of the headers and a sample of the others; `FOREBAY_DAMAGE=all` takes all.

mod files;
mod fuzz;
mod judge;
mod log;

use journal::simulated_disk::Random;
use judge::{check, check_bounds, check_goes_on, of_flip, of_truncation, reported};
use log::{Log, SETTINGS, SegmentEnd, observe};

/// Of the bits that belong to no header the short form uses one in this many; a prime, so all bits of a byte and all
/// places of a page are used.
const STRIDE: u64 = 251;
const PAGE: u64 = 4096;

fn all() -> bool {
    std::env::var("FOREBAY_DAMAGE").is_ok_and(|form| form == "all")
}

/// Whether the short form tests the bit: it does if it is in a header or in a record's head.
fn is_structure(log: &Log, byte: u64) -> bool {
    let heads = log.blocks.iter().flat_map(|block| &block.records).filter(|record| record.sequence % 5 == 0);
    byte % 512 < 80 && byte < 1024
        || log.blocks.iter().any(|block| block.header.contains(&byte))
        || heads.map(|record| record.bytes.start).any(|start| (start..start + 24).contains(&byte))
}

#[test]
fn every_flipped_bit_is_found_or_harmless() {
    let (mut found, mut losses, mut flips) = (0, 0, 0_u64);
    for setting in SETTINGS {
        let log = Log::new(setting);
        for bit in 0..log.length() * 8 {
            if !all() && bit % STRIDE != 0 && !is_structure(&log, bit / 8) {
                continue;
            }
            flips += 1;
            let disk = log.disk.fork(bit);
            disk.flip_bit(log.path(), bit).unwrap();
            let what = format!("{setting:?}, bit {bit}");
            let expected = of_flip(&log, bit / 8);
            let observed = observe(&disk, 2);
            check(&log, &observed, &expected, &what);
            assert_eq!(reported(&observed), expected.lost, "{what}: {:?}", observed.findings);
            found += u64::from(expected.reported);
            losses += u64::from(!expected.lost.is_empty());
            if setting == SegmentEnd::Unsealed && flips.is_multiple_of(7) {
                check_goes_on(observed, &disk, &what);
            }
        }
    }
    println!("{flips} flips: {found} found, {losses} of them damaged a record");
    assert!(found > flips / 3 && losses > flips / 50 && found < flips);
}

#[test]
fn every_truncation_is_found() {
    for setting in SETTINGS {
        let log = Log::new(setting);
        let stride = if all() { 1 } else { 37 };
        let lengths = (0..log.length()).filter(|length| length % stride == 0 || length % 512 < 2 || *length < 100);
        for length in lengths {
            let disk = log.disk.fork(length);
            disk.truncate(log.path(), length).unwrap();
            let what = format!("{setting:?}, truncated to {length}");
            let observed = observe(&disk, 2);
            check(&log, &observed, &of_truncation(&log, length), &what);
            if length % 64 == 0 {
                check_goes_on(observed, &disk, &what);
            }
        }
    }
}

/// Rewrites a part of the segment and checks that only the blocks there suffer.
fn check_rewritten(log: &Log, what: &str, rewrite: impl FnOnce(&mut Vec<u8>) -> Vec<std::ops::Range<u64>>) {
    let disk = log.disk.fork(1);
    let mut content = disk.content(log.path()).unwrap();
    let hit = rewrite(&mut content);
    disk.put(log.path(), &content).unwrap();
    check_bounds(log, &disk, &hit, what);
    check_goes_on(observe(&disk, 3), &disk, what);
}

fn at(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}

#[test]
fn several_flips_damage_only_their_blocks() {
    let mut random = Random::new(3);
    for setting in SETTINGS {
        let log = Log::new(setting);
        for round in 0..if all() { 20_000 } else { 400 } {
            check_rewritten(&log, &format!("{setting:?}, round {round}"), |content| {
                let used = log.blocks.last().unwrap().end;
                let bytes: Vec<u64> = (0..2 + random.below(7)).map(|_| random.below(used)).collect();
                for byte in &bytes {
                    content[at(*byte)] ^= if random.once_in(2) { 1 << random.below(8) } else { 0xa5 };
                }
                bytes.into_iter().map(|byte| byte..byte + 1).collect()
            });
        }
    }
}

#[test]
fn zeroed_sectors_damage_only_their_blocks() {
    for setting in SETTINGS {
        let log = Log::new(setting);
        for start in (0..log.blocks.last().unwrap().end).step_by(512) {
            for length in [512, PAGE, 3 * PAGE] {
                check_rewritten(&log, &format!("{setting:?}, {length} zeros at {start}"), |content| {
                    let end = (start + length).min(log.length());
                    content[at(start)..at(end)].fill(0);
                    std::iter::once(start..end).collect()
                });
            }
        }
    }
}

#[test]
fn swapped_pages_damage_only_their_blocks() {
    for setting in SETTINGS {
        let log = Log::new(setting);
        let pages = log.blocks.last().unwrap().end / PAGE;
        for (one, other) in (0..pages).flat_map(|one| (one + 1..pages).map(move |other| (one, other))) {
            check_rewritten(&log, &format!("{setting:?}, pages {one} and {other} swapped"), |content| {
                let (head, tail) = content.split_at_mut(at(other * PAGE));
                head[at(one * PAGE)..at((one + 1) * PAGE)].swap_with_slice(&mut tail[..at(PAGE)]);
                [one, other].map(|page| page * PAGE..(page + 1) * PAGE).to_vec()
            });
        }
    }
}

#[test]
fn repeated_block_is_delivered_once() {
    for setting in SETTINGS {
        let log = Log::new(setting);
        for (number, block) in log.blocks.iter().enumerate() {
            let places = log.blocks.iter().map(|other| other.header.start).chain([log.blocks.last().unwrap().end]);
            for place in places.filter(|place| *place != block.header.start) {
                check_rewritten(&log, &format!("{setting:?}, block {number} also at {place}"), |content| {
                    let end = (place + block.end - block.header.start).min(log.length());
                    let source = at(block.header.start);
                    content.copy_within(source..source + at(end - place), at(place));
                    std::iter::once(place..end).collect()
                });
            }
        }
    }
}
