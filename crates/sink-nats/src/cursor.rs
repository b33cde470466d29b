//! A lane's cursor in the stream: the last message with a separate subject, which was stored together with the messages
//! before it.

use std::collections::BTreeSet;

use event::{Lane, Position};

use super::api::{self, StoredMessage};
use super::error::Failure;
use super::stream_name::StreamName;
use super::{mapping, subject};
use nats::Session;
use sink::Claim;

/// Headers of a cursor's message: the position up to which its lane is stored, and the first position of its batch.
pub(super) const POSITION: &str = "Forebay-Cursor";
pub(super) const FIRST: &str = "Forebay-First";
/// The claim on the lane.
pub(super) const CLAIM: &str = "Forebay-Claim";
/// What is stored after the position, from batches that were stored in part: `1-3,7`. Without this header, nothing is.
pub(super) const STORED: &str = "Forebay-Stored";
/// A header by which the server compares, with the sequence of the lane's previous cursor.
pub(super) const BEFORE: &str = "Nats-Expected-Last-Subject-Sequence";
/// The maximum of positions in one batch.
const RANGE_MAX: u64 = 1_000_000;
/// The server's headers of each message of a batch.
pub(super) const BATCH: &str = "Nats-Batch-Id";
pub(super) const NUMBER: &str = "Nats-Batch-Sequence";

/// A lane's cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The position; 0 for a lane that was never written.
    pub(super) position: u64,
    /// The stream's sequence of the cursor's message; 0 if there is none.
    pub(super) sequence: u64,
    /// What is stored after the position: from a batch that was stored in part.
    pub(super) beyond: BTreeSet<u64>,
    /// The claim on the lane.
    pub(super) claim: Option<Claim>,
}

impl Cursor {
    /// Whether the event at a position isn't stored.
    pub(super) fn lacks(&self, position: u64) -> bool {
        position > self.position && !self.beyond.contains(&position)
    }
}

/// Reads the cursor. A batch that was acknowledged but not stored completely leaves the position before it, with the
/// events of it that are stored.
///
/// Positions up to `verified` are known to be stored. `is_new` means that the batch was stored just now.
pub(super) async fn read(
    session: &mut Session,
    stream: &StreamName,
    lane: &Lane,
    (verified, is_new): (u64, bool),
) -> Result<Cursor, Failure> {
    let Some(message) = api::last_of(session, stream, &subject::of_cursor(stream, lane)).await? else {
        return Ok(Cursor::default());
    };
    let mut written = Written::of(&message)?;
    let claim = message.header(CLAIM).map(|claim| claim.parse().map_err(|_| INVALID_CURSOR)).transpose()?;
    if written.position <= verified || !written.check_torn(session, stream, is_new).await? {
        written.beyond.retain(|position| *position > written.position);
        return Ok(Cursor { position: written.position, sequence: message.seq, beyond: written.beyond, claim });
    }
    Ok(Cursor { position: written.first.saturating_sub(1), sequence: message.seq, beyond: written.beyond, claim })
}

/// A cursor's message and the batch that ends with it.
struct Written<'a> {
    message: &'a StoredMessage,
    position: u64,
    first: u64,
    batch: String,
    /// Messages of the batch.
    count: u64,
    /// The stored positions from `first` on.
    beyond: BTreeSet<u64>,
}

impl<'a> Written<'a> {
    fn of(message: &'a StoredMessage) -> Result<Self, Failure> {
        let (position, first, count) = (number(message, POSITION)?, number(message, FIRST)?, number(message, NUMBER)?);
        let batch = message.header(BATCH).unwrap_or_default();
        let beyond = message
            .header(STORED)
            .map_or_else(|| Some(BTreeSet::new()), |text| ranges_of(&text))
            .ok_or(INVALID_CURSOR)?;
        Ok(Self { message, position, first, batch, count, beyond })
    }

    /// Whether messages of the batch were never stored; then `beyond` gets those that were.
    ///
    /// A single server stores a batch consecutively, and omits messages without room in its account, without a
    /// sequence. So a complete batch begins exactly `count - 1` messages before its cursor. If that message is missing,
    /// it was deleted (by age, a purge, or individually), or it never was of this batch. These are proofs that the
    /// batch is torn:
    /// * it would begin before the stream, or not after the lane's previous cursor;
    /// * a message of another batch is between its beginning and its cursor;
    /// * a message of the batch is at another distance from the cursor than its number shows.
    ///
    /// Without a proof a batch counts as complete, unless it is so new that only an operator can have deleted messages,
    /// and that the server itself drops duplicates.
    async fn check_torn(&mut self, session: &mut Session, stream: &StreamName, is_new: bool) -> Result<bool, Failure> {
        let last = self.message.seq;
        if self.count <= 1 {
            return Ok(false);
        }
        let start = last.checked_sub(self.count - 1).filter(|start| *start > 0);
        let mut is_torn = start.is_none_or(|start| start <= number(self.message, BEFORE).unwrap_or(0));
        if let Some(start) = start
            && let Some(first) = api::at(session, stream, start).await?
            && self.has(&first)
            && first.header(NUMBER).as_deref() == Some("1")
        {
            return Ok(false);
        }
        let mut stored = Vec::new();
        for sequence in (start.unwrap_or(1)..last).rev() {
            let Some(found) = api::at(session, stream, sequence).await? else { continue };
            if !self.has(&found) {
                is_torn = true;
                break;
            }
            is_torn |= number(&found, NUMBER)? + (last - sequence) != self.count;
            let position: Option<Position> = found.header(mapping::POSITION).and_then(|text| text.parse().ok());
            stored.push(position.ok_or(INVALID_CURSOR)?.sequence);
        }
        if !is_torn && !is_new && !api::is_recent(session, stream, self.message).await? {
            return Ok(false);
        }
        self.beyond.extend(stored);
        Ok(true)
    }

    fn has(&self, message: &StoredMessage) -> bool {
        message.header(BATCH).as_deref() == Some(self.batch.as_str())
    }
}

/// Positions as `1-3,7`.
pub(super) fn ranges(positions: &BTreeSet<u64>) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for position in positions {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *position => *last = *position,
            _ => ranges.push((*position, *position)),
        }
    }
    let text = |(first, last)| if first == last { format!("{first}") } else { format!("{first}-{last}") };
    ranges.into_iter().map(text).collect::<Vec<_>>().join(",")
}

fn ranges_of(text: &str) -> Option<BTreeSet<u64>> {
    let mut positions = BTreeSet::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last - first > RANGE_MAX {
            return None;
        }
        positions.extend(first..=last);
    }
    Some(positions)
}

fn number(message: &StoredMessage, header: &str) -> Result<u64, Failure> {
    message.header(header).and_then(|text| text.parse().ok()).ok_or(INVALID_CURSOR)
}

const INVALID_CURSOR: Failure = Failure::Unexpected(
    "a cursor in the stream is invalid: check whether another program publishes to Forebay's subjects",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_written_as_ranges_and_read_back() {
        for (positions, text) in [(vec![7], "7"), (vec![1, 2, 3, 7, 9, 10], "1-3,7,9-10")] {
            let positions = BTreeSet::from_iter(positions);
            assert_eq!(ranges(&positions), text);
            assert_eq!(ranges_of(text), Some(positions));
        }
        for odd in ["", "x", "3-1", "1-", "1,,2", "1-99999999999"] {
            assert_eq!(ranges_of(odd), None, "{odd}");
        }
    }
}
