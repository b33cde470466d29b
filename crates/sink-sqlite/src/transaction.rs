//! One batch, one transaction: the rows and the lane's cursor, or nothing.

use std::collections::HashMap;

use event::Lane;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::fault::fault;
use super::rows::{Rows, Sql};
use sink::{Batch, Claim, Fault, Mark, RejectedRecord, Takeover, Verdict, WriteOutcome};

const READ: &str = "select position, claim from forebay_cursors where origin = ?1 and shard = ?2 and sink = ?3";
const SET: &str = "insert into forebay_cursors (origin, shard, sink, position, claim) values (?1, ?2, ?3, ?4, ?5)
     on conflict do update set position = excluded.position, claim = excluded.claim";

/// The position up to which `lane` is stored, 0 for a lane that was never written, and its claim.
pub(super) fn read(connection: &Connection, lane: &Lane) -> rusqlite::Result<(u64, Option<Claim>)> {
    let mut statement = connection.prepare_cached(READ)?;
    let found = statement.query_row(params![lane.origin.0, lane.shard, &*lane.sink], |row| {
        // SQLite's integers are signed: the bits are unchanged, and only this program compares them.
        Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get::<_, Option<[u8; 16]>>(1)?.map(Claim)))
    });
    Ok(found.optional()?.unwrap_or_default())
}

/// Exchanges the claim on `lane`, if `takeover` allows it, and returns the cursor and the claim afterwards.
pub(super) fn exchange_claim(
    connection: &mut Connection,
    lane: &Lane,
    claim: Claim,
    takeover: &Takeover,
) -> rusqlite::Result<(u64, Option<Claim>)> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (position, held) = read(&transaction, lane)?;
    if !takeover.replaces(held, claim) {
        return Ok((position, held));
    }
    let position = takeover.position(position);
    set(&transaction, lane, position, Some(claim))?;
    transaction.commit()?;
    Ok((position, Some(claim)))
}

/// The result of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// The outcome of its records.
    WriteOutcome(WriteOutcome),
    /// The lane's cursor is lower than the batch's minimum position, and nothing was written.
    Nothing {
        /// The cursor.
        position: u64,
    },
    /// Another process has claimed the lane, and nothing was written.
    Unclaimed,
    /// It is another file than the batch's, with this store id, and nothing was written.
    Elsewhere(Mark),
}

/// How often records, by their sequences, have ended the transaction that they were written in.
pub(super) type Enders = HashMap<u64, u32>;

/// How often a record may end its transaction, the later times after its neighbours, before it is rejected.
const ENDS_MAX: u32 = 3;

/// Writes the records of `batch` after its lane's cursor, all or nothing, unless the cursor is less than the batch's
/// minimum position. The write lock is acquired before the cursor is read, so a concurrent duplicate can't write the
/// same records in between.
pub(super) fn write(
    connection: &mut Connection,
    sql: &Sql,
    batch: &Batch,
    enders: &mut Enders,
) -> rusqlite::Result<Written> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (cursor, held) = read(&transaction, batch.lane())?;
    if !Claim::admits(held, batch.claim()) {
        return Ok(Written::Unclaimed);
    }
    if cursor < batch.floor() {
        return Ok(Written::Nothing { position: cursor });
    }
    if batch.last() <= cursor {
        return Ok(Written::WriteOutcome(WriteOutcome::Committed));
    }
    let mut refused = write_rows(&transaction, sql, batch, cursor, enders)?;
    if !refused.is_empty() {
        // A record may have ended the transaction.
        if !transaction.is_autocommit() {
            transaction.rollback()?;
        }
        refused.sort_by_key(|refusal| refusal.index);
        return Ok(Written::WriteOutcome(WriteOutcome::Rejected { refused }));
    }
    set(&transaction, batch.lane(), batch.last(), batch.claim())?;
    transaction.commit()?;
    Ok(Written::WriteOutcome(WriteOutcome::Committed))
}

/// All rejected records are found, so delivery resends the rest only once. An error that may be the record's fault or
/// the table's is the record's only if another record is accepted; the record is tried once more after the others. An
/// error of the store ends the attempt, even if SQLite has already rolled back the transaction: it says nothing about
/// the record.
fn write_rows(
    connection: &Connection,
    sql: &Sql,
    batch: &Batch,
    cursor: u64,
    enders: &mut Enders,
) -> rusqlite::Result<Vec<RejectedRecord>> {
    let mut rows = Rows::new(connection, sql)?;
    let (mut refused, mut again, mut passed) = (Vec::new(), Vec::new(), 0_usize);
    for (index, record) in batch.records().enumerate().filter(|(_, record)| record.sequence > cursor) {
        if enders.contains_key(&record.sequence) {
            again.push((index, record));
            continue;
        }
        match rows.write(&record) {
            Ok(None) => passed += 1,
            Ok(Some(reason)) => refused.push(RejectedRecord { index, reason }),
            Err(error) if fault(&error) == Fault::Store => return Err(error),
            Err(error) if connection.is_autocommit() => {
                enders.insert(record.sequence, 1);
                return Err(error);
            }
            Err(_) => again.push((index, record)),
        }
    }
    for (index, record) in again {
        let error = match rows.write(&record) {
            Ok(None) => {
                passed += 1;
                continue;
            }
            Ok(Some(reason)) => {
                refused.push(RejectedRecord { index, reason });
                continue;
            }
            Err(error) => error,
        };
        let (fault, ends) = (fault(&error), connection.is_autocommit());
        let is_sure = if ends && fault != Fault::Store {
            let times = enders.entry(record.sequence).or_default();
            *times += 1;
            passed > 0 && *times >= ENDS_MAX
        } else {
            fault.verdict(passed > 0) == Verdict::Rejected
        };
        if !is_sure {
            return Err(error);
        }
        refused.push(RejectedRecord { index, reason: format!("{error} (the table rejects the event)").into() });
        if ends {
            break;
        }
    }
    Ok(refused)
}

fn set(connection: &Connection, lane: &Lane, position: u64, claim: Option<Claim>) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(SET)?;
    let claim = claim.map(|claim| claim.0);
    statement.execute(params![lane.origin.0, lane.shard, &*lane.sink, position.cast_signed(), claim])?;
    Ok(())
}
