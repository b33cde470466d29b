//! The partitions of a table that is partitioned by day. Forebay creates a partition before it writes the rows that
//! need it, and the next day's partition a day ahead.
//!
//! Forebay creates a partition as a separate table and then attaches it, which locks only users of the default
//! partition. If these don't release it, the rows go to the default partition, and are moved when the day's partition
//! can be created. So no batch waits long for a partition.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use text::rfc3339;
use tokio::time::Instant;

use super::config::QualifiedName;
use super::creation_lock::CREATION_LOCK;
use super::error::Failure;
use super::session::Talk;
use super::table::{NO_DEFAULT_PARTITION, Table};
use sink::{Batch, Record};

/// Microseconds of a day.
const DAY: i64 = 24 * 3600 * 1_000_000;
/// Events of up to this many days before their receipt get partitions, and so do events of the day after it. A client
/// chooses an event's time: all other events are stored in the default partition.
const DAYS_BEFORE: i64 = 366;
const DAYS_AHEAD: i64 = 1;
/// How long to wait for users of the table's partitions, also when only the bounds are read. Others that want the
/// default partition wait as long, and so do all sinks of the database that need a new partition.
const LOCK_MAX: Duration = Duration::from_secs(2);
/// When to retry.
const RETRY_AFTER: Duration = Duration::from_mins(1);
/// The number of days that a connection caches.
const KNOWN_MAX: usize = 2_000;

/// The days that have a partition according to this connection, and those for which none can be created now.
#[derive(Debug, Default)]
pub(super) struct Days {
    covered: HashSet<i64>,
    later: HashMap<i64, Instant>,
}

impl Days {
    /// Creates the partitions for the rows of `batch`, if `table` is partitioned.
    pub(super) async fn prepare(&mut self, talk: &Talk, table: &Table, batch: &Batch) -> Result<(), Failure> {
        let Some(name) = &table.partitioned else { return Ok(()) };
        if self.covered.len() > KNOWN_MAX {
            self.covered.clear();
        }
        let now = Instant::now();
        self.later.retain(|_, retry_at| *retry_at > now);
        for day in self.missing(batch) {
            match create(talk, name, day).await {
                Ok(()) => {
                    self.covered.insert(day);
                }
                Err(failure) if failure.defers_partition() => {
                    talk.execute("rollback").await?;
                    self.later.insert(day, now + RETRY_AFTER);
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// The days of the batch, and the day after its newest, that aren't cached, in order.
    fn missing(&self, batch: &Batch) -> Vec<i64> {
        let mut days: Vec<i64> = batch.records().filter_map(|record| day_of(&record)).collect();
        days.extend(batch.records().map(|record| record.received_at.div_euclid(DAY) + DAYS_AHEAD).max());
        days.sort_unstable();
        days.dedup();
        days.retain(|day| !self.covered.contains(day) && !self.later.contains_key(day));
        days
    }
}

/// The day, counted from 1970, of the record's partition; `None` for the default partition.
fn day_of(record: &Record<'_>) -> Option<i64> {
    let (day, received) = (record.time().div_euclid(DAY), record.received_at.div_euclid(DAY));
    let is_near = (received - DAYS_BEFORE..=received + DAYS_AHEAD).contains(&day);
    // Days before 1970 have no partition name.
    (is_near && day >= 0).then_some(day)
}

/// `2026-11-22`.
fn date(day: i64) -> String {
    rfc3339::day_and_hour(day.saturating_mul(DAY)).0
}

/// Creates the partition of a day, unless a partition covers some of it. A lock keeps others from creating one at the
/// same time.
async fn create(talk: &Talk, name: &QualifiedName, day: i64) -> Result<(), Failure> {
    let table = name.quoted();
    // Times are parsed in the server's format, so the format is set here.
    talk.execute(&format!(
        "begin isolation level read committed read write; select pg_advisory_xact_lock({CREATION_LOCK}); \
         set local lock_timeout = {}; set local datestyle = 'ISO'; set local timezone = 'UTC'",
        LOCK_MAX.as_millis()
    ))
    .await?;
    let bounds = (format!("{}T00:00:00Z", date(day)), format!("{}T00:00:00Z", date(day + 1)));
    if !is_covered(talk, &table, &bounds).await? {
        let part = name.with_suffix(&format!("_{}", date(day).replace('-', "")));
        talk.execute(&creation(&table, &part)).await?;
        // From here on the table can't be altered, and its default partition can't be detached, because the new table
        // was copied from it.
        let moved = Moved::now(talk, &table).await?;
        talk.execute(&attachment(&table, &moved, &part, &bounds)).await?;
    }
    talk.execute("commit").await
}

/// Whether a partition covers any time between these two.
async fn is_covered(talk: &Talk, table: &str, (from, to): &(String, String)) -> Result<bool, Failure> {
    let bound = |word: &str, none: &str| {
        format!("coalesce(substring(bound from '{word} \\(''([^'']+)''\\)'), '{none}')::timestamptz")
    };
    let sql = format!(
        "select exists (select from (select pg_get_expr(c.relpartbound, c.oid) as bound from pg_inherits i \
         join pg_class c on c.oid = i.inhrelid where i.inhparent = '{table}'::regclass) b where bound <> 'DEFAULT' \
         and {} < '{to}'::timestamptz and {} > '{from}'::timestamptz)",
        bound("FROM", "-infinity"),
        bound("TO", "infinity")
    );
    Ok(talk.wait(talk.client.query_one(&sql, &[])).await?.try_get(0)?)
}

/// The SQL that creates a table like the partitioned one.
fn creation(table: &str, part: &str) -> String {
    format!(
        "create table {part} (like {table} including defaults including generated including storage including constraints)"
    )
}

/// What to move when a partition is created.
struct Moved {
    /// The default partition, quoted for SQL.
    default: String,
    /// The columns that aren't generated, quoted for SQL.
    columns: String,
}

impl Moved {
    /// Reads the table's current state: it may have been altered since it was checked.
    async fn now(talk: &Talk, table: &str) -> Result<Self, Failure> {
        let sql = format!(
            "select p.partdefid::regclass::text, string_agg(quote_ident(a.attname), ', ' order by a.attnum) \
             from pg_partitioned_table p join pg_attribute a on a.attrelid = p.partrelid \
             where p.partrelid = '{table}'::regclass and p.partdefid <> 0 \
             and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' group by p.partdefid"
        );
        let row = talk.wait(talk.client.query_opt(&sql, &[])).await?;
        let row = row.ok_or_else(|| Failure::Misfit(NO_DEFAULT_PARTITION.into()))?;
        Ok(Self { default: row.try_get(0)?, columns: row.try_get(1)? })
    }
}

/// The SQL that moves the day's rows out of the default partition, and attaches the new table as the day's partition.
fn attachment(table: &str, moved: &Moved, part: &str, (from, to): &(String, String)) -> String {
    let Moved { default, columns } = moved;
    format!(
        "lock table {default} in access exclusive mode; \
         with moved as (delete from {default} where event_time >= '{from}' and event_time < '{to}' returning {columns}) \
         insert into {part} ({columns}) select {columns} from moved; \
         alter table {table} attach partition {part} for values from ('{from}') to ('{to}')"
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails loudly")]
mod tests {
    use event::EventId;

    use super::*;
    use sink::Write;

    fn day(time: &str, received_at: &str) -> Option<i64> {
        let [time, received_at] = [time, received_at].map(|text| rfc3339::parse(text).unwrap());
        day_of(&Record {
            sequence: 1,
            id: EventId([1; 16]),
            type_name: "access",
            source: "",
            received_at,
            event_time: Some(time),
            write: Write::Insert,
            payload: b"1",
        })
    }

    #[test]
    fn only_days_near_the_receipt_get_partitions() {
        let noon = "2026-11-22T12:00:00Z";
        assert_eq!(day("2026-11-22T00:00:00Z", noon).map(date).unwrap(), "2026-11-22");
        assert_eq!(day("2026-11-21T23:59:59.999999Z", noon).map(date).unwrap(), "2026-11-21");
        assert_eq!(day("2026-11-23T23:59:59Z", noon).map(date).unwrap(), "2026-11-23");
        assert_eq!(day("2026-11-24T00:00:00Z", noon), None);
        assert_eq!(day("2025-11-21T00:00:00Z", noon).map(date).unwrap(), "2025-11-21");
        assert_eq!(day("2025-11-20T23:59:59Z", noon), None);
        assert_eq!(day("1969-12-31T23:59:59Z", "1970-01-01T12:00:00Z"), None);
        assert_eq!(day("1970-01-01T00:00:00Z", "1970-01-01T12:00:00Z"), Some(0));
    }
}
