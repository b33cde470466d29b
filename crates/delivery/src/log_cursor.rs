//! The fair read loop of a lane: a few chunks of the log at a time.

use std::io;

use eventlog::{JournalRecord, LogChunk, LogReader};

/// Stretches of the log that are read in one slice, before other lanes continue; also the number of objects that are
/// sent.
const STRETCHES_PER_SLICE: usize = 64;
/// A slice is also over after this many bytes: one or two milliseconds of reading and checking.
const BYTES_PER_SLICE: usize = 1 << 20;

/// How far a batch was filled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FillResult {
    Full,
    CaughtUp,
    /// There is more to read, but other lanes continue first.
    Pause,
    /// The same within a chunk: the only thing to do is to continue with it.
    Midway,
}

/// How much of a chunk was added.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consumed {
    All,
    /// As much as there was room for.
    Full,
    /// As much as there was time for.
    SliceOver,
}

impl Consumed {
    /// Passes one record after the other to `take`, which returns how far it got, until there are none or it stops.
    pub(crate) fn of<R>(records: impl Iterator<Item = R>, take: &mut impl FnMut(R) -> Self) -> Self {
        records.map(take).find(|extent| *extent != Self::All).unwrap_or(Self::All)
    }
}

/// The result of adding a chunk.
pub(crate) struct ChunkResult {
    pub(crate) extent: Consumed,
    /// Whether other lanes continue first.
    pub(crate) is_slice_over: bool,
    /// Whether the route condition of some of its events is undecided.
    pub(crate) has_undecided: bool,
}

/// A lane's position in the log since it took it.
pub(crate) struct BatchReader {
    pub(crate) log: LogReader,
    /// Read, and not yet added completely.
    pub(crate) rest: Option<LogChunk>,
    /// The chunk that was read last, if some of its events are undecided.
    pub(crate) undecided: Option<LogChunk>,
    /// The last attempt to read has failed.
    pub(crate) unreadable: bool,
}

impl BatchReader {
    pub(crate) const fn new(log: LogReader) -> Self {
        Self { log, rest: None, undecided: None, unreadable: false }
    }

    /// Reads on, until `add` reports that there is no room for all of a chunk, that it has undecided events, or that
    /// other lanes continue first.
    pub(crate) fn fill(&mut self, mut add: impl FnMut(&LogChunk) -> ChunkResult) -> io::Result<FillResult> {
        let mut bytes = 0;
        for _ in 0..STRETCHES_PER_SLICE {
            let Some(chunk) = self.rest.take().map_or_else(|| self.log.read(), |rest| Ok(Some(rest)))? else {
                return Ok(FillResult::CaughtUp);
            };
            let added = add(&chunk);
            if added.extent == Consumed::SliceOver {
                self.rest = Some(chunk);
                return Ok(FillResult::Midway);
            }
            if added.has_undecided {
                self.undecided = Some(chunk.clone());
            }
            if added.extent == Consumed::Full {
                self.rest = Some(chunk);
                return Ok(FillResult::Full);
            }
            bytes += chunk.bytes().len();
            if added.has_undecided || added.is_slice_over || bytes >= BYTES_PER_SLICE {
                break;
            }
        }
        Ok(FillResult::Pause)
    }

    /// Whether everything that is durable was read.
    pub(crate) fn has_ended(&self) -> bool {
        self.log.next() > self.log.durable()
    }
}

/// The records of a chunk at these sequences, which ascend.
pub(crate) fn records_at<'s>(chunk: &'s LogChunk, sequences: &[u64]) -> Vec<(u64, JournalRecord<'s>)> {
    chunk.records().filter(|(at, _)| sequences.binary_search(at).is_ok()).collect()
}
