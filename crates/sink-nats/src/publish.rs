//! One atomic batch: messages, and the cursor as the last one. The server stores all of them or none, and none if the
//! previous cursor isn't the expected one.

use std::collections::BTreeSet;
use std::fmt::Write;

use event::Lane;
use serde::Deserialize;

use super::api;
use super::api_error::ApiError;
use super::cursor::{self, Cursor};
use super::error::Failure;
use super::mapping::Row;
use super::stream_name::StreamName;
use super::subject;
use nats::{Session, random};
use sink::Claim;

/// The previous cursor isn't the expected one.
const WRONG_LAST: [u32; 2] = [10071, 10164];
/// A message with an id that the stream already has.
const DUPLICATE: u32 = 10201;
/// More messages than the server accepts in a batch.
const TOO_LARGE: u32 = 10199;
/// A message of the batch was lost, or the batch was abandoned: an earlier error is more specific.
const INCOMPLETE: u32 = 10176;

/// The outcome of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is stored, with its cursor's sequence.
    Stored(u64),
    /// Nothing is stored: the cursor has moved.
    Moved,
    /// Nothing is stored: the stream already has an id of it.
    Known,
    /// Nothing is stored: it has too many messages.
    TooLarge,
}

/// The properties of a batch other than its messages.
pub(super) struct Frame<'a> {
    pub(super) stream: &'a StreamName,
    pub(super) lane: &'a Lane,
    /// Whether messages expire.
    pub(super) has_age: bool,
    /// The previous cursor.
    pub(super) before: &'a Cursor,
    /// The positions that it accounts for.
    pub(super) first: u64,
    pub(super) last: u64,
    /// The new claim on the lane.
    pub(super) claim: Option<Claim>,
    /// What is stored after the last of them.
    pub(super) beyond: &'a BTreeSet<u64>,
}

/// The server's response to the last message.
#[derive(Deserialize)]
struct Acknowledged {
    seq: u64,
    #[serde(default)]
    batch: String,
    #[serde(default)]
    count: usize,
}

/// Publishes `rows` and the cursor after them.
pub(super) async fn publish(session: &mut Session, frame: &Frame<'_>, rows: &[Row<'_>]) -> Result<Outcome, Failure> {
    let batch = format!("{:024x}", u128::from_be_bytes(random()?) >> 32);
    let (begun, reply) = (session.reply(), session.reply());
    let mut bytes =
        Vec::with_capacity(rows.iter().map(|row| row.bytes() + row.subject.len() + 64).sum::<usize>() + 1_024);
    for (number, row) in (1..).zip(rows) {
        // Only the first gets a response, which has the error that concerns all messages.
        let reply = if number == 1 { begun.as_str() } else { "" };
        let headers = format!("{}{}", row.headers, of_batch(&batch, number));
        nats::publish(&mut bytes, row.subject.as_bytes(), reply.as_bytes(), headers.as_bytes(), row.payload);
    }
    let count = rows.len() + 1;
    let headers = headers(frame, &format!("{}Nats-Batch-Commit: 1\r\n", of_batch(&batch, count)));
    let subject = subject::of_cursor(frame.stream, frame.lane);
    nats::publish(&mut bytes, subject.as_bytes(), reply.as_bytes(), headers.as_bytes(), b"");
    let answers = session.call(&bytes, &reply).await?;
    match api::read::<Acknowledged>(&answers.last)? {
        Ok(stored) if stored.batch == batch && stored.count == count => Ok(Outcome::Stored(stored.seq)),
        Ok(_) => Err(Failure::Unexpected(
            "the server acknowledged another batch than Forebay sent. Forebay reads the cursor and resends the batch",
        )),
        Err(error) => rejected(error, answers.earlier.as_deref()),
    }
}

/// Publishes a message without a payload, unless its headers expect another last message with its subject.
pub(super) async fn one(session: &mut Session, subject: &str, headers: &str) -> Result<(), Failure> {
    let reply = session.reply();
    let mut bytes = Vec::new();
    nats::publish(&mut bytes, subject.as_bytes(), reply.as_bytes(), headers.as_bytes(), b"");
    match api::read::<Acknowledged>(&session.call(&bytes, &reply).await?.last)? {
        Err(error) if !WRONG_LAST.contains(&error.err_code) => Err(Failure::JetStream(error)),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn of_batch(batch: &str, number: usize) -> String {
    format!("{}: {batch}\r\n{}: {number}\r\n", cursor::BATCH, cursor::NUMBER)
}

/// The headers of the cursor.
fn headers(frame: &Frame<'_>, of_batch: &str) -> String {
    let mut lines = format!(
        "{}: {}\r\n{}: {}\r\nNats-Expected-Stream: {}\r\n{}: {}\r\nNats-Rollup: sub\r\n",
        cursor::POSITION,
        frame.last,
        cursor::FIRST,
        frame.first,
        frame.stream,
        cursor::BEFORE,
        frame.before.sequence
    );
    // Writing to a string can't fail.
    let _ = frame.claim.map(|claim| write!(lines, "{}: {claim}\r\n", cursor::CLAIM));
    if !frame.beyond.is_empty() {
        let _ = write!(lines, "{}: {}\r\n", cursor::STORED, cursor::ranges(frame.beyond));
    }
    if frame.has_age {
        lines.push_str("Nats-TTL: never\r\n");
    }
    lines + of_batch
}

fn rejected(last: ApiError, earlier: Option<&[u8]>) -> Result<Outcome, Failure> {
    let earlier = earlier.and_then(|answer| api::read::<Acknowledged>(answer).ok()?.err());
    let error = if last.err_code == INCOMPLETE { earlier.unwrap_or(last) } else { last };
    match error.err_code {
        code if WRONG_LAST.contains(&code) => Ok(Outcome::Moved),
        DUPLICATE => Ok(Outcome::Known),
        TOO_LARGE => Ok(Outcome::TooLarge),
        _ => Err(Failure::JetStream(error)),
    }
}
