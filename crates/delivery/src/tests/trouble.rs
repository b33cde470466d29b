//! Stores that are exchanged, disks that fail, and configurations that forget.

use std::time::{Duration, Instant};

use journal::simulated_disk::{Failure, Operation};
use sink::TableName;
use sink_sqlite::SqliteConfig;

use super::Mutation;
use super::world::FENCED;
use super::world::KEYED;
use super::world::World;
use super::world::run;
use super::world::seconds;
use crate::routes::Routes;
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
fn a_file_that_is_moved_aside_is_written_again_from_where_the_journal_can() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut world = World::new(30);
        world.shards = 1;
        world.sqlite = Some(SqliteConfig { path: path.clone(), table: TableName::new("events").unwrap() });
        world.start();
        world.append(0, "other", 20).await;
        until("the first events are stored", || world.pending() == 0).await;
        world.process().sinks[0].close().await.unwrap();
        std::fs::rename(&path, directory.path().join("aside.db")).unwrap();
        std::fs::create_dir(&path).unwrap();
        world.append(0, "other", 5).await;
        let waits = || matches!(world.process().lanes[0].state(), LaneState::Waiting(_));
        until("the lane waits for its store", waits).await;
        std::fs::remove_dir(&path).unwrap();
        let stored = || world.rows().iter().flat_map(|row| &row.sinks).map(|row| row.stored).sum::<u64>();
        until("all events are stored", || stored() == 25).await;
        world.process().sinks[0].close().await.unwrap();
        assert_eq!(rows(&path), 25, "the new file has them all");
        world.stop().await;
    });
}

/// How many events a SQLite file has.
fn rows(path: &std::path::Path) -> i64 {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.query_row("select count(*) from events", [], |row| row.get(0)).unwrap()
}

#[test]
fn a_sink_that_begins_at_the_end_is_not_taken_for_one_that_lost_its_tail() {
    run(async {
        let mut world = World::new(31);
        world.routes = Routes::new().with_others([KEYED.into()]);
        world.shards = 1;
        world.start();
        world.append(0, "other", 10).await;
        world.settle().await;
        world.stop().await;
        world.kill(1).await;
        world.routes = Routes::new().with_others([FENCED.into(), KEYED.into()]);
        world.start();
        seconds(3).await;
        world.append(0, "other", 3).await;
        world.settle().await;
        world.check_balance();
        let first = world.fenced.calls().iter().map(|call| call.first).min();
        assert_eq!(first, Some(11));
        assert_eq!(world.fenced.count(), 3);
    });
}

#[test]
fn a_sink_that_was_taken_out_with_events_left_is_named_at_each_start() {
    run(async {
        let mut world = World::new(32);
        world.keyed.fail_next(1_000_000);
        world.start();
        world.append(0, "both", 4).await;
        seconds(2).await;
        world.stop().await;
        world.kill(1).await;
        assert_eq!(world.reported("sink keyed"), 0, "{:?}", world.messages());
        world.routes = Routes::new().with_others([FENCED.into()]);
        for starts in 1..3 {
            world.start();
            seconds(2).await;
            assert_eq!(world.reported("sink keyed"), starts, "{:?}", world.messages());
            assert_eq!(world.reported("holds 4 event(s)"), starts, "{:?}", world.messages());
            world.stop().await;
            world.kill(starts as u64).await;
        }
    });
}

#[test]
fn a_lane_that_can_read_again_says_so() {
    run(async {
        let mut world = World::new(33);
        world.shards = 1;
        world.start();
        world.append(0, "other", 10).await;
        world.kill(1).await;
        world.start();
        (1..=4).for_each(|call| world.disk.fail_call(Operation::ReadAt, call, Failure::Io));
        world.settle().await;
        seconds(5).await;
        assert!(world.process().lanes.iter().all(|lane| lane.retries.get() > 0));
        for lane in &world.process().lanes {
            assert_eq!(lane.state(), LaneState::Delivering, "{}", lane.lane());
        }
        world.check_all().await;
    });
}

#[test]
fn a_segment_that_cannot_be_freed_is_reported_once() {
    run(async {
        let mut world = World::new(34);
        world.shards = 1;
        world.start();
        for times in 1..3 {
            world.fenced.block();
            for _ in 0..300 * times {
                world.append(0, "both", 30).await;
            }
            // A few files are kept for later segments, the others are removed.
            world.disk.fail_from_call(Operation::Remove, 1, Failure::Io);
            world.fenced.release();
            world.settle().await;
            seconds(10).await;
            assert_eq!(world.reported("can't free a segment"), times, "{:?}", world.messages());
            world.disk.clear_faults();
            seconds(10).await;
        }
        assert_eq!(world.reported("can't free a segment"), 2);
        world.check_all().await;
    });
}

#[test]
fn a_lane_that_panics_is_seen_to_have_stopped() {
    run(async {
        let mut world = World::new(35);
        world.mutation = Some(Mutation::PanickingLane);
        world.start();
        seconds(3).await;
        for lane in &world.process().lanes {
            let LaneState::Stopped(reason) = lane.state() else { panic!("{:?}", lane.state()) };
            assert!(reason.contains("BUG"), "{reason}");
        }
        assert_eq!(world.reported("BUG: lane"), world.process().lanes.len(), "{:?}", world.messages());
    });
}
