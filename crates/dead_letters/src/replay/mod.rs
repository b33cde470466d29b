//! Replays and drops a sink's dead letters, one order at a time.
//!
//! A replay is a lane of its own, `SINK/replay`, so that the cursors of the sink's other lanes stay what they are. Its
//! positions say nothing of the events: each batch begins behind wherever the store's cursor stands. What makes a repetition
//! harmless is the id, where the store has it once, and the cursor, where it keeps one: the numbers of a batch are durable
//! before it is sent ([`intent_log`]). Replaying a letter is this sequence:
//!
//! 1. The letter is read. Only letters that their lane has passed are taken: of the others the lane still has to say
//!    what became of them.
//! 2. Its number is noted durably, if the store keeps a cursor. The store writes the event, under its old id, and commits.
//! 3. *Stored:* the letter's end is appended to the journal of dead letters and fsynced. *Refused:* the letter is
//!    appended once more if the reason is another one, and fsynced.
//! 4. The ledger moves the event from dead to stored, in the same breath: no other task runs in between.
//! 5. The keeper saves the ledger, with the position in the journal of dead letters up to which it is counted.
//! 6. When both generations of the saved ledger have counted the end, and the event's own segment is freed, the
//!    letter's segment is freed.
//!
//! A SIGKILL or a power cut
//!
//! * before 2 has taken effect leaves everything as it was;
//! * between 2 and 3 leaves the event in the store and the letter held, and the event counted as dead. The next replay
//!   finds its number below the store's cursor, and ends it; a store without a cursor gets it again, finds the same event under
//!   its id and answers *stored*. A person who drops it instead leaves it counted as dead;
//! * during 3 leaves the end whole or not at all: as before, or as after;
//! * between 3 and 5 leaves an end that the saved ledger hasn't counted: opening the journal counts it, if the lane's
//!   saved cursor has passed the event. If it hasn't, the lane reads the event again, finds no letter that is held, and
//!   counts it as stored, for the store's cursor has passed it;
//! * between 5 and 6 leaves one generation that hasn't counted the end. Should the other be damaged, it is as above.
//!
//! A store that may fail over to a server which is behind ([`tracker`]) is asked for its cursor of this lane until
//! what was replayed has settled, and before each further replay. What it has lost is made a letter again, and replayed.
//!
//! Dropping is 3, 5 and 6 with another kind of end; the event stays counted as dead, and its lane never sends it again.

mod claim;
mod failover;
mod intent_log;
mod sent;
mod tracker;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use event::{Lane, Origin};
use eventlog::{JournalRecord, LogChunk};
use ledger::{Ledger, SinkName};
use sink::{Claim, RejectedRecord, Sink, SinkError, WriteOutcome, judge_unclear};
use text::OperatorCommand;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use crate::DeadLetters;
use crate::dead_record::{DeadRecord, RecordKind};
use crate::filter::DeadFilter;
use crate::page::{Numbered, Page};
use crate::reader::LetterReader;
use crate::replay::intent_log::ReplayIntent;
use crate::replay::tracker::ReplayTracker;

/// Orders that wait for a sink's replayer.
const ORDERS_MAX: usize = 16;

/// What is to be done with dead letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadAction {
    /// Sent to their sink again.
    Replay,
    /// Given up.
    Drop,
    /// The one letter of a sink that is meant has this payload from now on: JSON, which nothing checks any more. It keeps
    /// its id, and is still a letter.
    Edit(Arc<[u8]>),
}

/// What became of the letters of one sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadOutcome {
    /// The sink.
    pub sink: SinkName,
    /// Letters whose events the store has now.
    pub stored: u64,
    /// Letters that the store refused again: they stay, with its newest reason.
    pub refused: u64,
    /// Letters that were given up.
    pub dropped: u64,
    /// Letters that have another payload.
    pub edited: u64,
    /// Letters that stay as they were: the store takes them later, or their lane isn't done with them.
    pub left: u64,
    /// Why the work broke off, if it did. What was done until then stands.
    pub failure: Option<String>,
}

impl DeadOutcome {
    pub(super) const fn none(sink: SinkName) -> Self {
        Self { sink, stored: 0, refused: 0, dropped: 0, edited: 0, left: 0, failure: None }
    }
}

/// A command to a replayer.
pub(crate) struct DeadCommand {
    pub(crate) action: DeadAction,
    pub(crate) filter: DeadFilter,
    pub(crate) limit: u64,
    pub(crate) reply: oneshot::Sender<DeadOutcome>,
}

/// A sink as it is configured now.
#[derive(Clone)]
pub struct ReplaySink {
    /// Its driver.
    pub sink: Sink,
    /// Whether single events can be added to its store: not to one of whole objects.
    pub takes_single_events: bool,
}

/// The sink as it is configured now; none where it isn't. Clones share it.
#[derive(Clone, Default)]
pub struct SinkHandle(Arc<Mutex<Option<ReplaySink>>>);

impl SinkHandle {
    fn lock(&self) -> MutexGuard<'_, Option<ReplaySink>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self) -> Option<ReplaySink> {
        self.lock().clone()
    }

    /// Whether the sink is in the configuration.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        self.lock().is_some()
    }

    /// The sink is configured like this now, or not at all.
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
    orders: mpsc::Receiver<DeadCommand>,
    stop: watch::Receiver<bool>,
    /// What was sent last, if nobody knows what became of it.
    attempt: ReplayIntent,
    /// What was replayed and may be lost yet.
    watch: ReplayTracker,
    /// When the store is asked for it.
    probe_at: Option<Instant>,
}

/// The dead letters of one sink, and the way to the replayer that works on them.
pub struct SinkQueue {
    /// Its dead letters.
    pub dead: Arc<DeadLetters>,
    /// The sink that they are sent to.
    pub sink: SinkHandle,
    pub(crate) orders: mpsc::Sender<DeadCommand>,
}

/// A replayer for the sink of `dead`, and where its orders go.
pub fn replayer(
    dead: &Arc<DeadLetters>,
    (origin, claim): (Origin, Claim),
    ledger: Arc<Ledger>,
    stop: watch::Receiver<bool>,
) -> (Replayer, SinkQueue) {
    let (sender, orders) = mpsc::channel(ORDERS_MAX);
    let queue = SinkQueue { dead: dead.clone(), sink: SinkHandle::default(), orders: sender };
    // No configured sink has a slash in its name.
    let lane = Lane { origin, shard: 0, sink: format!("{}/replay", dead.sink()).into() };
    let (attempt, watch) = (ReplayIntent::default(), ReplayTracker::default());
    let (dead, sink) = (dead.clone(), queue.sink.clone());
    (Replayer { dead, sink, lane, claim, ledger, orders, stop, attempt, watch, probe_at: None }, queue)
}

impl Replayer {
    /// Takes one order after the other until it is told to stop, and looks after what may be lost between them.
    pub async fn run(mut self) {
        loop {
            let command = tokio::select! {
                biased;
                command = self.orders.recv() => Some(command),
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

    async fn take(&mut self, order: DeadCommand) {
        let mut outcome = DeadOutcome::none(self.dead.sink().clone());
        outcome.failure = self.work(&order, &mut outcome).await.err();
        // Whoever asked may have left: the work is done all the same.
        let _ = order.reply.send(outcome);
        self.bring_back().await;
    }

    async fn work(&mut self, order: &DeadCommand, outcome: &mut DeadOutcome) -> Result<(), String> {
        // Letters that are refused again stand behind the end of this walk, so that each is sent once.
        let Some(mut reading) = LetterReader::begin(&self.dead).map_err(|error| error.to_string())? else {
            return Ok(());
        };
        let mut room = order.limit;
        let mut page = Page::default();
        loop {
            let read = reading.read().map_err(|error| format!("can't read the journal of dead letters: {error}"))?;
            let Some(chunk) = read else { break };
            // A store that takes its time, or many letters that aren't asked for: others have their turn.
            tokio::task::yield_now().await;
            if *self.stop.borrow() {
                return Err("Forebay is stopping".into());
            }
            self.gather(&reading, chunk, order, &mut page, &mut room, outcome);
            if room == 0 {
                break;
            }
            if page.is_full(self.dead.memory()) && !matches!(order.action, DeadAction::Edit(_)) {
                self.handle(&order.action, std::mem::take(&mut page), outcome).await?;
            }
        }
        self.handle(&order.action, page, outcome).await
    }

    /// Adds the letters of a chunk that are wanted to the page.
    fn gather(
        &self,
        reading: &LetterReader,
        chunk: LogChunk,
        order: &DeadCommand,
        page: &mut Page,
        room: &mut u64,
        outcome: &mut DeadOutcome,
    ) {
        let before = page.letters.len();
        for (at, record) in reading.held_in(&chunk, &order.filter) {
            if *room == 0 {
                break;
            }
            if order.action == DeadAction::Replay && !self.lane_has_passed(&record) {
                outcome.left += 1;
                continue;
            }
            *room -= 1;
            page.letters.push(at);
            page.payload_bytes += record.event.payload.len();
        }
        if page.letters.len() > before {
            page.held_bytes += chunk.bytes().len();
            page.chunks.push(chunk);
        }
    }

    fn lane_has_passed(&self, letter: &DeadRecord<'_>) -> bool {
        self.ledger.has_passed(self.dead.sink(), letter.shard, letter.sequence)
    }

    async fn handle(&mut self, action: &DeadAction, page: Page, outcome: &mut DeadOutcome) -> Result<(), String> {
        if page.letters.is_empty() {
            return Ok(());
        }
        match action {
            DeadAction::Replay => self.replay(page, outcome).await,
            DeadAction::Drop => {
                let records = page.records(&page.letters);
                self.dead.end_letters(&records, RecordKind::Dropped).map_err(|error| error.to_string())?;
                outcome.dropped += records.len() as u64;
                self.dead.counters.dropped.add(records.len() as u64);
                Ok(())
            }
            DeadAction::Edit(payload) => self.edit(&page, payload, outcome),
        }
    }

    /// Writes the letter once more, with another payload: what stands last is the letter. Between two orders, so that no
    /// replay has the old payload in its hands meanwhile.
    fn edit(&self, page: &Page, payload: &[u8], outcome: &mut DeadOutcome) -> Result<(), String> {
        let records = page.records(&page.letters);
        let [letter] = records.as_slice() else {
            return Err("several letters of this sink fit: choose one, by the time of its receipt or its reason".into());
        };
        let event = JournalRecord { payload, ..letter.event };
        self.dead.amend(&[DeadRecord { event, ..*letter }]).map_err(|error| error.to_string())?;
        outcome.edited += 1;
        Ok(())
    }

    async fn replay(&mut self, mut page: Page, outcome: &mut DeadOutcome) -> Result<(), String> {
        let sink = self.sink.get().ok_or("the sink isn't configured any more: letters of it can only be dropped")?;
        let ReplaySink { sink, takes_single_events } = sink;
        if !takes_single_events {
            return Err(no_replay(self.dead.sink()));
        }
        let failed = |error: SinkError| error.to_string();
        sink.connect().await.map_err(failed)?;
        let Some(mut cursor) = self.claim_cursor(&sink).await? else {
            let part = page.letters.iter().copied().zip(1..).collect();
            return self.send(&sink, &page, (0, part), outcome).await;
        };
        self.watch.contacted(cursor, sink.capabilities().settle);
        if self.watch.has_lost() {
            // It comes first: its numbers lie before those of what is sent now.
            self.bring_back_first().await;
            let Some(now) = self.claim_cursor(&sink).await? else { return Ok(()) };
            cursor = now;
        }
        if self.watch.has_lost() {
            return Err("what the store has lost of earlier replays couldn't be sent again: it comes first".into());
        }
        let cursor = self.finish(&sink, cursor, &mut page, outcome).await?;
        let part = Self::numbered(&page, cursor);
        self.send(&sink, &page, (cursor, part), outcome).await
    }

    /// Sends letters under these numbers, which lie behind `cursor`, until the store has all that it takes.
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
                    let letters: Vec<u64> = part.iter().map(|(at, _)| *at).collect();
                    self.look_after(part);
                    self.record_stored(page, &letters, outcome)?;
                    self.clear_attempt();
                    return Ok(());
                }
                WriteOutcome::Rejected { refused } if refused.is_empty() => {
                    return Err("the sink withheld a batch and named no record".into());
                }
                WriteOutcome::Rejected { refused } => {
                    self.record_rejections(page, &part, &refused, outcome)?;
                    part = without(&part, &refused.iter().map(|refusal| refusal.index).collect::<Vec<_>>());
                }
                WriteOutcome::Partial { refused, retry } => {
                    // They stay dead letters either way: the newest reason is the one to show.
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

    /// The store has these letters' events: ends the letters. One whose lane has gone back meanwhile, since its store
    /// was exchanged, stays, because the lane has taken it for a dead letter already.
    fn record_stored(&self, page: &Page, letters: &[u64], outcome: &mut DeadOutcome) -> Result<(), String> {
        let mut records = page.records(letters);
        let all = records.len();
        records.retain(|record| self.lane_has_passed(record));
        self.dead.end_letters(&records, RecordKind::Replayed).map_err(|error| error.to_string())?;
        outcome.stored += records.len() as u64;
        outcome.left += (all - records.len()) as u64;
        self.dead.counters.replayed.add(records.len() as u64);
        Ok(())
    }

    /// The store refuses these again: notes its reasons where they have changed.
    fn record_rejections(
        &self,
        page: &Page,
        part: &[Numbered],
        refused: &[RejectedRecord],
        outcome: &mut DeadOutcome,
    ) -> Result<(), String> {
        let with_reason = |refusal: &RejectedRecord| Some((part.get(refusal.index)?.0, refusal.reason.clone()));
        let reasons: Vec<_> = refused.iter().filter_map(with_reason).collect();
        let letters: Vec<u64> = reasons.iter().map(|(at, _)| *at).collect();
        let records = page.records(&letters);
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

/// The letters without those at the indices `out`, which ascend.
fn without(part: &[Numbered], out: &[usize]) -> Vec<Numbered> {
    let kept = part.iter().enumerate().filter(|(index, _)| out.binary_search(index).is_err());
    kept.map(|(_, letter)| *letter).collect()
}

/// Why dead letters of a sink can't be sent to the store that it is now.
fn no_replay(sink: &SinkName) -> String {
    format!(
        "sink {sink} is a store of objects, to which single events can't be added, so its dead letters can't be sent again: post the \
         payload again as another event ({} prints it), and drop the dead letter. Letters from a store of another kind that \
         had this name before can be sent again when that one is configured under it",
        OperatorCommand::DeadShow(sink)
    )
}
