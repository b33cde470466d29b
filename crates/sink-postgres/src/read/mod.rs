//! Reads a page of a table: by ids, in the order of storing ([`by_snapshot`]), or by place ([`by_ctid`]) if the table doesn't tell that order.

mod bookmark;
mod by_ctid;
mod by_snapshot;
mod rows;
mod snapshot;

use event::EventId;
use event::read::{Bookmark, Filter, Gathered, Page, Query, Wanted};

use super::error::Failure;
use super::mapping::Array;
use super::session::Talk;
use bookmark::{AMONG_IDS, AMONG_PLACES, STORED};
use by_ctid::{Mark, among_places};
use by_snapshot::{Ordered, Round};
use rows::{Order, event_in, is_none_of_ours, rows};

/// Reads a page; `None` where the bookmark is none of this store's.
pub(super) async fn read(talk: &Talk, table: &str, query: &Query) -> Result<Option<Page>, Failure> {
    let after = match &query.after {
        None => None,
        Some(bookmark) => match Position::read(bookmark) {
            Some(position) => Some(position),
            None => return Ok(None),
        },
    };
    match (&query.wanted, after) {
        (Wanted::Ids { first, last }, None) => among_ids(talk, table, query, *first, *last).await.map(Some),
        (Wanted::Ids { last, .. }, Some(Position::Id(after))) => match behind(after) {
            Some(first) => among_ids(talk, table, query, first, *last).await.map(Some),
            None => Ok(Some(Page::default())),
        },
        (Wanted::Stored(filter), None) => from_the_first(talk, table, query, filter).await,
        (Wanted::Stored(filter), Some(Position::Stored(round))) => match Ordered::look(talk, table).await? {
            Some(ordered) => ordered.page(talk, table, query, filter, Some(round)).await,
            None => Ok(None),
        },
        (Wanted::Stored(filter), Some(Position::At(mark))) => {
            among_places(talk, table, query, filter, Some(mark)).await.map(Some)
        }
        _ => Ok(None),
    }
}

async fn from_the_first(talk: &Talk, table: &str, query: &Query, filter: &Filter) -> Result<Option<Page>, Failure> {
    match Ordered::look(talk, table).await? {
        Some(ordered) if !ordered.has_strange_numbers(talk, table).await? => {
            ordered.page(talk, table, query, filter, None).await
        }
        _ => among_places(talk, table, query, filter, None).await.map(Some),
    }
}

/// A position between two events.
enum Position {
    At(Mark),
    Stored(Round),
    /// Behind this id.
    Id(EventId),
}

impl Position {
    fn read(Bookmark(bytes): &Bookmark) -> Option<Self> {
        match bytes.split_first()? {
            (&STORED, mut rest) => Round::read(&mut rest).filter(|_| rest.is_empty()).map(Self::Stored),
            (&AMONG_IDS, id) => Some(Self::Id(EventId(id.try_into().ok()?))),
            (&AMONG_PLACES, rest) => Mark::read(rest).map(Self::At),
            _ => None,
        }
    }
}

/// The next id, if there is any.
fn behind(id: EventId) -> Option<EventId> {
    u128::from_be_bytes(id.0).checked_add(1).map(|next| EventId(next.to_be_bytes()))
}

async fn among_ids(talk: &Talk, table: &str, query: &Query, first: EventId, last: EventId) -> Result<Page, Failure> {
    let order = Order { place: "ctid", first: "id", then: "id" };
    let sql = rows(table, "id >= ($1::uuid[])[1] and id <= ($1::uuid[])[2]", order, query);
    let (mut gathered, mut first) = (Gathered::new(query), Some(first));
    while let Some(from) = first {
        let between = Array::of_ids([from, last].into_iter());
        let found = talk.wait(talk.client.query(&sql, &[&between])).await?;
        first = None;
        for row in &found {
            let (_, event) = event_in(row)?;
            first = behind(event.id);
            if is_none_of_ours(&event) {
                continue;
            }
            if !gathered.take(event) {
                let next = gathered.last().map(|event| Bookmark([&[AMONG_IDS][..], &event.id.0].concat()));
                return Ok(gathered.page(next));
            }
        }
    }
    Ok(gathered.page(None))
}
