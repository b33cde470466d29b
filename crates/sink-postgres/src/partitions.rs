//! The partitions of a table that is divided by day: each is made before the rows that need it, and the next day's a
//! day ahead.
//!
//! A partition is made apart and then attached, which locks nobody out but those who use the default partition. Where
//! these don't let go of it the rows go there too, and are moved when the day's partition can be made at last. So no batch
//! ever waits for a partition.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use text::rfc3339;
use tokio::time::Instant;

use super::config::QualifiedName;
use super::creation_lock::MAKING;
use super::error::Failure;
use super::session::Talk;
use super::table::{NO_DEFAULT, Table};
use sink::{Batch, Record};

/// Microseconds of a day.
const DAY: i64 = 24 * 3600 * 1_000_000;
/// Events of so many days before their receipt get partitions, and so do those of the day after it. Who posts chooses an event's
/// time: what lies beyond is kept in the default partition.
const DAYS_BEFORE: i64 = 366;
const DAYS_AHEAD: i64 = 1;
/// How long is waited for those who use the table's partitions, also where only their bounds are read. Others who come to use the default
/// partition wait as long, and so do all sinks of the database that are to make a partition.
const LOCK_MAX: Duration = Duration::from_secs(2);
/// When it is tried again.
const AGAIN_AFTER: Duration = Duration::from_mins(1);
/// Days that a connection remembers.
const KNOWN_MAX: usize = 2_000;

/// The days that one connection knows to have a partition, and those for which none can be made now.
#[derive(Debug, Default)]
pub(super) struct Days {
    covered: HashSet<i64>,
    later: HashMap<i64, Instant>,
}

impl Days {
    /// Makes the partitions that the rows of `batch` belong in, where `table` is divided.
    pub(super) async fn prepare(&mut self, talk: &Talk, table: &Table, batch: &Batch) -> Result<(), Failure> {
        let Some(name) = &table.divided else { return Ok(()) };
        if self.covered.len() > KNOWN_MAX {
            self.covered.clear();
        }
        let now = Instant::now();
        self.later.retain(|_, again| *again > now);
        for day in self.missing(batch) {
            match make(talk, name, day).await {
                Ok(()) => {
                    self.covered.insert(day);
                }
                Err(failure) if failure.leaves_default() => {
                    talk.order("rollback").await?;
                    self.later.insert(day, now + AGAIN_AFTER);
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// The days of the batch, and the one after its newest, of which nothing is known; in their order.
    fn missing(&self, batch: &Batch) -> Vec<i64> {
        let mut days: Vec<i64> = batch.records().filter_map(|record| day_of(&record)).collect();
        days.extend(batch.records().map(|record| record.received_at.div_euclid(DAY) + DAYS_AHEAD).max());
        days.sort_unstable();
        days.dedup();
        days.retain(|day| !self.covered.contains(day) && !self.later.contains_key(day));
        days
    }
}

/// The day, counted from 1970, whose partition the record belongs in, if it isn't the default one.
fn day_of(record: &Record<'_>) -> Option<i64> {
    let (day, received) = (record.time().div_euclid(DAY), record.received_at.div_euclid(DAY));
    let is_near = (received - DAYS_BEFORE..=received + DAYS_AHEAD).contains(&day);
    // No name is made of what lies before 1970.
    (is_near && day >= 0).then_some(day)
}

/// `2026-11-22`.
fn date(day: i64) -> String {
    rfc3339::day_and_hour(day.saturating_mul(DAY)).0
}

/// Makes the partition of a day, unless there is one that takes some of it. Who makes one keeps others from it meanwhile.
async fn make(talk: &Talk, name: &QualifiedName, day: i64) -> Result<(), Failure> {
    let table = name.quoted();
    // Texts that are times are read in the form in which the server writes them.
    talk.order(&format!(
        "begin isolation level read committed read write; select pg_advisory_xact_lock({MAKING}); \
         set local lock_timeout = {}; set local datestyle = 'ISO'; set local timezone = 'UTC'",
        LOCK_MAX.as_millis()
    ))
    .await?;
    let bounds = (format!("{}T00:00:00Z", date(day)), format!("{}T00:00:00Z", date(day + 1)));
    if !is_covered(talk, &table, &bounds).await? {
        let part = name.with_suffix(&format!("_{}", date(day).replace('-', "")));
        talk.order(&creation(&table, &part)).await?;
        // From here on nobody can alter the table, nor take its default partition out: it was copied from.
        let moved = Moved::now(talk, &table).await?;
        talk.order(&attachment(&table, &moved, &part, &bounds)).await?;
    }
    talk.order("commit").await
}

/// Whether a partition takes rows between these times.
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

/// Makes a table like the divided one.
fn creation(table: &str, part: &str) -> String {
    format!(
        "create table {part} (like {table} including defaults including generated including storage including constraints)"
    )
}

/// What is moved where a partition is made.
struct Moved {
    /// The partition for days without one of their own, as it stands in SQL.
    default: String,
    /// The columns that have a value of their own, as they stand in SQL.
    columns: String,
}

impl Moved {
    /// As the table is now: somebody may have altered it since it was looked at.
    async fn now(talk: &Talk, table: &str) -> Result<Self, Failure> {
        let sql = format!(
            "select p.partdefid::regclass::text, string_agg(quote_ident(a.attname), ', ' order by a.attnum) \
             from pg_partitioned_table p join pg_attribute a on a.attrelid = p.partrelid \
             where p.partrelid = '{table}'::regclass and p.partdefid <> 0 \
             and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' group by p.partdefid"
        );
        let row = talk.wait(talk.client.query_opt(&sql, &[])).await?;
        let row = row.ok_or_else(|| Failure::Unfit(NO_DEFAULT.into()))?;
        Ok(Self { default: row.try_get(0)?, columns: row.try_get(1)? })
    }
}

/// Moves to a table what of the day went to the default partition, and makes it the day's.
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
