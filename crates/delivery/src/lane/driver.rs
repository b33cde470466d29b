//! The loop of a lane: it reads the log, gathers events for its kind of store, and writes them. The core decides, the driver obeys.

use std::io;

use ::objects::ObjectSink;
use aggregation::Halt;
use dead_letters::{Blocked, Letter};
use ledger::Undecided;
use sink::Sink;
use tokio::time::{Instant, sleep};

use crate::lane::core::{BatchProgress, Happened, Next, Turn, Wait, when_caught_up};
use crate::lane::{BatchSession, Lane, LaneExit};
use crate::log_cursor::{BatchReader, FillResult, records_at};
use crate::options::Options;
use crate::status::LaneState;
use crate::timer::sleep_until_opt;

/// What a lane gathers from the log since it took its place: a batch, or objects.
pub(super) trait Session {
    fn reader(&mut self) -> &mut BatchReader;

    /// Reads on, as far as there is room and time.
    fn fill(&mut self) -> io::Result<FillResult>;

    /// The events of the last chunk for which their route can't decide.
    fn take_undecided(&mut self) -> Undecided;

    /// Writes what is due. `false` if the log is to be read before the lane does anything else.
    async fn write_due(&mut self, lane: &mut Lane, fill: FillResult) -> Result<bool, LaneExit>;

    /// Waits for something to do.
    async fn idle(&mut self, lane: &mut Lane) -> Result<(), LaneExit>;
}

impl Lane {
    /// Delivers until the lane is to stop, after it has caught up if it is to.
    pub(super) async fn deliver(&mut self) -> Result<(), LaneExit> {
        match ObjectSink::of(&self.sink).cloned() {
            Some(store) => {
                let session = self.open_objects(store).await?;
                self.drive(session).await
            }
            None => {
                let session = self.open_batches().await?;
                self.drive(session).await
            }
        }
    }

    async fn drive(&mut self, mut session: impl Session) -> Result<(), LaneExit> {
        while *self.halt.borrow() != Halt::Now {
            let Some(fill) = self.read_on(&mut session).await? else { continue };
            if !session.write_due(self, fill).await? {
                continue;
            }
            match fill {
                FillResult::Full => {}
                FillResult::Pause | FillResult::Midway => tokio::task::yield_now().await,
                FillResult::CaughtUp => match self.turn(session.reader()) {
                    Turn::End => return Ok(()),
                    Turn::ReadOn => {}
                    Turn::Idle => session.idle(self).await?,
                },
            }
        }
        Ok(())
    }

    /// Reads on. `None` if the journal can't be read, after a pause, or if the lane is to stop now.
    pub(super) async fn read_on(&mut self, session: &mut impl Session) -> Result<Option<FillResult>, LaneExit> {
        while *self.halt.borrow() != Halt::Now {
            let fill = match session.fill() {
                Ok(fill) => fill,
                Err(error) => {
                    session.reader().unreadable = true;
                    self.wait(&format!("can't read the journal: {error}")).await;
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
        Ok(None)
    }

    /// Makes the events dead letters, durably, for which their route can't decide: the store may not be meant to have them, and to skip them
    /// would lose them without a trace.
    async fn dead_letter_undecided(&mut self, reader: &mut BatchReader, undecided: &Undecided) -> Result<(), LaneExit> {
        let Some(chunk) = reader.undecided.take() else { return Ok(()) };
        let sequences: Vec<u64> = undecided.iter().map(|(sequence, _)| *sequence).collect();
        let records = records_at(&chunk, &sequences).into_iter().zip(undecided);
        let letters: Vec<Letter<'_>> =
            records.map(|((sequence, record), (_, reason))| Letter { sequence, record, reason }).collect();
        self.until_written(|lane| lane.dead.write(lane.name.shard, &letters)).await?;
        self.enter(LaneState::Delivering);
        Ok(())
    }

    /// Writes the batch until each of its records has ended. `false` if a fenced store accepts none: later events may show whether the events
    /// or the store are at fault.
    pub(super) async fn write_until_ended(&mut self, run: &mut BatchSession) -> Result<bool, LaneExit> {
        let mut batch = BatchProgress::new(run.policy, run.without_dead(), run.store_at);
        let mut next = batch.send();
        loop {
            let happened = match next {
                Next::Send(part) => {
                    let answer = self.send(&part, run.store_at).await;
                    Happened::Answered(part, answer)
                }
                Next::SetAside(judgement) => {
                    let count = self.set_aside(run, &judgement).await?;
                    Happened::SetAside(judgement, count)
                }
                Next::DeadLetter(judgement) => {
                    self.write_dead_letters(run, &judgement).await?;
                    Happened::DeadLettered(judgement)
                }
                Next::Wait(wait) => {
                    let is_full = run.reader.rest.is_some();
                    self.wait_as(&run.reader, &wait, is_full).await;
                    Happened::Waited { wait, is_full }
                }
                Next::AskStore { needs_later } => {
                    let held = self.find_held().await;
                    Happened::Asked { needs_later, held, durable: self.shard.durable() }
                }
                Next::Grow => {
                    self.read_on(run).await?;
                    Happened::Grown(run.builder.batch().clone())
                }
                Next::TryNewest => Happened::TriedNewest(self.try_newest(run).await),
                Next::Advance => {
                    run.store_at = batch.store_at();
                    self.note_contact();
                    self.enter(LaneState::Delivering);
                    return Ok(true);
                }
                Next::AddLater => return Ok(false),
                Next::Moved => return Err(LaneExit::Moved),
            };
            next = batch.step(happened, run.began.elapsed());
            if batch.accepts_others() {
                self.backoff.reset();
            }
        }
    }

    /// Pauses before the next attempt, or until an event arrives that the core waits for.
    async fn wait_as(&mut self, reader: &BatchReader, wait: &Wait, is_full: bool) {
        let pause = self.begin_wait(&wait.reason);
        if wait.is_outage() {
            self.dead.outage(self.name.shard);
        }
        let ends_after_event = wait.ends_after_event(is_full, reader.has_ended());
        self.pause(pause, async {
            let Some(after) = ends_after_event else { return std::future::pending().await };
            reader.log.ready().await;
            sleep(after).await;
        })
        .await;
    }

    /// Writes until that is durable, however long it takes.
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

    fn turn(&self, reader: &BatchReader) -> Turn {
        when_caught_up(*self.halt.borrow(), reader.has_ended(), || self.dead.has_aside(self.name.shard))
    }

    /// Waits for events, and some more after the first; for the time to wake up; or for the order to stop.
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

/// Waits for more events after the first. A batch for a writer waits longer: each batch costs both processes a request. If a client waits for
/// this lane, the wait ends immediately.
async fn gather(options: &Options, sink: &Sink, asked: impl Future<Output = ()>) {
    let Options { linger, linger_remote, .. } = *options;
    let linger = if sink.capabilities().remote { linger + linger_remote } else { linger };
    tokio::select! {
        biased;
        () = asked => {}
        () = sleep(linger) => {}
    }
}
