//! Cases with a healthy store.

use super::LARGE;
use super::events::{Event, batch, lane, numbered};
use super::fixture::{Fixture, may_pass};
use super::suite::Suite;
use event::{Lane, Origin};
use limits::{DELIVERY_RECORDS_MAX, EVENT_BYTES_MAX};
use sink::Batch;

pub(super) async fn empty_batch(suite: Suite) {
    let fixture = Fixture::new(suite).await;
    let lane = lane(0);
    fixture.expect_cursor(&lane, 0).await;
    let mut empty = Batch::new(lane.clone(), 1);
    fixture.store(&empty).await;
    fixture.expect_cursor(&lane, 0).await;
    empty.cover(5);
    fixture.store(&empty).await;
    fixture.expect_cursor(&lane, 5).await;
    fixture.expect_rows(&[]).await;
}

pub(super) async fn full_batch(suite: Suite) {
    let fixture = Fixture::new(suite).await;
    let broken = "{\r\n\t\"lines\": [\"\\n\"]\n}";
    let odd = [
        broken,
        r#"{"text": "naïve 日本語 \u0001 '\" \\ 🜂"}"#,
        "null",
        "[]",
        "-0.0e-7",
        "{\"a\" :\t1}",
        r#""$1 ?1 %s""#,
    ];
    let count = u32::try_from(DELIVERY_RECORDS_MAX).expect("a batch's count fits");
    let mut events = numbered(1, count);
    for (event, payload) in events.iter_mut().zip(odd) {
        payload.clone_into(&mut event.payload);
    }
    events[odd.len()].payload = format!("\"{}\"", "x".repeat(EVENT_BYTES_MAX - 2));
    fixture.store(&batch(&lane(0), 1, &events)).await;
    fixture.expect_cursor(&lane(0), u64::from(count)).await;
    fixture.expect_rows(&events).await;
}

pub(super) async fn bad_record(suite: Suite) {
    if !suite.rejects {
        return;
    }
    let mut fixture = Fixture::new(suite).await;
    let mut events = numbered(1, 50);
    events[20].payload = format!("\"{}\"", "x".repeat(LARGE - 2));
    fixture.subject.poison(events[20].id).await;
    fixture.sink = fixture.subject.sink();
    let whole = batch(&lane(0), 1, &events);
    if fixture.is_fenced() {
        assert!(matches!(fixture.sink.write(&whole).await, Ok(sink::WriteOutcome::Rejected { .. })));
        if suite.all_or_nothing {
            fixture.expect_rows(&[]).await;
        }
        fixture.expect_cursor(&lane(0), 0).await;
    }
    fixture.store_without(&whole, &[20]).await;
    events.remove(20);
    fixture.expect_rows(&events).await;
    fixture.expect_cursor(&lane(0), 50).await;
}

pub(super) async fn same_batch_twice(suite: Suite) {
    let mut fixture = Fixture::new(suite).await;
    let events = numbered(1, 20);
    let whole = batch(&lane(0), 1, &events);
    fixture.store(&whole).await;
    fixture.store(&whole).await;
    fixture.sink = fixture.subject.sink();
    fixture.store(&whole).await;
    fixture.expect_rows(&events).await;
    fixture.expect_cursor(&lane(0), 20).await;
}

pub(super) async fn overlapping_batch(suite: Suite) {
    let fixture = Fixture::new(suite).await;
    if !fixture.recognises_records() {
        return;
    }
    let events = numbered(1, 15);
    fixture.store(&batch(&lane(0), 1, &events[..10])).await;
    fixture.store(&batch(&lane(0), 6, &events[5..])).await;
    fixture.expect_rows(&events).await;
    fixture.expect_cursor(&lane(0), 15).await;
}

pub(super) async fn late_writer(suite: Suite) {
    let mut fixture = Fixture::new(suite).await;
    let events = numbered(1, 30);
    let (early, late) = (batch(&lane(0), 1, &events[..10]), batch(&lane(0), 11, &events[10..]));
    let first = fixture.sink.clone();
    fixture.store(&early).await;
    fixture.sink = fixture.subject.sink();
    fixture.store(&late).await;
    fixture.sink = first;
    fixture.store(&early).await;
    if fixture.recognises_records() {
        fixture.store(&batch(&lane(0), 5, &events[4..12])).await;
    }
    fixture.expect_rows(&events).await;
    fixture.expect_cursor(&lane(0), 30).await;
}

pub(super) async fn floor(suite: Suite) {
    let mut fixture = Fixture::new(suite).await;
    if !fixture.is_fenced() {
        return;
    }
    let events = numbered(1, 30);
    fixture.store(&batch(&lane(0), 1, &events[..10])).await;
    // The lane knows 20 events to be stored, as before a failover. A process without that memory detects the loss by the batch's floor.
    fixture.sink = fixture.subject.sink();
    let third = batch(&lane(0), 21, &events[20..]);
    let answer = fixture.sink.write(&third.clone().sent_after(20, 20)).await;
    assert!(answer.as_ref().is_err_and(may_pass), "11 to 20 are missing, and the answer is {answer:?}");
    fixture.expect_rows(&events[..10]).await;
    fixture.expect_cursor(&lane(0), 10).await;
    fixture.store(&batch(&lane(0), 11, &events[10..20]).sent_after(10, 30)).await;
    fixture.store(&third.sent_after(20, 30)).await;
    fixture.expect_rows(&events).await;
}

pub(super) async fn revisions(suite: Suite) {
    let fixture = Fixture::new(suite).await;
    if !suite.recognises_ids {
        return logged_revisions(&fixture).await;
    }
    fixture.store(&batch(&lane(0), 1, &[revision(1, 2, "2"), revision(2, 0, "0")])).await;
    fixture.expect_rows(&[revision(1, 2, "2"), revision(2, 0, "0")]).await;
    fixture.store(&batch(&lane(0), 3, &[revision(1, 1, "1")])).await;
    fixture.store(&batch(&lane(0), 4, &[revision(1, 2, "\"again\"")])).await;
    fixture.expect_rows(&[revision(1, 2, "2"), revision(2, 0, "0")]).await;
    let within = [revision(1, 3, "3"), revision(1, 9, "9"), revision(1, 8, "8"), revision(2, 1, "1")];
    fixture.store(&batch(&lane(0), 5, &within)).await;
    fixture.expect_rows(&[revision(1, 9, "9"), revision(2, 1, "1")]).await;
    // Between lanes revisions decide, because positions can't.
    fixture.store(&batch(&lane(1), 1, &[revision(1, 7, "7"), revision(2, 2, "2")])).await;
    fixture.expect_rows(&[revision(1, 9, "9"), revision(2, 2, "2")]).await;
}

fn revision(number: u32, revision: u64, payload: &str) -> Event {
    Event::new(number).with_payload(payload).with_revision(revision)
}

/// A log keeps each revision, as it keeps each event beyond its cursor. The reader takes the highest.
async fn logged_revisions(fixture: &Fixture) {
    if !fixture.is_fenced() {
        return;
    }
    let events = [revision(1, 2, "2"), revision(2, 0, "0"), revision(1, 1, "1"), revision(1, 3, "3")];
    fixture.store(&batch(&lane(0), 1, &events[..3])).await;
    fixture.store(&batch(&lane(0), 2, &events[1..])).await;
    fixture.expect_rows(&events).await;
    fixture.expect_cursor(&lane(0), 4).await;
    let other = revision(1, 7, "7");
    fixture.store(&batch(&lane(1), 1, std::slice::from_ref(&other))).await;
    fixture.expect_rows(&[&events[..], &[other]].concat()).await;
}

/// A log may keep an event whose id another one has, or leave it out while it remembers the id. It rejects nothing, and
/// loses nothing.
async fn logged_ids(fixture: &Fixture, stored: &[Event], others: &[Event]) {
    if !fixture.is_fenced() {
        return;
    }
    fixture.store(&batch(&lane(0), 11, others)).await;
    fixture.expect_cursor(&lane(0), 10 + others.len() as u64).await;
    let rows = fixture.subject.rows().await;
    let is_there = |event: &Event| rows.iter().any(|(id, payload)| (*id, payload.clone()) == event.row(fixture.suite));
    assert!(stored.iter().all(is_there), "an event with a repeated id is lost");
    assert!(others.iter().all(|other| rows.iter().any(|(id, _)| *id == other.id)), "an id isn't there");
}

pub(super) async fn taken_id(suite: Suite) {
    let fixture = Fixture::new(suite).await;
    let mut events = numbered(1, 10);
    fixture.store(&batch(&lane(0), 1, &events)).await;
    let others = [
        Event::new(3).with_payload("\"another\""),
        Event::new(4),
        Event::new(11),
        Event::new(11).with_payload("\"another\""),
        Event::new(12),
        Event::new(12),
        Event::new(5).with_payload("\"a result\"").with_revision(1),
    ];
    if !suite.recognises_ids {
        return logged_ids(&fixture, &events, &others[..6]).await;
    }
    events.extend(numbered(11, 12));
    if suite.compares {
        fixture.store_without(&batch(&lane(0), 11, &others), &[0, 3, 6]).await;
    } else {
        fixture.store(&batch(&lane(0), 11, &others[..6])).await;
    }
    fixture.expect_rows(&events).await;
}

pub(super) async fn two_lanes(suite: Suite) {
    let fixture = Fixture::new(suite).await;
    let lanes =
        [lane(0), lane(1), Lane { origin: Origin([8; 16]), ..lane(0) }, Lane { sink: "suite-dead".into(), ..lane(0) }];
    let events = numbered(1, 40);
    let mut writes = Vec::new();
    for (lane, events) in lanes.iter().zip(events.chunks(10)) {
        let (sink, batch) = (fixture.sink.clone(), batch(lane, 1, events));
        writes.push(tokio::spawn(async move { sink.write(&batch).await }));
    }
    for write in writes {
        assert_eq!(write.await.expect("a write doesn't panic"), Ok(sink::WriteOutcome::Committed));
    }
    let more = numbered(41, 45);
    fixture.store(&batch(&lanes[1], 11, &more)).await;
    for (lane, position) in lanes.iter().zip([10, 15, 10, 10]) {
        fixture.expect_cursor(lane, position).await;
    }
    fixture.expect_rows(&[events, more].concat()).await;
}
