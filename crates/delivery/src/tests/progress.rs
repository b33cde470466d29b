//! When lanes passed positions is known after the journal has freed them, and failures are kept.

use std::sync::atomic::Ordering;

use super::harness::FENCED;
use super::harness::Harness;
use super::harness::KEYED;
use super::harness::run;
use super::harness::seconds;

const SECOND: i64 = 1_000_000;

/// A clock that goes with the simulated time, which a round of the test moves on by a second.
async fn tick(harness: &Harness) -> (i64, u64) {
    for _ in 0..4 {
        harness.clock.fetch_add(SECOND / 4, Ordering::Relaxed);
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    }
    let lanes = &harness.process().lanes;
    let lane = lanes.iter().find(|lane| &*lane.lane().sink == FENCED).unwrap();
    (harness.clock.load(Ordering::Relaxed), lane.cursor())
}

/// Appends events for so many seconds. Adds what the cursor was at which time.
async fn deliver(harness: &mut Harness, rounds: u64, seen: &mut Vec<(i64, u64)>) {
    for _ in 0..rounds {
        for _ in 0..5 {
            harness.append(0, "both", 30).await;
        }
        seen.push(tick(harness).await);
    }
}

/// Compares the bounds of each position with the samples that the test took.
fn check(harness: &Harness, seen: &[(i64, u64)]) {
    let progress = &harness.process().progress;
    for pair in seen.windows(2) {
        let ((before, passed), (after, cursor)) = (pair[0], pair[1]);
        for position in passed + 1..=cursor {
            let found = progress.passed(0, FENCED, position).unwrap();
            let exactness = found.to - found.from;
            assert!(
                found.from <= after && before <= found.to && exactness <= SECOND,
                "{position}: {found:?}, {pair:?}"
            );
        }
    }
}

#[test]
fn passage_is_known_after_the_segment_was_freed() {
    run(async {
        let mut harness = Harness::new(90);
        harness.shards = 1;
        harness.clock.store(1_760_000_000 * SECOND, Ordering::Relaxed);
        harness.start();
        let mut seen = Vec::new();
        seconds(1).await;
        seen.push(tick(&harness).await);
        deliver(&mut harness, 20, &mut seen).await;
        harness.fenced.block();
        deliver(&mut harness, 5, &mut seen).await;
        harness.fenced.release();
        deliver(&mut harness, 20, &mut seen).await;
        harness.wait_until_settled().await;
        seen.push(tick(&harness).await);
        let oldest = harness.process().log.shards()[0].segments().oldest().unwrap();
        assert!(oldest > 2_000, "{oldest}");
        check(&harness, &seen);
        harness.stop().await;
        harness.kill(1).await;
        // An hour later, and in another process.
        harness.clock.fetch_add(3_600 * SECOND, Ordering::Relaxed);
        harness.start();
        seconds(1).await;
        let last = seen.last().unwrap().1;
        seen.push(tick(&harness).await);
        deliver(&mut harness, 2, &mut seen).await;
        harness.wait_until_settled().await;
        let (before, after): (Vec<_>, Vec<_>) = seen.iter().partition(|(_, cursor)| *cursor <= last);
        check(&harness, &before[..before.len() - 1]);
        check(&harness, &after);
        harness.check_all().await;
    });
}

#[test]
fn hanging_progress_file_does_not_block_delivery_or_stop() {
    // The writing thread runs in real time, so this test doesn't pause the clock.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut harness = Harness::new(92);
        harness.shards = 1;
        harness.progress_thread = true;
        let hanging = harness.disk.hang("/data/progress/0000");
        harness.start();
        while !hanging.is_awaited() {
            harness.append(0, "both", 1).await;
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        harness.append(0, "both", 30).await;
        harness.wait_until_settled().await;
        harness.check_all().await;
        assert!(hanging.is_awaited());
    });
}

#[test]
fn outage_is_kept_with_its_end() {
    run(async {
        let mut harness = Harness::new(91);
        harness.shards = 1;
        harness.clock.store(SECOND, Ordering::Relaxed);
        harness.start();
        seconds(1).await;
        harness.keyed.fail_next(3);
        harness.append(0, "both", 1).await;
        let mut seen = Vec::new();
        for _ in 0..60 {
            seen.push(tick(&harness).await);
        }
        let found = harness.process().progress.recent_failures(KEYED);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].tries, 3, "{found:?}");
        assert!(found[0].to.is_some_and(|to| to > found[0].from), "{found:?}");
        assert_eq!(harness.process().progress.failures(0, KEYED, found[0].from, None), found);
        assert_eq!(harness.process().progress.recent_failures(FENCED), []);
        harness.check_all().await;
    });
}
