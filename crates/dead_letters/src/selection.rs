//! The dead letters that an action is about to handle: how many, and up to which position of each journal. An action
//! on a selection handles no dead letter that is written after it.

use std::sync::Arc;

use ledger::SinkName;

use crate::blocked::Blocked;
use crate::filter::DeadFilter;
use crate::reader::DeadLetterReader;
use crate::repeatable::Repeatable;
use crate::replay::SinkQueue;
use crate::{DeadLetters, later};

/// The dead letters of one sink in a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedSink {
    /// The sink.
    pub sink: SinkName,
    /// How many match.
    pub letters: u64,
    /// Whether its store recognises events that it has. A sink that isn't configured has none.
    pub repeatable: Repeatable,
}

/// The dead letters that match at one moment.
#[derive(Clone)]
pub struct Selection {
    pub(crate) filter: DeadFilter,
    pub(crate) limit: u64,
    pub(crate) sinks: Vec<SelectedSink>,
}

#[derive(Clone)]
pub(crate) struct SelectedSink {
    pub(crate) queue: Arc<SinkQueue>,
    /// The last position of the journal at that moment.
    pub(crate) until: u64,
    pub(crate) letters: u64,
}

impl Selection {
    /// How many dead letters it has.
    #[must_use]
    pub fn letters(&self) -> u64 {
        self.sinks.iter().map(|sink| sink.letters).sum()
    }

    /// How many of each sink.
    #[must_use]
    pub fn sinks(&self) -> Vec<PlannedSink> {
        let planned = |selected: &SelectedSink| PlannedSink {
            sink: selected.queue.dead.sink().clone(),
            letters: selected.letters,
            repeatable: selected.queue.sink.repeatable(),
        };
        self.sinks.iter().map(planned).collect()
    }
}

/// How many dead letters of a sink match, at most `limit`, and the last position of its journal at that moment. It reads
/// the disk, if the index doesn't know the number.
pub(crate) fn count(dead: &Arc<DeadLetters>, filter: &DeadFilter, limit: u64) -> Result<(u64, u64), Blocked> {
    if filter.is_of_index() {
        let counted = dead.with_existing(|journal| {
            let count = match filter.type_name.as_deref() {
                Some(name) => journal.index.held().get(name).copied().unwrap_or(0),
                None => journal.index.held_count(),
            };
            (count.min(limit), journal.durable)
        })?;
        return Ok(counted.unwrap_or_default());
    }
    let Some(mut reading) = DeadLetterReader::begin(dead)? else { return Ok((0, 0)) };
    let mut count = 0;
    while count < limit
        && let Some(chunk) = reading.read().map_err(later)?
    {
        count += reading.held_in(&chunk, filter).len() as u64;
    }
    Ok((count.min(limit), reading.end()))
}
