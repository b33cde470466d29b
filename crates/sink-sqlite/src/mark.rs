//! The store id (mark) of a file: a row of a table next to the cursors.

use rusqlite::{Connection, OptionalExtension};

use sink::Mark;

const TABLE: &str =
    "create table if not exists forebay_mark (singleton integer primary key check (singleton = 1), mark blob not null)";
/// Of several concurrent writers the first one creates it, and the others read it.
const CREATE_ROW: &str = "insert into forebay_mark (singleton, mark) values (1, randomblob(16)) on conflict do nothing";
const READ: &str = "select mark from forebay_mark";

/// Reads the store id, and creates it if the file has none.
pub(super) fn of(connection: &Connection) -> rusqlite::Result<Mark> {
    connection.execute(TABLE, [])?;
    if let Some(mark) = read(connection).optional()? {
        return Ok(mark);
    }
    connection.execute(CREATE_ROW, [])?;
    read(connection)
}

fn read(connection: &Connection) -> rusqlite::Result<Mark> {
    connection.prepare_cached(READ)?.query_row([], |row| row.get(0).map(Mark))
}
