//! One page of the events in envelopes, over all indices that may have some: by the time of receipt, then by id; or by
//! id, then by time.

use std::time::{Duration, Instant};

use event::TypeName;
use event::read::{Bookmark, Filter, Gathered, Page, Query, ReadOrder, StoredEvent, Wanted};
use serde_json::json;
use text::rfc3339;

use super::error::Failure;
use super::fields::Fields;
use super::index::IndexPattern;
use super::search::{Key, Order, Place, Search};
use super::server::Server;

/// Documents of one response. If they are too large for it, the next request asks for half as many.
const STEP: usize = 24;
/// The time limit of one page.
const PAGE_TIME_MAX: Duration = Duration::from_millis(250);

/// The first byte of a bookmark by time, oldest first or newest first, and of one by id.
const BY_TIME: u8 = b't';
const BY_TIME_BACK: u8 = b'b';
const BY_ID: u8 = b'i';

/// Reads a page; `None` if the bookmark isn't this store's.
pub(super) async fn read(
    server: &Server,
    index: &IndexPattern,
    fields: &Fields,
    query: &Query,
) -> Result<Option<Page>, Failure> {
    let mut place = match &query.after {
        None => None,
        Some(bookmark) => match place_of(bookmark, &query.wanted) {
            Some(place) => Some(place),
            None => return Ok(None),
        },
    };
    let (begun, search) = (Instant::now(), search(server, index, fields, query));
    let (mut gathered, mut room) = (Gathered::new(query), query.limit);
    loop {
        // One more than the limit shows whether there is a next page.
        let documents = search.step(place.as_ref(), STEP.min(room.saturating_add(1))).await?;
        let (hits, is_last) = documents.hits()?;
        for hit in hits {
            if let Some(event) = documents.event_in(&hit).filter(|event| is_wanted(event, &query.wanted)) {
                if !gathered.take(event) {
                    return Ok(Some(gathered.page(place.map(|place| bookmark(&place, &query.wanted)))));
                }
                room -= 1;
            }
            place = Some(hit.sort);
        }
        if is_last {
            return Ok(Some(gathered.page(None)));
        }
        if begun.elapsed() >= PAGE_TIME_MAX {
            return Ok(Some(gathered.page(place.map(|place| bookmark(&place, &query.wanted)))));
        }
    }
}

fn search<'a>(server: &'a Server, index: &IndexPattern, fields: &Fields, query: &Query) -> Search<'a> {
    let type_name = match &query.wanted {
        Wanted::Ids { .. } => None,
        Wanted::Stored(filter) => filter.type_name.as_ref().map(TypeName::as_str),
    };
    let mut search = Search::new(server, (index, type_name), fields, order_of(&query.wanted), query.bytes_max);
    match &query.wanted {
        Wanted::Ids { first, last } => {
            search.only("range", &fields.id, json!({"gte": first.to_string(), "lte": last.to_string()}));
        }
        Wanted::Stored(Filter { since, until, .. }) => {
            if let Some(only) = type_name {
                search.only("term", &fields.type_name, json!(only));
            }
            // The store may compare times only by the millisecond: events just outside the range are filtered here.
            if let Some(since) = since {
                search.only("range", &fields.received_at, json!({"gte": rfc3339::format(*since)}));
            }
            if let Some(until) = until {
                search.only("range", &fields.received_at, json!({"lte": rfc3339::format(*until)}));
            }
        }
    }
    search
}

const fn order_of(wanted: &Wanted) -> Order {
    match wanted {
        Wanted::Ids { .. } => Order::Id,
        Wanted::Stored(Filter { order: ReadOrder::OldestFirst, .. }) => Order::Time,
        Wanted::Stored(Filter { order: ReadOrder::NewestFirst, .. }) => Order::TimeBack,
    }
}

fn is_wanted(event: &StoredEvent, wanted: &Wanted) -> bool {
    match wanted {
        Wanted::Ids { .. } => true,
        Wanted::Stored(Filter { since, until, .. }) => {
            since.is_none_or(|since| event.received_at >= since) && until.is_none_or(|until| event.received_at < until)
        }
    }
}

const fn kind_of(wanted: &Wanted) -> u8 {
    match order_of(wanted) {
        Order::Id => BY_ID,
        Order::Time => BY_TIME,
        Order::TimeBack => BY_TIME_BACK,
    }
}

fn place_of(Bookmark(bytes): &Bookmark, wanted: &Wanted) -> Option<Place> {
    let (kind, place) = bytes.split_first()?;
    let place: Place = serde_json::from_slice(place).ok()?;
    let id = if *kind == BY_ID { &place[0] } else { &place[1] };
    (*kind == kind_of(wanted) && matches!(id, Key::Text(_))).then_some(place)
}

fn bookmark(place: &Place, wanted: &Wanted) -> Bookmark {
    Bookmark([vec![kind_of(wanted)], json!(place).to_string().into_bytes()].concat())
}
