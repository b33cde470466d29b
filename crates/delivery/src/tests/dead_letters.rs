//! Dead letters on a disk that is full, damaged or busy.

use std::path::PathBuf;

use dead_letters::{DeadAction, DeadFilter};
use journal::simulated_disk::Operation;

use super::harness::Harness;
use super::harness::id;
use super::harness::name;
use super::harness::run;
use super::harness::seconds;

/// The files of the transactional sink's dead letters, with their lengths.
fn files(harness: &Harness) -> Vec<(PathBuf, usize)> {
    let paths = harness.disk.paths().into_iter().filter(|path| path.starts_with("/data/dead/fenced"));
    paths.map(|path| (path.clone(), harness.disk.content(path).unwrap().len())).collect()
}

#[test]
fn dead_letter_is_written_immediately_on_full_disk() {
    run(async {
        let mut harness = Harness::new(20);
        harness.shards = 1;
        harness.fenced.refuse_id(id(2));
        harness.start();
        // Between two ticks of the checkpointer, which releases the reserve for the ledger.
        tokio::time::sleep(std::time::Duration::from_millis(2500)).await;
        harness.disk.set_capacity(Some(harness.disk.bytes_used()));
        harness.append(0, "other", 3).await;
        harness.wait_until_settled().await;
        let retries: u64 = harness.process().lanes.iter().map(|lane| lane.retries.get()).sum();
        assert_eq!(retries, 0, "nothing can use the space in between");
        harness.disk.set_capacity(None);
        harness.check_all().await;
    });
}

#[test]
fn the_segments_of_dead_letters_fit_the_reserve() {
    run(async {
        let mut harness = Harness::new(21);
        harness.fenced.refuse_type("other");
        harness.start();
        let payload = format!("\"{}\"", "x".repeat(3000));
        harness.append_request("other", 600, payload.as_bytes()).await;
        harness.wait_until_settled().await;
        let files = files(&harness);
        assert!(files.len() > 3 && files.iter().all(|(_, length)| *length <= 512 * 1024), "{files:?}");
        let large = format!("\"{}\"", "x".repeat(600_000));
        harness.append_request("other", 1, large.as_bytes()).await;
        harness.wait_until_settled().await;
        harness.check_all().await;
    });
}

#[test]
fn full_disk_does_not_duplicate_dead_letters() {
    run(async {
        let mut harness = Harness::new(24);
        harness.shards = 1;
        harness.fenced.refuse_type("other");
        harness.start();
        harness.fenced.block();
        let payload = format!("\"{}\"", "x".repeat(3000));
        harness.append_request("other", 900, payload.as_bytes()).await;
        seconds(3).await;
        harness.disk.set_capacity(Some(harness.disk.bytes_used() + 1024 * 1024));
        harness.fenced.release();
        seconds(10).await;
        assert!(files(&harness).len() > 2 && harness.pending() > 0, "a part is written");
        harness.disk.set_capacity(None);
        harness.wait_until_settled().await;
        harness.check_all().await;
    });
}

#[test]
fn damage_among_dead_letters_is_reported_once_a_start() {
    run(async {
        let mut harness = Harness::new(22);
        harness.fenced.refuse_type("other");
        harness.start();
        harness.append(0, "other", 3).await;
        harness.wait_until_settled().await;
        harness.stop().await;
        harness.kill(1).await;
        let (segment, _) = files(&harness)[0].clone();
        harness.disk.flip_bit(segment, (4096 + 200) * 8).unwrap();
        for starts in 1..3 {
            harness.start();
            seconds(3).await;
            assert_eq!(harness.reported("dead letters: case"), starts, "{:?}", harness.messages());
            harness.stop().await;
            harness.kill(starts as u64).await;
        }
    });
}

#[test]
fn known_dead_letters_are_not_read_again() {
    run(async {
        let mut harness = Harness::new(23);
        harness.shards = 1;
        harness.fenced.refuse_type("other");
        harness.start();
        harness.append(0, "other", 3).await;
        harness.wait_until_settled().await;
        harness.kill(1).await;
        harness.start();
        seconds(3).await;
        // The log's own records are handed over in memory, so only dead letters could be read.
        let reads = harness.disk.calls(Operation::ReadAt);
        let known = harness.process().dead[0].beyond(0, 1).unwrap();
        assert_eq!(known.into_iter().collect::<Vec<u64>>(), [2, 3]);
        harness.append(0, "other", 3).await;
        harness.wait_until_settled().await;
        assert_eq!(harness.process().dead[0].beyond(0, 4).unwrap().into_iter().collect::<Vec<u64>>(), [5, 6]);
        assert_eq!(harness.disk.calls(Operation::ReadAt), reads);
        harness.check_all().await;
    });
}

#[test]
fn new_dead_letters_are_logged_immediately_then_summed() {
    run(async {
        let mut harness = Harness::new(25);
        harness.shards = 1;
        harness.fenced.refuse_type("other");
        harness.start();
        harness.append(0, "other", 3).await;
        harness.wait_until_settled().await;
        assert_eq!(harness.reported("3 new dead letters"), 1, "{:?}", harness.messages());
        harness.append(0, "other", 2).await;
        harness.wait_until_settled().await;
        assert_eq!(harness.reported("sink=fenced type=other"), 1, "{:?}", harness.messages());
        seconds(10).await;
        assert_eq!(harness.reported("2 new dead letters"), 1, "{:?}", harness.messages());
        seconds(30).await;
        assert_eq!(harness.reported("sink=fenced type=other"), 2, "nothing more came: {:?}", harness.messages());
        assert_eq!(harness.reported("is set to"), 0, "a store's message may quote the event: {:?}", harness.messages());
        let last = harness.process().office.last("fenced", &name("other")).unwrap();
        assert!(last.reason.contains("is set to"), "{last:?}");
        assert_eq!(harness.process().office.last("fenced", &name("both")), None);
        harness.check_all().await;
    });
}

#[test]
fn lane_pauses_at_the_limit_of_dead_letters() {
    run(async {
        let mut harness = Harness::new(28);
        harness.shards = 1;
        harness.max_dead_letters = Some(5);
        harness.fenced.refuse_type("other");
        harness.start();
        harness.append(0, "other", 5).await;
        harness.wait_until_settled().await;
        assert_eq!(harness.held("fenced").len(), 5);
        harness.append(0, "other", 4).await;
        seconds(5).await;
        assert_eq!(harness.held("fenced").len(), 5, "no more are written");
        assert!(harness.pending() > 0, "they wait");
        let paused = |harness: &Harness| harness.process().lanes.iter().any(|lane| lane.retries.get() > 0);
        assert!(paused(&harness));
        let fenced = DeadFilter { sink: Some("fenced".into()), ..DeadFilter::default() };
        let dropped = harness.act(DeadAction::Drop, &fenced).await;
        assert_eq!((dropped.dropped, dropped.failure), (5, None));
        harness.wait_until_settled().await;
        assert_eq!(harness.held("fenced").len(), 4);
        harness.check_balance();
    });
}
