//! One page of a table, in steps that are each short: no statement is open for long, so that no reader keeps the
//! write-ahead log from being copied into the table.

use std::time::{Duration, Instant};

use event::limits::EVENT_BYTES_MAX;
use event::read::{Bookmark, Filter, Gathered, Page, Query, StoredEvent, Wanted};
use event::{EventId, TypeName};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::TableName;

/// Rows that one statement looks at.
const STEP_ROWS: i64 = 4_096;
/// Rows that are looked at for one page, and how long: there is no index but that of the ids, and the table may be large.
const PAGE_ROWS_MAX: i64 = 16 * STEP_ROWS;
const PAGE_TIME_MAX: Duration = Duration::from_millis(250);

/// A bookmark among rows begins with this, one among ids with the other.
const AMONG_ROWS: u8 = b'r';
const AMONG_IDS: u8 = b'i';

/// The statements that name the configured table.
pub(super) struct ReadSql {
    ids: String,
    rows: String,
    bounds: String,
    last: String,
    id_of_row: String,
    row_of_id: String,
}

impl ReadSql {
    pub(super) fn new(table: &TableName) -> Self {
        let table = table.quoted();
        let select = format!("select rowid, id, type, source, received_at, payload from {table}");
        Self {
            ids: format!("{select} where id >= ?1 and id <= ?2 order by id limit ?3"),
            rows: format!(
                "{select} where rowid > ?1 and rowid <= ?2 and (?3 is null or type = ?3) \
                 and (?4 is null or received_at >= ?4) and (?5 is null or received_at < ?5) order by rowid limit ?6"
            ),
            bounds: format!(
                "select rowid, (select max(rowid) from {table}) from {table} where rowid > ?1 order by rowid limit 1"
            ),
            last: format!("select rowid, id from {table} where rowid <= ?1 order by rowid desc limit 1"),
            id_of_row: format!("select id from {table} where rowid = ?1"),
            row_of_id: format!("select rowid from {table} where id = ?1"),
        }
    }
}

/// Reads a page; `None` where the bookmark is none of this store's.
pub(super) fn read(connection: &Connection, sql: &ReadSql, query: &Query) -> rusqlite::Result<Option<Page>> {
    let after = match &query.after {
        None => None,
        Some(bookmark) => match Place::read(bookmark) {
            Some(place) => Some(place),
            None => return Ok(None),
        },
    };
    match (&query.wanted, after) {
        (Wanted::Ids { first, last }, None) => among_ids(connection, sql, query, *first, *last).map(Some),
        (Wanted::Ids { last, .. }, Some(Place::Id(after))) => match behind(after) {
            Some(first) => among_ids(connection, sql, query, first, *last).map(Some),
            None => Ok(Some(Page::default())),
        },
        (Wanted::Stored(filter), None) => among_rows(connection, sql, query, filter, i64::MIN).map(Some),
        (Wanted::Stored(filter), Some(Place::Row { row, id })) => {
            let after = row_now(connection, sql, row, id)?;
            among_rows(connection, sql, query, filter, after).map(Some)
        }
        _ => Ok(None),
    }
}

/// A place in the table.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// Behind this row. Where the table was written anew, its event may stand in another one.
    Row { row: i64, id: EventId },
    /// Behind this id.
    Id(EventId),
}

impl Place {
    fn read(Bookmark(bytes): &Bookmark) -> Option<Self> {
        match bytes.split_first()? {
            (&AMONG_IDS, id) => Some(Self::Id(EventId(id.try_into().ok()?))),
            (&AMONG_ROWS, rest) => {
                let (row, id) = rest.split_first_chunk()?;
                Some(Self::Row { row: i64::from_be_bytes(*row), id: EventId(id.try_into().ok()?) })
            }
            _ => None,
        }
    }

    fn write(&self) -> Bookmark {
        Bookmark(match self {
            Self::Id(id) => [&[AMONG_IDS][..], &id.0].concat(),
            Self::Row { row, id } => [&[AMONG_ROWS][..], &row.to_be_bytes(), &id.0].concat(),
        })
    }
}

/// The next id, if there is any.
fn behind(id: EventId) -> Option<EventId> {
    u128::from_be_bytes(id.0).checked_add(1).map(|next| EventId(next.to_be_bytes()))
}

/// Where the event of a bookmark stands by now: `vacuum` may number rows anew.
fn row_now(connection: &Connection, sql: &ReadSql, row: i64, id: EventId) -> rusqlite::Result<i64> {
    let there: Option<Option<EventId>> =
        connection.prepare_cached(&sql.id_of_row)?.query_row([row], |row| Ok(id_in(row.get_ref(0)?))).optional()?;
    if there.flatten() == Some(id) {
        return Ok(row);
    }
    let elsewhere = connection.prepare_cached(&sql.row_of_id)?.query_row([id.0], |row| row.get(0)).optional()?;
    Ok(elsewhere.unwrap_or(row))
}

fn among_ids(
    connection: &Connection,
    sql: &ReadSql,
    query: &Query,
    first: EventId,
    last: EventId,
) -> rusqlite::Result<Page> {
    let mut gathered = Gathered::new(query);
    let mut statement = connection.prepare_cached(&sql.ids)?;
    // One more than there is room for tells whether there is a next page.
    let mut rows = statement.query(params![first.0, last.0, one_more(query.limit)])?;
    while let Some(row) = rows.next()? {
        let Some((_, event)) = event_in(row)? else { continue };
        if !gathered.take(event) {
            let next = gathered.last().map(|event| Place::Id(event.id).write());
            return Ok(gathered.page(next));
        }
    }
    Ok(gathered.page(None))
}

fn among_rows(
    connection: &Connection,
    sql: &ReadSql,
    query: &Query,
    filter: &Filter,
    mut after: i64,
) -> rusqlite::Result<Page> {
    let began = Instant::now();
    let mut gathered = Gathered::new(query);
    let mut looked_at = 0;
    while let Some(end) = step_end(connection, sql, after)? {
        if gathered.is_full() || looked_at >= PAGE_ROWS_MAX || began.elapsed() >= PAGE_TIME_MAX {
            return Ok(gathered.page(Some(bookmark_at(connection, sql, after)?)));
        }
        if let Some(last) = step(connection, sql, filter, (after, end), &mut gathered)? {
            return Ok(gathered.page(Some(last.write())));
        }
        looked_at += STEP_ROWS;
        after = end;
    }
    Ok(gathered.page(None))
}

/// Up to where a step behind `after` goes; `None` where there is no row. Rows may lie far apart: a step begins at one that is
/// there. It ends at the last one that is there: others commit between two statements, and what they add has greater numbers,
/// none of which may be passed unseen.
fn step_end(connection: &Connection, sql: &ReadSql, after: i64) -> rusqlite::Result<Option<i64>> {
    let bounds = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    let bounds = connection.prepare_cached(&sql.bounds)?.query_row([after], bounds).optional()?;
    Ok(bounds.map(|(first, last)| last.min(first.saturating_add(STEP_ROWS - 1))))
}

/// Gathers what fits of the rows behind `after` and up to `end`. Where there was no room for one: the place before it.
fn step(
    connection: &Connection,
    sql: &ReadSql,
    filter: &Filter,
    (after, end): (i64, i64),
    gathered: &mut Gathered,
) -> rusqlite::Result<Option<Place>> {
    let mut statement = connection.prepare_cached(&sql.rows)?;
    let type_name = filter.type_name.as_ref().map(TypeName::as_str);
    let mut rows = statement.query(params![after, end, type_name, filter.since, filter.until, STEP_ROWS])?;
    let mut last = None;
    while let Some(row) = rows.next()? {
        let Some((row, event)) = event_in(row)? else { continue };
        let id = event.id;
        if !gathered.take(event) {
            // It has no room, so there was one before it; perhaps in an earlier step, behind which nothing fits.
            return Ok(Some(last.unwrap_or(Place::Row { row: after, id: EventId([0; 16]) })));
        }
        last = Some(Place::Row { row, id });
    }
    Ok(None)
}

/// The bookmark of the last row up to `end`. If none is left, since all were deleted meanwhile, the number alone is good for it.
fn bookmark_at(connection: &Connection, sql: &ReadSql, end: i64) -> rusqlite::Result<Bookmark> {
    let place = connection.prepare_cached(&sql.last)?.query_row([end], |row| {
        Ok(Place::Row { row: row.get(0)?, id: id_in(row.get_ref(1)?).unwrap_or(EventId([0; 16])) })
    });
    Ok(place.optional()?.unwrap_or(Place::Row { row: end, id: EventId([0; 16]) }).write())
}

fn one_more(limit: usize) -> i64 {
    i64::try_from(limit).map_or(i64::MAX, |limit| limit.saturating_add(1))
}

fn id_in(value: ValueRef<'_>) -> Option<EventId> {
    value.as_blob().ok()?.try_into().ok().map(EventId)
}

/// The event of a row, with the row's number. Others may have put into the table what is none: that is passed over.
fn event_in(row: &Row<'_>) -> rusqlite::Result<Option<(i64, StoredEvent)>> {
    let text = |column| Ok::<_, rusqlite::Error>(row.get_ref(column)?.as_str().unwrap_or_default().to_owned());
    let payload = row.get_ref(5)?;
    let (Some(id), Ok(received_at), Ok(payload)) =
        (id_in(row.get_ref(1)?), row.get_ref(4)?.as_i64(), payload.as_bytes())
    else {
        return Ok(None);
    };
    if payload.len() > EVENT_BYTES_MAX {
        return Ok(None);
    }
    let event = StoredEvent { id, type_name: text(2)?, source: text(3)?, received_at, payload: payload.to_vec() };
    Ok(Some((row.get(0)?, event)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connect(path: &std::path::Path) -> Connection {
        Connection::open(path).unwrap()
    }

    /// Adds so many events, in one transaction.
    fn add(connection: &Connection, count: i64) {
        let sql = "insert into events with recursive n(i) as (select 1 union all select i + 1 from n where i < ?1) \
                   select randomblob(16), 't', '', 7, '{}' from n";
        assert_eq!(connection.execute(sql, [count]), Ok(usize::try_from(count).unwrap()));
    }

    #[test]
    fn a_page_of_which_all_rows_are_deleted_meanwhile_is_not_the_last() {
        let connection = connect(std::path::Path::new(":memory:"));
        let table =
            "create table events (id blob primary key, type text, source text, received_at integer, payload text)";
        connection.execute_batch(table).unwrap();
        let sql = ReadSql::new(&TableName::new("events").unwrap());
        add(&connection, 10);
        connection.execute("delete from events where rowid <= 7", []).unwrap();
        let query = Query {
            wanted: Wanted::Stored(Filter::default()),
            after: Some(bookmark_at(&connection, &sql, 5).unwrap()),
            limit: usize::MAX,
            bytes_max: usize::MAX,
        };
        assert_eq!(read(&connection, &sql, &query).unwrap().unwrap().events.len(), 3);
    }

    #[test]
    fn what_is_committed_between_two_statements_is_not_passed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.db");
        let writer = connect(&path);
        let table =
            "create table events (id blob primary key, type text, source text, received_at integer, payload text)";
        writer.execute_batch(&format!("pragma journal_mode = wal; {table}")).unwrap();
        let (reader, sql) = (connect(&path), ReadSql::new(&TableName::new("events").unwrap()));
        let wanted = Wanted::Stored(Filter::default());
        let query = Query { wanted, after: None, limit: usize::MAX, bytes_max: usize::MAX };
        let (mut gathered, mut after) = (Gathered::new(&query), i64::MIN);
        add(&writer, 10);
        // As a page does it, while others commit before and behind each step.
        for round in 0..3 {
            let end = step_end(&reader, &sql, after).unwrap().unwrap();
            add(&writer, STEP_ROWS / 2);
            assert_eq!(step(&reader, &sql, &Filter::default(), (after, end), &mut gathered), Ok(None), "round {round}");
            add(&writer, STEP_ROWS / 2);
            after = end;
            let Bookmark(mark) = bookmark_at(&reader, &sql, after).unwrap();
            assert_eq!(mark[1..9], after.to_be_bytes(), "the bookmark is that of a row that was there");
        }
        let rest = Query { after: Some(bookmark_at(&reader, &sql, after).unwrap()), ..query };
        let rest = read(&reader, &sql, &rest).unwrap().unwrap();
        assert_eq!(gathered.page(None).events.len() + rest.events.len(), 10 + 3 * usize::try_from(STEP_ROWS).unwrap());
    }
}
