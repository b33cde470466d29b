//! Events in the order of their places, in steps that are each short: there is no index but that of the ids, and the table
//! may be large.
//!
//! Within a table the order is that of storing as long as nothing is deleted. A table that is divided is read part by part: first
//! the default partition, then the days in their order.

use std::time::{Duration, Instant};

use event::read::{Filter, Gathered, Page, Query};
use event::{EventId, TypeName};
use tokio_postgres::Row;

use super::failure::Failure;
use super::page::{Place, event_in, is_none_of_ours, rows};
use super::row::{Array, Time};
use super::session::Talk;

/// Blocks of a table that one statement looks at: 2 MiB.
const STEP_BLOCKS: u32 = 256;
/// How long is looked for one page.
const PAGE_TIME_MAX: Duration = Duration::from_millis(250);

/// Where a row stands: a block of the table, and a number within it from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// Behind which row a page begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    /// Where its part of the table begins, as [`Part::from`].
    pub(super) part: i64,
    /// The file that held the part: in another one every row stands elsewhere.
    pub(super) file: u32,
    pub(super) at: At,
    pub(super) id: EventId,
}

/// A table that is read in its own order: a partition, or the whole.
struct Part {
    /// As it stands in SQL.
    name: String,
    /// The first of the times that it is for: microseconds since 1970. The least there is for what isn't divided by time.
    from: i64,
    file: u32,
    blocks: i64,
}

impl Part {
    const fn start(&self) -> Mark {
        Mark { part: self.from, file: self.file, at: At::START, id: EventId([0; 16]) }
    }
}

/// Reads on behind `mark`, or from the first row.
pub(super) async fn among_places(
    talk: &Talk,
    table: &str,
    query: &Query,
    filter: &Filter,
    mark: Option<Mark>,
) -> Result<Page, Failure> {
    let began = Instant::now();
    let mut gathered = Gathered::new(query);
    let parts = parts_now(talk, table).await?;
    let mut beginning = match mark {
        Some(mark) => Some(place_now(talk, table, &parts, mark).await?),
        None => None,
    };
    let first = beginning.as_ref().map_or(0, |(index, _)| *index);
    for part in parts.iter().skip(first) {
        let mut mark = beginning.take().map_or_else(|| part.start(), |(_, mark)| mark);
        while i64::from(mark.at.block) < part.blocks {
            if gathered.is_full() || began.elapsed() >= PAGE_TIME_MAX {
                return Ok(gathered.page(Some(Place::At(mark).write())));
            }
            let end = At { block: mark.at.block.saturating_add(STEP_BLOCKS), number: 0 };
            let found = step(talk, &part.name, query, filter, (mark.at, end)).await?;
            if found.is_empty() {
                mark.at = end;
            }
            for row in &found {
                let (at, event) = event_in(row)?;
                let id = event.id;
                if !is_none_of_ours(&event) && !gathered.take(event) {
                    return Ok(gathered.page(Some(Place::At(mark).write())));
                }
                mark = Mark { at, id, ..mark };
            }
        }
    }
    Ok(gathered.page(None))
}

/// The partitions of a table, or the table itself: which file holds each, and how many blocks it has.
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

/// Where to go on behind a bookmark: its place, or that of its event in a part that was written anew, as by `vacuum full`, or the
/// next part where there is neither the part nor the event any more.
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
