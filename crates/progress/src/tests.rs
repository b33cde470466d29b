//! Tests on the simulated disk.

use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use journal::DataDirectory;
use journal::simulated_disk::{CutStyle, Operation, SimulatedDisk, SimulatedError};
use proptest::prelude::*;

use crate::page::PAIRS;
use crate::ring::{PAGES, RING_BYTES};
use crate::{LaneReporter, Passed, ProgressBoard, WrittenObject};

const SECOND: i64 = 1_000_000;
const RING: &str = "/data/progress/shop.0000";

/// A process that samples one lane.
struct Process {
    disk: SimulatedDisk,
    directory: Option<DataDirectory>,
    board: ProgressBoard,
    lane: LaneReporter,
}

impl Process {
    fn start(disk: &SimulatedDisk) -> Self {
        let directory = DataDirectory::open(Arc::new(disk.clone()), Path::new("/data")).unwrap();
        let board = ProgressBoard::new(&directory);
        let lane = board.lane(0, &"shop".into());
        Self { disk: disk.clone(), directory: Some(directory), board, lane }
    }

    fn new() -> Self {
        Self::start(&SimulatedDisk::new(1))
    }

    /// Another process on the same disk.
    fn restart(mut self) -> Self {
        self.directory = None;
        Self::start(&self.disk)
    }

    fn sample(&self, time: i64, cursor: u64) {
        self.board.sample_lane(&self.lane, time, cursor);
    }

    fn passed(&self, position: u64) -> Option<(i64, i64)> {
        self.board.passed(0, "shop", position).map(|Passed { from, to, .. }| (from, to))
    }
}

#[test]
fn passage_is_between_two_samples() {
    let process = Process::new();
    for (time, cursor) in [(10, 5), (11, 5), (12, 9), (13, 20), (14, 20), (90, 20), (91, 21)] {
        process.sample(time, cursor);
    }
    let passed = [5, 6, 9, 10, 20, 21, 22].map(|position| process.passed(position));
    assert_eq!(passed, [None, Some((11, 12)), Some((11, 12)), Some((12, 13)), Some((12, 13)), Some((90, 91)), None]);
    assert_eq!(process.board.reaches_back_to(0, "shop"), Some(11));
    assert_eq!(process.board.last_sample(0, "shop").map(|sample| sample.time), Some(91));
    assert_eq!(process.board.passed(1, "shop", 6), None);
}

#[test]
fn idle_lane_writes_nothing() {
    let process = Process::new();
    process.sample(1, 7);
    let before = process.disk.calls(Operation::WriteAt);
    (2..1000).for_each(|time| process.sample(time, 7));
    assert_eq!(process.disk.calls(Operation::WriteAt), before);
    assert!(!process.disk.paths().contains(&PathBuf::from(RING)));
}

#[test]
fn moving_lane_writes_a_pair_per_sample() {
    let process = Process::new();
    (0..100).for_each(|at| process.sample(at, at.unsigned_abs()));
    let length = process.disk.content(RING).unwrap().len();
    assert_eq!(length, crate::page::HEADER_BYTES + 99 * crate::page::PAIR_BYTES);
}

#[test]
fn ring_never_exceeds_its_length() {
    let mut process = Process::new();
    let samples = PAGES * (PAIRS as u64 + 1) + 5_000;
    for at in 0..samples {
        if at % 30_011 == 0 {
            process = process.restart();
        }
        process.sample(at.cast_signed() * SECOND, at);
    }
    assert!(process.disk.content(RING).unwrap().len() as u64 <= RING_BYTES);
    assert_eq!(process.passed(100), None, "overwritten");
    let oldest = process.board.reaches_back_to(0, "shop").unwrap();
    let first = oldest.unsigned_abs() / 1_000_000;
    assert!(samples - first > (PAGES - 1) * PAIRS as u64, "{first}");
    for position in [first + 1, first + 1_021, samples / 2, samples - 1] {
        let (from, to) = process.passed(position).unwrap();
        let at = position.cast_signed() * SECOND;
        assert!(from <= at && at <= to && to - from <= 2 * SECOND, "{position}: {from} {to}");
    }
}

#[test]
fn restart_continues_the_ring() {
    let mut process = Process::new();
    for start in 0..5 {
        let time = start * 100;
        for at in 1..=3 {
            process.sample(time + at, (start * 10 + at).unsigned_abs());
        }
        process = process.restart();
    }
    assert_eq!(process.passed(2), Some((1, 2)));
    assert_eq!(process.passed(12), Some((101, 102)));
    assert_eq!(process.passed(8), Some((3, 101)), "it passed between two samples");
    assert_eq!(process.passed(43), Some((402, 403)));
}

#[test]
fn newest_generation_answers_after_a_setback() {
    let mut process = Process::new();
    [(1, 0), (2, 50), (3, 100)].into_iter().for_each(|(time, cursor)| process.sample(time, cursor));
    process = process.restart();
    [(10, 60), (11, 80)].into_iter().for_each(|(time, cursor)| process.sample(time, cursor));
    assert_eq!(process.passed(40), Some((1, 2)));
    assert_eq!(process.passed(70), Some((10, 11)));
    assert_eq!(process.passed(90), None, "it isn't passed again yet");
    process.sample(12, 90);
    assert_eq!(process.passed(90), Some((11, 12)));
}

#[test]
fn bounds_are_vague_if_the_clock_was_set_back() {
    let process = Process::new();
    for (time, cursor) in [(100, 0), (101, 10), (40, 20), (41, 30)] {
        process.sample(time * SECOND, cursor);
    }
    let passed = |position| process.board.passed(0, "shop", position).unwrap();
    assert_eq!(passed(5), Passed { from: 100 * SECOND, to: 101 * SECOND, is_vague: false });
    assert_eq!(passed(15), Passed { from: 39 * SECOND, to: 102 * SECOND, is_vague: true });
    assert_eq!(passed(25), Passed { from: 40 * SECOND, to: 41 * SECOND, is_vague: false });
}

#[test]
fn damaged_files_are_begun_again() {
    for garbage in [&b""[..], b"FBPG", &[0; 9_000], &[0xff; 3_000_000]] {
        let process = Process::new();
        process.disk.put(RING, garbage).unwrap();
        process.disk.put("/data/progress/shop.0000.failures", garbage).unwrap();
        process.lane.failed(1, "refused", None);
        [(1, 1), (2, 2), (3, 3)].into_iter().for_each(|(time, cursor)| process.sample(time, cursor));
        assert_eq!(process.passed(3), Some((2, 3)), "{} bytes", garbage.len());
        assert!(process.disk.content(RING).unwrap().len() as u64 <= RING_BYTES);
        assert_eq!(process.board.recent_failures("shop").len(), 1);
    }
}

#[test]
fn damaged_pair_widens_the_bounds() {
    let process = Process::new();
    (0..10).for_each(|at| process.sample(at, at.unsigned_abs()));
    // The pair of cursor 5: the first is in the header.
    process.disk.flip_bit(RING, (48 + 4 * 16) * 8 + 3).unwrap();
    assert_eq!([4, 5, 6, 7].map(|at| process.passed(at)), [(3, 4), (4, 6), (4, 6), (6, 7)].map(Some));
    process.disk.flip_bit(RING, 100).unwrap();
    assert_eq!(process.passed(5), None);
}

#[test]
fn failing_disk_disturbs_nothing() {
    let process = Process::new();
    process.sample(1, 1);
    process.disk.set_capacity(Some(0));
    process.lane.failed(2, "refused", None);
    process.lane.wrote_object(&WrittenObject { first: 1, last: 2, name: "a".into(), types: Vec::new() });
    (2..20).for_each(|at| process.sample(at, at.unsigned_abs()));
    assert_eq!(process.passed(5), None);
    process.disk.set_capacity(None);
    process.sample(20, 20);
    assert_eq!(process.passed(5), Some((1, 20)), "the bounds hold the truth");
    assert_eq!(process.board.recent_failures("shop").len(), 1);
    assert_eq!(process.board.object_of(0, "shop", 1, "job").as_deref(), Some("a"));
    process.disk.fail_from_call(Operation::Open, 1, SimulatedError::Io);
    (21..30).for_each(|at| process.sample(at, at.unsigned_abs()));
    process.disk.clear_faults();
    process.sample(30, 30);
    assert_eq!(process.passed(25), Some((20, 30)));
}

#[test]
fn reports_do_not_wait_for_hanging_file() {
    for ending in ["", ".failures", ".objects", ".writers"] {
        let process = Process::new();
        let report = |lane: &LaneReporter, at: i64, first: u64| {
            lane.stored_by(Some(format!("{at}:9001").into()), first);
            lane.wrote_object(&WrittenObject { first, last: first, name: at.to_string(), types: Vec::new() });
            lane.failed(at, "refused", None);
        };
        process.sample(1, 1);
        report(&process.lane, 2, 2);
        let hanging = process.disk.hang(format!("{RING}{ending}"));
        let (board, lane) = (process.board.clone(), process.lane.clone());
        let sampler = thread::spawn(move || board.sample_lane(&lane, 3, 2));
        while !hanging.is_awaited() {
            thread::yield_now();
        }
        let (lane, (done, reported)) = (process.lane.clone(), mpsc::channel());
        let reporter = thread::spawn(move || {
            report(&lane, 4, 3);
            lane.delivers(5);
            done.send(lane.fails_since()).unwrap();
        });
        let in_time = reported.recv_timeout(Duration::from_secs(20));
        drop(hanging);
        sampler.join().unwrap();
        reporter.join().unwrap();
        assert_eq!(in_time, Ok(None), "{RING}{ending}");
        process.sample(6, 3);
        assert_eq!([2, 3].map(|position| process.passed(position)), [(1, 3), (3, 6)].map(Some), "{ending}");
        let writer = |position| process.board.writer_of(0, "shop", position).unwrap_or_default();
        assert_eq!([2, 3].map(writer), ["2:9001", "4:9001"], "{ending}");
        let object = |position| process.board.object_of(0, "shop", position, "job").unwrap_or_default();
        assert_eq!([2, 3].map(object), ["2", "4"], "{ending}");
        let failures = process.board.recent_failures("shop");
        let found: Vec<_> = failures.iter().map(|failure| (failure.from, failure.to, failure.tries)).collect();
        assert_eq!(found, [(2, Some(5), 2)], "{ending}");
    }
}

#[test]
fn outage_is_one_failure() {
    let mut process = Process::new();
    process.sample(1, 1);
    for time in 10..20 {
        process.lane.failed(time, "connection refused", None);
        process.sample(time, 1);
    }
    let failure = |process: &Process| process.board.recent_failures("shop");
    assert_eq!((failure(&process)[0].tries, failure(&process)[0].to), (10, None));
    // The next process continues it.
    process = process.restart();
    process.board.save_failures(&process.lane, 25);
    assert_eq!(failure(&process)[0].to, None, "it has not delivered yet");
    process.lane.failed(30, &"é".repeat(200), Some(&"writer-1".into()));
    process.lane.delivers(40);
    process.sample(41, 2);
    let found = failure(&process);
    assert_eq!((found.len(), found[0].from, found[0].to, found[0].tries), (1, 10, Some(40), 11));
    assert_eq!((found[0].reason.len(), found[0].server.as_deref()), (200, Some("writer-1")));
    process.lane.failed(50, "again", None);
    process.sample(51, 2);
    // A process that doesn't fail ends it.
    process = process.restart();
    process.sample(60, 2);
    assert_eq!(
        failure(&process).iter().map(|failure| (failure.from, failure.to)).collect::<Vec<_>>(),
        [(50, Some(60)), (10, Some(40))]
    );
    let during = |from, to| process.board.failures(0, "shop", from, to).len();
    assert_eq!(
        [during(0, Some(9)), during(0, Some(10)), during(41, Some(49)), during(40, None), during(61, None)],
        [0, 1, 0, 2, 0]
    );
}

#[test]
fn last_failures_are_kept() {
    let process = Process::new();
    for at in 0..100 {
        process.lane.failed(10 * at, "refused", None);
        process.sample(10 * at, 1);
        process.lane.delivers(10 * at + 1);
        process.sample(10 * at + 2, 1);
    }
    let found = process.board.recent_failures("shop");
    assert_eq!((found.len(), found[0].from, found[63].from), (64, 990, 360));
}

#[test]
fn objects_are_found_by_position_and_type() {
    let mut process = Process::new();
    let write = |process: &Process, at: u64, types: &[&str]| {
        let types = types.iter().map(|name| (*name).to_owned()).collect();
        process.lane.wrote_object(&WrittenObject {
            first: 10 * at + 1,
            last: 10 * at + 10,
            name: format!("{at}{types:?}"),
            types,
        });
        process.sample(1, 1);
    };
    (0..1_500).for_each(|at| write(&process, at, &["job"]));
    process = process.restart();
    write(&process, 1_500, &["job"]);
    write(&process, 1_500, &["visit"]);
    let of = |position, name| process.board.object_of(0, "shop", position, name);
    assert_eq!(of(15_001, "visit").as_deref(), Some("1500[\"visit\"]"));
    assert_eq!(of(15_010, "job").as_deref(), Some("1500[\"job\"]"));
    assert_eq!(of(14_999, "job").as_deref(), Some("1499[\"job\"]"));
    assert_eq!((of(14_999, "visit"), of(15_011, "job"), of(11, "job")), (None, None, None));
}

#[test]
fn writers_are_found_by_position() {
    let mut process = Process::new();
    let stored = |process: &Process, writer: &str, first| process.lane.stored_by(Some(writer.into()), first);
    for (writer, first) in [("a:9001", 1), ("a:9001", 40), ("b:9001", 70)] {
        stored(&process, writer, first);
    }
    process.sample(1, 90);
    process = process.restart();
    stored(&process, "a:9001", 91);
    process.sample(2, 120);
    let writer = |process: &Process, position| process.board.writer_of(0, "shop", position);
    let found = [1, 69, 70, 90, 91, 500].map(|position| writer(&process, position).unwrap_or_default());
    assert_eq!(found, ["a:9001", "a:9001", "b:9001", "b:9001", "a:9001", "a:9001"]);
    assert_eq!((writer(&process, 0), process.board.writer_of(1, "shop", 1)), (None, None));
    stored(&process, "c:9001", 80);
    process.sample(3, 120);
    assert_eq!([79, 80, 100].map(|position| writer(&process, position).unwrap()), ["b:9001", "c:9001", "c:9001"]);
    (0..200).for_each(|at| stored(&process, &format!("{at}:9001"), 1_000 + at));
    process.sample(4, 1_300);
    assert_eq!((writer(&process, 100), writer(&process, 1_199)), (None, Some("199:9001".into())));
    assert!(process.disk.content("/data/progress/shop.0000.writers").unwrap().len() <= 64 * 512);
}

#[test]
fn sink_that_had_writers_has_its_own_store_now() {
    const FILE: &str = "/data/progress/shop.0000.writers";
    let mut process = Process::new();
    process.lane.stored_by(None, 1);
    process.sample(1, 10);
    assert!(process.disk.content(FILE).is_err(), "it never had writers");
    process.lane.stored_by(Some("a:9001".into()), 11);
    process.sample(2, 20);
    process = process.restart();
    process.lane.stored_by(None, 21);
    process.sample(3, 30);
    let writer = |position| process.board.writer_of(0, "shop", position);
    assert_eq!([10, 11, 20, 21].map(writer), [None, Some("a:9001".into()), Some("a:9001".into()), None]);
}

#[test]
fn removed_sinks_lose_their_files() {
    let process = Process::new();
    [(1, 1), (2, 2)].into_iter().for_each(|(time, cursor)| process.sample(time, cursor));
    process.disk.put("/data/progress/notes.txt", b"mine").unwrap();
    process.board.sample_shard(0, 1, 1);
    process.board.sample_shard(0, 2, 2);
    process.board.keep(|sink| sink == "shop");
    assert!(process.passed(2).is_some());
    process.board.keep(|_| false);
    assert!(process.passed(2).is_none() && process.board.durable(0, 2).is_some());
    assert!(process.disk.content("/data/progress/notes.txt").is_ok());
}

#[test]
fn positions_are_bounded_by_a_time() {
    let process = Process::new();
    assert_eq!(process.board.cursor_range_at(0, 5), None);
    for (time, durable) in [(10, 0), (20, 7), (30, 9), (40, 9), (50, 9)] {
        process.board.sample_shard(0, time, durable);
    }
    let range = |time| process.board.cursor_range_at(0, time);
    assert_eq!(
        [range(9), range(15), range(25), range(45), range(51)],
        [None, Some((0, 7)), Some((7, 9)), Some((9, 9)), Some((9, u64::MAX))]
    );
}

proptest! {
    /// The bounds of each position hold the time when it was passed, through restarts, power cuts and pauses.
    #[test]
    fn bounds_hold_the_truth(seed: u64, steps in prop::collection::vec((0_u64..4, 0_u64..3, 0_u8..40), 1..400)) {
        let mut process = Process::start(&SimulatedDisk::new(seed));
        let (mut time, mut cursor, mut truth) = (1_000, 0, vec![0]);
        for (moves, pause, event) in steps {
            time += 1 + pause.cast_signed() * 100;
            cursor += moves;
            truth.resize(usize::try_from(cursor).unwrap() + 1, time);
            time += 1;
            match event {
                0 => process = process.restart(),
                1 => {
                    process.directory = None;
                    process.disk.power_cut_in_style(CutStyle::Halves);
                    process = Process::start(&process.disk);
                }
                2 => process.disk.fail_call(Operation::WriteAt, 1, SimulatedError::NoSpace),
                _ => process.sample(time, cursor),
            }
            process.board.sample_lane(&process.lane, time, cursor);
        }
        for (position, at) in (0..).zip(&truth).skip(1) {
            if let Some(found) = process.board.passed(0, "shop", position) {
                prop_assert!(!found.is_vague && found.from <= *at && *at <= found.to, "{position} at {at}: {found:?}");
            }
        }
    }
}
