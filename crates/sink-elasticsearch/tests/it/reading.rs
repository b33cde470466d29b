//! Reads over several indices, by different mappings, and next to documents of other programs.

use bytes::Bytes;
use event::read::{Filter, Payload, Query, ReadError, ReadOrder, StoredEvent, Wanted};
use event::{EventId, TypeName};
use limits::{EVENT_BYTES_MAX, READ_BYTES_MAX};
use sink::{Batch, Record, Sink, Write, WriteOutcome};

use crate::fixture::{Fixture, server};
use sink_testing::events::{id, lane};

/// A day, in microseconds.
const DAY: i64 = 86_400_000_000;

/// Events of alternating types, all within a millisecond at the end of a day and the beginning of the next.
fn around_midnight(count: u64) -> Batch {
    let mut batch = Batch::new(lane(0), 1);
    for number in 1..=count {
        let name = if number.is_multiple_of(2) { "even" } else { "odds" };
        let block = Bytes::from(format!("{name}{{\"n\":{number}}}"));
        let record = Record {
            sequence: number,
            // Not in the order of their times.
            id: id(6, 1_000 - number),
            type_name: std::str::from_utf8(&block[..4]).unwrap(),
            source: "",
            received_at: DAY + number.cast_signed() - 20,
            event_time: None,
            write: Write::Insert,
            payload: &block[4..],
        };
        batch.push(&block, &record);
    }
    batch
}

fn query(wanted: Wanted) -> Query {
    Query { wanted, after: None, limit: 7, bytes_max: READ_BYTES_MAX, only_type: None }
}

fn all() -> Wanted {
    Wanted::Stored(Filter::default())
}

/// The events of all pages.
async fn read(sink: &Sink, wanted: Wanted) -> Vec<StoredEvent> {
    let (mut query, mut events) = (query(wanted), Vec::new());
    loop {
        let page = sink.read(query.clone()).await.unwrap();
        events.extend(page.events);
        query.after = page.next;
        if query.after.is_none() {
            return events;
        }
    }
}

fn numbers(events: &[StoredEvent]) -> Vec<u64> {
    let number =
        |event: &StoredEvent| serde_json::from_slice::<serde_json::Value>(event.payload.text()).unwrap()["n"].as_u64();
    events.iter().map(|event| number(event).unwrap()).collect()
}

fn ids(events: &[StoredEvent]) -> Vec<EventId> {
    events.iter().map(|event| event.id).collect()
}

/// Stores 40 events in the indices of types and days, and reads them in every way.
async fn check_every_read(fixture: &Fixture<'_>, by_the_microsecond: bool) {
    let sink = fixture.sink();
    let batch = around_midnight(40);
    assert_eq!(sink.write(&batch).await, Ok(WriteOutcome::Committed));
    let found = read(&sink, all()).await;
    let in_order: Vec<u64> = (1..=40).collect();
    if by_the_microsecond {
        assert_eq!(numbers(&found), in_order);
    } else {
        // If the store compares milliseconds, the events of one are in the order of their ids.
        let expected: Vec<u64> = (1..20).rev().chain((20..=40).rev()).collect();
        assert_eq!(numbers(&found), expected);
    }
    let mut back = read(&sink, Wanted::Stored(Filter { order: ReadOrder::NewestFirst, ..Filter::default() })).await;
    back.reverse();
    assert_eq!(numbers(&back), numbers(&found), "the newest first, over all indices");
    let filter =
        |since, until| Filter { type_name: Some(TypeName::new("even").unwrap()), since, until, ..Filter::default() };
    let mut some = numbers(&read(&sink, Wanted::Stored(filter(Some(DAY - 10), Some(DAY + 4)))).await);
    some.sort_unstable();
    assert_eq!(some, [10, 12, 14, 16, 18, 20, 22], "of one type, and to the microsecond");
    let some = read(&sink, Wanted::Ids { first: id(6, 970), last: id(6, 985) }).await;
    assert_eq!(ids(&some), (970..=985).map(|number| id(6, number)).collect::<Vec<_>>());
    assert!(read(&sink, Wanted::Ids { first: id(7, 0), last: id(7, 9) }).await.is_empty());
}

#[tokio::test]
async fn events_are_found_in_several_indices() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::envelopes(server);
    fixture.config.index = format!("{}-{{type}}-{{day}}", fixture.index).parse().unwrap();
    check_every_read(&fixture, true).await;
    let mut indices: Vec<_> = fixture.documents().into_iter().map(|(index, ..)| index).collect();
    indices.sort();
    indices.dedup();
    assert_eq!(indices.len(), 4);
}

#[tokio::test]
async fn events_are_found_with_different_mappings() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::dynamic(server);
    fixture.config.shape = sink_elasticsearch::DocumentShape::Envelope;
    // The store's default mapping.
    check_every_read(&fixture, false).await;
    let mut fixture = Fixture::dynamic(server);
    fixture.config.shape = sink_elasticsearch::DocumentShape::Envelope;
    fixture.config.index = format!("{}-{{type}}-{{day}}", fixture.index).parse().unwrap();
    check_every_read(&fixture, false).await;
}

#[tokio::test]
async fn documents_of_other_programs_are_skipped() {
    let Some(server) = server() else { return };
    let fixture = Fixture::envelopes(server);
    let sink = fixture.sink();
    assert_eq!(sink.write(&around_midnight(3)).await, Ok(WriteOutcome::Committed));
    let put = |name: &str, id: &str, received_at: &str, payload: &str| {
        let source = r#""type": "even", "source": """#;
        let document = format!(r#"{{"id": "{id}", "received_at": "{received_at}", {source}{payload}}}"#);
        server.done("PUT", &format!("/{}/_doc/{name}", fixture.index), &document);
    };
    let (number, early) = (id(9, 1).to_string(), "1970-01-01T00:00:00Z");
    for other in 0..60 {
        put(&format!("no-id-{other}"), "one", early, r#", "payload": 1"#);
        put(&format!("no-payload-{other}"), &number, early, "");
    }
    // One fits into a response, and the other doesn't.
    for (number, bytes) in [(2, EVENT_BYTES_MAX), (3, 12 * EVENT_BYTES_MAX)] {
        let payload = format!(r#", "payload": "{}""#, "x".repeat(bytes));
        put(&format!("huge-{number}"), &id(9, number).to_string(), early, &payload);
    }
    server.done("PUT", &format!("/{}/_doc/none", fixture.index), r#"{"payload": 1}"#);
    server.done("POST", &format!("/{}/_refresh", fixture.index), "");
    let (whole, omitted): (Vec<_>, Vec<_>) =
        read(&sink, all()).await.into_iter().partition(|event| matches!(event.payload, Payload::Whole(_)));
    let mut found = numbers(&whole);
    found.sort_unstable();
    assert_eq!(found, [1, 2, 3]);
    let sizes: Vec<_> = omitted.into_iter().map(|event| (event.id, event.payload)).collect();
    let omitted = |number, bytes| (id(9, number), Payload::Omitted { bytes });
    assert_eq!(sizes, [omitted(2, EVENT_BYTES_MAX as u64 + 2), omitted(3, EVENT_BYTES_MAX as u64 + 1)]);
    let one = read(&sink, Wanted::Ids { first: id(9, 3), last: id(9, 3) }).await;
    assert_eq!(one[0].payload, Payload::Omitted { bytes: EVENT_BYTES_MAX as u64 + 1 });
    assert!(read(&sink, Wanted::Ids { first: id(9, 1), last: id(9, 1) }).await.is_empty());
}

#[tokio::test]
async fn pages_of_large_events_end_when_full() {
    let Some(server) = server() else { return };
    let fixture = Fixture::envelopes(server);
    let sink = fixture.sink();
    let payload = format!("\"{}\"", "x".repeat(1_000_000));
    let payloads: Vec<&str> = (0..30).map(|_| payload.as_str()).collect();
    assert_eq!(sink.write(&sink_testing::events::batch(0, 1, &payloads)).await, Ok(WriteOutcome::Committed));
    let mut query = Query { limit: 1_000, ..query(all()) };
    let mut sizes = Vec::new();
    loop {
        let page = sink.read(query.clone()).await.unwrap();
        sizes.push(page.events.len());
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    // A busy server may end a page early; none has more than fits.
    assert!(sizes.iter().sum::<usize>() == 30 && sizes.iter().all(|size| (1..=8).contains(size)), "{sizes:?}");
}

#[tokio::test]
async fn unsearchable_index_is_reported_with_its_missing_field() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server);
    // There is no index yet, and so there is no event.
    fixture.config.shape = sink_elasticsearch::DocumentShape::Envelope;
    let sink = fixture.sink();
    assert!(read(&sink, all()).await.is_empty());
    assert_eq!(sink.write(&around_midnight(3)).await, Ok(WriteOutcome::Committed));
    let answer = sink.read(query(all())).await;
    let Err(ReadError::Unavailable(reason)) = answer else { panic!("{answer:?}") };
    assert!(reason.contains("`id`") && reason.contains("template"), "{reason}");
    let mut fixture = Fixture::dynamic(server);
    fixture.config.shape = sink_elasticsearch::DocumentShape::Envelope;
    let mappings = r#"{"mappings": {"properties": {"received_at": {"type": "date_nanos"}}}}"#;
    server.done("PUT", &format!("/{}", fixture.index), mappings);
    assert_eq!(fixture.sink().write(&around_midnight(3)).await, Ok(WriteOutcome::Committed));
    let answer = fixture.sink().read(query(all())).await;
    let Err(ReadError::Unavailable(reason)) = answer else { panic!("{answer:?}") };
    assert!(reason.contains("`received_at`"), "{reason}");
    // Without envelopes the documents don't identify their events.
    fixture.config.shape = sink_elasticsearch::DocumentShape::Payload;
    let sink = fixture.sink();
    assert!(!sink.can_read());
    assert!(matches!(sink.read(query(all())).await, Err(ReadError::Unavailable(_))));
}
