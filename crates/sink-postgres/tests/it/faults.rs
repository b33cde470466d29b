//! Connections that are cut and that freeze, servers that are killed, a server that has lost a tail.

use std::time::Duration;

use sink::{Cursor, SinkError, WriteOutcome};
use sink_postgres::PayloadKind;

use crate::stand::{Stand, client, server};
use sink_testing::events::{deliver, lane, plain};
use testkit::ports::free_address;
use testkit::postgres::PostgresServer;

/// Each so many bytes of the server's answers is a place to cut at; with `FOREBAY_POSTGRES_CUTS=all` each byte is.
const CUT_STEP: usize = 29;
/// How often the server is killed, unless `FOREBAY_POSTGRES_KILLS` says.
const KILLS: u32 = 5;

fn from_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[tokio::test]
async fn cut_at_any_byte_of_an_answer_a_batch_is_stored_once() {
    let Some(server) = server() else { return };
    let stand = Stand::new(server, PayloadKind::Jsonb).await;
    let sink = stand.sink();
    sink.connect().await.unwrap();
    let (mut first, mut cuts) = (1, 0);
    let step = if from_environment("FOREBAY_POSTGRES_CUTS").is_some() { 1 } else { CUT_STEP };
    // A connection that begins with the cut, and one that was open before.
    for is_open in [false, true] {
        let mut sink = stand.sink();
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
            deliver(&sink, &batch).await;
            (first, cuts) = (first + 3, cuts + 1);
            if !is_cut {
                break;
            }
        }
    }
    assert!(cuts > 20, "{cuts} cuts");
    assert_eq!(stand.rows(server).await.len() as u64, first - 1);
    assert_eq!(sink.cursor(&lane(0)).await, Ok(Cursor::Store(first - 1)));
}

#[tokio::test]
async fn a_connection_that_froze_in_a_batch_and_thaws_behind_it_writes_nothing() {
    let Some(server) = server() else { return };
    let mut twin = Stand::new(server, PayloadKind::Text).await;
    twin.config.timeout = Duration::from_secs(1);
    let mut first = 1;
    for at in [1, 30, 90, 150, 200, 260, 400, 10_000] {
        let (frozen, other) = (twin.sink(), twin.past_the_proxy(server));
        assert_eq!(frozen.cursor(&lane(0)).await, Ok(Cursor::Store(first - 1)));
        let freeze = twin.proxy.freeze_after(at);
        let batch = plain(0, first, 2_000);
        let write = {
            let (frozen, batch) = (frozen.clone(), batch.clone());
            tokio::spawn(async move { frozen.write(&batch).await })
        };
        // Whether it has come far or not: the other one waits for it, and takes over when the server has let it go.
        tokio::time::timeout(Duration::from_millis(50), std::future::pending::<()>()).await.unwrap_err();
        deliver(&other, &batch).await;
        drop(freeze);
        let answer = write.await.unwrap();
        assert!(!matches!(answer, Err(SinkError::Misconfigured(_))), "{answer:?}");
        assert_eq!(other.write(&plain(0, first + 2_000, 1)).await, Ok(WriteOutcome::Committed));
        deliver(&frozen, &batch).await;
        first += 2_001;
        assert_eq!(other.cursor(&lane(0)).await, Ok(Cursor::Store(first - 1)));
        assert_eq!(twin.rows(server).await.len() as u64, first - 1, "frozen after {at} bytes");
    }
}

#[tokio::test]
async fn a_server_that_is_killed_under_load_has_everything_once() {
    let Some(server) = PostgresServer::start() else { return };
    let stand = Stand::new(&server, PayloadKind::Jsonb).await;
    let kills = from_environment("FOREBAY_POSTGRES_KILLS").map_or(KILLS, |count| count.parse().unwrap());
    let done = tokio::sync::watch::Sender::new(false);
    let mut lanes = Vec::new();
    for shard in 0..3 {
        let (sink, done) = (stand.sink(), done.subscribe());
        lanes.push(tokio::spawn(async move {
            let mut next = 1;
            while !*done.borrow() {
                deliver(&sink, &plain(shard, next, 500)).await;
                next += 500;
            }
            next - 1
        }));
    }
    let server = std::sync::Arc::new(server);
    for round in 0..kills {
        let server = server.clone();
        let (stand_rows, stand) = (stand.count(&server).await, &stand);
        // Something is stored between two kills, however slow the machine is.
        while stand.count(&server).await < stand_rows + 1_500 {
            tokio::time::sleep(Duration::from_millis(u64::from(round * 7 % 13) + 1)).await;
        }
        let killed = tokio::task::spawn_blocking(move || {
            server.kill();
            server.run();
        });
        killed.await.unwrap();
    }
    done.send_replace(true);
    let mut stored = 0;
    for lane in lanes {
        stored += lane.await.unwrap();
    }
    assert_eq!(stand.count(&server).await, stored);
    let positions = format!("select sum(position)::bigint from {}.forebay_cursors", stand.schema);
    let row = client(&server).await.query_one(&positions, &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0).cast_unsigned(), stored);
}

#[tokio::test]
async fn a_server_that_has_lost_a_tail_takes_no_batch_that_leaves_a_gap() {
    let Some(server) = server() else { return };
    let stand = Stand::new(server, PayloadKind::Jsonb).await;
    let sink = stand.sink();
    deliver(&sink, &plain(0, 1, 10)).await;
    deliver(&sink, &plain(0, 11, 10)).await;
    let lost = format!(
        "delete from {0}.events where received_at > '2025-10-09 08:53:20.000010Z'; update {0}.forebay_cursors set position = 10",
        stand.schema
    );
    client(server).await.batch_execute(&lost).await.unwrap();
    // Another process, which has seen nothing of it.
    let sink = stand.sink();
    let Err(SinkError::Unavailable(reason)) = sink.write(&plain(0, 21, 1).sent_after(20, 20)).await else {
        panic!("11 to 20 are missing")
    };
    assert!(reason.contains("older copy"), "{reason}");
    assert_eq!(sink.cursor(&lane(0)).await, Ok(Cursor::Store(10)), "and whoever asks can go on from there");
    deliver(&sink, &plain(0, 11, 11)).await;
    assert_eq!(stand.count(server).await, 21);
}

#[tokio::test]
async fn of_several_hosts_the_one_that_takes_writes_is_found() {
    let Some(server) = server() else { return };
    let mut stand = Stand::new(server, PayloadKind::Jsonb).await;
    let closed = free_address();
    let url = stand.proxy.url().replace("@127.0.0.1", &format!("@{closed},127.0.0.1"));
    stand.config.server = url.parse().unwrap();
    deliver(&stand.sink(), &plain(0, 1, 5)).await;
    assert_eq!(stand.count(server).await, 5);
}

#[tokio::test]
async fn lanes_of_several_gateways_share_a_table() {
    let Some(server) = server() else { return };
    let stand = Stand::new(server, PayloadKind::Jsonb).await;
    let mut writes = Vec::new();
    for shard in 0..6 {
        let sink = stand.sink();
        writes.push(tokio::spawn(async move {
            for round in 0..10 {
                deliver(&sink, &plain(shard, 1 + round * 200, 200)).await;
            }
        }));
    }
    for write in writes {
        write.await.unwrap();
    }
    assert_eq!(stand.count(server).await, 6 * 10 * 200);
}

/// The bytes of the server's answer to `begin`.
const BEGIN_ANSWER: usize = 17;

#[tokio::test]
async fn a_twin_waits_for_whoever_has_begun_with_the_lanes_cursor() {
    let Some(server) = server() else { return };
    let stand = Stand::new(server, PayloadKind::Jsonb).await;
    let (frozen, twin) = (stand.sink(), stand.past_the_proxy(server));
    deliver(&twin, &plain(0, 1, 1)).await;
    assert_eq!(frozen.cursor(&lane(0)).await, Ok(Cursor::Store(1)));
    // It has been answered where the lane stands, and doesn't know yet.
    let freeze = stand.proxy.freeze_after(BEGIN_ANSWER + 1);
    let held = tokio::spawn(async move { frozen.write(&plain(0, 2, 1)).await });
    let watcher = client(server).await;
    let count = async |what: &str| {
        let query = format!("select position, claim, %from \"{}\".% for update", stand.schema);
        let sql = format!("select count(*) from pg_stat_activity where query like '{query}' and {what}");
        watcher.query_one(&sql, &[]).await.unwrap().get::<_, i64>(0)
    };
    while count("state = 'idle in transaction'").await == 0 {
        assert!(!held.is_finished());
    }
    let waiting = tokio::spawn(async move { twin.write(&plain(0, 2, 3)).await });
    while count("wait_event_type = 'Lock'").await == 0 {
        assert!(!waiting.is_finished(), "it wrote beside the other one, whose cursor would go back behind its own");
    }
    drop(freeze);
    assert_eq!(held.await.unwrap(), Ok(WriteOutcome::Committed));
    assert_eq!(waiting.await.unwrap(), Ok(WriteOutcome::Committed));
    assert_eq!(stand.count(server).await, 4);
    assert_eq!(stand.sink().cursor(&lane(0)).await, Ok(Cursor::Store(4)));
}
