//! The fair read loop of a lane: a few chunks of the log at a time.

use std::io;

use eventlog::{JournalRecord, LogChunk, LogReader};

/// Stretches of the log that are read in one go before other lanes have their turn, and objects that are sent.
const STRETCHES_A_TURN: usize = 64;
/// The turn is over, too, when these came to so many bytes: a millisecond or two of reading and checking.
const BYTES_A_TURN: usize = 1 << 20;

/// How far a batch was filled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FillResult {
    Full,
    CaughtUp,
    /// There is more to read, but others should have their turn.
    Pause,
    /// The same within a chunk: nothing is to be done but to go on with it.
    Midway,
}

/// How much of a chunk was taken in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consumed {
    All,
    /// What there was room for.
    Full,
    /// What there was time for.
    TurnOver,
}

impl Consumed {
    /// Has `take` say of one record after the other how far it went, as long as there is more.
    pub(crate) fn of<R>(records: impl Iterator<Item = R>, take: &mut impl FnMut(R) -> Self) -> Self {
        records.map(take).find(|extent| *extent != Self::All).unwrap_or(Self::All)
    }
}

/// What became of a chunk.
pub(crate) struct ChunkResult {
    pub(crate) extent: Consumed,
    /// Whether others should have their turn.
    pub(crate) is_turn_over: bool,
    /// Whether a route can't say of some of its events whether they are its sink's.
    pub(crate) has_undecided: bool,
}

/// A lane's place in the log since it took it.
pub(crate) struct BatchReader {
    pub(crate) log: LogReader,
    /// Read, and not yet taken in as a whole.
    pub(crate) rest: Option<LogChunk>,
    /// The one that was read last, if some of its events are undecided.
    pub(crate) undecided: Option<LogChunk>,
    /// The last attempt to read has failed.
    pub(crate) unreadable: bool,
}

impl BatchReader {
    pub(crate) const fn new(log: LogReader) -> Self {
        Self { log, rest: None, undecided: None, unreadable: false }
    }

    /// Reads on, until `add` says that there is no room for all of a chunk, that there is something doubtful in it, or that
    /// others should have their turn.
    pub(crate) fn fill(&mut self, mut add: impl FnMut(&LogChunk) -> ChunkResult) -> io::Result<FillResult> {
        let mut bytes = 0;
        for _ in 0..STRETCHES_A_TURN {
            let Some(chunk) = self.rest.take().map_or_else(|| self.log.read(), |rest| Ok(Some(rest)))? else {
                return Ok(FillResult::CaughtUp);
            };
            let took = add(&chunk);
            if took.extent == Consumed::TurnOver {
                self.rest = Some(chunk);
                return Ok(FillResult::Midway);
            }
            if took.has_undecided {
                self.undecided = Some(chunk.clone());
            }
            if took.extent == Consumed::Full {
                self.rest = Some(chunk);
                return Ok(FillResult::Full);
            }
            bytes += chunk.bytes().len();
            if took.has_undecided || took.is_turn_over || bytes >= BYTES_A_TURN {
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
