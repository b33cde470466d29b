//! One page of a table: by ids, in the order of storing ([`storing`](super::storing)), or where the table doesn't tell that one by places
//! ([`places`](super::places)).

use event::EventId;
use event::limits::EVENT_BYTES_MAX;
use event::read::{Bookmark, Filter, Gathered, Page, Query, StoredEvent, Wanted};
use tokio_postgres::Row;

use super::error::Failure;
use super::mapping::{Array, Id, Time};
use super::places::{At, Mark, among_places};
use super::session::Talk;
use super::storing::{Ordered, Round};

/// What a bookmark begins with: one among places, one among ids, and one in the order of storing.
const AMONG_PLACES: u8 = b'p';
const AMONG_IDS: u8 = b'i';
const STORED: u8 = b's';

/// Reads a page; `None` where the bookmark is none of this store's.
pub(super) async fn read(talk: &Talk, table: &str, query: &Query) -> Result<Option<Page>, Failure> {
    let after = match &query.after {
        None => None,
        Some(bookmark) => match Place::read(bookmark) {
            Some(place) => Some(place),
            None => return Ok(None),
        },
    };
    match (&query.wanted, after) {
        (Wanted::Ids { first, last }, None) => among_ids(talk, table, query, *first, *last).await.map(Some),
        (Wanted::Ids { last, .. }, Some(Place::Id(after))) => match behind(after) {
            Some(first) => among_ids(talk, table, query, first, *last).await.map(Some),
            None => Ok(Some(Page::default())),
        },
        (Wanted::Stored(filter), None) => from_the_first(talk, table, query, filter).await,
        (Wanted::Stored(filter), Some(Place::Stored(round))) => match Ordered::look(talk, table).await? {
            Some(ordered) => ordered.page(talk, table, query, filter, Some(round)).await,
            None => Ok(None),
        },
        (Wanted::Stored(filter), Some(Place::At(mark))) => {
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

/// A place between two events.
pub(super) enum Place {
    At(Mark),
    Stored(Round),
    /// Behind this id.
    Id(EventId),
}

impl Place {
    fn read(Bookmark(bytes): &Bookmark) -> Option<Self> {
        match bytes.split_first()? {
            (&STORED, mut rest) => Round::read(&mut rest).filter(|_| rest.is_empty()).map(Self::Stored),
            (&AMONG_IDS, id) => Some(Self::Id(EventId(id.try_into().ok()?))),
            (&AMONG_PLACES, rest) => {
                let (part, rest) = rest.split_first_chunk()?;
                let (file, rest) = rest.split_first_chunk()?;
                let (block, rest) = rest.split_first_chunk()?;
                let (number, id) = rest.split_first_chunk()?;
                let at = At { block: u32::from_be_bytes(*block), number: u16::from_be_bytes(*number) };
                let (part, file) = (i64::from_be_bytes(*part), u32::from_be_bytes(*file));
                Some(Self::At(Mark { part, file, at, id: EventId(id.try_into().ok()?) }))
            }
            _ => None,
        }
    }

    pub(super) fn write(&self) -> Bookmark {
        Bookmark(match self {
            Self::Id(id) => [&[AMONG_IDS][..], &id.0].concat(),
            Self::Stored(round) => {
                let mut bytes = vec![STORED];
                round.write(&mut bytes);
                bytes
            }
            Self::At(Mark { part, file, at, id }) => {
                let (block, number) = (at.block.to_be_bytes(), at.number.to_be_bytes());
                [&[AMONG_PLACES][..], &part.to_be_bytes(), &file.to_be_bytes(), &block, &number, &id.0].concat()
            }
        })
    }
}

/// The next id, if there is any.
fn behind(id: EventId) -> Option<EventId> {
    u128::from_be_bytes(id.0).checked_add(1).map(|next| EventId(next.to_be_bytes()))
}

/// In which order rows are read, as SQL.
#[derive(Clone, Copy)]
pub(super) struct Order<'a> {
    /// A row's place in it, shown as text.
    pub(super) place: &'a str,
    /// What the rows of the table are ordered by, of which there may be many: an index should have it.
    pub(super) first: &'a str,
    /// What those of the page are ordered by, which have `place`.
    pub(super) then: &'a str,
}

/// The rows that fit `condition`, in order, as far as a page has room for them: the server counts too, or it would send
/// them all.
pub(super) fn rows(table: &str, condition: &str, Order { place, first, then }: Order<'_>, query: &Query) -> String {
    // One more than there is room for tells whether there is a next page.
    let (count, bytes) = (query.limit.saturating_add(1), query.bytes_max);
    format!(
        "select id, type, source, received_at, payload, place::text as shown from \
         (select c.*, sum(octet_length(payload)) over (order by {then}) - octet_length(payload) as before from \
         (select id, coalesce(type, '') as type, coalesce(source, '') as source, received_at, payload::text as payload, \
         {place} as place from {table} where ({condition}) and payload is not null and received_at is not null \
         order by {first} limit {count}) c) c where before <= {bytes} order by {then}"
    )
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
                let next = gathered.last().map(|event| Place::Id(event.id).write());
                return Ok(gathered.page(next));
            }
        }
    }
    Ok(gathered.page(None))
}

/// Where a row stands, as [`Order::place`] shows it, and its event.
pub(super) fn event_in(row: &Row) -> Result<(&str, StoredEvent), Failure> {
    let event = StoredEvent {
        id: row.try_get::<_, Id>(0)?.0,
        type_name: row.try_get(1)?,
        source: row.try_get(2)?,
        received_at: row.try_get::<_, Time>(3)?.0,
        payload: row.try_get::<_, String>(4)?.into_bytes(),
    };
    Ok((row.try_get(5)?, event))
}

/// Others may have put into the table what is too large for an event.
pub(super) const fn is_none_of_ours(event: &StoredEvent) -> bool {
    event.payload.len() > EVENT_BYTES_MAX
}
