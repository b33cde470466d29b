//! Deletes the rows that are older than the retention: on the thread that writes, a step at a time between its jobs, so
//! no other connection competes for the write lock.
//!
//! The table has no index by time, and gets none, because creating it takes minutes in a large file. But rows are
//! numbered as they are stored, which is nearly the order of their times. A pass begins at the smallest number and ends
//! after a certain number of consecutive young rows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::clock_guard::{ClockGuard, Trust, microseconds};
use super::config::SqliteConfig;
use super::rows::owner;
use sink::{Reason, SinkError, TableName, quoted};

/// Rows that a step reads, which is also the maximum that one transaction deletes: a batch that arrives then waits for
/// a few milliseconds.
pub(super) const STEP_ROWS: usize = 1_000;
/// A step ends after this many bytes of payload: SQLite reads each page of a large payload to free it.
const STEP_BYTES: i64 = 4 * 1024 * 1024;
/// A pass ends after this many young rows. Old rows among rows that are stored late, out of order, are found up to that
/// distance.
pub(super) const YOUNG_ROWS_MAX: usize = 10 * STEP_ROWS;
/// Rows with a time further ahead than this were stored under a wrong clock. They don't end a pass, since otherwise no
/// row after them would be deleted for years.
const AHEAD_MAX: Duration = Duration::from_hours(24);
/// The pause between two passes.
const PASS_EVERY: Duration = Duration::from_secs(10);
/// What a deleted row normally adds to the write-ahead log at most: a page of the index, if ids are random.
pub(super) const ROW_BYTES: usize = 4096;

/// The statements for the configured table.
pub(super) struct Sql {
    newest: String,
    step: String,
    delete: String,
    /// A result with a later revision is inserted again.
    delete_revision: String,
}

impl Sql {
    pub(super) fn new(table: &TableName) -> Self {
        let (table, owner) = (quoted(table), owner(table));
        Self {
            newest: format!("select received_at from {table} order by rowid desc limit 1"),
            // The newest row is kept: SQLite would reuse its number, and a reader whose cursor is there would miss the
            // next event.
            step: format!(
                "select rowid, id, received_at, octet_length(payload) from {table} \
                 where rowid > ?1 and rowid < (select max(rowid) from {table}) order by rowid limit ?2"
            ),
            delete: format!("delete from {table} where rowid = ?1 and received_at < ?2"),
            delete_revision: format!("delete from forebay_revisions where \"table\" = {owner} and id = ?1"),
        }
    }
}

/// Rows that are too old: their numbers, and their ids.
type OldRows = Vec<(i64, Vec<u8>)>;

/// A run through the table.
#[derive(Debug)]
pub(super) struct Pass {
    /// The row after which the next step begins.
    after: i64,
    /// Rows that were accepted before this are deleted.
    cutoff: i64,
    /// Young rows are those from the cutoff up to this time.
    ahead: i64,
    /// The number of consecutive young rows.
    young: usize,
}

impl Pass {
    pub(super) fn new(now: i64, retention: Duration) -> Self {
        let cutoff = now.saturating_sub(microseconds(retention));
        Self { after: i64::MIN, cutoff, ahead: now.saturating_add(microseconds(AHEAD_MAX)), young: 0 }
    }

    /// Deletes the old ones of the next rows, in one transaction. Returns how many rows, and whether the pass
    /// continues.
    pub(super) fn step(&mut self, connection: &mut Connection, sql: &Sql) -> rusqlite::Result<(usize, bool)> {
        let (old, is_end) = self.read_next(connection, sql)?;
        let mut deleted = 0;
        if !old.is_empty() {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut delete = transaction.prepare_cached(&sql.delete)?;
            let mut delete_revision = transaction.prepare_cached(&sql.delete_revision)?;
            for (row, id) in &old {
                // Another program may have changed it since.
                if delete.execute(params![row, self.cutoff])? > 0 {
                    delete_revision.execute([id])?;
                    deleted += 1;
                }
            }
            drop((delete, delete_revision));
            transaction.commit()?;
        }
        Ok((deleted, !is_end && self.young < YOUNG_ROWS_MAX))
    }

    /// Reads the next rows. Returns the old ones with their ids, and whether the table ends after them.
    fn read_next(&mut self, connection: &Connection, sql: &Sql) -> rusqlite::Result<(OldRows, bool)> {
        let (mut old, mut bytes) = (Vec::new(), 0);
        let mut statement = connection.prepare_cached(&sql.step)?;
        let mut rows = statement.query(params![self.after, STEP_ROWS as i64])?;
        let mut examined = 0;
        while let Some(row) = rows.next()? {
            examined += 1;
            self.after = row.get(0)?;
            // A row of another program may not be an event: it is kept.
            let (Ok(id), Ok(received_at)) = (row.get_ref(1)?.as_blob(), row.get_ref(2)?.as_i64()) else { continue };
            if received_at < self.cutoff {
                old.push((self.after, id.to_vec()));
                self.young = 0;
                bytes += row.get::<_, Option<i64>>(3)?.unwrap_or(0);
            } else if received_at <= self.ahead {
                self.young += 1;
            }
            if bytes >= STEP_BYTES {
                return Ok((old, false));
            }
        }
        Ok((old, examined < STEP_ROWS))
    }
}

/// The schedule of deletions, and their result.
pub(super) struct Retention {
    retention: Duration,
    table: String,
    sql: Sql,
    guard: ClockGuard,
    pass: Option<Pass>,
    /// `None` before the file was opened.
    due: Option<Instant>,
    reports: Arc<sink::Retention>,
    /// The last reported error, until it is resolved.
    reported: Option<Reason>,
}

impl Retention {
    /// `None` if all rows are kept.
    pub(super) fn new(config: &SqliteConfig, reports: Arc<sink::Retention>) -> Option<Self> {
        let retention = config.retention?;
        Some(Self {
            retention,
            table: format!("table {} of SQLite file {}", config.table, config.path.display()),
            sql: Sql::new(&config.table),
            guard: ClockGuard::new(retention),
            pass: None,
            due: None,
            reports,
            reported: None,
        })
    }

    /// The file is open.
    pub(super) fn begin(&mut self) {
        self.due.get_or_insert_with(Instant::now);
    }

    /// The time until the next step.
    pub(super) fn due_in(&self) -> Option<Duration> {
        Some(self.due?.saturating_duration_since(Instant::now()))
    }

    /// Runs a step, and returns how many rows were deleted.
    pub(super) fn step(&mut self, connection: &mut Connection) -> rusqlite::Result<usize> {
        if self.pass.is_none() {
            self.pass = self.next_pass(connection)?;
        }
        let Some(pass) = &mut self.pass else { return Ok(0) };
        let (deleted, goes_on) = pass.step(connection, &self.sql)?;
        self.reports.deleted.add(deleted as u64);
        if !goes_on {
            self.pass = None;
        }
        Ok(deleted)
    }

    fn next_pass(&mut self, connection: &Connection) -> rusqlite::Result<Option<Pass>> {
        let newest = connection.prepare_cached(&self.sql.newest)?.query_row([], |row| row.get(0)).optional();
        let newest: Option<i64> = newest.unwrap_or_default();
        let now = clock::unix_microseconds();
        Ok(match self.guard.check(Instant::now(), now, newest) {
            Trust::Trusted => Some(Pass::new(now, self.retention)),
            Trust::Held => None,
            Trust::Jumped { ahead, hold } => {
                let seconds = |duration: Duration| humantime::format_duration(Duration::from_secs(duration.as_secs()));
                let message = format!(
                    "{}: the clock is {} ahead of the expected time, so no row is deleted for {}. If the clock is \
                     wrong, correct it by then: afterwards, rows older than {} are deleted",
                    self.table,
                    seconds(ahead),
                    seconds(hold),
                    seconds(self.retention)
                );
                self.reports.report(message.into());
                None
            }
        })
    }

    /// Sets the time of the next step, after one that took this long, and reports an error once.
    pub(super) fn done(&mut self, took: Duration, failed: Option<SinkError>) {
        if failed.is_some() {
            self.pass = None;
        }
        let reported = failed.map(SinkError::into_reason);
        if let Some(reason) = reported.as_ref().filter(|_| reported != self.reported) {
            self.reports.report(format!("old rows are not deleted: {reason}. Forebay retries").into());
        }
        self.reported = reported;
        // Within a pass, half of the time is left for batches.
        let pause = if self.pass.is_some() { took } else { PASS_EVERY };
        self.due = Some(Instant::now() + pause);
    }
}

#[cfg(test)]
mod tests;
