//! Live samples of events: what an operator asks for, and the thread that compares samples and writes lines. Conditions are evaluated
//! there, so no shard and no other request waits for them.

mod line;
mod log_tail;
mod query;
mod sampler;

use std::sync::Arc;

use bytes::Bytes;
use eventlog::EventLog;
use tap::{Point, Taps};
use tokio::sync::mpsc::{self, Receiver};

use log_tail::LogTail;
pub(crate) use query::TapQuery;
use sampler::Sampler;

/// Lines that wait for a client that reads slowly. Further ones are dropped, and counted.
const WAITING_MAX: usize = 64;

/// The taps of the process, and the journal of a server.
#[derive(Clone)]
pub(crate) struct Tapping {
    taps: &'static Taps,
    /// A writer has none.
    log: Option<Arc<EventLog>>,
}

impl Tapping {
    pub(crate) const fn new(taps: &'static Taps, log: Option<Arc<EventLog>>) -> Self {
        Self { taps, log }
    }

    /// Whether events pass this point in a process of this role.
    pub(crate) fn has(&self, at: Point) -> bool {
        self.log.is_some() || at == Point::Stored
    }

    /// The point of a tap that names none.
    pub(crate) const fn usual(&self) -> Point {
        if self.log.is_some() { Point::Accepted } else { Point::Stored }
    }

    /// Opens a tap. `None` if there are too many, or the process stops.
    pub(crate) fn open(&self, query: TapQuery) -> std::io::Result<Option<Receiver<Bytes>>> {
        let TapQuery { filter, condition, rate } = query;
        let accepted = self.log.as_ref().filter(|_| filter.at == Point::Accepted);
        let tail = accepted.map(|log| LogTail::new(log.shards()));
        let Some(tap) = self.taps.open(filter) else { return Ok(None) };
        let (lines, received) = mpsc::channel(WAITING_MAX);
        let sampler = Sampler::new(tap, tail, condition, rate, lines);
        std::thread::Builder::new().name("tap".into()).spawn(move || sampler.run())?;
        Ok(Some(received))
    }

    /// Ends all taps, and says whether there are any.
    pub(crate) fn end(&self) -> bool {
        self.taps.end()
    }
}
