//! Failing calls of every kind, one after the other: a failed commit is never acknowledged, nothing succeeds after a
//! poisoned commit, and all acknowledged events are there after the next start and a power cut after it.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::events::{Event, request};
use journal::disk::SharedDisk;
use journal::simulated_disk::{CutStyle, Operation, SimulatedDisk, SimulatedError};
use journal::{CommitError, DataDirectory, LogChunk, OpenShard, Reader, Seeds, ShardOptions, StateFile, open_shard};

const DATA: &str = "/data";
const SEGMENT_BYTES: u64 = 16 * 1024;
/// Each kind of call fails at each of its first calls, up to this one.
const CALLS: u64 = 200;
/// The workload commits this many blocks in each of its three lives.
const COMMITS: u64 = 12;

/// How the calls of a kind fail.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Once(SimulatedError),
    FromThenOn(SimulatedError),
    ShortWrite,
}

const FAULTS: [Fault; 5] = [
    Fault::Once(SimulatedError::Io),
    Fault::Once(SimulatedError::NoSpace),
    Fault::FromThenOn(SimulatedError::Io),
    Fault::FromThenOn(SimulatedError::NoSpace),
    Fault::ShortWrite,
];

/// The state that the workload knows.
#[derive(Clone, Debug, Default)]
struct Known {
    acknowledged: BTreeMap<u64, Event>,
    /// Events that commits of a failed process may have left.
    attempted: BTreeMap<u64, Vec<Event>>,
    cursor: u64,
    cursors_attempted: Vec<u64>,
    starts: u64,
    events: u64,
    /// Commits that failed permanently.
    poisoned: u64,
    /// Commits that failed and may be tried again.
    refused: u64,
}

/// An open data directory.
struct Process {
    shard: OpenShard,
    cursor: StateFile,
    cursor_seen: u64,
    _directory: DataDirectory,
}

fn start(disk: &SimulatedDisk, known: &mut Known) -> Result<Process, String> {
    let disk: SharedDisk = Arc::new(disk.clone());
    let directory = DataDirectory::open(disk.clone(), Path::new(DATA)).map_err(|error| error.to_string())?;
    let (cursor, state) = StateFile::open(disk.clone(), Path::new(DATA), "ledger").map_err(|e| e.to_string())?;
    let cursor_seen = state.content.map_or(0, |content| u64::from_le_bytes(content.try_into().unwrap()));
    known.starts += 1;
    let options = ShardOptions {
        first_segment_bytes: SEGMENT_BYTES,
        segment_bytes_max: SEGMENT_BYTES,
        segments_ahead: false,
        seeds: Seeds::Counted(known.starts << 16),
        ..ShardOptions::new(disk, directory.shard(0), directory.origin(), 0)
    };
    let shard = open_shard(&options).map_err(|error| error.to_string())?;
    Ok(Process { shard, cursor, cursor_seen, _directory: directory })
}

/// Reads from the cursor on. If the sync of its removal failed, a freed segment before it may be back, and the ones
/// after that not.
fn read(process: &Process, what: &str) -> io::Result<BTreeMap<u64, Event>> {
    let mut reader = Reader::new(process.shard.segments.clone(), process.cursor_seen + 1);
    let mut events = BTreeMap::new();
    while let Some(chunk) = reader.read(process.shard.durable)? {
        match chunk {
            LogChunk::Block(block) => events.extend(block.records().map(|(s, record)| (s, Event::of(&record)))),
            LogChunk::Damaged(damaged) => panic!("{what}: nothing was damaged, but: {}", damaged.finding()),
        }
    }
    Ok(events)
}

/// Appends, commits, moves the cursor and frees, until something fails permanently.
fn live(process: &mut Process, known: &mut Known) {
    for round in 0..COMMITS {
        commit(process, known);
        if process.shard.committer.is_poisoned() {
            // From here on nothing may succeed.
            process.shard.appender.append(&request(&[Event::new(0, 1)]));
            let block = process.shard.appender.take();
            let again = process.shard.committer.commit(block, 1);
            assert!(matches!(again, Err(CommitError::AlreadyPoisoned)), "a poisoned journal took something");
            return;
        }
        if round % 4 == 3 {
            free(process, known);
        }
    }
}

fn commit(process: &mut Process, known: &mut Known) {
    let events: Vec<Event> = (0..3).map(|at| Event::new(known.events + at + 1, 1200)).collect();
    known.events += 3;
    let first = process.shard.appender.append(&request(&events));
    match process.shard.committer.commit(process.shard.appender.take(), 1) {
        Ok(_) => known.acknowledged.extend((first..).zip(events)),
        Err(CommitError::NoSpace { .. }) => {
            known.refused += 1;
            process.shard.appender.rewind(first);
        }
        Err(_) => {
            known.poisoned += 1;
            known.attempted.insert(first, events);
        }
    }
}

/// Frees only up to a cursor that this process has written: an earlier one may be only in the page cache.
fn free(process: &mut Process, known: &mut Known) {
    let Some(last) = known.acknowledged.last_key_value().map(|(sequence, _)| *sequence) else { return };
    let cursor = last.saturating_sub(5);
    known.cursors_attempted.push(cursor);
    if process.cursor.write(&cursor.to_le_bytes()).is_ok() {
        known.cursor = cursor;
        known.cursors_attempted.clear();
        // If a segment can't be freed now, it is freed later.
        drop(process.shard.segments.free_up_to(cursor));
    }
}

/// Checks the events after a start, and continues from them: they must stay.
fn check(process: &Process, known: &mut Known, what: &str) {
    let events = read(process, what).unwrap_or_else(|error| panic!("{what}: {error}"));
    check_events(process, events, known, what);
}

fn check_events(process: &Process, events: BTreeMap<u64, Event>, known: &mut Known, what: &str) {
    let cursor = process.cursor_seen;
    assert!(cursor == known.cursor || known.cursors_attempted.contains(&cursor), "{what}: cursor {cursor}");
    for (sequence, event) in known.acknowledged.range(cursor + 1..) {
        assert_eq!(events.get(sequence), Some(event), "{what}: acknowledged event {sequence}");
    }
    for (sequence, event) in &events {
        let attempted = known
            .attempted
            .range(..=sequence)
            .next_back()
            .and_then(|(first, events)| events.get(usize::try_from(sequence - first).unwrap()));
        let expected = known.acknowledged.get(sequence).or(attempted);
        assert_eq!(Some(event), expected, "{what}: event {sequence} was not acknowledged so");
    }
    for (first, request) in &known.attempted {
        let range = *first..first + request.len() as u64;
        let there =
            events.range(range.clone()).filter(|(sequence, _)| !known.acknowledged.contains_key(sequence)).count();
        assert!(there == 0 || there == request.len(), "{what}: {there} events of the request at {first}");
    }
    let last = known.acknowledged.last_key_value().map_or(0, |(sequence, _)| *sequence);
    assert!(process.shard.durable >= last, "{what}: sequences went back");
    known.acknowledged.extend(events);
    known.attempted.clear();
    known.cursor = cursor;
    known.cursors_attempted.clear();
}

/// A disk with a journal that has seen two starts, all of it durable.
fn settled(known: &mut Known) -> SimulatedDisk {
    let disk = SimulatedDisk::new(1);
    for _ in 0..2 {
        let mut process = start(&disk, known).unwrap();
        check(&process, known, "before any fault");
        live(&mut process, known);
    }
    disk.settle();
    disk
}

/// Whether the fault came into play: once a kind has fewer calls than that, all later ones are the same.
fn survive(before: &SimulatedDisk, mut known: Known, fault: (Operation, Fault, u64), tally: &mut Known) -> bool {
    let (operation, fault, call) = fault;
    let what = format!("{operation:?}, call {call}, {fault:?}");
    let disk = before.fork(call);
    let calls = disk.calls(operation);
    match fault {
        Fault::Once(failure) => disk.fail_call(operation, call, failure),
        Fault::FromThenOn(failure) => disk.fail_from_call(operation, call, failure),
        Fault::ShortWrite => disk.shorten_write(call),
    }
    // Two lives with the fault, each of which may fail to begin.
    for _ in 0..2 {
        if let Ok(mut process) = start(&disk, &mut known) {
            if let Ok(events) = read(&process, &what) {
                check_events(&process, events, &mut known, &what);
            }
            live(&mut process, &mut known);
        }
    }
    let reached = disk.calls(operation) >= calls + call;
    disk.clear_faults();
    for style in [CutStyle::LoseAll, CutStyle::Halves, CutStyle::LoseNothing] {
        let mut process = start(&disk, &mut known).unwrap_or_else(|error| panic!("{what}: no start: {error}"));
        check(&process, &mut known, &what);
        live(&mut process, &mut known);
        assert!(!process.shard.committer.is_poisoned(), "{what}: poisoned without a fault");
        drop(process);
        disk.power_cut_in_style(style);
    }
    let process = start(&disk, &mut known).unwrap_or_else(|error| panic!("{what}: no start: {error}"));
    check(&process, &mut known, &what);
    tally.poisoned += known.poisoned;
    tally.refused += known.refused;
    reached
}

/// Short writes are a matter of writes alone; and a sync that fails for lack of space is no other than one that fails.
fn applies(fault: Fault, operation: Operation) -> bool {
    match fault {
        Fault::ShortWrite => operation == Operation::WriteAt,
        Fault::Once(_) | Fault::FromThenOn(_) => true,
    }
}

#[test]
fn failing_call_loses_no_acknowledged_event() {
    let mut tally = Known::default();
    let mut cases = 0;
    let mut known = Known::default();
    let disk = settled(&mut known);
    for operation in Operation::ALL {
        for fault in FAULTS.into_iter().filter(|fault| applies(*fault, operation)) {
            for call in 1..=CALLS {
                cases += 1;
                if !survive(&disk, known.clone(), (operation, fault, call), &mut tally) {
                    break;
                }
            }
        }
    }
    println!("{cases} faults: {} commits poisoned, {} rejected for lack of space", tally.poisoned, tally.refused);
    assert!(cases > 500 && tally.poisoned > 100 && tally.refused > 20, "vacuous: {cases} {tally:?}");
}

/// The disk lets a failed fsync pass for done the next time, as Linux does. The page cache then shows a block that the
/// disk doesn't have: that is why a start writes the last block again.
#[test]
fn block_in_page_cache_is_written_again() {
    let mut shown = 0;
    for style in CutStyle::ALL {
        let mut known = Known::default();
        let disk = settled(&mut known);
        let mut process = start(&disk, &mut known).unwrap();
        check(&process, &mut known, "before the fault");
        disk.fail_call(Operation::Sync, 1, SimulatedError::Io);
        commit(&mut process, &mut known);
        assert!(process.shard.committer.is_poisoned());
        drop(process);
        let mut process = start(&disk, &mut known).unwrap();
        shown += u64::from(
            read(&process, "after a failed fsync").unwrap().last_key_value() > known.acknowledged.last_key_value(),
        );
        // From here on the block counts as acknowledged, because this start has shown it.
        check(&process, &mut known, "after a failed fsync");
        commit(&mut process, &mut known);
        drop(process);
        disk.power_cut_in_style(style);
        let process = start(&disk, &mut known).unwrap();
        check(&process, &mut known, &format!("after a failed fsync and a cut in style {style:?}"));
    }
    assert_eq!(shown, CutStyle::ALL.len() as u64, "the page cache never showed the block");
}

#[test]
fn full_disk_rejects_until_there_is_space() {
    let mut known = Known::default();
    let disk = settled(&mut known);
    let mut process = start(&disk, &mut known).unwrap();
    check(&process, &mut known, "before the disk is full");
    disk.set_capacity(Some(disk.bytes_used()));
    while known.refused < 3 {
        commit(&mut process, &mut known);
        assert!(!process.shard.committer.is_poisoned(), "a full disk poisons nothing");
    }
    disk.set_capacity(None);
    let before = known.acknowledged.len();
    live(&mut process, &mut known);
    assert!(known.acknowledged.len() > before);
    drop(process);
    disk.power_cut();
    let process = start(&disk, &mut known).unwrap();
    check(&process, &mut known, "after a full disk");
}
