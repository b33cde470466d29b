//! A delivery that goes over to other routes while it runs, and routes that are given up.

use super::world::FENCED;
use super::world::KEYED;
use super::world::World;
use super::world::name;
use super::world::run;
use super::world::seconds;
use crate::command::ChangeError;
use crate::ledger::{GivenUp, SinkRow};
use crate::routes::Routes;

fn row(world: &World, type_name: &str, sink: &str) -> SinkRow {
    let rows = world.rows();
    let row = rows.iter().find(|row| row.type_name.as_str() == type_name).unwrap();
    row.sinks.iter().find(|row| &*row.sink == sink).cloned().unwrap()
}

fn counts(row: &SinkRow) -> [u64; 4] {
    [row.stored, row.dead, row.skipped, row.pending]
}

fn only(sink: &str) -> Routes {
    Routes::new().with_others([sink.into()])
}

fn both() -> Routes {
    Routes::new().with_others([FENCED.into(), KEYED.into()])
}

#[test]
fn routes_begin_and_end_where_the_change_stands() {
    run(async {
        let mut world = World::new(60);
        world.routes = only(FENCED);
        world.start();
        world.append(0, "x", 10).await;
        world.change(both()).await.unwrap();
        world.append(0, "x", 5).await;
        world.append(1, "y", 7).await;
        world.change(only(KEYED)).await.unwrap();
        world.append(1, "x", 3).await;
        seconds(3).await;
        world.check_balance();
        assert_eq!(counts(&row(&world, "x", KEYED)), [8, 0, 10, 0]);
        assert_eq!(counts(&row(&world, "y", KEYED)), [7, 0, 0, 0]);
        let (x, y) = (row(&world, "x", FENCED), row(&world, "y", FENCED));
        assert!(x.removed && x.skipped == 3 && x.stored + x.pending == 15, "{x:?}");
        assert!(y.removed && y.skipped == 0 && y.stored + y.pending == 7, "{y:?}");
        world.change(both()).await.unwrap();
        world.settle().await;
        world.check_balance();
        assert_eq!(world.fenced.count() as u64, row(&world, "x", FENCED).stored + row(&world, "y", FENCED).stored);
        assert!(row(&world, "x", FENCED).stored >= 15);
    });
}

#[test]
fn a_store_that_is_down_holds_up_no_change() {
    run(async {
        let mut world = World::new(61);
        world.routes = both();
        world.keyed.fail_next(1_000_000);
        world.start();
        world.append(0, "x", 4).await;
        seconds(100).await;
        world.fenced.block();
        world.append(0, "x", 4).await;
        seconds(1).await;
        for _ in 0..3 {
            world.change(both()).await.unwrap();
        }
        world.fenced.release();
        world.keyed.heal();
        world.settle().await;
        world.check_balance();
        assert_eq!((world.fenced.count(), world.keyed.count()), (8, 8));
    });
}

#[test]
fn a_change_that_cannot_be_saved_is_none() {
    run(async {
        let mut world = World::new(62);
        world.routes = only(FENCED);
        world.start();
        world.append(0, "x", 10).await;
        world.settle().await;
        seconds(1).await;
        // So full that the reserve makes no room either.
        world.disk.set_capacity(Some(world.disk.bytes_used() - event::limits::RESERVE_BYTES));
        assert!(matches!(world.change(both()).await, Err(ChangeError::Save)));
        world.disk.set_capacity(None);
        seconds(1).await;
        world.append(0, "x", 5).await;
        world.settle().await;
        world.check_balance();
        assert_eq!(counts(&row(&world, "x", FENCED)), [15, 0, 0, 0]);
        assert_eq!(world.keyed.count(), 0);
        assert!(world.rows().iter().all(|row| row.sinks.len() == 1), "{:?}", world.rows());
        world.change(both()).await.unwrap();
        world.append(0, "x", 1).await;
        world.settle().await;
        assert_eq!(counts(&row(&world, "x", KEYED)), [1, 0, 15, 0]);
    });
}

/// What the next start would read mustn't be what nobody goes by.
#[test]
fn a_change_of_which_one_generation_is_saved_holds_and_one_that_failed_is_written_over() {
    use journal::simulated_disk::{Failure, Operation};
    run(async {
        let mut world = World::new(65);
        world.routes = only(FENCED);
        world.start();
        world.append(0, "x", 10).await;
        world.settle().await;
        seconds(5).await;
        // Renamed, and not said to be: the file may be there after a crash, and is here.
        world.disk.fail_call(Operation::SyncDirectory, 1, Failure::Io);
        assert!(matches!(world.change(both()).await, Err(ChangeError::Save)));
        seconds(5).await;
        world.kill(1).await;
        world.start();
        world.append(0, "x", 5).await;
        world.settle().await;
        assert!(world.rows().iter().all(|row| row.sinks.len() == 1), "{:?}", world.rows());

        world.disk.fail_from_call(Operation::Rename, 2, Failure::Io);
        world.change(both()).await.unwrap();
        seconds(5).await;
        world.kill(2).await;
        world.disk.clear_faults();
        world.start();
        world.append(0, "x", 5).await;
        world.settle().await;
        world.check_balance();
        assert_eq!(counts(&row(&world, "x", FENCED)), [20, 0, 0, 0]);
        assert_eq!(counts(&row(&world, "x", KEYED)), [5, 0, 15, 0]);
    });
}

#[test]
fn what_a_removed_route_holds_pins_segments_until_it_is_given_up() {
    run(async {
        let mut world = World::new(63);
        world.routes = both();
        world.keyed.fail_next(1_000_000);
        world.start();
        world.append(0, "x", 4).await;
        world.append(0, "y", 2).await;
        seconds(2).await;
        world.change(only(FENCED)).await.unwrap();
        for _ in 0..60 {
            world.append(0, "x", 30).await;
        }
        world.settle_in(FENCED).await;
        let oldest = |world: &World| world.process().log.shards()[0].segments().oldest();
        seconds(5).await;
        assert_eq!(oldest(&world), Some(1), "pinned");
        assert_eq!(counts(&row(&world, "x", KEYED)), [0, 0, 1800, 4]);
        let refused = world.control().give_up(FENCED.into(), None).await;
        assert!(matches!(refused, Err(ChangeError::NothingHeld(_))), "{refused:?}");
        let given_up = world.control().give_up(KEYED.into(), Some(name("y"))).await.unwrap();
        assert_eq!(given_up, GivenUp { routes: vec![(name("y"), 2)], lanes: 0 });
        seconds(5).await;
        assert_eq!(oldest(&world), Some(1), "pinned by the other type");
        let given_up = world.control().give_up(KEYED.into(), None).await.unwrap();
        assert_eq!(given_up.routes, [(name("x"), 4)]);
        seconds(5).await;
        assert!(oldest(&world) > Some(1), "freed");
        world.check_balance();
        assert_eq!(counts(&row(&world, "x", KEYED)), [0, 0, 1804, 0]);
        world.stop().await;
        world.kill(1).await;
        world.keyed.heal();
        world.routes = both();
        world.start();
        world.append(0, "x", 3).await;
        world.settle().await;
        world.check_balance();
        assert_eq!(counts(&row(&world, "x", KEYED)), [3, 0, 1804, 0], "it began anew");
    });
}

#[test]
fn a_sink_that_goes_with_nothing_left_to_store_pins_nothing() {
    run(async {
        let mut world = World::new(64);
        world.routes = Routes::new().with(name("x"), [KEYED.into()]).with_others([FENCED.into()]);
        world.start();
        world.append(0, "x", 4).await;
        world.settle().await;
        // Behind the lane's cursor stand only events of others.
        world.append(0, "other", 30).await;
        world.change(only(FENCED)).await.unwrap();
        for _ in 0..60 {
            world.append(0, "other", 30).await;
        }
        world.settle().await;
        seconds(5).await;
        assert!(world.process().log.shards()[0].segments().oldest() > Some(1), "freed");
        assert_eq!(world.reported("no longer configured"), 0, "{:?}", world.messages());
    });
}
