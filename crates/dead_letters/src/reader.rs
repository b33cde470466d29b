//! Reads the dead letters that are held while lanes write new ones.

use std::io;
use std::sync::Arc;

use eventlog::{LogChunk, Reader, Segments};
use ledger::SinkName;

use crate::blocked::Blocked;
use crate::dead_record::DeadRecord;
use crate::filter::DeadFilter;
use crate::{DeadLetters, Slot};

/// A pass through the state of a journal of dead letters at the time of its start. No segment is freed during it.
pub(crate) struct DeadLetterReader {
    dead: Arc<DeadLetters>,
    reader: Reader,
    segments: Segments,
    /// The position of the first record that may be wanted.
    first: u64,
    end: u64,
}

impl DeadLetterReader {
    /// `None` if no dead letter is held.
    pub(crate) fn begin(dead: &Arc<DeadLetters>) -> Result<Option<Self>, Blocked> {
        let began = dead.with_existing(|journal| {
            let first = journal.index.first_held()?;
            journal.readers += 1;
            Some((journal.segments.clone(), first, journal.durable))
        })?;
        Ok(began.flatten().map(|began| Self::of(dead, began)))
    }

    /// The same from a position on, regardless of the state of the dead letters there. `None` if there is no journal.
    pub(crate) fn from(dead: &Arc<DeadLetters>, first: u64) -> Result<Option<Self>, Blocked> {
        let began = dead.with_existing(|journal| {
            journal.readers += 1;
            (journal.segments.clone(), first, journal.durable)
        })?;
        Ok(began.map(|began| Self::of(dead, began)))
    }

    fn of(dead: &Arc<DeadLetters>, (segments, first, end): (Segments, u64, u64)) -> Self {
        Self { dead: dead.clone(), reader: Reader::new(segments.clone(), first), segments, first, end }
    }

    /// Ignores records after this position.
    pub(crate) fn end_at(&mut self, end: u64) {
        self.end = self.end.min(end);
    }

    /// The sink.
    pub(crate) fn sink(&self) -> &SinkName {
        self.dead.sink()
    }

    /// The last position that is read.
    pub(crate) const fn end(&self) -> u64 {
        self.end
    }

    /// Ignores records up to this position.
    pub(crate) fn begin_after(&mut self, at: u64) {
        if at >= self.first {
            self.first = at.saturating_add(1);
            self.reader = Reader::new(self.segments.clone(), self.first);
        }
    }

    /// The part of the journal that ends before this position: at most one segment, in order, with its first position.
    /// `None` at the beginning.
    pub(crate) fn read_before(&self, position: u64) -> io::Result<Option<(u64, Vec<LogChunk>)>> {
        let last = position.saturating_sub(1).min(self.end);
        let Some(first) = self.segments.first_of(last).filter(|_| last >= self.first) else { return Ok(None) };
        let (mut reader, mut chunks) = (Reader::new(self.segments.clone(), first), Vec::new());
        while reader.next() <= last
            && let Some(chunk) = reader.read(self.end)?
        {
            chunks.push(chunk);
        }
        Ok(Some((first, chunks)))
    }

    /// The next part of the journal.
    pub(crate) fn read(&mut self) -> io::Result<Option<LogChunk>> {
        self.reader.read(self.end)
    }

    /// The dead letters in `chunk` that are held and fit the filter, with their positions.
    pub(crate) fn held_in<'a>(&self, chunk: &'a LogChunk, filter: &DeadFilter) -> Vec<(u64, DeadRecord<'a>)> {
        // The filter may take long: lanes that write dead letters don't wait for it.
        let is_wanted = |(at, record): &(u64, DeadRecord<'_>)| *at <= self.end && filter.takes(record);
        let mut held: Vec<_> = DeadRecord::all_in(chunk).filter(is_wanted).collect();
        let slot = self.dead.slot();
        let Slot::Open(journal) = &*slot else { return Vec::new() };
        held.retain(|(at, record)| journal.index.is_held_at(*at, record));
        held
    }
}

impl Drop for DeadLetterReader {
    fn drop(&mut self) {
        if let Slot::Open(journal) = &mut *self.dead.slot() {
            journal.readers -= 1;
        }
    }
}
