//! Routes that are out for a time while their sink stays for other types: what comes meanwhile is skipped, wherever the
//! lanes and their stores stand.

use std::time::Duration;

use super::world::FENCED;
use super::world::KEYED;
use super::world::World;
use super::world::name;
use super::world::run;
use super::world::seconds;
use crate::routes::Routes;
use crate::setup::Begin;

/// Type `z` goes to both sinks, and `a` to these.
fn routes(of_a: &[&str]) -> Routes {
    let sinks = of_a.iter().map(|sink| (*sink).into());
    Routes::new().with(name("a"), sinks).with(name("z"), [FENCED.into(), KEYED.into()])
}

/// Stored, dead, skipped, pending of type `a`.
fn counts(world: &World, sink: &str) -> [u64; 4] {
    let rows = world.rows();
    let row = rows.iter().find(|row| row.type_name == name("a")).unwrap();
    let row = row.sinks.iter().find(|row| &*row.sink == sink).unwrap();
    [row.stored, row.dead, row.skipped, row.pending]
}

/// Waits until the fenced store has so many events, and no longer: its cursor isn't saved.
async fn until_stored(world: &World, count: usize) {
    for _ in 0..1000 {
        if world.fenced.count() == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("{} of {count} are stored", world.fenced.count());
}

#[test]
fn a_store_that_is_ahead_has_not_stored_what_came_while_the_route_was_out() {
    for power in [false, true] {
        run(async move {
            let mut world = World::new(90);
            world.routes = routes(&[FENCED, KEYED]);
            world.start();
            world.append(0, "a", 5).await;
            world.settle().await;
            seconds(2).await;
            world.change(routes(&[])).await.unwrap();
            world.append(0, "a", 20).await;
            world.append(0, "z", 1).await;
            until_stored(&world, 6).await;
            if power {
                world.power_cut(1).await;
            } else {
                world.kill(1).await;
            }
            world.routes = routes(&[FENCED, KEYED]);
            world.start();
            world.append(0, "a", 1).await;
            world.settle().await;
            world.check_balance();
            for (sink, store) in [(FENCED, &world.fenced), (KEYED, &world.keyed)] {
                assert_eq!(counts(&world, sink), [6, 0, 20, 0], "{sink}");
                assert_eq!(store.count(), 7, "{sink}");
            }
        });
    }
}

#[test]
fn a_route_to_a_store_that_is_ahead_begins_behind_it() {
    run(async {
        let mut world = World::new(91);
        world.begin = Begin::Oldest;
        world.routes = routes(&[]);
        world.start();
        world.append(0, "z", 1).await;
        world.settle().await;
        seconds(2).await;
        world.append(0, "a", 20).await;
        world.append(0, "z", 1).await;
        until_stored(&world, 2).await;
        world.kill(1).await;
        world.routes = routes(&[FENCED]);
        world.start();
        world.append(0, "a", 3).await;
        world.settle().await;
        world.check_balance();
        assert_eq!(counts(&world, FENCED), [3, 0, 20, 0]);
        assert_eq!(world.fenced.count(), 5);
    });
}

#[test]
fn what_is_skipped_stays_skipped_however_soon_the_route_is_back() {
    for pause in [0, 100, 5000] {
        run(async move {
            let mut world = World::new(92);
            world.routes = routes(&[FENCED, KEYED]);
            world.start();
            world.append(0, "a", 5).await;
            world.settle().await;
            world.change(routes(&[])).await.unwrap();
            world.append(0, "a", 20).await;
            tokio::time::sleep(Duration::from_millis(pause)).await;
            let sinks = [(FENCED, world.fenced.clone()), (KEYED, world.keyed.clone())];
            sinks.iter().for_each(|(sink, _)| assert_eq!(counts(&world, sink), [5, 0, 20, 0], "{pause}: {sink}"));
            world.change(routes(&[FENCED, KEYED])).await.unwrap();
            sinks.iter().for_each(|(sink, _)| assert_eq!(counts(&world, sink), [5, 0, 20, 0], "{pause}: {sink}"));
            world.append(0, "a", 2).await;
            world.settle().await;
            world.check_balance();
            for (sink, store) in sinks {
                assert_eq!(counts(&world, sink), [7, 0, 20, 0], "{pause}: {sink}");
                assert_eq!(store.count(), 7, "{pause}: {sink}");
            }
        });
    }
}

#[test]
fn what_waited_when_a_route_went_is_delivered_and_what_came_in_its_gaps_is_not() {
    run(async {
        let mut world = World::new(93);
        world.routes = routes(&[FENCED, KEYED]);
        world.fenced.fail_next(1_000_000);
        world.keyed.fail_next(1_000_000);
        world.start();
        for _ in 0..3 {
            world.append(0, "a", 4).await;
            world.change(routes(&[])).await.unwrap();
            world.append(0, "a", 10).await;
            world.append(1, "a", 10).await;
            world.change(routes(&[FENCED, KEYED])).await.unwrap();
            world.kill(1).await;
            world.start();
        }
        assert_eq!(counts(&world, FENCED), [0, 0, 60, 12]);
        world.fenced.heal();
        world.keyed.heal();
        seconds(100).await;
        world.settle().await;
        world.check_balance();
        assert_eq!((counts(&world, FENCED), counts(&world, KEYED)), ([12, 0, 60, 0], [12, 0, 60, 0]));
        assert_eq!((world.fenced.count(), world.keyed.count()), (12, 12));
    });
}

#[test]
fn a_route_that_goes_before_its_sink_gets_nothing_of_what_came_since() {
    run(async {
        let mut world = World::new(94);
        world.routes = routes(&[KEYED, FENCED]);
        world.keyed.fail_next(1_000_000);
        world.start();
        world.append(0, "a", 2).await;
        world.change(routes(&[FENCED])).await.unwrap();
        world.append(0, "a", 3).await;
        let without_sink = Routes::new().with(name("a"), [FENCED.into()]).with(name("z"), [FENCED.into()]);
        world.change(without_sink).await.unwrap();
        world.append(0, "a", 4).await;
        world.append(0, "z", 5).await;
        world.keyed.heal();
        world.change(routes(&[KEYED, FENCED])).await.unwrap();
        seconds(100).await;
        world.settle().await;
        world.check_balance();
        assert_eq!(counts(&world, KEYED), [2, 0, 7, 0]);
    });
}
