//! One page of a table, in steps that are each short: there is no index but that of the ids, and the table may be large.
//!
//! The order is that of the places in the table, which is the order of storing as long as nothing is deleted.

use std::time::{Duration, Instant};

use event::EventId;
use event::TypeName;
use event::limits::EVENT_BYTES_MAX;
use event::read::{Bookmark, Filter, Gathered, Page, Query, StoredEvent, Wanted};
use tokio_postgres::Row;

use super::failure::Failure;
use super::row::{Array, Id, Time};
use super::session::Talk;

/// Blocks of the table that one statement looks at: 2 MiB.
const STEP_BLOCKS: u32 = 256;
/// How long is looked for one page.
const PAGE_TIME_MAX: Duration = Duration::from_millis(250);

/// A bookmark among places begins with this, one among ids with the other.
const AMONG_PLACES: u8 = b'p';
const AMONG_IDS: u8 = b'i';

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
        (Wanted::Stored(filter), None) => among_places(talk, table, query, filter, None).await.map(Some),
        (Wanted::Stored(filter), Some(Place::At(mark))) => {
            among_places(talk, table, query, filter, Some(mark)).await.map(Some)
        }
        _ => Ok(None),
    }
}

/// Where a row stands: a block of the table, and a number within it from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct At {
    block: u32,
    number: u16,
}

impl At {
    /// Before every row.
    const START: Self = Self { block: 0, number: 0 };

    fn parse(text: &str) -> Option<Self> {
        let (block, number) = text.strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
        Some(Self { block: block.parse().ok()?, number: number.parse().ok()? })
    }

    fn sql(self) -> String {
        format!("'({},{})'::tid", self.block, self.number)
    }
}

/// Behind which row a page begins.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The file that held the table: in another one every row stands elsewhere.
    file: u32,
    at: At,
    id: EventId,
}

/// A place between two events.
enum Place {
    At(Mark),
    /// Behind this id.
    Id(EventId),
}

impl Place {
    fn read(Bookmark(bytes): &Bookmark) -> Option<Self> {
        match bytes.split_first()? {
            (&AMONG_IDS, id) => Some(Self::Id(EventId(id.try_into().ok()?))),
            (&AMONG_PLACES, rest) => {
                let (file, rest) = rest.split_first_chunk()?;
                let (block, rest) = rest.split_first_chunk()?;
                let (number, id) = rest.split_first_chunk()?;
                let at = At { block: u32::from_be_bytes(*block), number: u16::from_be_bytes(*number) };
                Some(Self::At(Mark { file: u32::from_be_bytes(*file), at, id: EventId(id.try_into().ok()?) }))
            }
            _ => None,
        }
    }

    fn write(&self) -> Bookmark {
        Bookmark(match self {
            Self::Id(id) => [&[AMONG_IDS][..], &id.0].concat(),
            Self::At(Mark { file, at, id }) => {
                let (block, number) = (at.block.to_be_bytes(), at.number.to_be_bytes());
                [&[AMONG_PLACES][..], &file.to_be_bytes(), &block, &number, &id.0].concat()
            }
        })
    }
}

/// The next id, if there is any.
fn behind(id: EventId) -> Option<EventId> {
    u128::from_be_bytes(id.0).checked_add(1).map(|next| EventId(next.to_be_bytes()))
}

/// The rows that fit `condition`, in `order`, as far as a page has room for them: the server counts too, or it would send
/// them all.
fn rows(table: &str, condition: &str, order: &str, query: &Query) -> String {
    // One more than there is room for tells whether there is a next page.
    let (count, bytes) = (query.limit.saturating_add(1), query.bytes_max);
    format!(
        "select id, type, source, received_at, payload, place::text as shown from \
         (select c.*, sum(octet_length(payload)) over (order by {order}) - octet_length(payload) as before from \
         (select id, coalesce(type, '') as type, coalesce(source, '') as source, received_at, payload::text as payload, \
         ctid as place from {table} where ({condition}) and payload is not null and received_at is not null \
         order by {order} limit {count}) c) c where before <= {bytes} order by {order}"
    )
}

async fn among_ids(talk: &Talk, table: &str, query: &Query, first: EventId, last: EventId) -> Result<Page, Failure> {
    let sql = rows(table, "id >= ($1::uuid[])[1] and id <= ($1::uuid[])[2]", "id", query);
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

async fn among_places(
    talk: &Talk,
    table: &str,
    query: &Query,
    filter: &Filter,
    mark: Option<Mark>,
) -> Result<Page, Failure> {
    let began = Instant::now();
    let (file, blocks) = table_now(talk, table).await?;
    let mut mark = mark.unwrap_or(Mark { file, at: At::START, id: EventId([0; 16]) });
    if mark.file != file {
        mark = Mark { file, at: place_now(talk, table, mark).await?, ..mark };
    }
    let mut gathered = Gathered::new(query);
    while i64::from(mark.at.block) < blocks {
        if gathered.is_full() || began.elapsed() >= PAGE_TIME_MAX {
            return Ok(gathered.page(Some(Place::At(mark).write())));
        }
        let end = At { block: mark.at.block.saturating_add(STEP_BLOCKS), number: 0 };
        let found = step(talk, table, query, filter, (mark.at, end)).await?;
        if found.is_empty() {
            mark.at = end;
        }
        for row in &found {
            let (at, event) = event_in(row)?;
            let id = event.id;
            if !is_none_of_ours(&event) && !gathered.take(event) {
                return Ok(gathered.page(Some(Place::At(mark).write())));
            }
            mark = Mark { file, at, id };
        }
    }
    Ok(gathered.page(None))
}

/// Which file holds the table, and how many blocks it has.
async fn table_now(talk: &Talk, table: &str) -> Result<(u32, i64), Failure> {
    let sql = "select pg_relation_filenode($1::text::regclass), \
               pg_relation_size($1::text::regclass) / current_setting('block_size')::bigint";
    let row = talk.wait(talk.client.query_one(sql, &[&table])).await?;
    Ok((row.try_get(0)?, row.try_get(1)?))
}

/// Where the event of a bookmark stands in a table that was written anew, as by `vacuum full`.
async fn place_now(talk: &Talk, table: &str, mark: Mark) -> Result<At, Failure> {
    let sql = format!("select ctid::text from {table} where id = any($1::uuid[])");
    let id = Array::of_ids([mark.id].into_iter());
    let row = talk.wait(talk.client.query_opt(&sql, &[&id])).await?;
    let now = row.map(|row| row.try_get::<_, String>(0)).transpose()?;
    Ok(now.and_then(|text| At::parse(&text)).unwrap_or(mark.at))
}

/// Rows behind a place and before another that the filter lets through.
async fn step(
    talk: &Talk,
    table: &str,
    query: &Query,
    filter: &Filter,
    (after, end): (At, At),
) -> Result<Vec<Row>, Failure> {
    let condition = format!(
        "ctid > {} and ctid < {} and ($1::text is null or type = $1) and ($2::timestamptz is null or received_at >= $2) \
         and ($3::timestamptz is null or received_at < $3)",
        after.sql(),
        end.sql()
    );
    let sql = rows(table, &condition, "place", query);
    let type_name = filter.type_name.as_ref().map(TypeName::as_str);
    let (since, until) = (filter.since.map(Time), filter.until.map(Time));
    talk.wait(talk.client.query(&sql, &[&type_name, &since, &until])).await
}

/// Where a row stands, and its event.
fn event_in(row: &Row) -> Result<(At, StoredEvent), Failure> {
    let place: &str = row.try_get(5)?;
    let event = StoredEvent {
        id: row.try_get::<_, Id>(0)?.0,
        type_name: row.try_get(1)?,
        source: row.try_get(2)?,
        received_at: row.try_get::<_, Time>(3)?.0,
        payload: row.try_get::<_, String>(4)?.into_bytes(),
    };
    Ok((At::parse(place).ok_or(Failure::Odd("a row has no place"))?, event))
}

/// Others may have put into the table what is too large for an event.
const fn is_none_of_ours(event: &StoredEvent) -> bool {
    event.payload.len() > EVENT_BYTES_MAX
}
