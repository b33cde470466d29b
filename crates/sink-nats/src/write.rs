//! A batch as one atomic batch or several consecutive ones: each has records after the lane's cursor, and the cursor at
//! its end.

use std::collections::BTreeSet;

use event::Lane;

use super::config::NatsConfig;
use super::cursor::{self, Cursor};
use super::error::Failure;
use super::lane_state::LaneState;
use super::mapping::Row;
use super::preflight::Durability;
use super::publish::{Frame, Outcome, publish};
use nats::Session;
use sink::{Batch, Claim, RejectedRecord, Takeover, Verdict, WriteOutcome};

/// Records of one atomic batch: a server accepts 1,000 messages, of which the cursor is one.
const RECORDS_MAX: usize = 999;
/// Bytes of one batch's messages, unless one alone has more.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// How often the cursor may move during a batch: a late concurrent duplicate moves it once, and then finds its own
/// position outdated.
const MOVES_MAX: usize = 5;

const BUSY: Failure = Failure::Unexpected(
    "the lane's cursor moves repeatedly: check whether another Forebay uses a copy of this data directory",
);

/// Writes the records of `batch` after its lane's cursor, unless the cursor is less than the batch's minimum position.
pub(super) async fn write(
    session: &mut Session,
    durability: &Durability,
    config: &NatsConfig,
    batch: &Batch,
    lane: &mut LaneState,
) -> Result<WriteOutcome, Failure> {
    let is_as_known = |cursor: &Cursor| cursor.position == batch.floor() && Claim::admits(cursor.claim, batch.claim());
    let cursor = match lane.cursor.take() {
        Some(cursor) if is_as_known(&cursor) => cursor,
        // Another process may have written since.
        _ => cursor::read(session, &config.stream, batch.lane(), (batch.floor(), false)).await?,
    };
    let cursor = checked(cursor, batch.floor())?;
    if !Claim::admits(cursor.claim, batch.claim()) {
        return Err(Failure::Claimed);
    }
    let (rows, refused) = rows(durability, config, batch, &cursor)?;
    if !refused.is_empty() {
        lane.cursor = Some(cursor);
        return Ok(WriteOutcome::Rejected { refused });
    }
    let stored = batch.floor();
    let mut writing =
        Writing { session, durability, config, batch, stored, cursor, rows, size: RECORDS_MAX, is_known: false };
    let mut moves = 0;
    while writing.cursor.position < batch.last() {
        moves += usize::from(writing.step().await? == Step::Moved);
        if moves > MOVES_MAX {
            return Err(BUSY);
        }
    }
    lane.cursor = Some(writing.cursor);
    Ok(WriteOutcome::Committed)
}

/// A cursor, unless it is before the known stored position.
fn checked(cursor: Cursor, stored: u64) -> Result<Cursor, Failure> {
    if cursor.position < stored {
        return Err(Failure::LostTail { position: cursor.position, stored });
    }
    Ok(cursor)
}

/// Exchanges the claim on `lane`, if `takeover` allows it, and returns the cursor afterwards.
pub(super) async fn claim(
    session: &mut Session,
    (durability, config): (&Durability, &NatsConfig),
    lane: &Lane,
    claim: Claim,
    takeover: &Takeover,
) -> Result<Cursor, Failure> {
    for _ in 0..MOVES_MAX {
        let before = cursor::read(session, &config.stream, lane, (0, false)).await?;
        if !takeover.replaces(before.claim, claim) {
            return Ok(before);
        }
        let position = takeover.position(before.position);
        // After a set position, none of these events counts as stored.
        let beyond = if position == before.position { before.beyond.clone() } else { BTreeSet::new() };
        let (first, has_age) = (position + 1, durability.has_age);
        let stream = &config.stream;
        let frame = Frame {
            stream,
            lane,
            has_age,
            before: &before,
            first,
            last: position,
            claim: Some(claim),
            beyond: &beyond,
        };
        match publish(session, &frame, &[]).await? {
            Outcome::Stored(sequence) => return Ok(Cursor { position, sequence, beyond, claim: Some(claim) }),
            Outcome::Moved => {}
            Outcome::Known | Outcome::TooLarge => {
                return Err(Failure::Unexpected(
                    "the server rejects a single message as too large or as a duplicate: check the stream's limits",
                ));
            }
        }
    }
    Err(BUSY)
}

/// The records of a batch that can be published, and those that are rejected. Stored records are neither.
///
/// # Errors
/// [`Failure::Misfit`] if only the stream can be at fault.
fn rows<'a>(
    durability: &Durability,
    config: &NatsConfig,
    batch: &'a Batch,
    cursor: &Cursor,
) -> Result<(Vec<Row<'a>>, Vec<RejectedRecord>), Failure> {
    let (mut rows, mut failed) = (Vec::with_capacity(batch.len()), Vec::new());
    for (index, record) in batch.records().enumerate().filter(|(_, record)| cursor.lacks(record.sequence)) {
        match Row::new(&config.subject, durability, batch.lane().shard, &record) {
            Ok(row) => rows.push(row),
            Err((fault, why)) => failed.push((index, fault, why)),
        }
    }
    let mut refused = Vec::with_capacity(failed.len());
    for (index, fault, why) in failed {
        match fault.verdict(!rows.is_empty()) {
            Verdict::Rejected => refused.push(rejection(index, &why)),
            Verdict::Retry(_) => return Err(Failure::Misfit(why)),
        }
    }
    Ok((rows, refused))
}

fn rejection(index: usize, why: &str) -> RejectedRecord {
    RejectedRecord { index, reason: format!("{why} (NATS rejects the event)").into() }
}

/// A batch in flight.
struct Writing<'a> {
    session: &'a mut Session,
    durability: &'a Durability,
    config: &'a NatsConfig,
    batch: &'a Batch,
    /// The position up to which its lane is known to be stored.
    stored: u64,
    cursor: Cursor,
    /// The records after the cursor.
    rows: Vec<Row<'a>>,
    /// The number of records that are sent at a time.
    size: usize,
    /// Whether the next record is known to be stored: then only the cursor moves past it.
    is_known: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Done,
    Moved,
}

impl Writing<'_> {
    /// Publishes the next part.
    async fn step(&mut self) -> Result<Step, Failure> {
        let count = part(&self.rows, self.size);
        // Records without a row belong to the row before them.
        let last = self.rows.get(count).map_or(self.batch.last(), |next| next.sequence - 1);
        let frame = Frame {
            stream: &self.config.stream,
            lane: self.batch.lane(),
            has_age: self.durability.has_age,
            before: &self.cursor,
            first: self.cursor.position + 1,
            last,
            claim: self.batch.claim(),
            beyond: &self.cursor.beyond,
        };
        let sent = if self.is_known { &[] } else { &self.rows[..count] };
        match publish(self.session, &frame, sent).await? {
            Outcome::Stored(sequence) => self.stored(count, last, sequence).await?,
            // One of them is stored already, or the server accepts fewer at a time: halving shows which one, and how
            // many.
            Outcome::Known | Outcome::TooLarge if count > 1 => self.size = count / 2,
            Outcome::Known if !self.is_known => self.is_known = true,
            Outcome::Moved => {
                self.cursor = self.read(false).await?;
                let cursor = &self.cursor;
                self.rows.retain(|row| cursor.lacks(row.sequence));
                self.is_known = false;
                return Ok(Step::Moved);
            }
            Outcome::Known | Outcome::TooLarge => {
                return Err(Failure::Unexpected(
                    "the server rejects the smallest possible batch: check the stream's limits",
                ));
            }
        }
        Ok(Step::Done)
    }

    async fn stored(&mut self, count: usize, last: u64, sequence: u64) -> Result<(), Failure> {
        if self.durability.may_be_torn {
            let cursor = self.read(true).await?;
            if cursor.position < last {
                return Err(Failure::Torn { first: cursor.position + 1, last });
            }
        }
        self.stored = last;
        self.cursor = Cursor {
            position: last,
            sequence,
            claim: self.batch.claim(),
            beyond: self.cursor.beyond.iter().copied().filter(|position| *position > last).collect(),
        };
        self.rows.drain(..count);
        self.size = (self.size * 2).min(RECORDS_MAX);
        self.is_known = false;
        Ok(())
    }

    async fn read(&mut self, is_new: bool) -> Result<Cursor, Failure> {
        let known = (self.stored, is_new);
        let cursor = cursor::read(self.session, &self.config.stream, self.batch.lane(), known).await?;
        let cursor = checked(cursor, self.stored)?;
        if Claim::admits(cursor.claim, self.batch.claim()) { Ok(cursor) } else { Err(Failure::Claimed) }
    }
}

/// How many of the rows one batch has.
fn part(rows: &[Row<'_>], size: usize) -> usize {
    let mut bytes = 0;
    let fits = |row: &&Row<'_>| {
        bytes += row.bytes();
        bytes <= BYTES_MAX
    };
    rows.iter().take(size).take_while(fits).count().max(usize::from(!rows.is_empty()))
}
