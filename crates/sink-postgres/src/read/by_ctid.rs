//! Reads events in the order of `ctid`, from a table whose rows don't record when they were stored. Each step is short,
//! because there is no index but that of the ids, and the table may be large.
//!
//! Within a table this is roughly the insertion order: the server may put a row into the free space of an earlier
//! block. A partitioned table is read part by part: first the default partition, then the days in order.
//!
//! Blocks that look empty may belong to an open transaction. So each part is read up to the last row that was visible
//! when the read of the part began, and no bookmark is after that row.

use std::time::{Duration, Instant};

use event::read::{Bookmark, Filter, Gathered, Page, Query};
use event::{EventId, TypeName};
use tokio_postgres::Row;

use super::super::error::Failure;
use super::super::mapping::{Array, Time};
use super::super::session::Talk;
use super::bookmark::AMONG_PLACES;
use super::rows::{Order, event_in, limits, rows};
use super::table::Readable;

/// Blocks of a table that one statement reads: 2 MiB.
const STEP_BLOCKS: u32 = 256;
/// Blocks at the end of a table in which the last row is searched first; then in twice as many before them, and so on.
const LAST_BLOCKS: u32 = 8;
/// The time limit of one page.
const PAGE_TIME_MAX: Duration = Duration::from_millis(250);

/// The place of a row: a block of the table, and a number within it from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct At {
    pub(super) block: u32,
    pub(super) number: u16,
}

impl At {
    /// Before every row.
    const START: Self = Self { block: 0, number: 0 };

    pub(super) fn parse(text: &str) -> Option<Self> {
        let (block, number) = text.strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
        Some(Self { block: block.parse().ok()?, number: number.parse().ok()? })
    }

    fn sql(self) -> String {
        format!("'({},{})'::tid", self.block, self.number)
    }
}

/// The row after which a page begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    /// The start of its part of the table, as in [`Part::from`].
    pub(super) part: i64,
    /// The file that held the part: in another file every row has another place.
    pub(super) file: u32,
    pub(super) at: At,
    pub(super) id: EventId,
}

impl Mark {
    /// Reads a mark, without the first byte of its bookmark.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (part, rest) = bytes.split_first_chunk()?;
        let (file, rest) = rest.split_first_chunk()?;
        let (block, rest) = rest.split_first_chunk()?;
        let (number, id) = rest.split_first_chunk()?;
        let at = At { block: u32::from_be_bytes(*block), number: u16::from_be_bytes(*number) };
        let (part, file) = (i64::from_be_bytes(*part), u32::from_be_bytes(*file));
        Some(Self { part, file, at, id: EventId(id.try_into().ok()?) })
    }

    fn bookmark(&self) -> Bookmark {
        let Self { part, file, at, id } = self;
        let (block, number) = (at.block.to_be_bytes(), at.number.to_be_bytes());
        Bookmark([&[AMONG_PLACES][..], &part.to_be_bytes(), &file.to_be_bytes(), &block, &number, &id.0].concat())
    }
}

/// A table that is read in the order of `ctid`: a partition, or the whole table.
struct Part {
    /// Its name, quoted for SQL.
    name: String,
    /// The first time of its range, in microseconds since 1970. The minimum for a table that isn't partitioned by time.
    from: i64,
    file: u32,
    blocks: i64,
}

impl Part {
    const fn start(&self) -> Mark {
        Mark { part: self.from, file: self.file, at: At::START, id: EventId([0; 16]) }
    }
}

/// Reads the rows after `mark`, or from the first row.
pub(super) async fn among_places(
    talk: &Talk,
    table: &Readable,
    query: &Query,
    filter: &Filter,
    mark: Option<Mark>,
) -> Result<Page, Failure> {
    let began = Instant::now();
    let (mut gathered, mut has_stepped) = (Gathered::new(query), false);
    let parts = parts_now(talk, &table.name).await?;
    let mut beginning = match mark {
        Some(mark) => Some(place_now(talk, &table.name, &parts, mark).await?),
        None => None,
    };
    let first = beginning.as_ref().map_or(0, |(index, _)| *index);
    for part in parts.iter().skip(first) {
        let mut mark = beginning.take().map_or_else(|| part.start(), |(_, mark)| mark);
        let Some(last) = last_row(talk, part, mark.at).await? else { continue };
        while mark.at < last {
            // A page without any step would be followed by the same page forever.
            if gathered.is_full() || has_stepped && began.elapsed() >= PAGE_TIME_MAX {
                return Ok(gathered.page(Some(mark.bookmark())));
            }
            let end = last.min(At { block: mark.at.block.saturating_add(STEP_BLOCKS), number: 0 });
            let found = step(talk, (table, part.name.as_str()), query, filter, (mark.at, end)).await?;
            has_stepped = true;
            if found.is_empty() {
                mark.at = end;
            }
            for row in &found {
                let (place, event) = event_in(row)?;
                let at = At::parse(place).ok_or(Failure::Unexpected("a row has no ctid"))?;
                let id = event.id;
                if !gathered.take(event) {
                    return Ok(gathered.page(Some(mark.bookmark())));
                }
                mark = Mark { at, id, ..mark };
            }
        }
    }
    Ok(gathered.page(None))
}

/// The last row of a part after a place that is visible now.
///
/// A later read up to this row finds the rows of transactions that had ended by now, and possibly more. A lane's next
/// transaction begins when the one before has ended, so it has no row yet before this place; another lane's transaction
/// may have one.
async fn last_row(talk: &Talk, part: &Part, after: At) -> Result<Option<At>, Failure> {
    let (mut end, mut blocks) = (u32::try_from(part.blocks).unwrap_or(u32::MAX), LAST_BLOCKS);
    while end > after.block {
        let begin = end.saturating_sub(blocks).max(after.block);
        let from = At { block: begin, number: 0 }.max(after);
        let before = At { block: end, number: 0 };
        let sql = format!(
            "select max(ctid)::text from {} where ctid > {} and ctid < {}",
            part.name,
            from.sql(),
            before.sql()
        );
        let found: Option<String> = talk.wait(talk.client.query_one(&sql, &[])).await?.try_get(0)?;
        if let Some(place) = found {
            return At::parse(&place).map(Some).ok_or(Failure::Unexpected("a row has no ctid"));
        }
        (end, blocks) = (begin, blocks.saturating_mul(2));
    }
    Ok(None)
}

/// The partitions of a table, or the table itself: the file of each, and how many blocks it has.
async fn parts_now(talk: &Talk, table: &str) -> Result<Vec<Part>, Failure> {
    let sql = "with own as (select $1::text::regclass::oid as oid), parts as (\
               select c.oid, pg_get_expr(c.relpartbound, c.oid) as bound from pg_class c where relkind = 'r' and \
               (c.oid = (select oid from own) or c.relispartition and \
                c.oid in (select inhrelid from pg_inherits where inhparent = (select oid from own)))) \
               select oid::regclass::text, \
               coalesce(substring(bound from 'FROM \\(''([^'']+)''\\)'), '-infinity')::timestamptz as first, \
               pg_relation_filenode(oid), pg_relation_size(oid) / current_setting('block_size')::bigint \
               from parts order by first, oid";
    let found = talk.wait(talk.client.query(sql, &[&table])).await?;
    let part = |row: &Row| {
        let (name, Time(from)) = (row.try_get(0)?, row.try_get(1)?);
        Ok(Part { name, from, file: row.try_get(2)?, blocks: row.try_get(3)? })
    };
    found.iter().map(part).collect::<Result<_, tokio_postgres::Error>>().map_err(Failure::from)
}

/// Where to continue after a bookmark: at its place, or at its event's place if the part was rewritten, as by `vacuum
/// full`. If neither the part nor the event exists, at the next part.
async fn place_now(talk: &Talk, table: &str, parts: &[Part], mark: Mark) -> Result<(usize, Mark), Failure> {
    if let Some(index) = parts.iter().position(|part| part.file == mark.file) {
        return Ok((index, mark));
    }
    let sql = format!("select tableoid::regclass::text, ctid::text from {table} where id = any($1::uuid[])");
    let id = Array::of_ids([mark.id].into_iter());
    for row in talk.wait(talk.client.query(&sql, &[&id])).await? {
        let (name, at): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let found = parts.iter().enumerate().find(|(_, part)| part.name == name);
        if let (Some((index, part)), Some(at)) = (found, At::parse(&at)) {
            return Ok((index, Mark { at, ..part.start() }));
        }
    }
    let same = parts.iter().enumerate().find(|(_, part)| part.from == mark.part);
    if let Some((index, part)) = same {
        return Ok((index, Mark { at: mark.at, ..part.start() }));
    }
    let next = parts.partition_point(|part| part.from < mark.part);
    Ok((next, parts.get(next).map_or(mark, Part::start)))
}

/// The rows after a place, up to another one, that match the filter.
async fn step(
    talk: &Talk,
    (table, part): (&Readable, &str),
    query: &Query,
    filter: &Filter,
    (after, end): (At, At),
) -> Result<Vec<Row>, Failure> {
    let condition = format!(
        "ctid > {} and ctid <= {} and {} and ($4::timestamptz is null or received_at >= $4) \
         and ($5::timestamptz is null or received_at < $5)",
        after.sql(),
        end.sql(),
        table.of_type()
    );
    let order = Order { place: "ctid", first: "place", then: "place" };
    let sql = rows(table, part, &condition, order);
    let [count, bytes] = limits(query.limit, query.bytes_max);
    let type_name = filter.type_name.as_ref().map(TypeName::as_str);
    let (since, until) = (filter.since.map(Time), filter.until.map(Time));
    talk.wait(talk.client.query(&sql, &[&count, &bytes, &type_name, &since, &until])).await
}
