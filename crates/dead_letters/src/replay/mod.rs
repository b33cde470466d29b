//! Replays and drops a sink's dead letters, one command at a time.
//!
//! A replay is a separate lane, `SINK/replay`: it does not move the cursors of the sink's other lanes. Its positions
//! say nothing of the events: each batch begins after the store's cursor. Two things make a repetition harmless. One is
//! the id, if the store keeps each id once. The other is the cursor, if the store keeps one: the numbers of a batch are
//! durable before it is sent ([`intent_log`]). A replay of a dead letter has these steps:
//!
//! 1. It reads the dead letter. It skips those that their lane has not passed: the lane still decides about them.
//! 2. It records the number durably, if the store keeps a cursor. The store writes the event under its old id, and
//!    commits.
//! 3. *Stored:* it appends the dead letter's end to the journal of dead letters, and fsyncs it. *Rejected:* if the
//!    reason has changed, it appends the dead letter again, and fsyncs it.
//! 4. The ledger moves the event from dead to stored, in the same step: no other task runs in between.
//! 5. The checkpointer saves the ledger, with the position in the journal of dead letters up to which it is counted.
//! 6. When both generations of the saved ledger have counted the end, and the event's own segment is freed, the dead
//!    letter's segment is freed.
//!
//! A SIGKILL or a power cut
//!
//! * before 2 is complete changes nothing;
//! * between 2 and 3 leaves the event in the store, and the dead letter held and counted as dead. The next replay finds
//!   its number below the store's cursor, and ends it. A store without a cursor gets it again, finds the event under
//!   its id and answers *stored*. If the operator drops it instead, it stays counted as dead;
//! * during 3 leaves the end complete or absent: as before, or as after;
//! * between 3 and 5 leaves an end that the saved ledger has not counted. If the lane's saved cursor has passed the
//!   event, opening the journal counts it. If not, the lane reads the event again, finds no held dead letter, and
//!   counts it as stored, because the store's cursor has passed it;
//! * between 5 and 6 leaves one generation that has not counted the end. If the other is damaged, the case above
//!   applies.
//!
//! A store may fail over to a server that has less ([`tracker`]). It is asked for its cursor of this lane until the
//! failover window has passed, and before each further replay. What it has lost becomes a dead letter again, and is
//! replayed.
//!
//! A drop is 3, 5 and 6 with another kind of end; the event stays counted as dead, and its lane never sends it again.

mod claim;
mod command;
mod failover;
mod intent_log;
mod outcome;
mod progress;
mod sent;
mod tracker;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use event::{Lane, Origin};
use eventlog::{JournalRecord, LogChunk};
use ledger::{Ledger, SinkName};
use sink::{Claim, RejectedRecord, Sink, SinkError, WriteOutcome, judge_unclear};
use text::OperatorCommand;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use crate::DeadLetters;
use crate::dead_record::{DeadRecord, RecordKind};
use crate::page::{Numbered, Page};
use crate::reader::DeadLetterReader;
use crate::repeatable::Repeatable;
use crate::replay::intent_log::ReplayIntent;
use crate::replay::tracker::ReplayTracker;

pub(crate) use command::DeadCommand;
pub use outcome::{DeadAction, DeadOutcome};
pub use progress::DeadProgress;

/// Commands that may wait for a sink's replayer.
const COMMANDS_MAX: usize = 16;

/// A sink as it is configured now.
#[derive(Clone)]
pub struct ReplaySink {
    /// Its driver.
    pub sink: Sink,
    /// Whether its store accepts single events; a store of whole objects does not.
    pub takes_single_events: bool,
}

/// The sink as it is configured now; `None` if it is not. Clones share it.
#[derive(Clone, Default)]
pub struct SinkHandle(Arc<Mutex<Option<ReplaySink>>>);

impl SinkHandle {
    fn lock(&self) -> MutexGuard<'_, Option<ReplaySink>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self) -> Option<ReplaySink> {
        self.lock().clone()
    }

    /// Whether the store recognises events that it has.
    pub(crate) fn repeatable(&self) -> Repeatable {
        let capabilities = self.get().map(|configured| configured.sink.capabilities());
        let is_once = capabilities.is_some_and(|known| known.fenced || known.recognises_ids);
        if is_once { Repeatable::Once } else { Repeatable::Again }
    }

    /// Whether the sink is in the configuration.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        self.lock().is_some()
    }

    /// Sets the sink's configuration; `None` if it is not configured.
    pub fn set(&self, sink: Option<ReplaySink>) {
        *self.lock() = sink;
    }
}

/// Works on the dead letters of one sink.
pub struct Replayer {
    dead: Arc<DeadLetters>,
    sink: SinkHandle,
    lane: Lane,
    /// This process's claim on the lane.
    claim: Claim,
    ledger: Arc<Ledger>,
    commands: mpsc::Receiver<DeadCommand>,
    stop: watch::Receiver<bool>,
    /// What was sent last, if its outcome is unknown.
    attempt: ReplayIntent,
    /// What was replayed and may still be lost.
    watch: ReplayTracker,
    /// When to ask the store for it.
    probe_at: Option<Instant>,
}

/// The dead letters of one sink, and the queue of the replayer that handles them.
pub struct SinkQueue {
    /// Its dead letters.
    pub dead: Arc<DeadLetters>,
    /// The sink that they are sent to.
    pub sink: SinkHandle,
    pub(crate) commands: mpsc::Sender<DeadCommand>,
}

/// A replayer for the sink of `dead`, and the queue of its commands.
pub fn replayer(
    dead: &Arc<DeadLetters>,
    (origin, claim): (Origin, Claim),
    ledger: Arc<Ledger>,
    stop: watch::Receiver<bool>,
) -> (Replayer, SinkQueue) {
    let (sender, commands) = mpsc::channel(COMMANDS_MAX);
    let queue = SinkQueue { dead: dead.clone(), sink: SinkHandle::default(), commands: sender };
    // No configured sink has a slash in its name.
    let lane = Lane { origin, shard: 0, sink: format!("{}/replay", dead.sink()).into() };
    let (attempt, watch) = (ReplayIntent::default(), ReplayTracker::default());
    let (dead, sink) = (dead.clone(), queue.sink.clone());
    (Replayer { dead, sink, lane, claim, ledger, commands, stop, attempt, watch, probe_at: None }, queue)
}

impl Replayer {
    /// Handles one command after the other until it is stopped. In between it checks what may be lost.
    pub async fn run(mut self) {
        loop {
            let command = tokio::select! {
                biased;
                command = self.commands.recv() => Some(command),
                () = sleep_until(self.probe_at.unwrap_or_else(Instant::now)), if self.probe_at.is_some() => None,
                Ok(()) = self.stop.changed() => return,
            };
            match command {
                Some(Some(command)) => self.take(command).await,
                Some(None) => return,
                None => self.probe().await,
            }
            self.plan();
            if *self.stop.borrow() {
                return;
            }
        }
    }

    async fn take(&mut self, command: DeadCommand) {
        let mut outcome = DeadOutcome::none(self.dead.sink().clone());
        outcome.failure = self.work(&command, &mut outcome).await.err();
        command.progress.publish(&outcome);
        // The caller may have gone; the work is done anyway.
        let _ = command.reply.send(outcome);
        self.resend_lost().await;
    }

    async fn work(&mut self, command: &DeadCommand, outcome: &mut DeadOutcome) -> Result<(), String> {
        // Dead letters that are rejected again are appended after the end of this pass, so each is sent once.
        let Some(mut reading) = DeadLetterReader::begin(&self.dead).map_err(|error| error.to_string())? else {
            return Ok(());
        };
        reading.end_at(command.until);
        let mut room = command.limit;
        let mut page = Page::default();
        loop {
            command.progress.check()?;
            let read = reading.read().map_err(|error| {
                format!("can't read the journal of dead letters: {error}. Check the disk of the data directory")
            })?;
            let Some(chunk) = read else { break };
            // The store may be slow, or many dead letters may not match: yield to other tasks.
            tokio::task::yield_now().await;
            if *self.stop.borrow() {
                return Err("Forebay is stopping".into());
            }
            self.gather(&reading, chunk, command, &mut page, &mut room, outcome);
            if room == 0 {
                break;
            }
            if page.is_full(self.dead.memory()) && !matches!(command.action, DeadAction::Edit(_)) {
                self.handle(&command.action, std::mem::take(&mut page), outcome).await?;
                command.progress.publish(outcome);
            }
        }
        self.handle(&command.action, page, outcome).await
    }

    /// Adds the matching dead letters of a chunk to the page.
    fn gather(
        &self,
        reading: &DeadLetterReader,
        chunk: LogChunk,
        command: &DeadCommand,
        page: &mut Page,
        room: &mut u64,
        outcome: &mut DeadOutcome,
    ) {
        let before = page.positions.len();
        for (at, record) in reading.held_in(&chunk, &command.filter) {
            if *room == 0 {
                break;
            }
            if command.action == DeadAction::Replay && !self.lane_has_passed(&record) {
                outcome.left += 1;
                continue;
            }
            *room -= 1;
            page.positions.push(at);
            page.payload_bytes += record.event.payload.len();
        }
        if page.positions.len() > before {
            page.held_bytes += chunk.bytes().len();
            page.chunks.push(chunk);
        }
    }

    fn lane_has_passed(&self, record: &DeadRecord<'_>) -> bool {
        self.ledger.has_passed(self.dead.sink(), record.shard, record.sequence)
    }

    async fn handle(&mut self, action: &DeadAction, page: Page, outcome: &mut DeadOutcome) -> Result<(), String> {
        if page.positions.is_empty() {
            return Ok(());
        }
        match action {
            DeadAction::Replay => self.replay(page, outcome).await,
            DeadAction::Drop => {
                let records = page.records(&page.positions);
                self.dead.end_held(&records, RecordKind::Dropped).map_err(|error| error.to_string())?;
                outcome.dropped += records.len() as u64;
                self.dead.counters.dropped.add(records.len() as u64);
                Ok(())
            }
            DeadAction::Edit(payload) => self.edit(&page, payload, outcome),
        }
    }

    /// Writes the dead letter again, with another payload: the last record counts. It runs between two commands, so no
    /// replay uses the old payload at the same time.
    fn edit(&self, page: &Page, payload: &[u8], outcome: &mut DeadOutcome) -> Result<(), String> {
        let records = page.records(&page.positions);
        let [record] = records.as_slice() else {
            return Err(
                "several dead letters of this sink match: choose one by its time of receipt or its reason".into()
            );
        };
        let event = JournalRecord { payload, ..record.event };
        self.dead.amend(&[DeadRecord { event, ..*record }]).map_err(|error| error.to_string())?;
        outcome.edited += 1;
        Ok(())
    }

    async fn replay(&mut self, mut page: Page, outcome: &mut DeadOutcome) -> Result<(), String> {
        let sink = self.sink.get().ok_or("the sink is no longer configured: its dead letters can only be dropped")?;
        let ReplaySink { sink, takes_single_events } = sink;
        if !takes_single_events {
            return Err(no_replay(self.dead.sink()));
        }
        let failed = |error: SinkError| error.to_string();
        sink.connect().await.map_err(failed)?;
        let Some(mut cursor) = self.claim_cursor(&sink).await? else {
            let part = page.positions.iter().copied().zip(1..).collect();
            return self.send(&sink, &page, (0, part), outcome).await;
        };
        self.watch.contacted(cursor, sink.capabilities().settle);
        if self.watch.has_lost() {
            // These first: their numbers are below those of what is sent now.
            self.resend_lost_first().await;
            let Some(now) = self.claim_cursor(&sink).await? else { return Ok(()) };
            cursor = now;
        }
        if self.watch.has_lost() {
            return Err("events of earlier replays that the store has lost must be resent first, and could not be: \
                        retry when the store is available"
                .into());
        }
        let cursor = self.finish(&sink, cursor, &mut page, outcome).await?;
        let part = Self::numbered(&page, cursor);
        self.send(&sink, &page, (cursor, part), outcome).await
    }

    /// Sends dead letters under these numbers, which follow `cursor`, until the store has all that it accepts.
    async fn send(
        &mut self,
        sink: &Sink,
        page: &Page,
        (cursor, mut part): (u64, Vec<Numbered>),
        outcome: &mut DeadOutcome,
    ) -> Result<(), String> {
        let is_fenced = sink.capabilities().fenced;
        while !part.is_empty() {
            if is_fenced {
                self.note(page, &part)?;
            }
            let batch = page.batch((&self.lane, self.claim), cursor, &part);
            match sink.write(&batch).await.map_err(|error| error.to_string())? {
                WriteOutcome::Committed => {
                    let positions: Vec<u64> = part.iter().map(|(at, _)| *at).collect();
                    self.watch_stored(part);
                    self.record_stored(page, &positions, outcome)?;
                    self.clear_attempt();
                    return Ok(());
                }
                WriteOutcome::Rejected { refused } if refused.is_empty() => {
                    return Err("BUG: the sink rejected a batch without naming a record. Report this".into());
                }
                WriteOutcome::Rejected { refused } => {
                    self.record_rejections(page, &part, &refused, outcome)?;
                    part = without(&part, &refused.iter().map(|refusal| refusal.index).collect::<Vec<_>>());
                }
                WriteOutcome::Partial { refused, retry } => {
                    // They stay dead letters in both cases: show the newest reason.
                    let (refused, retry) = judge_unclear(refused, retry, true);
                    self.record_rejections(page, &part, &refused, outcome)?;
                    outcome.left += retry.len() as u64;
                    let mut out: Vec<usize> = refused.iter().map(|refusal| refusal.index).collect();
                    out.extend(retry.iter().map(|retry| retry.index));
                    out.sort_unstable();
                    let stored: Vec<u64> = without(&part, &out).into_iter().map(|(at, _)| at).collect();
                    return self.record_stored(page, &stored, outcome);
                }
            }
        }
        self.clear_attempt();
        Ok(())
    }

    /// The store has the events of these dead letters: ends them. A dead letter stays if its lane has gone back because
    /// its store was replaced: the lane counts it as a dead letter already.
    fn record_stored(&self, page: &Page, positions: &[u64], outcome: &mut DeadOutcome) -> Result<(), String> {
        let mut records = page.records(positions);
        let all = records.len();
        records.retain(|record| self.lane_has_passed(record));
        self.dead.end_held(&records, RecordKind::Replayed).map_err(|error| error.to_string())?;
        outcome.stored += records.len() as u64;
        outcome.left += (all - records.len()) as u64;
        self.dead.counters.replayed.add(records.len() as u64);
        Ok(())
    }

    /// The store rejects these again: records its reasons if they have changed.
    fn record_rejections(
        &self,
        page: &Page,
        part: &[Numbered],
        refused: &[RejectedRecord],
        outcome: &mut DeadOutcome,
    ) -> Result<(), String> {
        let with_reason = |refusal: &RejectedRecord| Some((part.get(refusal.index)?.0, refusal.reason.clone()));
        let reasons: Vec<_> = refused.iter().filter_map(with_reason).collect();
        let positions: Vec<u64> = reasons.iter().map(|(at, _)| *at).collect();
        let records = page.records(&positions);
        let amended: Vec<DeadRecord<'_>> = records
            .into_iter()
            .zip(&reasons)
            .filter(|(record, (_, reason))| *record.reason != **reason)
            .map(|(record, (_, reason))| DeadRecord { reason, ..record })
            .collect();
        self.dead.amend(&amended).map_err(|error| error.to_string())?;
        outcome.refused += refused.len() as u64;
        self.dead.counters.refused_again.add(refused.len() as u64);
        Ok(())
    }
}

/// `part` without the entries at the indices `out`, which ascend.
fn without(part: &[Numbered], out: &[usize]) -> Vec<Numbered> {
    let kept = part.iter().enumerate().filter(|(index, _)| out.binary_search(index).is_err());
    kept.map(|(_, record)| *record).collect()
}

/// Why dead letters of a sink cannot be sent to its present store.
fn no_replay(sink: &SinkName) -> String {
    format!(
        "sink {sink} stores objects, to which single events can't be added. Post the payload ({} prints it) as a new \
         event and drop the dead letter, or configure the sink's earlier store again and replay",
        OperatorCommand::DeadShow(sink)
    )
}
