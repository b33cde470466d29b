//! Cases for stores that can be read back. Other stores pass them trivially.

use event::read::{Bookmark, Filter, Lookup, Page, Query, ReadError, ReadOrder, StoredEvent, Wanted};
use event::{EventId, TypeName};
use limits::READ_BYTES_MAX;

use super::events::{Event, RECEIVED_AT, TYPE_NAME, batch, lane, numbered};
use super::fixture::Fixture;
use super::suite::Suite;

/// The maximum number of pages before a query counts as endless.
const PAGES_MAX: usize = 1_000;

fn of_type(name: Option<&str>) -> Filter {
    let type_name = name.map(|name| TypeName::new(name).expect("a case names types well"));
    Filter { type_name, ..Filter::default() }
}

fn page_of(wanted: Wanted, limit: usize) -> Query {
    Query { wanted, after: None, limit, bytes_max: READ_BYTES_MAX, only_type: None }
}

impl Fixture {
    async fn page(&self, query: &Query) -> Page {
        self.sink.read(query.clone()).await.expect("a store at hand can be read")
    }

    /// All events of a query; `after_page` runs after each page.
    async fn pages(&self, query: Query, mut after_page: impl AsyncFnMut(usize)) -> Vec<StoredEvent> {
        let (mut query, mut events) = (query, Vec::new());
        for number in 0..PAGES_MAX {
            let page = self.page(&query).await;
            assert!(page.events.len() <= query.limit, "a page has as many as were asked for at most");
            events.extend(page.events);
            query.after = page.next;
            if query.after.is_none() {
                return events;
            }
            after_page(number).await;
        }
        events
    }

    async fn all(&self, wanted: Wanted) -> Vec<StoredEvent> {
        self.pages(page_of(wanted, 7), async |_| {}).await
    }
}

fn expect(suite: Suite, read: &[StoredEvent], expected: &[Event]) {
    let read: Vec<_> = read.iter().map(|event| (event.id, (suite.as_kept)(event.payload.text()))).collect();
    let expected: Vec<_> = expected.iter().map(|event| event.row(suite)).collect();
    assert!(read == expected, "read {} of {} events, or others", read.len(), expected.len());
}

pub(super) async fn read_back(suite: Suite) {
    let mut fixture = Fixture::new(suite).await;
    if !fixture.sink.can_read() {
        return;
    }
    let mut events = numbered(1, 60);
    events[3] = Event::new(4).with_payload("{\"a\" :\t\"naïve \\u0001 🜂\"}");
    events[4] = Event::new(5).with_payload("-0.0e-7");
    // Ids in descending order, unlike the positions.
    events.reverse();
    expect(suite, &fixture.all(Wanted::Stored(Filter::default())).await, &[]);
    fixture.store(&batch(&lane(0), 1, &events[..20])).await;
    let read = fixture
        .pages(page_of(Wanted::Stored(Filter::default()), 6), async |number| {
            if number == 0 {
                fixture.store(&batch(&lane(0), 21, &events[20..40])).await;
            }
        })
        .await;
    expect(suite, &read, &events[..40]);
    assert_eq!((read[0].type_name.as_str(), read[0].source.as_str()), (TYPE_NAME, "client"));
    assert_eq!(read[1].received_at, RECEIVED_AT + 2);

    let mut query = page_of(Wanted::Stored(Filter::default()), 40);
    let page = fixture.page(&Query { limit: 39, ..query.clone() }).await;
    fixture.sink = fixture.subject.sink();
    query.after = page.next;
    fixture.store(&batch(&lane(0), 41, &events[40..])).await;
    // A page may end early on a busy machine.
    let rest = &events[page.events.len()..];
    expect(suite, &fixture.pages(query.clone(), async |_| {}).await, rest);
    assert!(fixture.sink.close().await.is_ok());
    expect(suite, &fixture.pages(query, async |_| {}).await, rest);
}

/// All events and one that isn't stored, with room for all and for one at a time.
async fn look_up(suite: Suite, fixture: &Fixture, events: &[Event]) {
    for bytes_max in [READ_BYTES_MAX, 1] {
        let unknown = EventId([0xee; 16]);
        let mut left: Vec<EventId> = events.iter().map(|event| event.id).chain([unknown]).collect();
        let (mut found, mut calls) = (Vec::new(), 0);
        while !left.is_empty() {
            let lookup = Lookup { ids: left.clone(), bytes_max, only_type: None };
            let answer = fixture.sink.get(lookup).await.expect("a store at hand can be read");
            assert!(answer.left.len() < left.len() && answer.left.iter().all(|id| left.contains(id)));
            found.extend(answer.events);
            left = answer.left;
            calls += 1;
        }
        assert!(calls == 1 || bytes_max == 1, "{calls} calls for a few small events");
        found.sort_by_key(|event| events.iter().position(|one| one.id == event.id));
        expect(suite, &found, events);
    }
}

pub(super) async fn read_chosen(suite: Suite) {
    let fixture = Fixture::new(suite).await;
    if !fixture.sink.can_read() {
        return;
    }
    let events = numbered(1, 50);
    fixture.store(&batch(&lane(0), 1, &events)).await;
    expect(suite, &fixture.all(Wanted::Stored(of_type(Some(TYPE_NAME)))).await, &events);
    expect(suite, &fixture.all(Wanted::Stored(of_type(Some("other")))).await, &[]);
    look_up(suite, &fixture, &events).await;
    let at = |number: i64| Some(RECEIVED_AT + number);
    for (since, until, expected) in [
        (at(11), None, &events[10..]),
        (None, at(11), &events[..10]),
        (at(11), at(20), &events[10..19]),
        (at(20), at(20), &[]),
    ] {
        expect(suite, &fixture.all(Wanted::Stored(Filter { since, until, ..of_type(None) })).await, expected);
    }
    let ids = |first: &Event, last: &Event| Wanted::Ids { first: first.id, last: last.id };
    expect(suite, &fixture.all(ids(&events[4], &events[30])).await, &events[4..=30]);
    expect(suite, &fixture.all(ids(&events[8], &events[8])).await, &events[8..9]);
    expect(suite, &fixture.all(Wanted::Ids { first: EventId([0xff; 16]), last: EventId([0xff; 16]) }).await, &[]);
    // An event that doesn't fit begins the next page.
    let few_bytes = Query { bytes_max: 1, ..page_of(Wanted::Stored(Filter::default()), 7) };
    expect(suite, &fixture.pages(few_bytes, async |_| {}).await, &events);
}

fn newest_first(filter: Filter) -> Wanted {
    Wanted::Stored(Filter { order: ReadOrder::NewestFirst, ..filter })
}

pub(super) async fn read_newest_first(suite: Suite) {
    let mut fixture = Fixture::new(suite).await;
    if !fixture.sink.can_read() {
        return;
    }
    expect(suite, &fixture.all(newest_first(Filter::default())).await, &[]);
    let mut events = numbered(1, 60);
    // Ids in descending order, unlike the positions.
    events.reverse();
    fixture.store(&batch(&lane(0), 1, &events[..20])).await;
    fixture.store(&batch(&lane(0), 21, &events[20..40])).await;
    let newest: Vec<_> = events[..40].iter().rev().cloned().collect();
    let read = fixture
        .pages(page_of(newest_first(Filter::default()), 6), async |number| {
            if number < 2 {
                let first = 40 + 10 * number;
                fixture.store(&batch(&lane(0), first as u64 + 1, &events[first..first + 10])).await;
            }
        })
        .await;
    expect(suite, &read, &newest);

    let newest: Vec<_> = events.iter().rev().cloned().collect();
    let mut query = page_of(newest_first(of_type(Some(TYPE_NAME))), 40);
    let page = fixture.page(&query).await;
    fixture.sink = fixture.subject.sink();
    query.after = page.next;
    let rest = &newest[page.events.len()..];
    expect(suite, &fixture.pages(query.clone(), async |_| {}).await, rest);

    expect(suite, &fixture.all(newest_first(of_type(Some("other")))).await, &[]);
    let at = |number: i64| Some(RECEIVED_AT + number);
    let between = Filter { since: at(11), until: at(20), ..of_type(None) };
    expect(suite, &fixture.all(newest_first(between)).await, &newest[41..50]);
    let few_bytes = Query { bytes_max: 1, ..page_of(newest_first(Filter::default()), 7) };
    expect(suite, &fixture.pages(few_bytes, async |_| {}).await, &newest);

    let oldest = page_of(Wanted::Stored(of_type(Some(TYPE_NAME))), 40);
    let after = fixture.page(&oldest).await.next;
    for other in [Query { after, ..query.clone() }, Query { after: query.after, ..oldest }] {
        assert_eq!(fixture.sink.read(other).await, Err(ReadError::Bookmark), "of the other order");
    }
}

pub(super) async fn read_while_stalled(suite: Suite) {
    let fixture = Fixture::new(suite).await;
    if !fixture.sink.can_read() {
        return;
    }
    let events = numbered(1, 20);
    fixture.store(&batch(&lane(0), 1, &events)).await;
    let stalled = fixture.subject.stall().await;
    let write = {
        let (sink, batch) = (fixture.sink.clone(), batch(&lane(0), 21, &numbered(21, 22)));
        tokio::spawn(async move { sink.write(&batch).await })
    };
    expect(suite, &fixture.all(Wanted::Stored(Filter::default())).await, &events);
    let ids = Wanted::Ids { first: events[2].id, last: events[9].id };
    for wanted in [Wanted::Stored(Filter::default()), newest_first(Filter::default()), ids] {
        for wrong in [vec![], vec![0], vec![0xff; 25], vec![1; 200]] {
            let query = Query { after: Some(Bookmark(wrong)), ..page_of(wanted.clone(), 7) };
            assert_eq!(fixture.sink.read(query).await, Err(ReadError::Bookmark));
        }
    }
    drop(stalled);
    let _ = write.await.expect("a write doesn't panic");
    fixture.resend(&batch(&lane(0), 21, &numbered(21, 22))).await;
    expect(suite, &fixture.all(Wanted::Stored(Filter::default())).await, &numbered(1, 22));
}
