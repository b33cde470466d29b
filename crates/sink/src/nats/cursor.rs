//! A lane's cursor as it stands in the stream: the last message under a subject of its own, which was stored together with the
//! messages before it.

use std::collections::BTreeSet;

use event::{Lane, Position};

use super::api::{self, Stored};
use super::config::StreamName;
use super::failure::Failure;
use super::session::Session;
use super::{row, subject};
use crate::Claim;

/// Headers of a cursor's message: up to where its lane is stored, and from where its batch is.
pub(super) const POSITION: &str = "Forebay-Cursor";
pub(super) const FIRST: &str = "Forebay-First";
/// The claim on the lane.
pub(super) const CLAIM: &str = "Forebay-Claim";
/// What was stored beyond the position when the claim was exchanged: positions joined by commas.
pub(super) const BEYOND: &str = "Forebay-Beyond";
/// Headers of the server's that each message of a batch has.
pub(super) const BATCH: &str = "Nats-Batch-Id";
pub(super) const NUMBER: &str = "Nats-Batch-Sequence";

/// Up to where a lane is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The position; 0 for a lane that was never written.
    pub(super) position: u64,
    /// The stream's sequence of the message that says so; 0 where there is none.
    pub(super) sequence: u64,
    /// What is stored beyond the position: of a batch that was stored in part.
    pub(super) beyond: BTreeSet<u64>,
    /// The claim on the lane.
    pub(super) claim: Option<Claim>,
}

impl Cursor {
    /// Whether what stands there isn't stored.
    pub(super) fn lacks(&self, position: u64) -> bool {
        position > self.position && !self.beyond.contains(&position)
    }
}

/// Reads it. A batch that was acknowledged and isn't there as a whole is known by its first message, which must stand as many
/// messages before the cursor as the batch has.
pub(super) async fn read(session: &mut Session, stream: &StreamName, lane: &Lane) -> Result<Cursor, Failure> {
    let Some(message) = api::last_of(session, stream, &subject::of_cursor(stream, lane)).await? else {
        return Ok(Cursor::default());
    };
    let (position, first) = (number(&message, POSITION)?, number(&message, FIRST)?);
    let (batch, count) = (message.header(BATCH).unwrap_or_default(), number(&message, NUMBER)?);
    let claim = message.header(CLAIM).map(|claim| claim.parse().map_err(|_| ODD)).transpose()?;
    let beyond = message.header(BEYOND).unwrap_or_default();
    let beyond = beyond.split(',').filter(|position| !position.is_empty());
    let beyond = beyond.map(|position| position.parse().map_err(|_| ODD)).collect::<Result<_, _>>()?;
    let whole = Cursor { position, sequence: message.seq, beyond, claim };
    let start = message.seq.saturating_sub(count - 1);
    if count == 1 || !is_torn(session, stream, start, &batch).await? {
        return Ok(whole);
    }
    let mut beyond = BTreeSet::new();
    for sequence in (start..message.seq).rev() {
        let Some(stored) = api::at(session, stream, sequence).await? else { continue };
        if stored.header(BATCH).as_deref() != Some(batch.as_str()) {
            break;
        }
        let position: Option<Position> = stored.header(row::POSITION).and_then(|text| text.parse().ok());
        beyond.insert(position.ok_or(ODD)?.sequence);
    }
    Ok(Cursor { position: first.saturating_sub(1), beyond, ..whole })
}

/// Whether something else stands where a batch must begin. What was deleted or is too old says nothing.
async fn is_torn(session: &mut Session, stream: &StreamName, start: u64, batch: &str) -> Result<bool, Failure> {
    if start == 0 {
        return Ok(true);
    }
    let Some(first) = api::at(session, stream, start).await? else { return Ok(false) };
    Ok(first.header(BATCH).as_deref() != Some(batch) || first.header(NUMBER).as_deref() != Some("1"))
}

fn number(message: &Stored, header: &str) -> Result<u64, Failure> {
    message.header(header).and_then(|text| text.parse().ok()).ok_or(ODD)
}

const ODD: Failure =
    Failure::Odd("a cursor in the stream makes no sense: does another program publish to Forebay's subjects?");
