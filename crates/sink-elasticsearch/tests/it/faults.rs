//! Connections that are cut and that freeze, and a server that is killed.

use std::sync::Arc;
use std::time::Duration;

use sink::{SinkError, WriteOutcome};

use crate::stand::{Stand, server, set_up};
use sink_testing::events::{deliver, plain};
use testkit::opensearch::OpenSearch;

/// Each so many bytes of the server's answers is a place to cut at; with `FOREBAY_ELASTICSEARCH_CUTS=all` each byte is.
const CUT_STEP: usize = 29;
/// How often the server is killed, unless `FOREBAY_ELASTICSEARCH_KILLS` says: it takes long to come back.
const KILLS: u32 = 2;
const LANES: u16 = 3;
const RECORDS: usize = 200;

fn from_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[tokio::test]
async fn cut_at_any_byte_of_an_answer_a_batch_is_stored_once() {
    let Some(server) = server() else { return };
    let stand = Stand::new(server);
    let (mut first, mut cuts) = (1, 0);
    let step = if from_environment("FOREBAY_ELASTICSEARCH_CUTS").is_some() { 1 } else { CUT_STEP };
    // A connection that begins with the cut, and one that was open before.
    for is_open in [false, true] {
        let mut sink = stand.sink();
        for at in (0..).step_by(step) {
            if is_open {
                sink.connect().await.unwrap();
            } else {
                sink = stand.sink();
            }
            let before = stand.proxy.answered();
            let cut = stand.proxy.cut_after(at);
            let batch = plain(0, first, 3);
            let answer = sink.write(&batch).await;
            let is_cut = stand.proxy.answered() - before == at;
            drop(cut);
            assert!(!matches!(answer, Err(SinkError::Misconfigured(_))), "{answer:?}");
            // What was answered to be stored isn't sent again.
            if answer != Ok(WriteOutcome::Committed) {
                deliver(&sink, &batch).await;
            }
            (first, cuts) = (first + 3, cuts + 1);
            if !is_cut {
                break;
            }
        }
    }
    assert!(cuts > 10, "{cuts} cuts");
    assert_eq!(stand.count() as u64, first - 1);
}

#[tokio::test]
async fn a_connection_that_froze_in_a_batch_and_thaws_behind_it_changes_nothing() {
    let Some(server) = server() else { return };
    let mut stand = Stand::new(server);
    stand.config.timeout = Duration::from_secs(1);
    let other = stand.past_the_proxy();
    let mut first = 1;
    for at in [0, 30, 90, 150, 10_000] {
        let frozen = stand.sink();
        frozen.connect().await.unwrap();
        let freeze = stand.proxy.freeze_after(at);
        let batch = plain(0, first, 500);
        let write = {
            let (frozen, batch) = (frozen.clone(), batch.clone());
            tokio::spawn(async move { frozen.write(&batch).await })
        };
        deliver(&other, &batch).await;
        drop(freeze);
        let answer = write.await.unwrap();
        assert!(!matches!(answer, Err(SinkError::Misconfigured(_))), "{answer:?}");
        assert_eq!(other.write(&plain(0, first + 500, 1)).await, Ok(WriteOutcome::Committed));
        deliver(&frozen, &batch).await;
        first += 501;
        assert_eq!(stand.count() as u64, first - 1, "frozen after {at} bytes");
    }
}

#[tokio::test]
async fn a_server_that_is_killed_under_load_has_everything_once() {
    let Some(server) = OpenSearch::start() else { return };
    // It ends with the process: other threads have it too.
    let server: &OpenSearch = Box::leak(Box::new(server));
    set_up(server);
    let stand = Stand::new(server);
    let kills = from_environment("FOREBAY_ELASTICSEARCH_KILLS").map_or(KILLS, |count| count.parse().unwrap());
    let done = tokio::sync::watch::Sender::new(false);
    let stored = Arc::new(tokio::sync::watch::Sender::new(0_u64));
    let mut lanes = Vec::new();
    for shard in 0..LANES {
        let (sink, done, stored) = (stand.sink(), done.subscribe(), Arc::clone(&stored));
        lanes.push(tokio::spawn(async move {
            let mut next = 1;
            while !*done.borrow() {
                deliver(&sink, &plain(shard, next, RECORDS)).await;
                next += RECORDS as u64;
                stored.send_modify(|count| *count += RECORDS as u64);
            }
        }));
    }
    let mut progress = stored.subscribe();
    for _ in 0..kills {
        // Something is stored between two kills, however slow the machine is.
        let before = *progress.borrow();
        progress.wait_for(|count| *count >= before + 5 * RECORDS as u64).await.unwrap();
        let killed = tokio::task::spawn_blocking(|| {
            server.kill();
            server.run();
        });
        killed.await.unwrap();
    }
    done.send_replace(true);
    for lane in lanes {
        lane.await.unwrap();
    }
    assert_eq!(stand.count() as u64, *stored.borrow());
}
