//! Reads the dead letters that are held while lanes write new ones.

use std::io;
use std::sync::Arc;

use eventlog::{LogChunk, Reader};

use crate::blocked::Blocked;
use crate::dead_record::DeadRecord;
use crate::filter::{DeadFilter, DeadLetter, DeadList};
use crate::{DeadLetters, Slot};

/// A pass through the state of a journal of dead letters at the time of its start. No segment is freed during it.
pub(crate) struct DeadLetterReader {
    dead: Arc<DeadLetters>,
    reader: Reader,
    end: u64,
}

impl DeadLetterReader {
    /// `None` if no dead letter is held.
    pub(crate) fn begin(dead: &Arc<DeadLetters>) -> Result<Option<Self>, Blocked> {
        let began = dead.with_existing(|journal| {
            let first = journal.index.first_held()?;
            journal.readers += 1;
            Some((Reader::new(journal.segments.clone(), first), journal.durable))
        })?;
        Ok(began.flatten().map(|(reader, end)| Self { dead: dead.clone(), reader, end }))
    }

    /// The same from a position on, regardless of the state of the dead letters there. `None` if there is no journal.
    pub(crate) fn from(dead: &Arc<DeadLetters>, first: u64) -> Result<Option<Self>, Blocked> {
        let began = dead.with_existing(|journal| {
            journal.readers += 1;
            (Reader::new(journal.segments.clone(), first), journal.durable)
        })?;
        Ok(began.map(|(reader, end)| Self { dead: dead.clone(), reader, end }))
    }

    /// The next part of the journal.
    pub(crate) fn read(&mut self) -> io::Result<Option<LogChunk>> {
        self.reader.read(self.end)
    }

    /// The dead letters in `chunk` that are held and fit the filter, with their positions.
    pub(crate) fn held_in<'a>(&self, chunk: &'a LogChunk, filter: &DeadFilter) -> Vec<(u64, DeadRecord<'a>)> {
        let slot = self.dead.slot();
        let Slot::Open(journal) = &*slot else { return Vec::new() };
        let is_wanted = |(at, record): &(u64, DeadRecord<'_>)| {
            *at <= self.end && filter.takes(record) && journal.index.is_held_at(*at, record)
        };
        DeadRecord::all_in(chunk).filter(is_wanted).collect()
    }
}

impl Drop for DeadLetterReader {
    fn drop(&mut self) {
        if let Slot::Open(journal) = &mut *self.dead.slot() {
            journal.readers -= 1;
        }
    }
}

/// Adds a sink's dead letters to a list until it is full.
pub(crate) fn list(
    dead: &Arc<DeadLetters>,
    filter: &DeadFilter,
    limit: usize,
    with_payload: bool,
    found: &mut DeadList,
) -> Result<(), Blocked> {
    let reading = DeadLetterReader::begin(dead)?;
    found.lost += dead.losses().iter().map(eventlog::Loss::count).sum::<u64>();
    let Some(mut reading) = reading else { return Ok(()) };
    while let Some(chunk) = reading.read().map_err(crate::later)? {
        for (_, record) in reading.held_in(&chunk, filter) {
            if !found.add(limit, || DeadLetter::of(dead.sink(), &record, with_payload)) {
                return Ok(());
            }
        }
    }
    Ok(())
}
