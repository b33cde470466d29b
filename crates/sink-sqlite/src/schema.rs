//! Opens the file, creates missing tables, and checks existing ones.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::config::SqliteConfig;
use super::error::{classify, misconfigured, no_directory};
use super::rows::{Sql, owner};
use sink::folder::make_folder;
use sink::{SinkError, TableName, quoted};

/// How long a call waits for another connection's lock before it fails as `Unavailable`. Short, because the sink's
/// other lanes wait too, and delivery retries anyway.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);
/// Payloads may be private: the operator decides about other readers.
const OWNER_ONLY: u32 = 0o600;
/// Columns that the default layout writes.
const COLUMNS: [&str; 5] = ["id", "type", "source", "received_at", "payload"];

/// Opens the configured file, ready to write.
pub(super) fn open(config: &SqliteConfig, sql: &Sql) -> Result<Connection, SinkError> {
    if let Some(directory) = config.path.parent() {
        make_folder(directory).map_err(|error| no_directory(&config.path, &error))?;
    }
    create_file(&config.path);
    let failed = |error| classify(&config.path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(&config.path, flags).map_err(failed)?;
    prepare_connection(&connection).map_err(failed)?;
    split_revisions(&mut connection).map_err(failed)?;
    connection.execute_batch(&tables(&config.table)).map_err(failed)?;
    add_claims(&connection).map_err(failed)?;
    check_columns(&connection, config)?;
    // This also shows whether the id is unique, which SQLite needs for `on conflict`.
    connection.prepare_cached(&sql.insert).map_err(failed)?;
    Ok(connection)
}

/// Creates the file readable only by its owner, as SQLite then does with the log next to it. If this fails, SQLite
/// reports why.
fn create_file(path: &Path) {
    let _ = OpenOptions::new().write(true).create_new(true).mode(OWNER_ONLY).open(path);
}

/// Uses a write-ahead log, so others can read at the same time, synced at each commit. The writer checkpoints between
/// batches.
fn prepare_connection(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(())
}

/// The tables of the default layout. Revisions are in a separate table, since few events have one.
fn tables(table: &TableName) -> String {
    format!(
        "create table if not exists {} (id blob not null unique, type text, source text, received_at integer, payload text);
         create table if not exists forebay_cursors (origin blob not null, shard integer not null, sink text not null,
             position integer not null, claim blob, primary key (origin, shard, sink)) without rowid;
         {REVISIONS};",
        quoted(table)
    )
}

/// A revision belongs to a table's row: a result may go to several tables of a file.
const REVISIONS: &str = "create table if not exists forebay_revisions (\"table\" text not null, id blob not null,
             revision integer not null, primary key (\"table\", id)) without rowid";

/// In a file of an earlier version all tables shared their revisions. Each table gets those of its rows.
fn split_revisions(connection: &mut Connection) -> rusqlite::Result<()> {
    let shared = "select count(*) = 1 from pragma_table_info('forebay_revisions') where name = 'id' and pk = 1";
    if !connection.query_row(shared, [], |row| row.get(0))? {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if transaction.query_row(shared, [], |row| row.get(0))? {
        transaction
            .execute_batch(&format!("alter table forebay_revisions rename to forebay_revisions_shared; {REVISIONS}"))?;
        let tables = "select name from sqlite_master where type = 'table' and name not like 'forebay\\_%' escape '\\' \
                      and (select count(*) from pragma_table_info(sqlite_master.name) where name in ('id', 'received_at', 'payload')) = 3";
        let tables: Vec<String> =
            transaction.prepare(tables)?.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        for table in tables.iter().filter_map(|name| TableName::new(name).ok()) {
            transaction.execute_batch(&format!(
                "insert into forebay_revisions select {}, shared.id, shared.revision from forebay_revisions_shared shared \
                 where exists (select 1 from {} own where own.id = shared.id)",
                owner(&table),
                quoted(&table)
            ))?;
        }
        transaction.execute_batch("drop table forebay_revisions_shared")?;
    }
    transaction.commit()
}

/// A file of a version without claims has no column for them.
fn add_claims(connection: &Connection) -> rusqlite::Result<()> {
    let query = "select count(*) from pragma_table_info('forebay_cursors') where name = 'claim'";
    let count: i64 = connection.query_row(query, [], |row| row.get(0))?;
    if count == 0 {
        connection.execute_batch("alter table forebay_cursors add column claim blob")?;
    }
    Ok(())
}

fn check_columns(connection: &Connection, config: &SqliteConfig) -> Result<(), SinkError> {
    let failed = |error| classify(&config.path, &error);
    let mut statement = connection.prepare("select lower(name) from pragma_table_info(?1)").map_err(failed)?;
    let found = statement.query_map([config.table.as_str()], |row| row.get(0)).map_err(failed)?;
    let found: Vec<String> = found.collect::<Result<_, _>>().map_err(failed)?;
    let missing: Vec<&str> = COLUMNS.into_iter().filter(|column| !found.iter().any(|name| name == column)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(misconfigured(format!(
        "table {} of SQLite file {} has no column {}: add it, or set another `table`",
        config.table,
        config.path.display(),
        missing.join(", ")
    )))
}
