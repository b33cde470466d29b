//! One shard's log. Requests append; the runtime's turn ends and their block is committed; they go on.
//!
//! The committer is owned by whoever commits: as a rule the shard's own thread, inline at the end of its turn,
//! which is the quickest where an fdatasync takes less than a millisecond. A large block, and any on a slower disk, is handed
//! to a thread, so that the shard's loop goes on meanwhile and stays able to refuse what it can't take.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use event::Position;
use event::limits::BLOCK_BYTES_MAX;
use journal::{Appender, Block, CommitError, Committer, OpenBlock, OpenShard, Record, Records, Segments};

use crate::accepted::Accepted;
use crate::commit_pace::CommitPace;
use crate::commit_thread::{CommitThread, Job};
use crate::duplicates::{Batch, Meeting, Memory, Met, Place};
use crate::handover::Handover;
use crate::lane::LaneReader;
use crate::log::Failure;
use crate::returned::Returned;
use crate::room::Room;
use crate::shard_counters::ShardCounters;
use crate::taken::Taken;
use crate::turn::{Fate, Turn, TurnFate};
use crate::type_registry::TypeId;
use clock::unix_microseconds;

/// Why an event isn't durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// Too much waits to be committed; nothing was appended.
    #[error("too much waits for the disk; try again")]
    Busy,
    /// The disk is full, or has no more left than delivery needs; nothing was stored.
    #[error("the disk is full; send the event again when there is space")]
    NoSpace,
    /// The journal failed. Whether the event survives is known after the next start; a repeat with the same key is
    /// safe.
    #[error("the journal failed; the server is about to restart")]
    Failed,
}

/// What the shards of a log share.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) accepted: Arc<Accepted>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) room: Arc<Room>,
    pub(crate) budgets: event::memory::Budgets,
}

/// A shard's log: a gateway appends to it, lanes read from it.
pub struct Shard {
    number: u16,
    inline_commit_max: Duration,
    head: Mutex<Head>,
    committer_returned: Condvar,
    returned: Returned,
    handover: Handover,
    recovered: u64,
    segments: Segments,
    pub(crate) common: Common,
    /// The last sequence with which an id of a client was remembered, or a later one.
    last_given: AtomicU64,
    failed: AtomicBool,
    counters: ShardCounters,
    failure: Failure,
}

struct Head {
    appender: Appender,
    /// `None` while the commit thread has it, and after the shard was closed.
    committer: Option<Committer>,
    open: Turn,
    /// The turn that the commit thread is at.
    away: Option<Turn>,
    thread: Option<CommitThread>,
    pace: CommitPace,
    failed: bool,
}

impl Shard {
    pub(crate) fn new(
        number: u16,
        opened: OpenShard,
        inline_commit_max: Duration,
        common: Common,
        failure: Failure,
    ) -> Arc<Self> {
        let head = Head {
            appender: opened.appender,
            committer: Some(opened.committer),
            open: Turn::default(),
            away: None,
            thread: None,
            pace: CommitPace::default(),
            failed: false,
        };
        Arc::new(Self {
            number,
            inline_commit_max,
            head: Mutex::new(head),
            committer_returned: Condvar::new(),
            returned: Returned::default(),
            handover: Handover::new(opened.durable, common.budgets.handover_bytes),
            recovered: opened.durable,
            segments: opened.segments,
            common,
            last_given: AtomicU64::new(opened.durable),
            failed: AtomicBool::new(false),
            counters: ShardCounters::new(),
            failure,
        })
    }

    fn head(&self) -> MutexGuard<'_, Head> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The shard's number.
    #[must_use]
    pub const fn number(&self) -> u16 {
        self.number
    }

    /// The last durable sequence, 0 if there is none.
    #[must_use]
    pub fn durable(&self) -> u64 {
        self.handover.durable()
    }

    /// What was durable when the log was opened: no store can have more of an earlier process.
    #[must_use]
    pub const fn recovered(&self) -> u64 {
        self.recovered
    }

    /// The shard's segments: to free them, and to read what delivery has passed.
    #[must_use]
    pub const fn segments(&self) -> &Segments {
        &self.segments
    }

    /// What the shard has done.
    #[must_use]
    pub const fn counters(&self) -> &ShardCounters {
        &self.counters
    }

    /// Bytes of blocks that are kept in memory for delivery.
    #[must_use]
    pub fn handover_bytes(&self) -> usize {
        self.handover.bytes()
    }

    /// Whether events are refused because the disk has too little left.
    #[must_use]
    pub fn is_short_of_space(&self) -> bool {
        self.common.room.is_short()
    }

    /// Whether an id of a client may stand behind `sequence`.
    pub(crate) fn has_given_behind(&self, sequence: u64) -> bool {
        self.last_given.load(Ordering::Relaxed) > sequence
    }

    /// Whether the journal has failed: what isn't durable won't be.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    pub(crate) const fn handover(&self) -> &Handover {
        &self.handover
    }

    /// A reader that begins behind sequence `after`.
    #[must_use]
    pub fn lane(self: &Arc<Self>, after: u64) -> LaneReader {
        LaneReader::new(self.clone(), after)
    }

    /// Appends a request's only event; the future is done when it is durable. What was appended is committed even
    /// if the future is dropped.
    ///
    /// # Errors
    /// [`AppendError`]: the event was not appended.
    pub fn append_one(self: &Arc<Self>, record: &Record<'_>, type_id: TypeId) -> Result<Taken<'_>, AppendError> {
        self.refuse_where_space_is_short()?;
        self.append_with(record.payload.len(), |head| {
            if let Some(content) = record.content {
                self.meeting(head).event(record.id, content)?;
            }
            head.open.counts.count(type_id, 1);
            Ok((head.appender.push(record), 1))
        })
    }

    /// Appends all events of a batch, which then survive together or not at all.
    ///
    /// # Errors
    /// [`AppendError`]: nothing was appended.
    pub fn append(self: &Arc<Self>, batch: &mut Batch) -> Result<Taken<'_>, AppendError> {
        self.refuse_where_space_is_short()?;
        let mut has_forgotten = false;
        let taken = self.append_with(batch.records.bytes(), |head| {
            if batch.may_have_come_before() {
                let mut meeting = self.meeting(head);
                let met = meeting.batch(batch);
                has_forgotten = meeting.has_forgotten;
                met?;
            }
            batch.types.iter().for_each(|(id, events)| head.open.counts.count(*id, *events));
            Ok((head.appender.append(&batch.records), u64::from(batch.records.len())))
        });
        if has_forgotten {
            self.handover.settled_without_a_block();
        }
        taken
    }

    /// Appends what was made of events that are in the log: results of aggregates and ticks, whose ids nobody gave. They are
    /// taken also where the disk has no more left than delivery needs, since no segment is freed before they are stored.
    ///
    /// # Errors
    /// [`AppendError`]: nothing was appended.
    pub fn append_derived(
        self: &Arc<Self>,
        records: &Records,
        types: &[(TypeId, u64)],
    ) -> Result<Append<'_>, AppendError> {
        let taken = self.append_with(records.bytes(), |head| {
            types.iter().for_each(|(id, events)| head.open.counts.count(*id, *events));
            Ok((head.appender.append_needed(records), u64::from(records.len())))
        })?;
        Ok(taken.appended().expect("what has no id that was given can't have come before"))
    }

    fn refuse_where_space_is_short(&self) -> Result<(), AppendError> {
        if self.is_short_of_space() { Err(AppendError::NoSpace) } else { Ok(()) }
    }

    fn append_with(
        self: &Arc<Self>,
        bytes: usize,
        add: impl FnOnce(&mut Head) -> Result<(u64, u64), Met>,
    ) -> Result<Taken<'_>, AppendError> {
        let mut head = self.head();
        if head.failed {
            return Err(AppendError::Failed);
        }
        let mut settled = None;
        if head.appender.open_block().padded_bytes() + bytes > BLOCK_BYTES_MAX && !head.appender.open_block().is_empty()
        {
            settled = Some(self.commit_now(&mut head).ok_or(AppendError::Busy)?);
        }
        let added = add(&mut head);
        head.open.records += added.as_ref().map_or(0, |(_, count)| *count);
        let fate = head.open.fate();
        let full = head.appender.open_block().padded_bytes() >= self.common.budgets.turn_bytes;
        let settled_too = if full { self.commit(&mut head) } else { None };
        drop(head);
        settled.into_iter().chain(settled_too).for_each(Turn::wake);
        Ok(match added {
            Ok((first, _)) => Taken::New(Append { shard: self, fate, first }),
            Err(met) => met.into(),
        })
    }

    /// Whoever is appended next meets those that came before.
    fn meeting<'h>(&'h self, head: &'h mut Head) -> Meeting<'h> {
        let place = Place::new(self.number, head.appender.open_block().end());
        self.last_given.store(place.position().sequence, Ordering::Relaxed);
        Meeting::new(&self.common.memory, &mut head.open.given, place)
    }

    /// Commits what was appended in this turn. To be called when the shard's runtime has nothing else to do.
    pub fn end_of_turn(self: &Arc<Self>) {
        let mut head = self.head();
        if head.open.records == 0 || head.committer.is_none() {
            return;
        }
        let settled = self.commit(&mut head);
        drop(head);
        settled.into_iter().for_each(Turn::wake);
    }

    /// Commits the open block, here or on the thread; `None` where nothing was committed yet.
    fn commit(self: &Arc<Self>, head: &mut Head) -> Option<Turn> {
        let block_bytes = head.appender.open_block().padded_bytes();
        let is_slow = head.pace.is_slow(block_bytes, self.inline_commit_max);
        if is_slow { self.send_away(head) } else { self.commit_now(head) }
    }

    /// Commits the open block on this thread; `None` where the commit thread has the committer.
    fn commit_now(&self, head: &mut Head) -> Option<Turn> {
        let mut committer = head.committer.take()?;
        let (block, turn) = head.take_open();
        let first = block.first();
        let (result, elapsed) = timed_commit(&mut committer, block);
        head.committer = Some(committer);
        self.finish(head, &turn, first, result, elapsed);
        Some(turn)
    }

    /// Hands the open block to the commit thread, or commits here where there can be no thread.
    fn send_away(self: &Arc<Self>, head: &mut Head) -> Option<Turn> {
        if head.thread.is_none() {
            head.thread = CommitThread::start(self).ok();
        }
        let Some(thread) = head.thread.clone() else { return self.commit_now(head) };
        let job = head.take_job()?;
        thread.send(job);
        None
    }

    /// Runs on the commit thread: commits, and goes on with what was appended meanwhile.
    pub(crate) fn commit_away(&self, job: Job) {
        let mut next = Some(job);
        while let Some(Job { mut committer, block }) = next.take() {
            let first = block.first();
            let (result, elapsed) = timed_commit(&mut committer, block);
            let mut head = self.head();
            head.committer = Some(committer);
            self.counters.commits_away.add(1);
            let turn = head.away.take().unwrap_or_default();
            self.finish(&mut head, &turn, first, result, elapsed);
            next = if head.open.records > 0 { head.take_job() } else { None };
            drop(head);
            self.returned.hand_back(turn);
        }
        self.committer_returned.notify_all();
    }

    /// Lets the requests of commits that the thread made go on, from the shard's own thread: to be run there as a
    /// task for as long as the shard takes requests. Waking them from the commit thread would cost a system call each.
    pub async fn wake_returned(&self) {
        self.returned.wake().await;
    }

    fn finish(&self, head: &mut Head, turn: &Turn, first: u64, result: Result<Block, CommitError>, elapsed: Duration) {
        head.pace.learn(result.as_ref().ok().map(|block| block.bytes().len()), elapsed);
        turn.decide(match result {
            Ok(block) => {
                self.counters.commit_time.record(elapsed);
                self.counters.commits.add(1);
                self.counters.records.add(turn.records);
                self.counters.commit_bytes.record(block.bytes().len() as u64);
                self.common.accepted.add(self.number, block.header().end() - 1, &turn.counts);
                self.handover.publish(block);
                Fate::Durable
            }
            Err(CommitError::NoSpace { .. }) => {
                self.counters.commits_refused.add(1);
                // Before the sequences are given to others: who meets an id believes that its place is its own.
                self.common.memory.forget(&turn.given);
                self.common.memory.forget(&head.open.given);
                head.give_back(first);
                self.handover.settled_without_a_block();
                Fate::NoSpace
            }
            Err(error) => {
                head.failed = true;
                self.failed.store(true, Ordering::Relaxed);
                self.handover.settled_without_a_block();
                self.failure.report(&error);
                Fate::Failed
            }
        });
    }

    fn wait(&self, fate: &Arc<TurnFate>, context: &Context<'_>) -> Fate {
        let mut head = self.head();
        let now = fate.get();
        if now == Fate::Pending {
            let turn = if head.open.has(fate) { Some(&mut head.open) } else { head.away.as_mut() };
            if let Some(turn) = turn {
                turn.wait(context.waker());
            }
        }
        now
    }

    /// Waits while the disk has a block to write and the next one is as large as one should be, so that with a slow disk batches wait as
    /// they are, and no block grows to all that is in flight. To be called before `bytes` of records are appended.
    pub async fn ready_for(&self, bytes: usize) {
        poll_fn(|context| {
            let mut head = self.head();
            let open = head.appender.open_block();
            let has_room = open.is_empty() || open.padded_bytes() + bytes <= self.common.budgets.turn_bytes;
            match &mut head.away {
                Some(away) if !has_room => {
                    away.wait(context.waker());
                    Poll::Pending
                }
                _ => Poll::Ready(()),
            }
        })
        .await
    }

    /// Waits until everything that is appended now is durable, or never will be.
    pub async fn settled(&self) {
        let last = self.head().appender.open_block().end() - 1;
        let ask = || {
            let head = self.head();
            let durable = self.durable();
            let none_is_left = head.appender.open_block().end() - 1 <= durable;
            (durable >= last || none_is_left || head.failed).then_some(())
        };
        self.handover.until(ask).await;
    }

    /// Commits what is open and writes the seal. Nothing can be appended afterwards.
    ///
    /// # Errors
    /// What the commit says; what was acknowledged before is durable all the same.
    pub fn close(&self) -> Result<(), CommitError> {
        let mut head = self.head();
        while head.away.is_some() {
            head = self.committer_returned.wait(head).unwrap_or_else(PoisonError::into_inner);
        }
        let settled = if head.open.records > 0 { self.commit_now(&mut head) } else { None };
        head.failed = true;
        head.thread = None;
        let next = head.appender.open_block().first();
        let committer = head.committer.take();
        drop(head);
        if let Some(turn) = settled {
            turn.wake();
        }
        committer.map_or(Ok(()), |committer| committer.seal(next, unix_microseconds()))
    }
}

impl Head {
    fn take_open(&mut self) -> (OpenBlock, Turn) {
        let next = Turn::after(&self.open);
        (self.appender.take(), std::mem::replace(&mut self.open, next))
    }

    fn take_job(&mut self) -> Option<Job> {
        let committer = self.committer.take()?;
        let (block, turn) = self.take_open();
        self.away = Some(turn);
        Some(Job { committer, block })
    }

    /// A block that begins at `first` could not be written: its sequences, and those of what was appended behind
    /// it meanwhile, are given out again. The latter's requests fail with it.
    fn give_back(&mut self, first: u64) {
        self.appender.rewind(first);
        let behind = std::mem::take(&mut self.open);
        behind.decide(Fate::NoSpace);
        behind.wake();
    }
}

fn timed_commit(committer: &mut Committer, block: OpenBlock) -> (Result<Block, CommitError>, Duration) {
    let start = Instant::now();
    let result = committer.commit(block, unix_microseconds());
    (result, start.elapsed())
}

/// Waits until what was appended is durable.
pub struct Append<'a> {
    shard: &'a Shard,
    fate: Arc<TurnFate>,
    first: u64,
}

impl Append<'_> {
    /// Where the request's first event stands, if it becomes durable.
    #[must_use]
    pub const fn position(&self) -> Position {
        Position { shard: self.shard.number, sequence: self.first }
    }
}

impl Future for Append<'_> {
    type Output = Result<(), AppendError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let fate = match self.fate.get() {
            Fate::Pending => self.shard.wait(&self.fate, context),
            settled => settled,
        };
        match fate {
            Fate::Pending => Poll::Pending,
            Fate::Durable => Poll::Ready(Ok(())),
            Fate::NoSpace => Poll::Ready(Err(AppendError::NoSpace)),
            Fate::Failed => Poll::Ready(Err(AppendError::Failed)),
        }
    }
}
