//! Stores that are replaced, disks that fail, and configurations that forget.

use std::time::{Duration, Instant};

use journal::simulated_disk::{Operation, SimulatedError};
use ledger::Routes;
use sink::TableName;
use sink_sqlite::SqliteConfig;

use super::harness::FENCED;
use super::harness::Harness;
use super::harness::KEYED;
use super::harness::run;
use super::harness::seconds;
use crate::status::LaneState;

/// Waits for something that happens on other threads, in real time.
async fn until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_mins(1), "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn removed_store_file_is_rewritten_from_the_journal() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut harness = Harness::new(30);
        harness.shards = 1;
        harness.sqlite =
            Some(SqliteConfig { path: path.clone(), table: TableName::new("events").unwrap(), retention: None });
        harness.start();
        harness.append(0, "other", 20).await;
        until("the first events are stored", || harness.pending() == 0).await;
        harness.process().sinks[0].close().await.unwrap();
        std::fs::rename(&path, directory.path().join("aside.db")).unwrap();
        std::fs::create_dir(&path).unwrap();
        harness.append(0, "other", 5).await;
        let waits = || matches!(harness.process().lanes[0].state(), LaneState::Waiting(_));
        until("the lane waits for its store", waits).await;
        std::fs::remove_dir(&path).unwrap();
        let stored = || harness.rows().iter().flat_map(|row| &row.sinks).map(|row| row.stored).sum::<u64>();
        until("all events are stored", || stored() == 25).await;
        harness.process().sinks[0].close().await.unwrap();
        assert_eq!(rows(&path), 25, "the new file has them all");
        harness.stop().await;
    });
}

/// How many events a SQLite file has.
fn rows(path: &std::path::Path) -> i64 {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.query_row("select count(*) from events", [], |row| row.get(0)).unwrap()
}

#[test]
fn sink_beginning_at_end_has_lost_nothing() {
    run(async {
        let mut harness = Harness::new(31);
        harness.routes = Routes::new().with_others([KEYED.into()]);
        harness.shards = 1;
        harness.start();
        harness.append(0, "other", 10).await;
        harness.wait_until_settled().await;
        harness.stop().await;
        harness.kill(1).await;
        harness.routes = Routes::new().with_others([FENCED.into(), KEYED.into()]);
        harness.start();
        seconds(3).await;
        harness.append(0, "other", 3).await;
        harness.wait_until_settled().await;
        harness.check_balance();
        let first = harness.fenced.calls().iter().map(|call| call.first).min();
        assert_eq!(first, Some(11));
        assert_eq!(harness.fenced.count(), 3);
    });
}

#[test]
fn removed_sink_with_backlog_is_reported_at_start() {
    run(async {
        let mut harness = Harness::new(32);
        harness.keyed.fail_next(1_000_000);
        harness.start();
        harness.append(0, "both", 4).await;
        seconds(2).await;
        harness.stop().await;
        harness.kill(1).await;
        assert_eq!(harness.reported("no longer configured"), 0, "{:?}", harness.messages());
        harness.routes = Routes::new().with_others([FENCED.into()]);
        for starts in 1..3 {
            harness.start();
            seconds(2).await;
            assert_eq!(harness.reported("no longer configured"), starts, "{:?}", harness.messages());
            assert_eq!(harness.reported("sink=keyed events=4"), starts, "{:?}", harness.messages());
            harness.stop().await;
            harness.kill(starts as u64).await;
        }
    });
}

#[test]
fn lane_reports_when_it_can_read_again() {
    run(async {
        let mut harness = Harness::new(33);
        harness.shards = 1;
        harness.start();
        harness.append(0, "other", 10).await;
        harness.kill(1).await;
        harness.start();
        (1..=4).for_each(|call| harness.disk.fail_call(Operation::ReadAt, call, SimulatedError::Io));
        harness.wait_until_settled().await;
        seconds(5).await;
        assert!(harness.process().lanes.iter().all(|lane| lane.retries.get() > 0));
        for lane in &harness.process().lanes {
            assert_eq!(lane.state(), LaneState::Delivering, "{}", lane.lane());
        }
        harness.check_all().await;
    });
}

#[test]
fn a_segment_that_cannot_be_freed_is_reported_once() {
    run(async {
        let mut harness = Harness::new(34);
        harness.shards = 1;
        harness.start();
        for times in 1..3 {
            harness.fenced.block();
            for _ in 0..300 * times {
                harness.append(0, "both", 30).await;
            }
            // A few files are kept for later segments, the others are removed.
            harness.disk.fail_from_call(Operation::Remove, 1, SimulatedError::Io);
            harness.fenced.release();
            harness.wait_until_settled().await;
            seconds(10).await;
            assert_eq!(harness.reported("can't free a segment"), times, "{:?}", harness.messages());
            harness.disk.clear_faults();
            seconds(10).await;
        }
        assert_eq!(harness.reported("can't free a segment"), 2);
        harness.check_all().await;
    });
}

#[test]
fn panicking_lane_is_reported_as_stopped() {
    run(async {
        let mut harness = Harness::new(35);
        harness.fenced.panic_in_connect();
        harness.keyed.panic_in_connect();
        harness.start();
        seconds(3).await;
        for lane in &harness.process().lanes {
            let LaneState::Stopped(reason) = lane.state() else { panic!("{:?}", lane.state()) };
            assert!(reason.contains("because of a bug"), "{reason}");
        }
        assert_eq!(harness.reported("BUG: the lane ended"), harness.process().lanes.len(), "{:?}", harness.messages());
    });
}
