//! One record, one row: inserted if its id is new, compared if it isn't, replaced if it is a later revision.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, OptionalExtension, ToSql, params};

use super::fault::fault;
use sink::{Fault, Reason, Record, TableName, Write, quoted};

/// The name of a table in `forebay_revisions`, as a literal. SQLite ignores the case of names.
pub(super) fn owner(table: &TableName) -> String {
    format!("'{}'", table.as_str().to_ascii_lowercase())
}

/// The statements for the configured table.
pub(super) struct Sql {
    /// Adds a row, and leaves a row with the same id unchanged.
    pub(super) insert: String,
    replace: String,
    select: String,
    read_revision: String,
    set_revision: String,
}

impl Sql {
    pub(super) fn new(table: &TableName) -> Self {
        let (table, owner) = (quoted(table), owner(table));
        let insert = format!(
            "insert into {table} (id, type, source, received_at, payload) values (?1, ?2, ?3, ?4, ?5) on conflict (id) do"
        );
        Self {
            replace: format!(
                "{insert} update set type = excluded.type, source = excluded.source, \
                 received_at = excluded.received_at, payload = excluded.payload"
            ),
            insert: format!("{insert} nothing"),
            select: format!("select type, source, payload from {table} where id = ?1"),
            read_revision: format!("select revision from forebay_revisions where \"table\" = {owner} and id = ?1"),
            set_revision: format!(
                "insert into forebay_revisions (\"table\", id, revision) values ({owner}, ?1, ?2) \
                 on conflict do update set revision = excluded.revision"
            ),
        }
    }
}

/// The rows of one transaction.
pub(super) struct Rows<'a> {
    connection: &'a Connection,
    sql: &'a Sql,
    insert: CachedStatement<'a>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(connection: &'a Connection, sql: &'a Sql) -> rusqlite::Result<Self> {
        Ok(Self { connection, sql, insert: connection.prepare_cached(&sql.insert)? })
    }

    /// Writes `record`, or returns why the store rejects it permanently.
    ///
    /// # Errors
    /// Errors that concern more than this record. The caller must roll back the transaction.
    pub(super) fn write(&mut self, record: &Record<'_>) -> rusqlite::Result<Option<Reason>> {
        let written = match record.write {
            Write::Insert => self.insert(record),
            Write::Upsert(revision) => self.upsert(record, revision),
        };
        match written {
            // A trigger may have ended the transaction: then the rows before it are lost too.
            Err(error) if fault(&error) == Fault::Record && !self.connection.is_autocommit() => {
                Ok(Some(format!("{error} (the table rejects the event)").into()))
            }
            written => written,
        }
    }

    fn insert(&mut self, record: &Record<'_>) -> rusqlite::Result<Option<Reason>> {
        match self.insert.execute(values(record))? {
            0 => self.compare(record),
            _ => Ok(None),
        }
    }

    /// An id's first revision is inserted, so an event is never replaced by a result.
    fn upsert(&mut self, record: &Record<'_>, revision: u64) -> rusqlite::Result<Option<Reason>> {
        let mut read = self.connection.prepare_cached(&self.sql.read_revision)?;
        let stored: Option<i64> = read.query_row([record.id.0], |row| row.get(0)).optional()?;
        match stored.map(i64::cast_unsigned) {
            Some(stored) if stored >= revision => return Ok(None),
            Some(_) => {
                self.connection.prepare_cached(&self.sql.replace)?.execute(values(record))?;
            }
            None => {
                if let Some(reason) = self.insert(record)? {
                    return Ok(Some(reason));
                }
            }
        }
        self.connection
            .prepare_cached(&self.sql.set_revision)?
            .execute(params![record.id.0, revision.cast_signed()])?;
        Ok(None)
    }

    /// Distinguishes a duplicate, which is stored already, from another event with the same id.
    fn compare(&self, record: &Record<'_>) -> rusqlite::Result<Option<Reason>> {
        let mut select = self.connection.prepare_cached(&self.sql.select)?;
        let same = select.query_row([record.id.0], |row| {
            let is = |column, bytes: &[u8]| Ok::<_, rusqlite::Error>(row.get_ref(column)?.as_bytes() == Ok(bytes));
            Ok(is(0, record.type_name.as_bytes())? && is(1, record.source.as_bytes())? && is(2, record.payload)?)
        });
        Ok(match same.optional()? {
            Some(true) => None,
            Some(false) => Some(format!("id {} exists with another payload, type or source", record.id).into()),
            None => Some(
                format!(
                    "a trigger of the table discarded event {}: change the trigger, then replay the dead letter",
                    record.id
                )
                .into(),
            ),
        })
    }
}

/// The columns of a row, in the order of the statements.
fn values<'a>(record: &'a Record<'_>) -> impl rusqlite::Params + 'a {
    (&record.id.0[..], record.type_name, record.source, record.received_at, Text(record.payload))
}

/// Bytes that were checked to be text when they were accepted.
struct Text<'a>(&'a [u8]);

impl ToSql for Text<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}
