//! Reads a page of a table: by ids, in insertion order ([`by_snapshot`]), or by `ctid` ([`by_ctid`]) if the table
//! doesn't record that order.

mod bookmark;
mod by_ctid;
mod by_snapshot;
mod reads;
mod rows;
mod snapshot;
mod table;

use event::EventId;
use event::read::{Bookmark, Filter, Found, Gathered, Lookup, Page, Query, ReadError, ReadOrder, Wanted};

use super::config::PostgresConfig;
use super::error::Failure;
use super::mapping::Array;
use bookmark::{AMONG_IDS, AMONG_PLACES, STORED, STORED_BACK};
use by_ctid::{Mark, among_places};
use by_snapshot::{Ordered, Round};
pub(super) use reads::{Kept, Reads};
use rows::{Order, event_in, limits, rows};
use table::Readable;

/// The message for a table that is read by `ctid`, which is only roughly the insertion order, and not that of its
/// partitions.
const NOT_NEWEST_FIRST: &str = "the table has no insertion-order columns with an index (stored_in, stored_number), so order=desc isn't available: \
     see docs/guides/stores/postgres.md";
const BY_ID: Order<'_> = Order { place: "ctid", first: "id", then: "id" };

/// Reads a page, or returns why the query isn't possible.
pub(super) async fn read(
    reads: &mut Reads<'_>,
    config: &PostgresConfig,
    query: &Query,
) -> Result<Result<Page, ReadError>, Failure> {
    let after = match &query.after {
        None => None,
        Some(bookmark) => match Position::read(bookmark) {
            Some(position) => Some(position),
            None => return Ok(Err(ReadError::Bookmark)),
        },
    };
    let mut table = match Readable::of(reads, config, query.only_type.as_ref()).await? {
        Ok(table) => table,
        Err(error) => return Ok(Err(error)),
    };
    match (&query.wanted, after) {
        (Wanted::Ids { first, last }, None) => among_ids(reads, &table, query, *first, *last).await.map(Ok),
        (Wanted::Ids { last, .. }, Some(Position::Id(after))) => match next_id(after) {
            Some(first) => among_ids(reads, &table, query, first, *last).await.map(Ok),
            None => Ok(Ok(Page::default())),
        },
        (Wanted::Stored(filter), None) => from_the_first(reads, &mut table, query, filter).await,
        (Wanted::Stored(filter), Some(Position::Stored(round))) if round.order() == filter.order => {
            let Some(ordered) = Ordered::now(reads, &mut table, false).await? else {
                return Ok(Err(ReadError::Bookmark));
            };
            let page = ordered.page(reads, &table, query, filter, Some(round)).await?;
            Ok(page.ok_or(ReadError::Bookmark))
        }
        (Wanted::Stored(filter), Some(Position::At(mark))) if filter.order == ReadOrder::OldestFirst => {
            among_places(reads.talk, &table, query, filter, Some(mark)).await.map(Ok)
        }
        _ => Ok(Err(ReadError::Bookmark)),
    }
}

async fn from_the_first(
    reads: &mut Reads<'_>,
    table: &mut Readable,
    query: &Query,
    filter: &Filter,
) -> Result<Result<Page, ReadError>, Failure> {
    match Ordered::now(reads, table, true).await? {
        Some(ordered) if !ordered.has_foreign_numbers => {
            let page = ordered.page(reads, table, query, filter, None).await?;
            Ok(page.ok_or(ReadError::Bookmark))
        }
        _ if filter.order == ReadOrder::NewestFirst => Ok(Err(ReadError::NewestFirst(NOT_NEWEST_FIRST.into()))),
        _ => among_places(reads.talk, table, query, filter, None).await.map(Ok),
    }
}

/// Looks up events by their ids, with one query.
pub(super) async fn get(
    reads: &mut Reads<'_>,
    config: &PostgresConfig,
    lookup: &Lookup,
) -> Result<Result<Found, ReadError>, Failure> {
    let table = match Readable::of(reads, config, lookup.only_type.as_ref()).await? {
        Ok(table) => table,
        Err(error) => return Ok(Err(error)),
    };
    let sql = rows(&table, &table.name, "id = any($3::uuid[])", BY_ID);
    let [count, bytes_max] = limits(lookup.ids.len(), lookup.bytes_max);
    let rows = reads.rows(&sql, &[&count, &bytes_max, &Array::of_ids(lookup.ids.iter().copied())]).await?;
    let (mut found, mut bytes) = (Found::default(), 0);
    // The server sends no further row after this many, or this many bytes.
    let mut is_full = rows.len() > lookup.ids.len();
    for row in &rows {
        let (_, event) = event_in(row)?;
        bytes += event.bytes();
        is_full |= bytes > lookup.bytes_max;
        match found.events.last() {
            // In a partitioned table, rows with different times may have one id.
            Some(last) if last.id == event.id => {}
            Some(_) if is_full => break,
            _ => found.events.push(event),
        }
    }
    if let Some(last) = found.events.last().filter(|_| is_full) {
        found.left = lookup.ids.iter().copied().filter(|id| *id > last.id).collect();
    }
    Ok(Ok(found))
}

/// A position between two events.
enum Position {
    At(Mark),
    Stored(Round),
    /// After this id.
    Id(EventId),
}

impl Position {
    fn read(Bookmark(bytes): &Bookmark) -> Option<Self> {
        match bytes.split_first()? {
            (&kind @ (STORED | STORED_BACK), mut rest) => {
                let order = if kind == STORED { ReadOrder::OldestFirst } else { ReadOrder::NewestFirst };
                Round::read(order, &mut rest).filter(|_| rest.is_empty()).map(Self::Stored)
            }
            (&AMONG_IDS, id) => Some(Self::Id(EventId(id.try_into().ok()?))),
            (&AMONG_PLACES, rest) => Mark::read(rest).map(Self::At),
            _ => None,
        }
    }
}

/// The next id, if there is any.
fn next_id(id: EventId) -> Option<EventId> {
    u128::from_be_bytes(id.0).checked_add(1).map(|next| EventId(next.to_be_bytes()))
}

async fn among_ids(
    reads: &mut Reads<'_>,
    table: &Readable,
    query: &Query,
    first: EventId,
    last: EventId,
) -> Result<Page, Failure> {
    let sql = rows(table, &table.name, "id >= ($3::uuid[])[1] and id <= ($3::uuid[])[2]", BY_ID);
    let [count, bytes_max] = limits(query.limit, query.bytes_max);
    let (mut gathered, mut first) = (Gathered::new(query), Some(first));
    while let Some(from) = first {
        let between = Array::of_ids([from, last].into_iter());
        let found = reads.rows(&sql, &[&count, &bytes_max, &between]).await?;
        first = None;
        for row in &found {
            let (_, event) = event_in(row)?;
            // The server sends no further row after one that is larger than a page.
            first = next_id(event.id).filter(|_| event.bytes() > query.bytes_max);
            if !gathered.take(event) {
                let next = gathered.last().map(|event| Bookmark([&[AMONG_IDS][..], &event.id.0].concat()));
                return Ok(gathered.page(next));
            }
        }
    }
    Ok(gathered.page(None))
}
