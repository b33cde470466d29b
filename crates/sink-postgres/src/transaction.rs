//! One batch, one transaction: the rows and the lane's cursor, or nothing.
//!
//! The cursor's row is locked before anything else, so that a twin that was held up finds either the lock or a cursor
//! that is past its batch. The table is looked at behind the rows, when nobody can alter it any more: values that were made for
//! columns of other types may be taken by the server as they are, and mean something else.

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

/// Not what the database's default may be: a lock that was waited for must show what its last holder committed.
const BEGIN: &str = "begin isolation level read committed read write";
/// Bytes of rows that are handed on at a time: the server reads while the next are made.
const CHUNK_BYTES: usize = 64 * 1024;

/// A lane as it stands in the table of cursors.
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

/// Up to where `lane` is stored, 0 for a lane that was never written, and the claim on it.
pub(super) async fn read(talk: &Talk, table: &Table, lane: &Lane) -> Result<Held, Failure> {
    let key = Key::of(lane);
    let row = talk.wait(talk.client.query_opt(&table.read_cursor, &key.parameters())).await?;
    let Some(row) = row else { return Ok(Held::default()) };
    let (position, claim) = place_in(&row)?;
    Ok(Held::new(position, claim))
}

/// The cursor and the claim of a row.
fn place_in(row: &Row) -> Result<(u64, Option<Claim>), Failure> {
    let claim = row.try_get::<_, Option<&[u8]>>(1)?.map(|bytes| bytes.try_into().map(Claim));
    let claim = claim.transpose().map_err(|_| Failure::Odd("a lane's claim doesn't have 16 bytes"))?;
    // The server's integers have a sign: the bits are kept as they are, and only this program compares them.
    Ok((row.try_get::<_, i64>(0)?.cast_unsigned(), claim))
}

/// Exchanges the claim on `lane`, if `takeover` allows it, and gives what is held then.
pub(super) async fn exchange_claim(
    talk: &Talk,
    table: &Table,
    lane: &Lane,
    claim: Claim,
    takeover: &Takeover,
) -> Result<Held, Failure> {
    let (position, held) = begin(talk, table, lane).await?;
    if !takeover.replaces(held, claim) {
        talk.order("rollback").await?;
        return Ok(Held::new(position, held));
    }
    let position = takeover.position(position);
    set_cursor(talk, table, lane, (position, Some(claim))).await?;
    talk.order("commit").await?;
    Ok(Held::new(position, Some(claim)))
}

/// Begins a transaction that holds the lane's cursor, and gives it with the claim.
async fn begin(talk: &Talk, table: &Table, lane: &Lane) -> Result<(u64, Option<Claim>), Failure> {
    let key = Key::of(lane);
    let parameters = key.parameters();
    let lock = || talk.client.query_opt(&table.lock_cursor, &parameters);
    // Both are sent at once, and done in this order.
    let (_, locked) = talk.wait(try_join(talk.client.batch_execute(BEGIN), lock())).await?;
    let row = match locked {
        Some(row) => row,
        None => {
            talk.wait(talk.client.execute(&table.add_cursor, &parameters)).await?;
            talk.wait(lock()).await?.ok_or(Failure::Odd("a lane's cursor was added and isn't there"))?
        }
    };
    if row.try_get::<_, i32>(2)? != talk.process {
        return Err(Failure::Unfit(pooler::NOT_KEPT.to_owned()));
    }
    place_in(&row)
}

/// How a batch is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    /// How many records are tried one by one if the server refuses all of them.
    pub(super) probes: usize,
    /// Whether the table takes a COPY: one with row-level security doesn't.
    pub(super) copies: bool,
}

/// Writes what of `batch` lies beyond its lane's cursor, all or nothing.
pub(super) async fn write(talk: &Talk, table: &Table, batch: &Batch, how: How) -> Result<WriteOutcome, Failure> {
    let How { probes, copies } = how;
    // Revisions are compared with what is there: a COPY can't.
    if copies && is_new_only(batch) {
        match attempt(talk, table, batch, Way::Copy).await {
            Err(failure) if failure.fault() != Fault::Store => talk.order("rollback").await?,
            Ok(None) => {}
            Ok(Some(report)) => return Ok(report),
            Err(failure) => return Err(failure),
        }
    }
    match attempt(talk, table, batch, Way::Careful(probes)).await {
        // A table may refuse a record for what else is in its transaction: fewer at a time may pass.
        Err(Failure::Unsteady(words)) => {
            talk.order("rollback").await?;
            let cursor = read(talk, table, batch.lane()).await?.position;
            let waiting = beyond(batch, cursor).len();
            if waiting < 2 {
                return Err(Failure::Unsteady(words));
            }
            let half = batch.first_records(batch.len() - waiting + waiting / 2);
            match Box::pin(write(talk, table, &half, how)).await? {
                WriteOutcome::Committed => Err(Failure::InPart),
                WriteOutcome::Rejected { .. } | WriteOutcome::Partial { .. } => Err(Failure::Unsteady(words)),
            }
        }
        done => done?.ok_or(Failure::Odd("a batch that was looked at row by row has no outcome")),
    }
}

fn is_new_only(batch: &Batch) -> bool {
    batch.records().all(|record| record.write == Write::Insert)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// All rows as new ones.
    Copy,
    /// With a look at what is there, and so many probes.
    Careful(usize),
}

/// One transaction; `None` where nothing was written, and another way must be tried.
async fn attempt(talk: &Talk, table: &Table, batch: &Batch, way: Way) -> Result<Option<WriteOutcome>, Failure> {
    let (cursor, held) = begin(talk, table, batch.lane()).await?;
    if !Claim::admits(held, batch.claim()) {
        talk.order("rollback").await?;
        return Err(Failure::Claimed);
    }
    if cursor < batch.floor() || batch.last() <= cursor {
        talk.order("rollback").await?;
        let lost = Failure::LostTail { position: cursor, stored: batch.floor() };
        return if cursor < batch.floor() { Err(lost) } else { Ok(Some(WriteOutcome::Committed)) };
    }
    let found = match way {
        Way::Copy if copy(talk, table, batch, cursor).await? => Findings::default(),
        Way::Copy => {
            talk.order("rollback").await?;
            return Ok(None);
        }
        Way::Careful(probes) => bisect::write(talk, table, beyond(batch, cursor), probes).await?,
    };
    if found.is_empty() {
        // Both are sent at once, and done in this order.
        let place = (batch.last(), batch.claim());
        let ((), is_same) = try_join(set_cursor(talk, table, batch.lane(), place), table.is_same(talk)).await?;
        if !is_same {
            return Err(Failure::Altered);
        }
        talk.order("commit").await?;
        return Ok(Some(WriteOutcome::Committed));
    }
    // What is refused is given up: not for a type that a column doesn't have any more.
    if !table.is_same(talk).await? {
        return Err(Failure::Altered);
    }
    talk.order("rollback").await?;
    let refused = still_refused(talk, table, batch, found).await?.into_refusals();
    Ok(Some(WriteOutcome::Rejected { refused }))
}

/// What stays refused: each suspect is tried by itself, in a transaction that has nothing else in it.
async fn still_refused(talk: &Talk, table: &Table, batch: &Batch, found: Findings) -> Result<Findings, Failure> {
    let Findings { refused, suspects } = found;
    let Some(words) = suspects.first().map(Suspect::words) else { return Ok(Findings { refused, suspects }) };
    talk.order(BEGIN).await?;
    let suspects = bisect::refused_again(talk, table, batch, suspects).await?;
    talk.order("rollback").await?;
    let found = Findings { refused, suspects };
    if found.is_empty() { Err(Failure::Unsteady(words)) } else { Ok(found) }
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
    // A rule or a trigger of somebody's own could do so: without its cursor a batch would be written again.
    if set == 1 { Ok(()) } else { Err(Failure::Unfit("its table forebay_cursors doesn't keep what is written".into())) }
}

/// The records that the store doesn't have, each with its index.
fn beyond(batch: &Batch, cursor: u64) -> Vec<(usize, Record<'_>)> {
    batch.records().enumerate().filter(|(_, record)| record.sequence > cursor).collect()
}

/// Writes all rows as new ones; `false` where one can't be made, or the server left one out.
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

/// Adds rows from a record on until there are enough to be sent: which record is next, and how many were added. `None`
/// where a record can't be a row.
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
