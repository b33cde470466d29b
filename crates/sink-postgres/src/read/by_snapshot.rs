//! Reads events in the order in which their transactions began, once these have ended, each once. The table's rows
//! record which transaction stored them, and under which number.
//!
//! A slow transaction commits rows that sort before others that were already returned. So the row after which a page
//! begins isn't enough, and two snapshots decide which rows are returned. A round returns the rows that were visible in
//! its own snapshot and not in that of the round before. When it ends, the next round begins with the current snapshot.
//!
//! Newest first there is only one round: the rows that were visible when the first page was read.

use std::time::{Duration, Instant};

use bytes::{Buf, BufMut};
use event::TypeName;
use event::read::{Bookmark, Filter, Gathered, Page, Query, ReadOrder};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::super::columns::{STORED_IN, STORED_NUMBER};
use super::super::error::Failure;
use super::super::mapping::Time;
use super::bookmark::{STORED, STORED_BACK};
use super::reads::Reads;
use super::rows::{Order, event_in, limits, rows};
use super::snapshot::Snapshot;
use super::table::Readable;

/// Rows that the first statement of a page reads: enough for a page of most events.
const FIRST_STEP_ROWS: i64 = 256;
/// Rows that one statement reads at most. Each reads more than the one before.
const STEP_ROWS_MAX: i64 = 4_096;
/// The time limit of one page.
const PAGE_TIME_MAX: Duration = Duration::from_millis(250);

/// The place of a row: the number of its transaction, and its own. Neither is ever less than 0.
type At = (i64, i64);

/// The row after which a page begins, and which rows are returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Round {
    order: ReadOrder,
    /// The table's number. A later table of the same name has another.
    table: u32,
    /// Rows that are visible in it have been returned.
    before: Option<Snapshot>,
    now: Snapshot,
    at: At,
}

impl Round {
    fn first(order: ReadOrder, table: u32, now: Snapshot) -> Self {
        let at = match order {
            ReadOrder::OldestFirst => (0, -1),
            ReadOrder::NewestFirst => (now.end(), -1),
        };
        Self { order, table, before: None, now, at }
    }

    /// The round after this one, if the order has one and it may have rows.
    fn next(self, now: &Snapshot) -> Option<Self> {
        let at = (self.now.begin(), -1);
        let has_next = self.order == ReadOrder::OldestFirst && self.now != *now;
        has_next.then(|| Self { before: Some(self.now), now: now.clone(), at, ..self })
    }

    pub(super) const fn order(&self) -> ReadOrder {
        self.order
    }

    /// The transactions at the round's place whose rows the round before may not have returned; `None` if that may be
    /// any. A long-running transaction is no reason to read all rows since then.
    fn left_open(&self) -> Option<Vec<i64>> {
        let before = self.before.as_ref().filter(|before| self.at.0 < before.end())?;
        Some(before.running().collect())
    }

    pub(super) fn read(order: ReadOrder, bytes: &mut &[u8]) -> Option<Self> {
        let (table, has_one_before) = (bytes.try_get_u32().ok()?, bytes.try_get_u8().ok()?);
        let at = (bytes.try_get_i64().ok()?, bytes.try_get_i64().ok()?);
        let now = Snapshot::read(bytes)?;
        let before = match has_one_before {
            0 => None,
            _ => Some(Snapshot::read(bytes)?),
        };
        Some(Self { order, table, before, now, at })
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.put_u32(self.table);
        bytes.put_u8(u8::from(self.before.is_some()));
        bytes.put_i64(self.at.0);
        bytes.put_i64(self.at.1);
        self.now.write(bytes);
        if let Some(before) = &self.before {
            before.write(bytes);
        }
    }
}

/// A table whose rows can be read in this order, and the transactions that have ended now.
pub(super) struct Ordered {
    table: u32,
    now: Snapshot,
    /// Whether there are rows with numbers that this server hasn't assigned yet: they came from another server, by a
    /// dump.
    pub(super) has_foreign_numbers: bool,
}

impl Ordered {
    /// The current state of a table; `None` if its rows don't record the order. Foreign numbers are sought if `seeks` says so.
    pub(super) async fn now(reads: &mut Reads<'_>, table: &mut Readable, seeks: bool) -> Result<Option<Self>, Failure> {
        if !table.form.is_ordered {
            // The columns may have been added.
            table.inspect(reads).await?;
        }
        while table.form.is_ordered {
            // One statement, so rows that are stored in the meantime don't count.
            let sql = format!(
                "select $1::text::regclass::oid, txid_current_snapshot()::text, case when $2 then \
                 coalesce((select max({STORED_IN}) from {}) >= txid_snapshot_xmax(txid_current_snapshot()), false) else false end",
                table.name
            );
            let row = reads.row(&sql, &[&table.name, &seeks]).await?;
            let now = Snapshot::parse(row.try_get(1)?)
                .ok_or(Failure::Unexpected("the server returned an invalid snapshot"))?;
            let ordered = Self { table: row.try_get(0)?, now, has_foreign_numbers: row.try_get(2)? };
            if ordered.table == table.form.table {
                return Ok(Some(ordered));
            }
            // Another table has the name by now.
            table.inspect(reads).await?;
        }
        Ok(None)
    }

    /// Continues a round, or begins with the first; `None` if the round belongs to another table.
    pub(super) async fn page(
        self,
        reads: &mut Reads<'_>,
        table: &Readable,
        query: &Query,
        filter: &Filter,
        round: Option<Round>,
    ) -> Result<Option<Page>, Failure> {
        let (began, mut has_stepped, mut step_rows) = (Instant::now(), false, FIRST_STEP_ROWS);
        let mut round = match round {
            Some(round) if round.table != self.table => return Ok(None),
            Some(round) => round,
            None => Round::first(filter.order, self.table, self.now.clone()),
        };
        let mut gathered = Gathered::new(query);
        loop {
            let left_open = round.left_open();
            let Some(end) = step_end(reads, &table.name, (&round, left_open.as_deref()), step_rows).await? else {
                if let Some(before) = round.before.as_ref().filter(|_| left_open.is_some()) {
                    round.at = (before.end(), -1);
                    continue;
                }
                match round.next(&self.now) {
                    Some(next) => round = next,
                    None => return Ok(Some(gathered.page(None))),
                }
                continue;
            };
            // A page without any step would be followed by the same page forever.
            if gathered.is_full() || has_stepped && began.elapsed() >= PAGE_TIME_MAX {
                return Ok(Some(gathered.page(Some(bookmark(round)))));
            }
            has_stepped = true;
            step_rows = STEP_ROWS_MAX.min(4 * step_rows);
            let found = step(reads, table, query, filter, (&round, end, left_open.as_deref())).await?;
            if found.is_empty() {
                round.at = end;
            }
            for row in &found {
                let (place, event) = event_in(row)?;
                let at = parse(place).ok_or(Failure::Unexpected("a row has no valid stored_in and stored_number"))?;
                if !gathered.take(event) {
                    return Ok(Some(gathered.page(Some(bookmark(round)))));
                }
                round.at = at;
            }
        }
    }
}

fn bookmark(round: Round) -> Bookmark {
    let mut bytes = vec![if round.order == ReadOrder::OldestFirst { STORED } else { STORED_BACK }];
    round.write(&mut bytes);
    Bookmark(bytes)
}

/// Parses `(7,9)`, the server's form of a row of two.
fn parse(text: &str) -> Option<At> {
    let (of, number) = text.strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
    Some((of.parse().ok()?, number.parse().ok()?))
}

/// An order as SQL: the comparisons for places after one and up to one, and the sort directions along it and against
/// it.
struct OrderSql {
    after: &'static str,
    up_to: &'static str,
    on: &'static str,
    back: &'static str,
}

impl OrderSql {
    const fn of(order: ReadOrder) -> Self {
        match order {
            ReadOrder::OldestFirst => Self { after: ">", up_to: "<=", on: "asc", back: "desc" },
            ReadOrder::NewestFirst => Self { after: "<", up_to: ">=", on: "desc", back: "asc" },
        }
    }
}

/// The last of the next rows in the index that a statement reads, if there are any.
async fn step_end(
    reads: &mut Reads<'_>,
    table: &str,
    (round, left_open): (&Round, Option<&[i64]>),
    rows: i64,
) -> Result<Option<At>, Failure> {
    let OrderSql { after, on, back, .. } = OrderSql::of(round.order);
    let one_of = if left_open.is_some() { format!("{STORED_IN} = any($5::bigint[])") } else { "true".to_owned() };
    let sql = format!(
        "select {STORED_IN}, {STORED_NUMBER} from (select {STORED_IN}, {STORED_NUMBER} from {table} \
         where ({STORED_IN}, {STORED_NUMBER}) {after} ($1, $2) and {STORED_IN} < $3 and {one_of} \
         order by {STORED_IN} {on}, {STORED_NUMBER} {on} limit $4) n order by 1 {back}, 2 {back} limit 1",
    );
    let ((of, number), end) = (round.at, round.now.end());
    let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&of, &number, &end, &rows];
    parameters.extend(left_open.iter().map(|open| open as &(dyn ToSql + Sync)));
    let found = reads.rows(&sql, &parameters).await?;
    found.first().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).transpose()
}

/// The rows of a round up to a place that match the filter.
async fn step(
    reads: &mut Reads<'_>,
    table: &Readable,
    query: &Query,
    filter: &Filter,
    (round, end, left_open): (&Round, At, Option<&[i64]>),
) -> Result<Vec<Row>, Failure> {
    let OrderSql { after, up_to, on, .. } = OrderSql::of(round.order);
    let at = format!("({STORED_IN}, {STORED_NUMBER})");
    // A snapshot is read once, and not for each row.
    let shown = |number| format!("txid_visible_in_snapshot({STORED_IN}, (select ${number}::text::txid_snapshot))");
    let mut condition = format!(
        "{at} {after} ($6, $7) and {at} {up_to} ($8, $9) and {} and {} \
         and ($4::timestamptz is null or received_at >= $4) and ($5::timestamptz is null or received_at < $5)",
        shown(10),
        table.of_type()
    );
    let ([count, bytes], from) = (limits(query.limit, query.bytes_max), round.at);
    let type_name = filter.type_name.as_ref().map(TypeName::as_str);
    let (since, until) = (filter.since.map(Time), filter.until.map(Time));
    let (now, before) = (round.now.to_string(), round.before.as_ref().map(Snapshot::to_string));
    let mut parameters: Vec<&(dyn ToSql + Sync)> =
        vec![&count, &bytes, &type_name, &since, &until, &from.0, &from.1, &end.0, &end.1, &now];
    if let Some(before) = &before {
        parameters.push(before);
        condition += &format!(" and not {}", shown(parameters.len()));
    }
    if let Some(open) = &left_open {
        parameters.push(open);
        condition += &format!(" and {STORED_IN} = any(${}::bigint[])", parameters.len());
    }
    let (first, then) = (format!("{STORED_IN} {on}, {STORED_NUMBER} {on}"), format!("place {on}"));
    let order = Order { place: &at, first: &first, then: &then };
    let sql = rows(table, &table.name, &condition, order);
    reads.rows(&sql, &parameters).await
}
