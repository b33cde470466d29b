//! Connections that are cut and that freeze, servers that are killed, streams that are purged, full, or changed under the sink.

use std::time::Duration;

use sink::{Cursor, SinkError};

use crate::stand::{Stand, server};
use sink_testing::events::{deliver, lane, plain};
use testkit::nats::NatsServer;

/// Each so many bytes of the server's answers is a place to cut at; with `FOREBAY_NATS_CUTS=all` each byte is.
const CUT_STEP: usize = 61;
/// How often the server is killed, unless `FOREBAY_NATS_KILLS` says.
const KILLS: u32 = 5;

fn from_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// All of a lane's events are there once, in its order, and its cursor says so.
async fn expect_once(stand: &Stand<'_>, count: u64) {
    let ids: Vec<_> = stand.messages().into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len() as u64, count);
    assert!(ids.is_sorted_by(|one, other| one < other), "each once, in the order of the journal");
    assert_eq!(stand.past_the_proxy().cursor(&lane(0)).await, Ok(Cursor::Store(count)));
}

#[tokio::test]
async fn cut_at_any_byte_of_an_answer_a_batch_is_stored_once() {
    let Some(server) = server() else { return };
    let stand = Stand::new(server);
    let (mut first, mut cuts) = (1, 0);
    let all = from_environment("FOREBAY_NATS_CUTS").is_some();
    // A connection that begins with the cut, and one that was open before: its answer is a few bytes.
    for is_open in [false, true] {
        let mut sink = stand.sink();
        let step = if all || is_open { 1 } else { CUT_STEP };
        for at in (0..).step_by(step) {
            if is_open {
                sink.cursor(&lane(0)).await.unwrap();
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
            assert!(answer.is_err() || !is_cut || at > 0, "{answer:?} after {at} bytes");
            deliver(&sink, &batch).await;
            (first, cuts) = (first + 3, cuts + 1);
            if !is_cut {
                break;
            }
        }
    }
    assert!(cuts > 60, "{cuts} cuts");
    expect_once(&stand, first - 1).await;
}

#[tokio::test]
async fn a_connection_that_froze_in_a_batch_and_thaws_behind_it_writes_nothing() {
    let Some(server) = server() else { return };
    let twin = Stand::new(server);
    let mut first = 1;
    // Frozen before the first batch's answer, in it, and between batches.
    for at in [0, 1, 50, 100, 150, 10_000] {
        let (frozen, other) = (twin.sink(), twin.past_the_proxy());
        assert_eq!(frozen.cursor(&lane(0)).await, Ok(Cursor::Store(first - 1)));
        let freeze = twin.proxy.freeze_after(at);
        let batch = plain(0, first, 2_500);
        let write = {
            let (frozen, batch) = (frozen.clone(), batch.clone());
            tokio::spawn(async move { frozen.write(&batch).await })
        };
        // It may have come far or not: what the other one finds is skipped, and what it does is found.
        tokio::time::timeout(Duration::from_millis(20), std::future::pending::<()>()).await.unwrap_err();
        deliver(&other, &batch).await;
        drop(freeze);
        let answer = write.await.unwrap();
        assert!(!matches!(answer, Err(SinkError::Misconfigured(_))), "{answer:?}");
        deliver(&frozen, &batch).await;
        first += 2_500;
        assert_eq!(other.cursor(&lane(0)).await, Ok(Cursor::Store(first - 1)), "frozen after {at} bytes");
    }
    expect_once(&twin, first - 1).await;
}

#[tokio::test]
async fn a_server_that_is_killed_under_load_has_everything_once() {
    let Some(server) = NatsServer::start() else { return };
    let stand = Stand::new(&server);
    let kills = from_environment("FOREBAY_NATS_KILLS").map_or(KILLS, |count| count.parse().unwrap());
    let done = tokio::sync::watch::Sender::new(false);
    stand.sink().connect().await.unwrap();
    let mut lanes = Vec::new();
    for shard in 0..3 {
        let (sink, done) = (stand.sink(), done.subscribe());
        lanes.push(tokio::spawn(async move {
            let mut next = 1;
            while !*done.borrow() {
                deliver(&sink, &plain(shard, next, 1_500)).await;
                next += 1_500;
            }
            next - 1
        }));
    }
    for round in 0..kills {
        let before = stand.count();
        // Something is stored between two kills, however slow the machine is.
        while stand.count() < before + 4_500 {
            tokio::time::sleep(Duration::from_millis(u64::from(round * 7 % 13) + 1)).await;
        }
        server.kill();
        server.run();
    }
    done.send_replace(true);
    let mut stored = 0;
    for lane in lanes {
        stored += lane.await.unwrap();
    }
    let mut ids: Vec<_> = stand.messages().into_iter().map(|(id, _)| id).collect();
    let all = ids.len() as u64;
    ids.sort();
    ids.dedup();
    assert_eq!((all, ids.len() as u64), (stored, stored), "each once");
}

#[tokio::test]
async fn a_stream_that_was_purged_takes_no_batch_that_leaves_a_gap() {
    let Some(server) = server() else { return };
    let stand = Stand::new(server);
    let sink = stand.sink();
    deliver(&sink, &plain(0, 1, 10)).await;
    server.client().stream("DELETE", &stand.stream, "");
    let next = plain(0, 11, 1).sent_after(10, 10);
    let Err(SinkError::Unavailable(_)) = sink.write(&next).await else { panic!("there is no stream") };
    // It is made again, and the batch says what it lacks, also to another process.
    let sink = stand.sink();
    let Err(SinkError::Unavailable(reason)) = sink.write(&next).await else { panic!("1 to 10 are missing") };
    assert!(reason.contains("up to position 0, and 10 was stored"), "{reason}");
    assert_eq!(stand.count(), 0, "nothing was written");
    assert_eq!(sink.cursor(&lane(0)).await, Ok(Cursor::Store(0)), "and whoever asks can go on from there");
    deliver(&sink, &plain(0, 1, 11)).await;
    expect_once(&stand, 11).await;
}

#[tokio::test]
async fn a_full_stream_stores_nothing_of_a_batch_and_goes_on_when_it_has_room() {
    let Some(server) = server() else { return };
    let stand = Stand::new(server);
    let sink = stand.sink();
    deliver(&sink, &plain(0, 1, 10)).await;
    let update = |max| {
        let updated =
            server.client().stream("UPDATE", &stand.stream, &stand.description(&format!(",\"max_msgs\":{max}")));
        assert!(!updated.contains("\"error\""), "{updated}");
    };
    update(500);
    let Err(SinkError::Unavailable(reason)) = sink.write(&plain(0, 11, 900)).await else { panic!("it has no room") };
    assert!(reason.contains("maximum messages exceeded") && reason.contains("more room"), "{reason}");
    assert_eq!((stand.count(), sink.cursor(&lane(0)).await), (11, Ok(Cursor::Store(10))));
    update(-1);
    deliver(&sink, &plain(0, 11, 900)).await;
    expect_once(&stand, 910).await;
}
