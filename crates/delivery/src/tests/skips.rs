//! Requests that wait for events that a transactional store's lane skips: its cursor moves later, and no request waits for that.

use std::time::Duration;

use eventlog::{SequenceRange, WatchRequest};
use ledger::Routes;
use sink::TableName;
use sink_sqlite::SqliteConfig;
use sink_testing::MemoryHandle;
use tokio::time::timeout;

use super::harness::FENCED;
use super::harness::Harness;
use super::harness::KEYED;
use super::harness::name;
use super::harness::run;
use super::harness::seconds;

/// The cursor of a lane that only skips events moves after the test.
const NEVER: Duration = Duration::from_hours(24 * 365);

/// Events of type `x` go to the idempotent store, and from the third on to the transactional one.
fn harness(seed: u64) -> Harness {
    let mut harness = Harness::new(seed);
    harness.shards = 1;
    harness.cover_every = NEVER;
    harness.routes = Routes::new().with(name("x"), [FENCED.into(), KEYED.into()]).when(
        Some(name("x")),
        FENCED.into(),
        "n > 2".parse().unwrap(),
    );
    harness
}

/// The outcomes of the transactional lane: stored, skipped and pending.
fn counts(harness: &Harness) -> (u64, u64, u64) {
    let rows = harness.rows();
    let row = rows.iter().flat_map(|row| &row.sinks).find(|row| &*row.sink == FENCED).unwrap();
    (row.stored, row.skipped, row.pending)
}

/// Waits until these events are stored wherever they go, for at most this time.
async fn stored(harness: &Harness, (first, last): (u64, u64), at_most: Duration) -> bool {
    let outcomes = harness.process().log.delivery_watch().clone();
    let request =
        WatchRequest { spans: vec![SequenceRange { shard: 0, first, last, only: None }], types: vec![name("x")] };
    timeout(at_most, outcomes.wait(&request)).await.is_ok()
}

const SOON: Duration = Duration::from_mins(1);

#[test]
fn requests_do_not_wait_for_lanes_that_skip_their_event() {
    run(async {
        let mut harness = harness(150);
        harness.start();
        harness.append(0, "x", 2).await;
        assert!(stored(&harness, (1, 2), SOON).await);
        let lane = harness.process().lanes.iter().find(|lane| &*lane.lane().sink == FENCED).unwrap().clone();
        assert_eq!((lane.cursor(), lane.settled(), counts(&harness)), (0, 2, (0, 0, 2)), "only the cursor is saved");
        assert_eq!(harness.process().ledger.copy().passed(&[2]), [0], "and segments are kept up to it");

        harness.fenced.fail_next(1_000_000);
        harness.append(0, "x", 1).await;
        assert!(!stored(&harness, (3, 3), SOON).await && !stored(&harness, (1, 3), SOON).await, "it goes there");
        assert!(stored(&harness, (2, 2), SOON).await);
        harness.fenced.heal();
        assert!(stored(&harness, (1, 3), SOON * 10).await);
        assert_eq!((lane.settled(), counts(&harness)), (3, (1, 2, 0)));
        harness.check_all().await;
    });
}

#[test]
fn requests_wait_again_for_events_that_a_store_lost() {
    run(async {
        let mut harness = harness(151);
        harness.fenced = MemoryHandle::replicated(Duration::from_hours(1));
        harness.routes = Routes::new().with(name("x"), [FENCED.into(), KEYED.into()]).when(
            Some(name("x")),
            FENCED.into(),
            "n <= 2".parse().unwrap(),
        );
        harness.start();
        harness.append(0, "x", 1).await;
        assert!(stored(&harness, (1, 1), SOON).await);
        let standby = harness.fenced.standby();
        for (count, last) in [(1, 2), (2, 4)] {
            harness.append(0, "x", count).await;
            assert!(stored(&harness, (1, last), SOON).await);
        }
        harness.fenced.fail_over(standby);
        harness.fenced.block();
        seconds(4000).await;
        let lane = harness.process().lanes.iter().find(|lane| &*lane.lane().sink == FENCED).unwrap();
        assert_eq!((lane.cursor(), lane.settled()), (1, 1), "it has noticed: {:?}", harness.messages());
        assert!(!stored(&harness, (2, 2), SOON).await, "the store doesn't have it any longer");
        harness.fenced.release();
        assert!(stored(&harness, (1, 4), SOON).await);
        assert_eq!((harness.fenced.count(), counts(&harness)), (2, (2, 2, 0)));
        harness.kill(1).await;
        harness.start();
        assert!(stored(&harness, (4, 4), SOON).await, "skipped events are judged again");
        harness.append(0, "x", 1).await;
        assert!(stored(&harness, (5, 5), SOON).await);
        harness.check_balance();
    });
}

#[test]
fn database_file_is_not_waited_for_either() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut harness = harness(152);
        harness.sqlite =
            Some(SqliteConfig { path: path.clone(), table: TableName::new("events").unwrap(), retention: None });
        harness.start();
        for last in 1..=4_i64 {
            harness.append(0, "x", 1).await;
            let position = last.unsigned_abs();
            assert!(stored(&harness, (position, position), SOON).await, "{last}");
            let connection = rusqlite::Connection::open(&path).unwrap();
            let rows: i64 = connection.query_row("select count(*) from events", [], |row| row.get(0)).unwrap_or(0);
            assert_eq!(rows, (last - 2).max(0), "the event is stored if it goes there");
        }
        harness.stop().await;
    });
}
