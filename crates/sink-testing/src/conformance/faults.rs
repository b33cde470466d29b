//! Cases in which the store fails or stalls, or a write is cancelled.

use super::events::{batch, lane, numbered};
use super::fixture::{Fixture, may_pass};
use super::suite::Suite;
use sink::Cursor;

/// The number of polls before a write is cancelled: enough for it to begin and, for most stores, to be in flight.
const POLLS_MAX: usize = 8;
/// Records of the cancelled batches: enough to observe a partial write.
const RECORDS: u32 = 500;

pub(super) async fn outage(suite: Suite) {
    let fixture = Fixture::new(suite).await;
    let events = numbered(1, 1_000);
    let mut stored = 0;
    for stage in 0.. {
        let Some(outage) = fixture.subject.outage(stage).await else { break };
        let next = batch(&lane(0), stored as u64 + 1, &events[stored..stored + 10]);
        // A cut may be too late to have an effect. No other success is allowed.
        match fixture.sink.write(&next).await {
            Ok(report) => {
                assert!(fixture.may_pass_in_part(&report), "stage {stage} of an outage was answered {report:?}")
            }
            Err(error) => assert!(may_pass(&error), "stage {stage} of an outage was answered {error}"),
        }
        drop(outage);
        fixture.resend(&next).await;
        stored += 10;
        fixture.expect_rows(&events[..stored]).await;
        fixture.expect_cursor(&lane(0), stored as u64).await;
    }
    assert!(stored > 0, "a subject has at least one kind of outage");
}

pub(super) async fn stall(suite: Suite) {
    let fixture = Fixture::new(suite).await;
    let events = numbered(1, 10);
    let whole = batch(&lane(0), 1, &events);
    let stall = fixture.subject.stall().await;
    let (sink, sent) = (fixture.sink.clone(), whole.clone());
    let write = tokio::spawn(async move { sink.write(&sent).await });
    polls(1).await;
    // A sink that blocks the runtime's thread would have finished by now, with its store's timeout.
    assert!(!write.is_finished(), "a slow store must not block the thread");
    fixture.expect_rows(&[]).await;
    drop(stall);
    match write.await.expect("a write doesn't panic") {
        Ok(report) => assert!(fixture.may_pass_in_part(&report), "a slow store was answered {report:?}"),
        Err(error) => assert!(may_pass(&error), "a slow store was answered {error}"),
    }
    fixture.resend(&whole).await;
    fixture.expect_rows(&events).await;
}

pub(super) async fn dropped_while_writing(suite: Suite) {
    let mut fixture = Fixture::new(suite).await;
    let mut stored = Vec::new();
    for polls_before in 0..POLLS_MAX {
        let number = u16::try_from(polls_before).expect("few polls");
        // If the store recognises ids, the same events over another lane.
        let first = if suite.recognises_ids { 1 } else { 1 + u32::from(number) * RECORDS };
        let events = numbered(first, first + RECORDS - 1);
        let lane = lane(number);
        let whole = batch(&lane, 1, &events);
        if polls_before == 0 || !suite.recognises_ids {
            stored.extend(events);
        }
        let (sink, sent) = (fixture.sink.clone(), whole.clone());
        let write = tokio::spawn(async move { sink.write(&sent).await });
        polls(polls_before).await;
        write.abort();
        drop(write.await);
        fixture.sink = fixture.subject.sink();
        if polls_before == 0 {
            expect_all_or_nothing(&fixture).await;
        }
        fixture.resend(&whole).await;
        fixture.expect_rows(&stored).await;
        fixture.expect_cursor(&lane, u64::from(RECORDS)).await;
    }
}

pub(super) async fn closed_while_writing(suite: Suite) {
    for polls_before in 0..POLLS_MAX {
        let mut fixture = Fixture::new(suite).await;
        let events = numbered(1, RECORDS);
        let whole = batch(&lane(0), 1, &events);
        let (sink, sent) = (fixture.sink.clone(), whole.clone());
        let write = tokio::spawn(async move { sink.write(&sent).await });
        polls(polls_before).await;
        assert_eq!(fixture.sink.close().await, Ok(()));
        let answer = write.await.expect("a write doesn't panic");
        assert!(answer.as_ref().map_or_else(may_pass, |report| fixture.may_pass_in_part(report)), "{answer:?}");
        if answer.is_ok() {
            fixture.expect_rows(&events).await;
        }
        // The closed sink reconnects, and so does a new one.
        fixture.resend(&whole).await;
        fixture.sink = fixture.subject.sink();
        expect_all_or_nothing(&fixture).await;
        fixture.resend(&whole).await;
        fixture.expect_rows(&events).await;
    }
}

/// A transactional store never shows a partial batch, nor a cursor without its data.
async fn expect_all_or_nothing(fixture: &Fixture) {
    if fixture.is_fenced() {
        // Read the cursor first: a write in flight may end in between.
        let cursor = fixture.sink.cursor(&lane(0)).await;
        let rows = fixture.rows().await.len();
        assert!(rows == 0 || rows == RECORDS as usize, "a half-written batch can be seen: {rows} rows");
        assert!(cursor == Ok(Cursor::Store(0)) || rows > 0, "cursor {cursor:?} without its rows");
    }
}

async fn polls(count: usize) {
    for _ in 0..count {
        tokio::task::yield_now().await;
    }
}
