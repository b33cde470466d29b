//! One page of a table, in short steps: no statement is open for long, so no reader keeps the write-ahead log from
//! being copied into the table.

use std::time::{Duration, Instant};

use event::read::{Bookmark, Filter, Gathered, Page, Payload, Query, ReadOrder, StoredEvent, Wanted};
use event::{EventId, TypeName};
use limits::EVENT_BYTES_MAX;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};

use sink::{TableName, quoted};

/// Rows that one statement reads.
const STEP_ROWS: i64 = 4_096;
/// The maximum of rows that are read for one page, and the time limit: there is no index but that of the ids, and the
/// table may be large.
const PAGE_ROWS_MAX: i64 = 16 * STEP_ROWS;
const PAGE_TIME_MAX: Duration = Duration::from_millis(250);

/// Bytes of an id.
const ID_BYTES: usize = 16;
/// Bytes of a type's or a source's name in the table. Longer ones, which other programs have stored, are shown as
/// empty.
const NAME_BYTES_MAX: usize = 1024;

/// The first byte of a bookmark among rows, oldest first or newest first, and of one among ids.
const OLDEST_FIRST: u8 = b'r';
const NEWEST_FIRST: u8 = b'n';
const AMONG_IDS: u8 = b'i';

/// The statements for the configured table.
pub(super) struct ReadSql {
    pub(super) by_id: String,
    ids: String,
    oldest_first: OrderSql,
    newest_first: OrderSql,
    id_of_row: String,
    row_of_id: String,
}

/// The statements that read rows in an order.
struct OrderSql {
    order: ReadOrder,
    /// The first row from a number on, and the last of the table.
    bounds: String,
    rows: String,
    /// The last row up to a number.
    last: String,
}

impl ReadSql {
    pub(super) fn new(table: &TableName) -> Self {
        let table = quoted(table);
        Self {
            by_id: format!("{} where id = ?1", select_from(&table)),
            ids: format!("{} where id >= ?1 and id <= ?2 order by id limit ?3", select_from(&table)),
            oldest_first: OrderSql::new(&table, ReadOrder::OldestFirst),
            newest_first: OrderSql::new(&table, ReadOrder::NewestFirst),
            id_of_row: format!("select id from {table} where rowid = ?1"),
            row_of_id: format!("select rowid from {table} where id = ?1"),
        }
    }

    const fn of(&self, order: ReadOrder) -> &OrderSql {
        match order {
            ReadOrder::OldestFirst => &self.oldest_first,
            ReadOrder::NewestFirst => &self.newest_first,
        }
    }
}

impl OrderSql {
    fn new(table: &str, order: ReadOrder) -> Self {
        let (from, up_to, on, back) = match order {
            ReadOrder::OldestFirst => (">=", "<=", "asc", "desc"),
            ReadOrder::NewestFirst => ("<=", ">=", "desc", "asc"),
        };
        let select = select_from(table);
        Self {
            order,
            bounds: format!(
                "select rowid, (select rowid from {table} order by rowid {back} limit 1) from {table} \
                 where rowid {from} ?1 order by rowid {on} limit 1"
            ),
            rows: format!(
                "{select} where rowid {from} ?1 and rowid {up_to} ?2 and (?3 is null or type = ?3) \
                 and (?4 is null or received_at >= ?4) and (?5 is null or received_at < ?5) order by rowid {on} limit ?6"
            ),
            last: format!("select rowid, id from {table} where rowid {up_to} ?1 order by rowid {back} limit 1"),
        }
    }
}

fn select_from(table: &str) -> String {
    // SQLite knows a value's size without reading it, and the CASE keeps too large values out of memory.
    let within = |column: &str, most: usize| format!("case when octet_length({column}) <= {most} then {column} end");
    format!(
        "select rowid, {}, {}, {}, received_at, {}, octet_length(payload), typeof(payload) from {table}",
        within("id", ID_BYTES),
        within("type", NAME_BYTES_MAX),
        within("source", NAME_BYTES_MAX),
        within("payload", EVENT_BYTES_MAX),
    )
}

/// Reads a page; `None` if the bookmark isn't this store's.
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
        (Wanted::Ids { last, .. }, Some(Place::Id(after))) => match next_id(after) {
            Some(first) => among_ids(connection, sql, query, first, *last).map(Some),
            None => Ok(Some(Page::default())),
        },
        (Wanted::Stored(filter), None) => {
            among_rows(connection, sql, query, filter, Some(first(filter.order))).map(Some)
        }
        (Wanted::Stored(filter), Some(Place::Row { order, row, id })) if order == filter.order => {
            let from = next(order, row_now(connection, sql, row, id)?);
            among_rows(connection, sql, query, filter, from).map(Some)
        }
        _ => Ok(None),
    }
}

/// A place in the table.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// After this row, in this order. If the table was rewritten, its event may be in another row.
    Row { order: ReadOrder, row: i64, id: EventId },
    /// After this id.
    Id(EventId),
}

impl Place {
    fn read(Bookmark(bytes): &Bookmark) -> Option<Self> {
        match bytes.split_first()? {
            (&AMONG_IDS, id) => Some(Self::Id(EventId(id.try_into().ok()?))),
            (&kind @ (OLDEST_FIRST | NEWEST_FIRST), rest) => {
                let order = if kind == OLDEST_FIRST { ReadOrder::OldestFirst } else { ReadOrder::NewestFirst };
                let (row, id) = rest.split_first_chunk()?;
                Some(Self::Row { order, row: i64::from_be_bytes(*row), id: EventId(id.try_into().ok()?) })
            }
            _ => None,
        }
    }

    fn write(&self) -> Bookmark {
        Bookmark(match self {
            Self::Id(id) => [&[AMONG_IDS][..], &id.0].concat(),
            Self::Row { order, row, id } => {
                let kind = if *order == ReadOrder::OldestFirst { OLDEST_FIRST } else { NEWEST_FIRST };
                [&[kind][..], &row.to_be_bytes(), &id.0].concat()
            }
        })
    }
}

/// The next id, if there is any.
fn next_id(id: EventId) -> Option<EventId> {
    u128::from_be_bytes(id.0).checked_add(1).map(|next| EventId(next.to_be_bytes()))
}

/// The number before all others.
const fn first(order: ReadOrder) -> i64 {
    match order {
        ReadOrder::OldestFirst => i64::MIN,
        ReadOrder::NewestFirst => i64::MAX,
    }
}

/// The number after a row's, if there is any.
const fn next(order: ReadOrder, row: i64) -> Option<i64> {
    match order {
        ReadOrder::OldestFirst => row.checked_add(1),
        ReadOrder::NewestFirst => row.checked_sub(1),
    }
}

/// The current row of a bookmark's event: `vacuum` may renumber rows.
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
    // One more than the limit shows whether there is a next page.
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
    mut from: Option<i64>,
) -> rusqlite::Result<Page> {
    let sql = sql.of(filter.order);
    let began = Instant::now();
    let mut gathered = Gathered::new(query);
    let (mut passed, mut examined) = (None, 0);
    while let Some(start) = from
        && let Some(bounds) = step_bounds(connection, sql, start)?
    {
        // A page without any step would be followed by the same page forever.
        if let Some(passed) = passed
            && (gathered.is_full() || examined >= PAGE_ROWS_MAX || began.elapsed() >= PAGE_TIME_MAX)
        {
            return Ok(gathered.page(Some(bookmark_at(connection, sql, passed)?)));
        }
        if let Some(last) = step(connection, sql, filter, bounds, &mut gathered)? {
            return Ok(gathered.page(Some(last.write())));
        }
        examined += STEP_ROWS;
        passed = Some(bounds.1);
        from = next(filter.order, bounds.1);
    }
    Ok(gathered.page(None))
}

/// The rows of a step from a number on: the first and the last; `None` if there is no row. Numbers may have large gaps:
/// a step begins at an existing row, and none continues after the last existing one. Other transactions commit between
/// two statements, and their rows have greater numbers: oldest first, none of these may be skipped; newest first, none
/// may be returned.
fn step_bounds(connection: &Connection, sql: &OrderSql, from: i64) -> rusqlite::Result<Option<(i64, i64)>> {
    let bounds = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    let bounds = connection.prepare_cached(&sql.bounds)?.query_row([from], bounds).optional()?;
    Ok(bounds.map(|(first, last)| match sql.order {
        ReadOrder::OldestFirst => (first, last.min(first.saturating_add(STEP_ROWS - 1))),
        ReadOrder::NewestFirst => (first, last.max(first.saturating_sub(STEP_ROWS - 1))),
    }))
}

/// Collects the rows within these bounds that fit in the page. If one doesn't fit, returns the place before it.
fn step(
    connection: &Connection,
    sql: &OrderSql,
    filter: &Filter,
    (first, end): (i64, i64),
    gathered: &mut Gathered,
) -> rusqlite::Result<Option<Place>> {
    let mut statement = connection.prepare_cached(&sql.rows)?;
    let Filter { type_name, since, until, order } = filter;
    let type_name = type_name.as_ref().map(TypeName::as_str);
    let mut rows = statement.query(params![first, end, type_name, since, until, STEP_ROWS])?;
    let mut last = None;
    while let Some(row) = rows.next()? {
        let Some((row, event)) = event_in(row)? else { continue };
        let id = event.id;
        if !gathered.take(event) {
            // It doesn't fit, so there was one before it, possibly in an earlier step, after which nothing matches.
            return Ok(Some(last.unwrap_or(before(*order, first))));
        }
        last = Some(Place::Row { order: *order, row, id });
    }
    Ok(None)
}

/// The place before a row, whose event isn't known.
const fn before(order: ReadOrder, row: i64) -> Place {
    let row = match order {
        ReadOrder::OldestFirst => row.saturating_sub(1),
        ReadOrder::NewestFirst => row.saturating_add(1),
    };
    Place::Row { order, row, id: EventId([0; 16]) }
}

/// The bookmark of the last row up to `end`. If all were deleted, the number alone is enough.
fn bookmark_at(connection: &Connection, sql: &OrderSql, end: i64) -> rusqlite::Result<Bookmark> {
    let order = sql.order;
    let place = connection.prepare_cached(&sql.last)?.query_row([end], |row| {
        Ok(Place::Row { order, row: row.get(0)?, id: id_in(row.get_ref(1)?).unwrap_or(EventId([0; 16])) })
    });
    Ok(place.optional()?.unwrap_or(Place::Row { order, row: end, id: EventId([0; 16]) }).write())
}

fn one_more(limit: usize) -> i64 {
    i64::try_from(limit).map_or(i64::MAX, |limit| limit.saturating_add(1))
}

fn id_in(value: ValueRef<'_>) -> Option<EventId> {
    value.as_blob().ok()?.try_into().ok().map(EventId)
}

/// The event of a row, with the row's number. Rows of other programs that aren't events are skipped.
pub(super) fn event_in(row: &Row<'_>) -> rusqlite::Result<Option<(i64, StoredEvent)>> {
    let text = |column| Ok::<_, rusqlite::Error>(row.get_ref(column)?.as_str().unwrap_or_default().to_owned());
    let (Some(id), Ok(received_at)) = (id_in(row.get_ref(1)?), row.get_ref(4)?.as_i64()) else { return Ok(None) };
    let (payload, bytes, kind) = (row.get_ref(5)?, row.get_ref(6)?.as_i64().unwrap_or_default(), row.get_ref(7)?);
    if !matches!(kind.as_str(), Ok("text" | "blob")) {
        return Ok(None);
    }
    let payload = payload.as_bytes().ok().map(<[u8]>::to_vec);
    let payload = Payload::sized(payload, u64::try_from(bytes).unwrap_or_default());
    let event = StoredEvent { id, type_name: text(2)?, source: text(3)?, received_at, payload };
    Ok(Some((row.get(0)?, event)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connect(path: &std::path::Path) -> Connection {
        Connection::open(path).unwrap()
    }

    /// Adds this many events, in one transaction.
    fn add(connection: &Connection, count: i64) {
        let sql = "insert into events with recursive n(i) as (select 1 union all select i + 1 from n where i < ?1) \
                   select randomblob(16), 't', '', 7, '{}' from n";
        assert_eq!(connection.execute(sql, [count]), Ok(usize::try_from(count).unwrap()));
    }

    /// An empty table: a connection that writes to it, one that reads it, and the statements for reads.
    fn open(directory: &tempfile::TempDir) -> (Connection, Connection, ReadSql) {
        let path = directory.path().join("events.db");
        let writer = connect(&path);
        let table =
            "create table events (id blob primary key, type text, source text, received_at integer, payload text)";
        writer.execute_batch(&format!("pragma journal_mode = wal; {table}")).unwrap();
        (writer, connect(&path), ReadSql::new(&TableName::new("events").unwrap()))
    }

    fn all(order: ReadOrder) -> Query {
        let wanted = Wanted::Stored(Filter { order, ..Filter::default() });
        Query { wanted, after: None, limit: usize::MAX, bytes_max: usize::MAX, only_type: None }
    }

    #[test]
    fn page_of_deleted_rows_is_not_last() {
        let directory = tempfile::tempdir().unwrap();
        let (writer, reader, sql) = open(&directory);
        add(&writer, 10);
        writer.execute("delete from events where rowid <= 7", []).unwrap();
        let after = Some(bookmark_at(&reader, &sql.oldest_first, 5).unwrap());
        let query = Query { after, ..all(ReadOrder::OldestFirst) };
        assert_eq!(read(&reader, &sql, &query).unwrap().unwrap().events.len(), 3);
        writer.execute("delete from events", []).unwrap();
        let after = Some(bookmark_at(&reader, &sql.newest_first, 8).unwrap());
        let query = Query { after, ..all(ReadOrder::NewestFirst) };
        assert_eq!(read(&reader, &sql, &query).unwrap(), Some(Page::default()));
    }

    /// Other programs may have stored it. It isn't read into memory, and its page shows it.
    #[test]
    fn row_larger_than_an_event_shows_its_size() {
        let directory = tempfile::tempdir().unwrap();
        let (writer, reader, sql) = open(&directory);
        add(&writer, 1);
        let large = "insert into events values (randomblob(16), ?1, 's', 7, ?2)";
        writer.execute(large, params!["t", "x".repeat(EVENT_BYTES_MAX + 1)]).unwrap();
        writer.execute(large, params!["t".repeat(5_000_000), vec![b'1'; 3 * EVENT_BYTES_MAX]]).unwrap();
        writer.execute(large, params!["t", None::<i64>]).unwrap();
        add(&writer, 1);
        let events = read(&reader, &sql, &all(ReadOrder::OldestFirst)).unwrap().unwrap().events;
        let omitted = |bytes: usize| Payload::Omitted { bytes: bytes as u64 };
        let expected =
            [Payload::of(b"{}"), omitted(EVENT_BYTES_MAX + 1), omitted(3 * EVENT_BYTES_MAX), Payload::of(b"{}")];
        assert_eq!(events.iter().map(|event| &event.payload).collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
        assert_eq!(events[2].type_name, "");
        let wanted = Wanted::Ids { first: events[1].id, last: events[1].id };
        let one = read(&reader, &sql, &Query { wanted, ..all(ReadOrder::OldestFirst) }).unwrap().unwrap();
        assert_eq!(one.events, [events[1].clone()]);
    }

    #[test]
    fn pages_sort_no_rows() {
        let directory = tempfile::tempdir().unwrap();
        let (_writer, reader, sql) = open(&directory);
        for OrderSql { bounds, rows, last, .. } in [&sql.oldest_first, &sql.newest_first] {
            for sql in [bounds, rows, last, &sql.ids, &sql.by_id] {
                let mut plan = reader.prepare(&format!("explain query plan {sql}")).unwrap();
                let none = vec![rusqlite::types::Null; plan.parameter_count()];
                let steps = plan.query_map(rusqlite::params_from_iter(none), |row| row.get::<_, String>(3)).unwrap();
                let steps: Vec<String> = steps.map(Result::unwrap).collect();
                assert!(steps[0].starts_with("SEARCH events USING"), "{sql}: {steps:?}");
                assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{sql}: {steps:?}");
            }
        }
    }

    #[test]
    fn newest_first_omits_later_commits() {
        let directory = tempfile::tempdir().unwrap();
        let (writer, reader, sql) = open(&directory);
        let query = all(ReadOrder::NewestFirst);
        add(&writer, 3 * STEP_ROWS);
        let mut statement = writer.prepare("select id from events order by rowid desc").unwrap();
        let ids = statement.query_map([], |row| row.get(0).map(EventId)).unwrap();
        let stored: Vec<EventId> = ids.map(Result::unwrap).collect();
        let (sql, mut gathered, mut from) = (&sql.newest_first, Gathered::new(&query), Some(i64::MAX));
        while let Some(start) = from
            && let Some(bounds) = step_bounds(&reader, sql, start).unwrap()
        {
            add(&writer, STEP_ROWS / 2);
            assert_eq!(step(&reader, sql, &Filter::default(), bounds, &mut gathered), Ok(None));
            let Bookmark(mark) = bookmark_at(&reader, sql, bounds.1).unwrap();
            assert_eq!(mark[1..9], bounds.1.to_be_bytes());
            from = next(ReadOrder::NewestFirst, bounds.1);
        }
        let read: Vec<EventId> = gathered.page(None).events.iter().map(|event| event.id).collect();
        assert!(read == stored, "{} of {}", read.len(), stored.len());
    }

    #[test]
    fn commit_between_two_statements_is_not_skipped() {
        let directory = tempfile::tempdir().unwrap();
        let (writer, reader, all_sql) = open(&directory);
        let (sql, query) = (&all_sql.oldest_first, all(ReadOrder::OldestFirst));
        let (mut gathered, mut from) = (Gathered::new(&query), i64::MIN);
        add(&writer, 10);
        // As a page does it, while others commit before and after each step.
        for round in 0..3 {
            let bounds = step_bounds(&reader, sql, from).unwrap().unwrap();
            add(&writer, STEP_ROWS / 2);
            assert_eq!(step(&reader, sql, &Filter::default(), bounds, &mut gathered), Ok(None), "round {round}");
            add(&writer, STEP_ROWS / 2);
            from = bounds.1 + 1;
            let Bookmark(mark) = bookmark_at(&reader, sql, bounds.1).unwrap();
            assert_eq!(mark[1..9], bounds.1.to_be_bytes(), "the bookmark is that of an existing row");
        }
        let rest = Query { after: Some(bookmark_at(&reader, sql, from - 1).unwrap()), ..query };
        let rest = read(&reader, &all_sql, &rest).unwrap().unwrap();
        assert_eq!(gathered.page(None).events.len() + rest.events.len(), 10 + 3 * usize::try_from(STEP_ROWS).unwrap());
    }
}
