//! The common part of both kinds of sessions: they read the log, write durably, and wait for events.

use std::io;

use dead_letters::{Blocked, NewDeadLetter};
use ledger::Undecided;
use sink::Sink;
use tokio::time::{Instant, sleep};

use crate::lane::{Lane, LaneExit};
use crate::log_cursor::{BatchReader, FillResult, records_at};
use crate::options::Options;
use crate::status::LaneState;
use crate::timer::sleep_until_opt;

/// What a lane gathers from the log since it took its position: a batch, or objects.
pub(super) trait Session {
    fn reader(&mut self) -> &mut BatchReader;

    /// Reads on, as room and time permit.
    fn fill(&mut self) -> io::Result<FillResult>;

    /// The events of the last chunk whose route condition is undecided.
    fn take_undecided(&mut self) -> Undecided;

    /// Writes what is due. Returns `false` if the log has to be read before the lane does anything else.
    async fn write_due(&mut self, lane: &mut Lane, fill: FillResult) -> Result<bool, LaneExit>;

    /// Waits for something to do.
    async fn idle(&mut self, lane: &mut Lane) -> Result<(), LaneExit>;
}

impl Lane {
    /// Reads on, to the end of a chunk even if the lane has to stop: its undecided events become dead letters before
    /// the batch is sent. `None` if the journal can't be read, after a pause.
    pub(super) async fn read_on(&mut self, session: &mut impl Session) -> Result<Option<FillResult>, LaneExit> {
        loop {
            let fill = match session.fill() {
                Ok(fill) => fill,
                Err(error) => {
                    session.reader().unreadable = true;
                    self.wait(&format!("can't read the journal: {error}. Check the disk of the data directory")).await;
                    return Ok(None);
                }
            };
            if std::mem::take(&mut session.reader().unreadable) {
                self.enter(LaneState::Delivering);
                self.backoff.reset();
            }
            if fill != FillResult::Midway {
                let undecided = session.take_undecided();
                self.dead_letter_undecided(session.reader(), &undecided).await?;
                return Ok(Some(fill));
            }
            tokio::task::yield_now().await;
        }
    }

    /// Writes events whose route condition is undecided as dead letters, durably. They may be intended for the store,
    /// and skipping them would lose them without a trace.
    async fn dead_letter_undecided(&mut self, reader: &mut BatchReader, undecided: &Undecided) -> Result<(), LaneExit> {
        let Some(chunk) = reader.undecided.take() else { return Ok(()) };
        let sequences: Vec<u64> = undecided.iter().map(|(sequence, _)| *sequence).collect();
        let records = records_at(&chunk, &sequences).into_iter().zip(undecided);
        let events: Vec<NewDeadLetter<'_>> =
            records.map(|((sequence, record), (_, reason))| NewDeadLetter { sequence, record, reason }).collect();
        self.until_written(|lane| lane.write_dead(&events)).await?;
        self.enter(LaneState::Delivering);
        Ok(())
    }

    /// Retries until the write is durable, however long it takes.
    pub(super) async fn until_written<T>(
        &mut self,
        write: impl Fn(&Self) -> Result<T, Blocked>,
    ) -> Result<T, LaneExit> {
        loop {
            let tried = write(self);
            if let Some(written) = self.unless_blocked(tried).await? {
                return Ok(written);
            }
        }
    }

    /// The value; `None` after a pause, if a retry may succeed.
    pub(super) async fn unless_blocked<T>(&mut self, tried: Result<T, Blocked>) -> Result<Option<T>, LaneExit> {
        match tried {
            Ok(value) => Ok(Some(value)),
            Err(Blocked::Retry(reason)) => {
                self.wait(&reason).await;
                Ok(None)
            }
            Err(Blocked::Stop(reason)) => Err(LaneExit::Stop(reason)),
        }
    }

    /// Waits for events, and for further ones after the first; for the time to wake up; or for a stop.
    pub(super) async fn wait_for_events(&mut self, reader: &BatchReader, wake_at: Option<Instant>) {
        let log = &reader.log;
        let events = async {
            log.ready().await;
            if log.durable() + 1 - log.next() < self.options.memory.delivery_records as u64 {
                gather(&self.options, &self.sink, self.ledger.asked(&self.name)).await;
            }
        };
        tokio::select! {
            biased;
            () = events => {}
            () = sleep_until_opt(wake_at) => {}
            Ok(()) = self.halt.changed() => {}
        }
    }
}

/// Waits for more events after the first. A batch for a writer waits longer: each batch costs both processes a request.
/// If a client waits for this lane, the wait ends immediately.
async fn gather(options: &Options, sink: &Sink, asked: impl Future<Output = ()>) {
    let Options { linger, linger_remote, .. } = *options;
    let linger = if sink.capabilities().remote { linger + linger_remote } else { linger };
    tokio::select! {
        biased;
        () = asked => {}
        () = sleep(linger) => {}
    }
}
