//! Stores that fail over to a copy of themselves that is behind: what was lost is still in the journal.

use std::time::Duration;

use sink_testing::MemoryHandle;

use super::world::World;
use super::world::run;
use super::world::seconds;
use crate::status::LaneState;

/// Events of several segments.
const MANY: u64 = 1_500;

/// A process with one shard, whose store may lose what it has taken within the last minute.
fn world(seed: u64) -> World {
    let mut world = World::new(seed);
    world.fenced = MemoryHandle::replicated(Duration::from_mins(1));
    world.shards = 1;
    world
}

/// Appends and delivers events of several segments.
async fn store_many(world: &mut World) {
    for _ in 0..MANY / 30 {
        world.append(0, "other", 30).await;
    }
    world.settle().await;
}

fn oldest(world: &World) -> u64 {
    world.process().log.shards()[0].segments().oldest().unwrap()
}

fn waits(world: &World) -> bool {
    matches!(world.process().lanes[0].state(), LaneState::Waiting(_))
}

#[test]
fn segments_stay_while_the_store_may_lose_them_and_go_then_by_themselves() {
    run(async {
        let mut world = world(70);
        world.start();
        store_many(&mut world).await;
        seconds(50).await;
        assert_eq!(oldest(&world), 1);
        seconds(60).await;
        assert!(oldest(&world) > 1, "nobody needs them any more");
        let calls = world.fenced.calls().len();
        seconds(600).await;
        assert_eq!(world.fenced.calls().len(), calls);
        world.check_all().await;
    });
}

#[test]
fn an_outage_is_no_time_in_which_a_standby_catches_up() {
    run(async {
        let mut world = world(71);
        world.start();
        world.append(0, "other", 20).await;
        world.settle().await;
        let standby = world.fenced.standby();
        store_many(&mut world).await;
        seconds(5).await;
        world.fenced.fail_next(usize::MAX);
        seconds(600).await;
        assert!(waits(&world), "it noticed though it had nothing to write");
        world.fenced.fail_next(0);
        while waits(&world) {
            seconds(1).await;
        }
        seconds(40).await;
        assert_eq!(oldest(&world), 1, "the same server is back, and its standby as far behind as before");
        world.fenced.fail_next(usize::MAX);
        seconds(600).await;
        world.fenced.fail_over(standby);
        world.fenced.fail_next(0);
        seconds(90).await;
        assert_eq!(world.fenced.count() as u64, MANY + 20, "{:?}", world.messages());
        world.check_all().await;
    });
}

#[test]
fn a_failover_that_nobody_noticed_is_mended_without_a_new_event() {
    run(async {
        let mut world = world(72);
        world.start();
        world.append(0, "other", 20).await;
        world.settle().await;
        for _ in 0..3 {
            // Each takes over within the minute after the one before.
            let standby = world.fenced.standby();
            store_many(&mut world).await;
            let all = world.fenced.count();
            seconds(40).await;
            world.fenced.fail_over(standby);
            assert!(world.fenced.count() < all);
            seconds(15).await;
            assert_eq!(world.fenced.count(), all, "{:?}", world.messages());
        }
        world.check_all().await;
    });
}

#[test]
fn what_was_delivered_again_settles_anew() {
    run(async {
        let mut world = world(73);
        world.start();
        world.append(0, "other", 20).await;
        world.settle().await;
        let (standby, other) = (world.fenced.standby(), world.fenced.standby());
        store_many(&mut world).await;
        seconds(50).await;
        world.fenced.fail_over(standby);
        seconds(30).await;
        assert_eq!(world.fenced.count() as u64, MANY + 20);
        world.fenced.fail_over(other);
        seconds(15).await;
        assert_eq!(world.fenced.count() as u64, MANY + 20, "{:?}", world.messages());
        world.check_all().await;
    });
}
