//! One batch, one transaction: the rows and the lane's cursor, or nothing.
//!
//! The cursor's row is locked first. So a concurrent duplicate of the batch that was delayed finds either the lock, or
//! a cursor that is past its batch. The table is checked after the rows are written, when it can no longer be altered:
//! the server may accept values that were encoded for columns of other types, and read them as other values.

use bytes::Bytes;
use event::Lane;
use futures_util::SinkExt;
use futures_util::future::try_join;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::bisect::{self, Findings, Suspect};
use super::error::Failure;
use super::mapping::{COPY_HEADER, COPY_TRAILER, put_row};
use super::pooler;
use super::session::Talk;
use super::table::Table;
use sink::{Batch, Claim, Fault, Held, Record, Takeover, Write, WriteOutcome};

/// Explicit, because the database's default may differ: after the wait for a lock, the transaction must see what the
/// last holder committed.
const BEGIN: &str = "begin isolation level read committed read write";
/// Bytes of rows that are sent at a time: the server reads while the next are encoded.
const CHUNK_BYTES: usize = 64 * 1024;

/// A lane's key in the table of cursors.
struct Key<'a> {
    origin: &'a [u8],
    shard: i32,
    sink: &'a str,
}

impl<'a> Key<'a> {
    fn of(lane: &'a Lane) -> Self {
        Self { origin: &lane.origin.0, shard: i32::from(lane.shard), sink: &lane.sink }
    }

    fn parameters(&self) -> [&(dyn ToSql + Sync); 3] {
        [&self.origin, &self.shard, &self.sink]
    }
}

/// The position up to which `lane` is stored, 0 for a lane that was never written, and its claim.
pub(super) async fn read(talk: &Talk, table: &Table, lane: &Lane) -> Result<Held, Failure> {
    let key = Key::of(lane);
    let row = talk.wait(talk.client.query_opt(&table.read_cursor, &key.parameters())).await?;
    let Some(row) = row else { return Ok(Held::default()) };
    let (position, claim) = cursor_in(&row)?;
    Ok(Held::new(position, claim))
}

/// The cursor and the claim of a row.
fn cursor_in(row: &Row) -> Result<(u64, Option<Claim>), Failure> {
    let claim = row.try_get::<_, Option<&[u8]>>(1)?.map(|bytes| bytes.try_into().map(Claim));
    let claim = claim.transpose().map_err(|_| Failure::Unexpected("a lane's claim isn't 16 bytes long"))?;
    // The server's integers are signed. The bits are unchanged, and only this program compares them.
    Ok((row.try_get::<_, i64>(0)?.cast_unsigned(), claim))
}

/// Exchanges the claim on `lane`, if `takeover` allows it, and returns the position and claim afterwards.
pub(super) async fn exchange_claim(
    talk: &Talk,
    table: &Table,
    lane: &Lane,
    claim: Claim,
    takeover: &Takeover,
) -> Result<Held, Failure> {
    let (position, held) = begin(talk, table, lane).await?;
    if !takeover.replaces(held, claim) {
        talk.execute("rollback").await?;
        return Ok(Held::new(position, held));
    }
    let position = takeover.position(position);
    set_cursor(talk, table, lane, (position, Some(claim))).await?;
    talk.execute("commit").await?;
    Ok(Held::new(position, Some(claim)))
}

/// Begins a transaction that locks the lane's cursor, and returns the cursor with the claim.
async fn begin(talk: &Talk, table: &Table, lane: &Lane) -> Result<(u64, Option<Claim>), Failure> {
    let key = Key::of(lane);
    let parameters = key.parameters();
    let lock = || talk.client.query_opt(&table.lock_cursor, &parameters);
    // Both are sent together, and the server runs them in this order.
    let (_, locked) = talk.wait(try_join(talk.client.batch_execute(BEGIN), lock())).await?;
    let row = match locked {
        Some(row) => row,
        None => {
            talk.wait(talk.client.execute(&table.add_cursor, &parameters)).await?;
            talk.wait(lock()).await?.ok_or(Failure::Unexpected("a lane's cursor is missing after its insert"))?
        }
    };
    if row.try_get::<_, i32>(2)? != talk.process {
        return Err(Failure::Misfit(pooler::NOT_KEPT.to_owned()));
    }
    cursor_in(&row)
}

/// WriteOptions to write a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteOptions {
    /// WriteOptions many records to try one by one if the server rejects all of them.
    pub(super) probes: usize,
    /// Whether the table accepts COPY: a table with row-level security doesn't.
    pub(super) copies: bool,
}

/// Writes the records of `batch` after its lane's cursor, all or nothing.
pub(super) async fn write(
    talk: &Talk,
    table: &Table,
    batch: &Batch,
    options: WriteOptions,
) -> Result<WriteOutcome, Failure> {
    let WriteOptions { probes, copies } = options;
    // Revisions are compared with stored ones, which COPY can't do.
    if copies && is_new_only(batch) {
        match attempt(talk, table, batch, Method::Copy).await {
            Err(failure) if failure.fault() != Fault::Store => talk.execute("rollback").await?,
            Ok(None) => {}
            Ok(Some(report)) => return Ok(report),
            Err(failure) => return Err(failure),
        }
    }
    match attempt(talk, table, batch, Method::Compared(probes)).await {
        // A table may reject a record because of others in its transaction: fewer at a time may succeed.
        Err(Failure::Inconsistent(message)) => {
            talk.execute("rollback").await?;
            let cursor = read(talk, table, batch.lane()).await?.position;
            let waiting = after_cursor(batch, cursor).len();
            if waiting < 2 {
                return Err(Failure::Inconsistent(message));
            }
            let half = batch.first_records(batch.len() - waiting + waiting / 2);
            match Box::pin(write(talk, table, &half, options)).await? {
                WriteOutcome::Committed => Err(Failure::PartlyStored),
                WriteOutcome::Rejected { .. } | WriteOutcome::Partial { .. } => Err(Failure::Inconsistent(message)),
            }
        }
        done => done?.ok_or(Failure::Bug("a batch that was written row by row has no outcome")),
    }
}

fn is_new_only(batch: &Batch) -> bool {
    batch.records().all(|record| record.write == Write::Insert)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    /// All rows as new ones.
    Copy,
    /// Compared with stored rows, with this many probes.
    Compared(usize),
}

/// One transaction; `None` if nothing was written, and the other method must be tried.
async fn attempt(talk: &Talk, table: &Table, batch: &Batch, method: Method) -> Result<Option<WriteOutcome>, Failure> {
    let (cursor, held) = begin(talk, table, batch.lane()).await?;
    if !Claim::admits(held, batch.claim()) {
        talk.execute("rollback").await?;
        return Err(Failure::Claimed);
    }
    if cursor < batch.floor() || batch.last() <= cursor {
        talk.execute("rollback").await?;
        let lost = Failure::LostTail { position: cursor, stored: batch.floor() };
        return if cursor < batch.floor() { Err(lost) } else { Ok(Some(WriteOutcome::Committed)) };
    }
    let found = match method {
        Method::Copy if copy(talk, table, batch, cursor).await? => Findings::default(),
        Method::Copy => {
            talk.execute("rollback").await?;
            return Ok(None);
        }
        Method::Compared(probes) => bisect::write(talk, table, after_cursor(batch, cursor), probes).await?,
    };
    if found.is_empty() {
        // Both are sent together, and the server runs them in this order.
        let cursor = (batch.last(), batch.claim());
        let ((), is_same) = try_join(set_cursor(talk, table, batch.lane(), cursor), table.is_same(talk)).await?;
        if !is_same {
            return Err(Failure::Altered);
        }
        talk.execute("commit").await?;
        return Ok(Some(WriteOutcome::Committed));
    }
    // Rejected records become dead letters, so the rejection must not come from a type that a column no longer has.
    if !table.is_same(talk).await? {
        return Err(Failure::Altered);
    }
    talk.execute("rollback").await?;
    let refused = still_rejected(talk, table, batch, found).await?.into_rejections();
    Ok(Some(WriteOutcome::Rejected { refused }))
}

/// Which records the server still rejects: each suspect is tried alone, in a transaction with nothing else in it.
async fn still_rejected(talk: &Talk, table: &Table, batch: &Batch, found: Findings) -> Result<Findings, Failure> {
    let Findings { refused, suspects } = found;
    let Some(message) = suspects.first().map(Suspect::message) else { return Ok(Findings { refused, suspects }) };
    talk.execute(BEGIN).await?;
    let suspects = bisect::rejected_again(talk, table, batch, suspects).await?;
    talk.execute("rollback").await?;
    let found = Findings { refused, suspects };
    if found.is_empty() { Err(Failure::Inconsistent(message)) } else { Ok(found) }
}

async fn set_cursor(
    talk: &Talk,
    table: &Table,
    lane: &Lane,
    (position, claim): (u64, Option<Claim>),
) -> Result<(), Failure> {
    let (key, position, claim) = (Key::of(lane), position.cast_signed(), claim.as_ref().map(|claim| &claim.0[..]));
    let [origin, shard, sink] = key.parameters();
    let set = talk.wait(talk.client.execute(&table.set_cursor, &[origin, shard, sink, &position, &claim])).await?;
    // A user's rule or trigger could prevent it: without its cursor a batch would be written again.
    if set == 1 {
        Ok(())
    } else {
        Err(Failure::Misfit(
            "its table forebay_cursors doesn't store what Forebay writes: \
             remove rules and triggers from it"
                .into(),
        ))
    }
}

/// The records after the cursor, each with its index.
fn after_cursor(batch: &Batch, cursor: u64) -> Vec<(usize, Record<'_>)> {
    batch.records().enumerate().filter(|(_, record)| record.sequence > cursor).collect()
}

/// Writes all rows as new ones; `false` if one can't be encoded, or the server left one out.
async fn copy(talk: &Talk, table: &Table, batch: &Batch, cursor: u64) -> Result<bool, Failure> {
    if batch.is_empty() {
        return Ok(true);
    }
    let begun = talk.wait(talk.client.copy_in::<_, Bytes>(&table.copy)).await;
    let mut sink = Box::pin(begun.map_err(Failure::of_copy)?);
    let (mut index, mut count) = (0, 0);
    let mut rows = COPY_HEADER.to_vec();
    while index < batch.len() {
        let Some((next, added)) = fill(table, batch, cursor, index, &mut rows) else { return Ok(false) };
        (index, count) = (next, count + added);
        if index == batch.len() {
            rows.extend_from_slice(COPY_TRAILER);
        }
        let chunk = Bytes::from(std::mem::replace(&mut rows, Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 4)));
        talk.wait(sink.send(chunk)).await?;
    }
    Ok(talk.wait(sink.as_mut().finish()).await? == count)
}

/// Adds rows, starting with a record, until a chunk is full: returns the next record and how many rows were added.
/// `None` if a record can't be encoded.
fn fill(table: &Table, batch: &Batch, cursor: u64, from: usize, rows: &mut Vec<u8>) -> Option<(usize, u64)> {
    let mut added = 0;
    for index in from..batch.len() {
        let record = batch.get(index)?;
        if record.sequence <= cursor {
            continue;
        }
        put_row(&table.fields, &record, rows).ok()?;
        added += 1;
        if rows.len() >= CHUNK_BYTES {
            return Some((index + 1, added));
        }
    }
    Some((batch.len(), added))
}
