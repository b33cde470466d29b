//! Runs through a table, with given times; and the thread that starts them, with the clock's.

use std::path::PathBuf;
use std::time::Instant;

use event::EventId;
use event::read::{Filter, Page, Query, Wanted};
use tempfile::TempDir;

use super::*;
use crate::page::{self, ReadSql};
use crate::{Sqlite, rows, schema};
use sink::{Sink, Store};

const NOW: i64 = 1_700_000_000_000_000;
const HOUR: Duration = Duration::from_hours(1);
/// Accepted a moment ago, and a moment too long ago.
const YOUNG: i64 = NOW - 1;
const OLD: i64 = NOW - 3_600_000_001;

fn config(directory: &TempDir) -> SqliteConfig {
    let path: PathBuf = directory.path().join("events.db");
    SqliteConfig { path, table: TableName::new("events").unwrap(), retention: Some(HOUR) }
}

fn open(directory: &TempDir) -> Connection {
    let config = config(directory);
    schema::open(&config, &rows::Sql::new(&config.table)).unwrap()
}

/// Adds this many events that were accepted at this time.
fn add(connection: &Connection, count: usize, received_at: i64) {
    let sql = "insert into events with recursive n(i) as (select 1 union all select i + 1 from n where i < ?1) \
               select randomblob(16), 't', '', ?2, '{}' from n";
    assert_eq!(connection.execute(sql, params![count as i64, received_at]), Ok(count));
}

fn sql() -> Sql {
    Sql::new(&TableName::new("events").unwrap())
}

/// Runs a pass to its end. Returns the rows that each step has deleted.
fn pass(connection: &mut Connection) -> Vec<usize> {
    let (mut pass, mut steps) = (Pass::new(NOW, HOUR), Vec::new());
    loop {
        let (deleted, goes_on) = pass.step(connection, &sql()).unwrap();
        steps.push(deleted);
        if !goes_on {
            return steps;
        }
    }
}

fn count(connection: &Connection, which: &str) -> usize {
    let sql = format!("select count(*) from {which}");
    usize::try_from(connection.query_row::<i64, _, _>(&sql, [], |row| row.get(0)).unwrap()).unwrap()
}

#[test]
fn old_rows_are_deleted_in_steps() {
    let directory = tempfile::tempdir().unwrap();
    let mut connection = open(&directory);
    connection.execute("insert into forebay_cursors values (zeroblob(16), 0, 'local', 7, null)", []).unwrap();
    add(&connection, 2 * STEP_ROWS + 5, OLD);
    connection.execute("insert into forebay_revisions select 'events', id, 3 from events limit 2", []).unwrap();
    add(&connection, 2, OLD + 1);
    connection
        .execute("insert into forebay_revisions select 'events', id, 3 from events order by rowid desc limit 1", [])
        .unwrap();
    assert_eq!(pass(&mut connection), [STEP_ROWS, STEP_ROWS, 5]);
    assert_eq!((count(&connection, "events"), count(&connection, "forebay_revisions")), (2, 1));
    connection.execute("update events set received_at = ?1", [OLD]).unwrap();
    assert_eq!(pass(&mut connection), [1], "the last row keeps its number from being reused");
    assert_eq!(pass(&mut connection), [0]);
    assert_eq!((count(&connection, "events"), count(&connection, "forebay_cursors where position = 7")), (1, 1));
    add(&connection, 1, YOUNG);
    assert_eq!(pass(&mut connection), [1], "until there is a newer one");
}

#[test]
fn pass_continues_after_a_few_young_rows() {
    let directory = tempfile::tempdir().unwrap();
    let mut connection = open(&directory);
    let future = NOW + microseconds(AHEAD_MAX) + 1;
    add(&connection, YOUNG_ROWS_MAX + STEP_ROWS, future);
    add(&connection, 1, OLD);
    add(&connection, YOUNG_ROWS_MAX - STEP_ROWS, YOUNG);
    add(&connection, 1, OLD);
    add(&connection, YOUNG_ROWS_MAX - STEP_ROWS, YOUNG);
    add(&connection, 1, OLD);
    assert_eq!(connection.execute("insert into events values ('no id', 't', '', ?1, '{}')", [OLD]), Ok(1));
    add(&connection, YOUNG_ROWS_MAX + STEP_ROWS, YOUNG);
    add(&connection, 1, OLD);
    add(&connection, 1, YOUNG);
    assert_eq!(pass(&mut connection).iter().sum::<usize>(), 3, "the last one is too far away");
    assert_eq!(count(&connection, &format!("events where received_at = {future}")), YOUNG_ROWS_MAX + STEP_ROWS);
    assert_eq!(count(&connection, &format!("events where received_at = {OLD}")), 2);
    connection.execute("update events set received_at = ?1 where received_at = ?2", [OLD, YOUNG]).unwrap();
    pass(&mut connection);
    assert_eq!(count(&connection, &format!("events where received_at = {OLD}")), 2, "no event, and the newest row");
}

#[test]
fn step_ends_after_many_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let mut connection = open(&directory);
    add(&connection, 9, OLD);
    connection.execute("update events set payload = zeroblob(1024 * 1024)", []).unwrap();
    add(&connection, 1, YOUNG);
    assert_eq!(pass(&mut connection), [4, 4, 1]);
}

fn ask(connection: &Connection, wanted: &Wanted, page: Option<Page>) -> Page {
    let after = page.map(|page| page.next.unwrap());
    let query = Query { wanted: wanted.clone(), after, limit: 3, bytes_max: usize::MAX, only_type: None };
    page::read(connection, &ReadSql::new(&TableName::new("events").unwrap()), &query).unwrap().unwrap()
}

#[test]
fn reader_continues_with_the_next_existing_row() {
    let directory = tempfile::tempdir().unwrap();
    let mut connection = open(&directory);
    add(&connection, 5, OLD);
    let stored = Wanted::Stored(Filter::default());
    let by_id = Wanted::Ids { first: EventId([0; 16]), last: EventId([255; 16]) };
    let first = ask(&connection, &stored, None);
    let first_by_id = ask(&connection, &by_id, None);
    let last_id = first_by_id.events[2].id;
    add(&connection, 4, YOUNG);
    assert_eq!(pass(&mut connection), [5]);
    let second = ask(&connection, &stored, Some(first.clone()));
    let third = ask(&connection, &stored, Some(second.clone()));
    assert_eq!((first.events.len(), second.events.len(), third.events.len(), &third.next), (3, 3, 1, &None));
    assert!(second.events.iter().chain(&third.events).all(|event| event.received_at == YOUNG));
    let after_it = count(&connection, &format!("events where id > x'{}'", last_id.to_string().replace('-', "")));
    assert_eq!(ask(&connection, &by_id, Some(first_by_id)).events.len(), after_it.min(3));
    // All rows that the reader has read are old by now, and so is the place of its bookmark.
    connection.execute("update events set received_at = ?1", [OLD]).unwrap();
    assert_eq!(pass(&mut connection), [3]);
    add(&connection, 2, YOUNG);
    let rest = ask(&connection, &stored, Some(second));
    assert_eq!(rest.events.iter().map(|event| event.received_at).collect::<Vec<_>>(), [OLD, YOUNG, YOUNG]);
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

/// Waits until this is true: the thread works in the background.
fn wait(mut is_true: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(began.elapsed() < Duration::from_secs(120), "it doesn't happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn thread_deletes_in_the_background_until_close() {
    let directory = tempfile::tempdir().unwrap();
    let connection = open(&directory);
    add(&connection, 3 * STEP_ROWS, OLD);
    add(&connection, 2, clock::unix_microseconds());
    let sqlite = Sqlite::new(config(&directory));
    assert_eq!(run(sqlite.connect()), Ok(()));
    wait(|| count(&connection, "events") == 2);
    let sink = Sink::new(sqlite);
    let retention = sink.retention().unwrap();
    wait(|| retention.deleted.get() == 3 * STEP_ROWS as u64);
    assert_eq!(retention.take_message(), None);
    drop(connection);
    assert_eq!(run(sink.close()), Ok(()));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing opens the file again");
}

#[test]
fn all_rows_are_kept_by_default() {
    let directory = tempfile::tempdir().unwrap();
    let connection = open(&directory);
    add(&connection, 2, OLD);
    add(&connection, 1, clock::unix_microseconds());
    let sink = Sink::new(Sqlite::new(SqliteConfig { retention: None, ..config(&directory) }));
    assert_eq!((run(sink.connect()), run(sink.close())), (Ok(()), Ok(())));
    assert_eq!((count(&connection, "events"), sink.retention().is_none()), (3, true));
}

/// The message for a file in which the thread finds these rows.
fn message(received_at: &[i64], sql: &str) -> (usize, String) {
    let directory = tempfile::tempdir().unwrap();
    let connection = open(&directory);
    received_at.iter().for_each(|time| add(&connection, 1, *time));
    connection.execute_batch(sql).unwrap();
    let sink = Sink::new(Sqlite::new(config(&directory)));
    assert_eq!(run(sink.connect()), Ok(()));
    let mut message = None;
    wait(|| {
        message = sink.retention().unwrap().take_message();
        message.is_some()
    });
    (count(&connection, "events"), message.unwrap().to_string())
}

#[test]
fn clock_past_all_rows_deletes_nothing_at_first() {
    let now = clock::unix_microseconds();
    let day = microseconds(HOUR * 24);
    let (kept, message) = message(&[now - 3 * day, now - 2 * day], "");
    assert_eq!(kept, 2);
    let parts = ["table events", "events.db: the clock is 2days", "no row is deleted for 1h", "older than 1h"];
    assert!(parts.into_iter().all(|part| message.contains(part)), "{message}");
}

#[test]
fn table_that_rejects_deletion_is_reported() {
    let trigger = "create trigger t before delete on events begin select raise(abort, 'not \u{1b} here'); end";
    let (kept, message) = message(&[OLD, clock::unix_microseconds()], trigger);
    assert_eq!(kept, 2);
    assert!(
        message.contains("old rows are not deleted: SQLite file") && message.contains("not \\u001b here"),
        "{message}"
    );
}
