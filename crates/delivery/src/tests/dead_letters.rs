//! Dead letters on a disk that is full, damaged or busy.

use std::path::PathBuf;

use journal::simulated_disk::Operation;

use crate::dead_letters::{DeadAction, DeadFilter};

use super::world::World;
use super::world::id;
use super::world::name;
use super::world::run;
use super::world::seconds;

/// The files of the fenced sink's dead letters, with their lengths.
fn files(world: &World) -> Vec<(PathBuf, usize)> {
    let paths = world.disk.paths().into_iter().filter(|path| path.starts_with("/data/dead/fenced"));
    paths.map(|path| (path.clone(), world.disk.content(path).unwrap().len())).collect()
}

#[test]
fn on_a_full_disk_the_reserve_takes_a_dead_letter_at_once() {
    run(async {
        let mut world = World::new(20);
        world.shards = 1;
        world.fenced.refuse_id(id(2));
        world.start();
        // Between two turns of the keeper, which releases the reserve for the ledger.
        tokio::time::sleep(std::time::Duration::from_millis(2500)).await;
        world.disk.set_capacity(Some(world.disk.bytes_used()));
        world.append(0, "other", 3).await;
        world.settle().await;
        let retries: u64 = world.process().lanes.iter().map(|lane| lane.retries.get()).sum();
        assert_eq!(retries, 0, "nobody can take the space back in between");
        world.disk.set_capacity(None);
        world.check_all().await;
    });
}

#[test]
fn the_segments_of_dead_letters_fit_the_reserve() {
    run(async {
        let mut world = World::new(21);
        world.fenced.refuse_type("other");
        world.start();
        let payload = format!("\"{}\"", "x".repeat(3000));
        world.append_request("other", 600, payload.as_bytes()).await;
        world.settle().await;
        let files = files(&world);
        assert!(files.len() > 3 && files.iter().all(|(_, length)| *length <= 512 * 1024), "{files:?}");
        let large = format!("\"{}\"", "x".repeat(600_000));
        world.append_request("other", 1, large.as_bytes()).await;
        world.settle().await;
        world.check_all().await;
    });
}

#[test]
fn letters_that_were_written_before_the_disk_was_full_are_not_written_again() {
    run(async {
        let mut world = World::new(24);
        world.shards = 1;
        world.fenced.refuse_type("other");
        world.start();
        world.fenced.block();
        let payload = format!("\"{}\"", "x".repeat(3000));
        world.append_request("other", 900, payload.as_bytes()).await;
        seconds(3).await;
        world.disk.set_capacity(Some(world.disk.bytes_used() + 1024 * 1024));
        world.fenced.release();
        seconds(10).await;
        assert!(files(&world).len() > 2 && world.pending() > 0, "a part is written");
        world.disk.set_capacity(None);
        world.settle().await;
        world.check_all().await;
    });
}

#[test]
fn damage_among_dead_letters_is_reported_once_a_start() {
    run(async {
        let mut world = World::new(22);
        world.fenced.refuse_type("other");
        world.start();
        world.append(0, "other", 3).await;
        world.settle().await;
        world.stop().await;
        world.kill(1).await;
        let (segment, _) = files(&world)[0].clone();
        world.disk.flip_bit(segment, (4096 + 200) * 8).unwrap();
        for starts in 1..3 {
            world.start();
            seconds(3).await;
            assert_eq!(world.reported("dead letters of sink fenced: case"), starts, "{:?}", world.messages());
            world.stop().await;
            world.kill(starts as u64).await;
        }
    });
}

#[test]
fn what_is_known_of_dead_letters_is_not_read_again() {
    run(async {
        let mut world = World::new(23);
        world.shards = 1;
        world.fenced.refuse_type("other");
        world.start();
        world.append(0, "other", 3).await;
        world.settle().await;
        world.kill(1).await;
        world.start();
        seconds(3).await;
        // The log's own records are handed over in memory, so that only dead letters could be read.
        let reads = world.disk.calls(Operation::ReadAt);
        let known = world.process().dead[0].beyond(0, 1).unwrap();
        assert_eq!(known.into_iter().collect::<Vec<u64>>(), [2, 3]);
        world.append(0, "other", 3).await;
        world.settle().await;
        assert_eq!(world.process().dead[0].beyond(0, 4).unwrap().into_iter().collect::<Vec<u64>>(), [5, 6]);
        assert_eq!(world.disk.calls(Operation::ReadAt), reads);
        world.check_all().await;
    });
}

#[test]
fn new_letters_are_told_at_once_and_then_in_sums() {
    run(async {
        let mut world = World::new(25);
        world.shards = 1;
        world.fenced.refuse_type("other");
        world.start();
        world.append(0, "other", 3).await;
        world.settle().await;
        assert_eq!(world.reported("dead letters of sink fenced: 3 new of type other"), 1, "{:?}", world.messages());
        world.append(0, "other", 2).await;
        world.settle().await;
        assert_eq!(world.reported("dead letters of sink fenced"), 1, "{:?}", world.messages());
        seconds(10).await;
        assert_eq!(world.reported("dead letters of sink fenced: 2 new of type other"), 1, "{:?}", world.messages());
        seconds(30).await;
        assert_eq!(world.reported("dead letters of sink fenced"), 2, "nothing more came: {:?}", world.messages());
        assert_eq!(world.reported("told to"), 0, "a store's words may quote the event: {:?}", world.messages());
        let last = world.process().office.last("fenced", &name("other")).unwrap();
        assert!(last.reason.contains("told to"), "{last:?}");
        assert_eq!(world.process().office.last("fenced", &name("both")), None);
        world.check_all().await;
    });
}

#[test]
fn at_the_limit_of_dead_letters_a_lane_pauses_until_there_is_room() {
    run(async {
        let mut world = World::new(28);
        world.shards = 1;
        world.max_dead_letters = Some(5);
        world.fenced.refuse_type("other");
        world.start();
        world.append(0, "other", 5).await;
        world.settle().await;
        assert_eq!(world.held("fenced").len(), 5);
        world.append(0, "other", 4).await;
        seconds(5).await;
        assert_eq!(world.held("fenced").len(), 5, "no more are written");
        assert!(world.pending() > 0, "they wait");
        let paused = |world: &World| world.process().lanes.iter().any(|lane| lane.retries.get() > 0);
        assert!(paused(&world));
        let fenced = DeadFilter { sink: Some("fenced".into()), ..DeadFilter::default() };
        let dropped = world.act(DeadAction::Drop, &fenced).await;
        assert_eq!((dropped.dropped, dropped.failure), (5, None));
        world.settle().await;
        assert_eq!(world.held("fenced").len(), 4);
        world.check_balance();
    });
}
