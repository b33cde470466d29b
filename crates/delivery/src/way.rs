//! Where a lane reads in the log, a few stretches at a time.

use std::io;

use eventlog::{LaneReader, Stretch};

/// Stretches of the log that are read in one go before other lanes have their turn.
const STRETCHES_A_TURN: usize = 64;

/// How far a batch was filled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    Full,
    CaughtUp,
    /// There is more to read, but others should have their turn.
    Pause,
}

/// A lane's place in the log since it took it.
pub(crate) struct Way {
    pub(crate) reader: LaneReader,
    /// Read, and not yet taken in as a whole.
    pub(crate) rest: Option<Stretch>,
    /// The last attempt to read has failed.
    pub(crate) unreadable: bool,
}

impl Way {
    pub(crate) const fn new(reader: LaneReader) -> Self {
        Self { reader, rest: None, unreadable: false }
    }

    /// Reads on, until `add` says that there is no room for all of a stretch.
    pub(crate) fn fill(&mut self, mut add: impl FnMut(&Stretch) -> bool) -> io::Result<Fill> {
        for _ in 0..STRETCHES_A_TURN {
            let Some(stretch) = self.rest.take().map_or_else(|| self.reader.read(), |rest| Ok(Some(rest)))? else {
                return Ok(Fill::CaughtUp);
            };
            if !add(&stretch) {
                self.rest = Some(stretch);
                return Ok(Fill::Full);
            }
        }
        Ok(Fill::Pause)
    }

    /// Whether everything that is durable was read.
    pub(crate) fn has_ended(&self) -> bool {
        self.reader.next() > self.reader.durable()
    }
}
