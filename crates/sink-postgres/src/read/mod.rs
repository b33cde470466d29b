//! Reads a page of a table: by ids, in insertion order ([`by_snapshot`]), or by `ctid` ([`by_ctid`]) if the table
//! doesn't record that order.

mod bookmark;
mod by_ctid;
mod by_snapshot;
mod rows;
mod snapshot;
mod table;

use event::EventId;
use event::read::{Bookmark, Filter, Gathered, Page, Query, ReadError, ReadOrder, Wanted};

use super::config::PostgresConfig;
use super::error::Failure;
use super::mapping::Array;
use super::session::Talk;
use bookmark::{AMONG_IDS, AMONG_PLACES, STORED, STORED_BACK};
use by_ctid::{Mark, among_places};
use by_snapshot::{Ordered, Round};
use rows::{Order, event_in, rows};
use table::Readable;

/// The message for a table that is read by `ctid`, which is only roughly the insertion order, and not that of its
/// partitions.
const NOT_NEWEST_FIRST: &str = "the table has no insertion-order columns with an index (stored_in, stored_number), so order=desc isn't available: \
     see docs/guides/stores/postgres.md";

/// Reads a page, or returns why the query isn't possible.
pub(super) async fn read(
    talk: &Talk,
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
    let table = match Readable::inspect(talk, config, query).await? {
        Ok(table) => table,
        Err(error) => return Ok(Err(error)),
    };
    let table = &table;
    match (&query.wanted, after) {
        (Wanted::Ids { first, last }, None) => among_ids(talk, table, query, *first, *last).await.map(Ok),
        (Wanted::Ids { last, .. }, Some(Position::Id(after))) => match next_id(after) {
            Some(first) => among_ids(talk, table, query, first, *last).await.map(Ok),
            None => Ok(Ok(Page::default())),
        },
        (Wanted::Stored(filter), None) => from_the_first(talk, table, query, filter).await,
        (Wanted::Stored(filter), Some(Position::Stored(round))) if round.order() == filter.order => {
            let Some(ordered) = Ordered::inspect(talk, &table.name).await? else { return Ok(Err(ReadError::Bookmark)) };
            let page = ordered.page(talk, table, query, filter, Some(round)).await?;
            Ok(page.ok_or(ReadError::Bookmark))
        }
        (Wanted::Stored(filter), Some(Position::At(mark))) if filter.order == ReadOrder::OldestFirst => {
            among_places(talk, table, query, filter, Some(mark)).await.map(Ok)
        }
        _ => Ok(Err(ReadError::Bookmark)),
    }
}

async fn from_the_first(
    talk: &Talk,
    table: &Readable,
    query: &Query,
    filter: &Filter,
) -> Result<Result<Page, ReadError>, Failure> {
    match Ordered::inspect(talk, &table.name).await? {
        Some(ordered) if !ordered.has_foreign_numbers(talk, &table.name).await? => {
            let page = ordered.page(talk, table, query, filter, None).await?;
            Ok(page.ok_or(ReadError::Bookmark))
        }
        _ if filter.order == ReadOrder::NewestFirst => Ok(Err(ReadError::NewestFirst(NOT_NEWEST_FIRST.into()))),
        _ => among_places(talk, table, query, filter, None).await.map(Ok),
    }
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
    talk: &Talk,
    table: &Readable,
    query: &Query,
    first: EventId,
    last: EventId,
) -> Result<Page, Failure> {
    let order = Order { place: "ctid", first: "id", then: "id" };
    let sql = rows(table, &table.name, "id >= ($1::uuid[])[1] and id <= ($1::uuid[])[2]", order, query);
    let (mut gathered, mut first) = (Gathered::new(query), Some(first));
    while let Some(from) = first {
        let between = Array::of_ids([from, last].into_iter());
        let found = talk.wait(talk.client.query(&sql, &[&between])).await?;
        first = None;
        for row in &found {
            let (_, event) = event_in(row)?;
            first = next_id(event.id);
            if !gathered.take(event) {
                let next = gathered.last().map(|event| Bookmark([&[AMONG_IDS][..], &event.id.0].concat()));
                return Ok(gathered.page(next));
            }
        }
    }
    Ok(gathered.page(None))
}
