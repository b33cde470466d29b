//! A page of the list of dead letters, the oldest or the newest first.

use std::str::FromStr;
use std::sync::Arc;

use crate::blocked::Blocked;
use crate::cursor::DeadCursor;
use crate::filter::{DeadFilter, DeadLetter, DeadList};
use crate::reader::DeadLetterReader;
use crate::{DeadLetters, later};

/// The order of the dead letters of each sink, by their last rejections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeadOrder {
    /// The oldest first.
    #[default]
    Ascending,
    /// The newest first.
    Descending,
}

impl DeadOrder {
    /// As in a query.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ascending => "asc",
            Self::Descending => "desc",
        }
    }
}

/// The text is not an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected asc or desc")]
pub struct InvalidOrder;

impl FromStr for DeadOrder {
    type Err = InvalidOrder;

    fn from_str(text: &str) -> Result<Self, InvalidOrder> {
        [Self::Ascending, Self::Descending].into_iter().find(|order| order.as_str() == text).ok_or(InvalidOrder)
    }
}

/// The wanted part of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageRequest {
    /// Dead letters at most.
    pub limit: usize,
    /// Whether the payloads are wanted.
    pub with_payload: bool,
    /// The order within each sink.
    pub order: DeadOrder,
    /// The end of the page before; `None` for the first page.
    pub cursor: Option<DeadCursor>,
}

impl PageRequest {
    /// The first page, the oldest first.
    #[must_use]
    pub fn first(limit: usize, with_payload: bool) -> Self {
        Self { limit, with_payload, ..Self::default() }
    }
}

/// Adds a sink's dead letters to a list until it is full. It holds at most one segment in memory.
pub(crate) fn list(
    dead: &Arc<DeadLetters>,
    filter: &DeadFilter,
    wanted: &PageRequest,
    found: &mut DeadList,
) -> Result<(), Blocked> {
    let reading = DeadLetterReader::begin(dead)?;
    found.lost += dead.losses().iter().map(eventlog::Loss::count).sum::<u64>();
    let sink = dead.sink();
    let cursor = wanted.cursor.as_ref().filter(|cursor| *cursor.sink >= **sink);
    if found.more || cursor.is_some_and(|cursor| *cursor.sink > **sink) {
        return Ok(());
    }
    let Some(reading) = reading else { return Ok(()) };
    let cursor = cursor.map(|cursor| cursor.at);
    match wanted.order {
        DeadOrder::Ascending => ascend(reading, cursor, filter, wanted, found),
        DeadOrder::Descending => descend(&reading, cursor, filter, wanted, found),
    }
}

fn ascend(
    mut reading: DeadLetterReader,
    after: Option<u64>,
    filter: &DeadFilter,
    wanted: &PageRequest,
    found: &mut DeadList,
) -> Result<(), Blocked> {
    if let Some(after) = after {
        reading.begin_after(after);
    }
    while let Some(chunk) = reading.read().map_err(later)? {
        let held = reading.held_in(&chunk, filter).into_iter();
        for (at, record) in held.filter(|(at, _)| after.is_none_or(|after| *at > after)) {
            if !found.add(wanted.limit, at, || DeadLetter::of(reading.sink(), &record, wanted.with_payload)) {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn descend(
    reading: &DeadLetterReader,
    before: Option<u64>,
    filter: &DeadFilter,
    wanted: &PageRequest,
    found: &mut DeadList,
) -> Result<(), Blocked> {
    let mut before = before.unwrap_or(u64::MAX);
    while let Some((first, chunks)) = reading.read_before(before).map_err(later)? {
        for chunk in chunks.iter().rev() {
            let held = reading.held_in(chunk, filter).into_iter().rev();
            for (at, record) in held.filter(|(at, _)| (first..before).contains(at)) {
                if !found.add(wanted.limit, at, || DeadLetter::of(reading.sink(), &record, wanted.with_payload)) {
                    return Ok(());
                }
            }
        }
        before = first;
    }
    Ok(())
}
