//! One page of what the memory store holds.

use event::EventId;
use event::read::{Bookmark, Filter, Gathered, Page, Payload, Query, ReadError, ReadOrder, StoredEvent, Wanted};

use super::state::StoredRecord;

/// Prefix of the bookmarks of pages that begin with the newest event.
const BACK: u8 = b'b';

pub(super) fn read(events: &[StoredRecord], query: &Query) -> Result<Page, ReadError> {
    match &query.wanted {
        Wanted::Ids { first, last } => among_ids(events, query, *first, *last),
        Wanted::Stored(filter) => match filter.order {
            ReadOrder::OldestFirst => in_order(events, query, filter),
            ReadOrder::NewestFirst => back(events, query, filter),
        },
    }
}

fn among_ids(events: &[StoredRecord], query: &Query, first: EventId, last: EventId) -> Result<Page, ReadError> {
    let after = query.after.as_ref().map(bytes).transpose()?.map(EventId);
    let is_wanted = |id: EventId| (first..=last).contains(&id) && after.is_none_or(|after| id > after);
    let mut wanted: Vec<_> = events.iter().filter(|event| is_wanted(event.id)).collect();
    wanted.sort_by_key(|event| event.id);
    Ok(page(wanted.into_iter(), query, |event| event.id.0.to_vec()))
}

fn in_order(events: &[StoredRecord], query: &Query, filter: &Filter) -> Result<Page, ReadError> {
    let after = query.after.as_ref().map(bytes).transpose()?.map_or(0, usize::from_be_bytes);
    let places = events.iter().enumerate().skip(after).filter(|(_, event)| fits(filter, event));
    let places: Vec<_> = places.collect();
    let count_before = |wanted: &StoredRecord| {
        let at = places.iter().find(|(_, event)| event.id == wanted.id).map_or(after, |(at, _)| at + 1);
        at.to_be_bytes().to_vec()
    };
    Ok(page(places.iter().map(|(_, event)| *event), query, count_before))
}

/// Newest first. A bookmark is the number of events before the next page's first, after the prefix byte.
fn back(events: &[StoredRecord], query: &Query, filter: &Filter) -> Result<Page, ReadError> {
    let end = match query.after.as_ref().map(bytes::<9>).transpose()? {
        None => events.len(),
        Some([BACK, count @ ..]) => usize::from_be_bytes(count),
        Some(_) => return Err(ReadError::Bookmark),
    };
    let before = events.get(..end).ok_or(ReadError::Bookmark)?;
    let count_before = |wanted: &StoredRecord| {
        let at = before.iter().position(|event| event.id == wanted.id).unwrap_or_default();
        [&[BACK][..], &at.to_be_bytes()].concat()
    };
    Ok(page(before.iter().rev().filter(|event| fits(filter, event)), query, count_before))
}

fn fits(filter: &Filter, event: &StoredRecord) -> bool {
    filter.type_name.as_ref().is_none_or(|name| name.as_str() == event.type_name)
        && filter.since.is_none_or(|since| event.received_at >= since)
        && filter.until.is_none_or(|until| event.received_at < until)
}

fn bytes<const N: usize>(Bookmark(bytes): &Bookmark) -> Result<[u8; N], ReadError> {
    bytes.as_slice().try_into().map_err(|_| ReadError::Bookmark)
}

/// The events that fit, and the position after the last of them if there are more.
fn page<'a>(
    events: impl Iterator<Item = &'a StoredRecord>,
    query: &Query,
    bookmark_after: impl Fn(&StoredRecord) -> Vec<u8>,
) -> Page {
    let mut gathered = Gathered::new(query);
    let mut last = None;
    for event in events {
        if !gathered.take(event.to_read()) {
            return gathered.page(last.map(|event| Bookmark(bookmark_after(event))));
        }
        last = Some(event);
    }
    gathered.page(None)
}

impl StoredRecord {
    fn to_read(&self) -> StoredEvent {
        let Self { id, type_name, source, received_at, payload, .. } = self.clone();
        StoredEvent { id, type_name, source, received_at, payload: Payload::of(&payload) }
    }
}
