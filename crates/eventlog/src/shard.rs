//! One shard's log: requests append, and one group commit at the end of the runtime's tick makes all of them durable.
//!
//! Usually the shard's own thread commits, inline at the end of its tick: that is the quickest if an fdatasync takes
//! less than a millisecond. A large block, and any block on a slower disk, goes to the commit thread with the
//! committer. Then the shard's loop resumes immediately and can still reject events.

use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use event::{EventId, Position};
use journal::{Block, CommitError, Committer, JournalRecord, OpenBlock, OpenShard, RecordBuffer, Segments};
use limits::BLOCK_BYTES_MAX;

use crate::accepted_counts::Accepted;
use crate::append_error::AppendError;
use crate::append_outcome::{Append, AppendOutcome};
use crate::commit_group::{CommitGroup, CommitStatus};
use crate::commit_thread::{CommitThread, Job};
use crate::committed_log::CommittedLog;
use crate::completion_queue::CompletionQueue;
use crate::dedup::{AppendBatch, BatchConflict, Conflict, DedupIndex, DedupLookup, PackedPosition};
use crate::disk_watermark::DiskGuard;
use crate::journal_failure::JournalFailure;
use crate::log_reader::LogReader;
use crate::request_range::RequestRange;
use crate::shard_counters::ShardCounters;
use crate::shard_head::{self, Head};
use crate::type_registry::TypeId;
use clock::{Throttle, unix_microseconds};

/// How often a batch is appended that depends on events which aren't durable yet. It waits for each block of others once, unless they
/// depend on it.
const BATCH_ATTEMPTS_MAX: usize = 16;

/// An fdatasync of this length is logged.
const LONG_SYNC: Duration = Duration::from_secs(1);

/// The state that all shards of a log share.
#[derive(Clone)]
pub(crate) struct SharedState {
    pub(crate) accepted: Arc<Accepted>,
    pub(crate) dedup: Arc<DedupIndex>,
    pub(crate) disk_guard: Arc<DiskGuard>,
    pub(crate) budgets: limits::memory::Budgets,
    /// When a long fdatasync is logged next.
    pub(crate) long_syncs: Arc<Mutex<Throttle>>,
}

/// A shard's log: a gateway appends to it, lanes read from it.
pub struct Shard {
    number: u16,
    inline_commit_max: Duration,
    head: Mutex<Head>,
    committer_returned: Condvar,
    completions: CompletionQueue,
    committed: Arc<CommittedLog>,
    recovered: u64,
    shared: SharedState,
    counters: ShardCounters,
    failure: JournalFailure,
}

impl Shard {
    pub(crate) fn new(
        number: u16,
        opened: OpenShard,
        inline_commit_max: Duration,
        shared: SharedState,
        failure: JournalFailure,
    ) -> Arc<Self> {
        Arc::new(Self {
            number,
            inline_commit_max,
            committed: Arc::new(CommittedLog::new(number, &opened, shared.budgets.tail_cache_bytes)),
            head: Mutex::new(Head::new(opened.appender, opened.committer)),
            committer_returned: Condvar::new(),
            completions: CompletionQueue::default(),
            recovered: opened.durable,
            shared,
            counters: ShardCounters::new(),
            failure,
        })
    }

    fn head(&self) -> MutexGuard<'_, Head> {
        shard_head::lock(&self.head)
    }

    /// The shard's number.
    #[must_use]
    pub const fn number(&self) -> u16 {
        self.number
    }

    /// The last durable sequence, 0 if there is none.
    #[must_use]
    pub fn durable(&self) -> u64 {
        self.committed.durable()
    }

    /// The last sequence that was durable when the log was opened: no store can have more from an earlier process.
    #[must_use]
    pub const fn recovered(&self) -> u64 {
        self.recovered
    }

    /// The shard's segments: to free them, and to read what delivery has advanced past.
    #[must_use]
    pub fn segments(&self) -> &Segments {
        self.committed.segments()
    }

    /// The shard's counters.
    #[must_use]
    pub const fn counters(&self) -> &ShardCounters {
        &self.counters
    }

    /// Bytes of blocks that are kept in memory for delivery.
    #[must_use]
    pub fn tail_cache_bytes(&self) -> usize {
        self.committed.tail_cache().bytes()
    }

    /// Whether events are rejected because the disk has too little space left.
    #[must_use]
    pub fn is_short_of_space(&self) -> bool {
        self.shared.disk_guard.is_short()
    }

    /// Whether the journal has failed: events that aren't durable yet won't be.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.committed.has_failed()
    }

    pub(crate) const fn committed(&self) -> &Arc<CommittedLog> {
        &self.committed
    }

    /// A reader that begins after sequence `after`.
    #[must_use]
    pub fn reader(&self, after: u64) -> LogReader {
        LogReader::new(self.committed.clone(), after)
    }

    /// The position of the event with a client's id, or of the batch with a key, if the dedup index has it: in any shard. Of a batch
    /// it is the first position.
    #[must_use]
    pub fn position_of(&self, id: EventId) -> Option<Position> {
        self.shared.dedup.window().position_of(id).map(PackedPosition::position)
    }

    /// Whether any shard has a durable event at this position, or had.
    #[must_use]
    pub fn has_durable(&self, position: Position) -> bool {
        self.shared.dedup.has(position)
    }

    /// The rest of the request that has an event at `sequence`. `None` if the log no longer has it: then each lane has
    /// advanced past it. Reads the disk: call it from a thread that may block.
    ///
    /// # Errors
    /// The file system's error.
    pub fn request_range(&self, sequence: u64) -> std::io::Result<Option<RequestRange>> {
        RequestRange::read(&self.committed, sequence)
    }

    /// Appends a request's only event; the future is done when it is durable. The event is committed even if the future is dropped.
    ///
    /// # Errors
    /// [`AppendError`]: the event was not appended.
    pub fn append_one(
        self: &Arc<Self>,
        record: &JournalRecord<'_>,
        type_id: TypeId,
    ) -> Result<AppendOutcome<'_>, AppendError> {
        self.check_space()?;
        let appended = self.append_with(record.payload.len(), |head| -> Result<_, Conflict> {
            if let Some(content) = record.content {
                self.dedup_lookup(head).event(record.id, content)?;
            }
            head.open.counts.count(type_id, 1);
            Ok((head.appender.push(record), 1))
        })?;
        Ok(appended.map_or_else(Into::into, AppendOutcome::Appended))
    }

    /// Appends the events of a batch that aren't duplicates, which then survive together or not at all. It waits while the disk has no
    /// capacity, and for originals that the batch depends on. Before they are durable, nothing of it is appended, so a rejected batch
    /// stores nothing. `check` runs immediately before each attempt: no other task of the thread runs in between.
    ///
    /// `None`: nothing is appended, because all events are duplicates, or because the batch is atomic; see the batch.
    ///
    /// # Errors
    /// Nothing was appended: the batch failed the check, or [`AppendError`].
    pub async fn append_batch<E: From<AppendError>>(
        self: &Arc<Self>,
        batch: &mut AppendBatch,
        check: impl Fn() -> Result<(), E>,
    ) -> Result<Option<AppendOutcome<'_>>, E> {
        self.wait_for_capacity(batch.records().bytes()).await;
        for _ in 0..BATCH_ATTEMPTS_MAX {
            check()?;
            match self.try_append_batch(batch)? {
                Ok(append) => return Ok(Some(AppendOutcome::Appended(append))),
                Err(BatchConflict::Whole(conflict)) => return Ok(Some(conflict.into())),
                Err(BatchConflict::Empty) => return Ok(None),
                Err(BatchConflict::Partial) => batch.index_individually(),
                // If the original is lost, the batch replaces it.
                Err(BatchConflict::Undecided(original)) => drop(original.durable().await),
            }
        }
        Err(AppendError::Busy.into())
    }

    fn try_append_batch(
        self: &Arc<Self>,
        batch: &mut AppendBatch,
    ) -> Result<Result<Append<'_>, BatchConflict>, AppendError> {
        self.check_space()?;
        let mut has_removed = false;
        let outcome = self.append_with(batch.records().bytes(), |head| {
            if batch.may_have_duplicates() {
                let mut lookup = self.dedup_lookup(head);
                let conflict = lookup.batch(batch);
                has_removed = lookup.has_removed;
                conflict?;
            }
            batch.type_counts().iter().for_each(|(id, events)| head.open.counts.count(*id, *events));
            Ok((head.appender.append(batch.records()), u64::from(batch.records().len())))
        });
        if has_removed {
            self.committed.tail_cache().notify_without_block();
        }
        outcome
    }

    /// Appends records that were derived from events in the log: results of aggregates and ticks, whose ids no client
    /// chose. They are accepted even if the disk has only the space that delivery needs, since no segment is freed
    /// before they are stored.
    ///
    /// # Errors
    /// [`AppendError`]: nothing was appended.
    pub fn append_derived(
        self: &Arc<Self>,
        records: &RecordBuffer,
        types: &[(TypeId, u64)],
    ) -> Result<Append<'_>, AppendError> {
        let Ok(append) = self.append_with(records.bytes(), |head| -> Result<_, Infallible> {
            types.iter().for_each(|(id, events)| head.open.counts.count(*id, *events));
            Ok((head.appender.append_needed(records), u64::from(records.len())))
        })?;
        Ok(append)
    }

    fn check_space(&self) -> Result<(), AppendError> {
        if self.is_short_of_space() { Err(AppendError::NoSpace) } else { Ok(()) }
    }

    fn append_with<C>(
        self: &Arc<Self>,
        bytes: usize,
        add: impl FnOnce(&mut Head) -> Result<(u64, u64), C>,
    ) -> Result<Result<Append<'_>, C>, AppendError> {
        let mut head = self.head();
        if head.failed {
            return Err(AppendError::Failed);
        }
        let mut finished = None;
        if head.appender.open_block().padded_bytes() + bytes > BLOCK_BYTES_MAX && !head.appender.open_block().is_empty()
        {
            finished = Some(self.commit_inline(&mut head).ok_or(AppendError::Busy)?);
        }
        let added = add(&mut head);
        head.open.records += added.as_ref().map_or(0, |(_, count)| *count);
        let status = head.open.status();
        let full = head.appender.open_block().padded_bytes() >= self.shared.budgets.commit_group_bytes;
        let finished_too = if full { self.commit(&mut head) } else { None };
        drop(head);
        finished.into_iter().chain(finished_too).for_each(CommitGroup::wake);
        Ok(added.map(|(sequence, _)| {
            let first = Position { shard: self.number, sequence };
            Append { head: &self.head, status, first }
        }))
    }

    /// The lookup for the records that are appended next.
    fn dedup_lookup<'h>(&'h self, head: &'h mut Head) -> DedupLookup<'h> {
        let position = PackedPosition::new(self.number, head.appender.open_block().end());
        self.committed.note_keyed(position.position().sequence);
        DedupLookup::new(&self.shared.dedup, &mut head.open.indexed, position)
    }

    /// The events and bytes that wait for the next commit.
    #[must_use]
    pub fn uncommitted(&self) -> (u64, usize) {
        let head = self.head();
        (head.open.records, head.appender.open_block().padded_bytes())
    }

    /// Commits the events that were appended in this tick. Call it when the shard's runtime has nothing else to do.
    pub fn commit_pending(self: &Arc<Self>) {
        let mut head = self.head();
        if head.open.records == 0 || head.committer.is_none() {
            return;
        }
        let finished = self.commit(&mut head);
        drop(head);
        finished.into_iter().for_each(CommitGroup::wake);
    }

    /// Commits the open block, here or on the thread; `None` if nothing was committed yet.
    fn commit(self: &Arc<Self>, head: &mut Head) -> Option<CommitGroup> {
        let block_bytes = head.appender.open_block().padded_bytes();
        let is_slow = head.pace.is_slow(block_bytes, self.inline_commit_max);
        if is_slow { self.offload_commit(head) } else { self.commit_inline(head) }
    }

    /// Commits the open block on this thread; `None` if the commit thread has the committer.
    fn commit_inline(&self, head: &mut Head) -> Option<CommitGroup> {
        let mut committer = head.committer.take()?;
        let (block, group) = head.take_open();
        let first = block.first();
        let (result, times) = timed_commit(&mut committer, block);
        head.committer = Some(committer);
        self.finish(head, &group, first, result, times);
        Some(group)
    }

    /// Sends the open block to the commit thread, or commits here if the thread can't be started.
    fn offload_commit(self: &Arc<Self>, head: &mut Head) -> Option<CommitGroup> {
        if head.thread.is_none() {
            let shard = Arc::downgrade(self);
            let commit = move |job| shard.upgrade().map(|shard| shard.commit_offloaded(job)).is_some();
            head.thread = CommitThread::start(self.number, commit).ok();
        }
        let Some(thread) = head.thread.clone() else { return self.commit_inline(head) };
        let job = head.take_job()?;
        thread.send(job);
        None
    }

    /// Runs on the commit thread: commits, and then commits the events that were appended in the meantime.
    fn commit_offloaded(&self, job: Job) {
        let mut next = Some(job);
        while let Some(Job { mut committer, block }) = next.take() {
            let first = block.first();
            let (result, times) = timed_commit(&mut committer, block);
            let mut head = self.head();
            head.committer = Some(committer);
            self.counters.commits_offloaded.add(1);
            let group = head.offloaded.take().unwrap_or_default();
            self.finish(&mut head, &group, first, result, times);
            next = if head.open.records > 0 { head.take_job() } else { None };
            drop(head);
            self.completions.push(group);
        }
        self.committer_returned.notify_all();
    }

    /// Wakes the requests of offloaded commits from the shard's own thread: run it there as a task for as long as the shard accepts
    /// requests. To wake them from the commit thread would cost a system call each.
    pub async fn wake_completed(&self) {
        self.completions.wake().await;
    }

    fn finish(
        &self,
        head: &mut Head,
        group: &CommitGroup,
        first: u64,
        result: Result<Block, CommitError>,
        times: CommitTimes,
    ) {
        head.pace.learn(result.as_ref().ok().map(|block| block.bytes().len()), times.whole);
        group.finish(match result {
            Ok(block) => {
                self.counters.commit_time.record(times.whole);
                self.counters.sync_time.record(times.sync);
                if times.sync >= LONG_SYNC {
                    self.log_long_sync(times.sync, group.records, block.bytes().len());
                }
                self.counters.commits.add(1);
                self.counters.records.add(group.records);
                self.counters.commit_bytes.record(block.bytes().len() as u64);
                self.shared.accepted.add(self.number, block.header().end() - 1, &group.counts);
                self.committed.tail_cache().publish(block);
                CommitStatus::Durable
            }
            Err(CommitError::NoSpace { .. }) => {
                self.counters.commits_refused.add(1);
                // Before other events get the sequences: a lookup that finds an id trusts that its position is its own.
                self.shared.dedup.remove(&group.indexed);
                self.shared.dedup.remove(&head.open.indexed);
                head.rewind(first);
                self.committed.tail_cache().notify_without_block();
                CommitStatus::NoSpace
            }
            Err(error) => {
                head.failed = true;
                self.committed.set_failed();
                self.committed.tail_cache().notify_without_block();
                self.failure.report(&error);
                CommitStatus::Failed
            }
        });
    }

    /// At most once a minute for all shards.
    #[cold]
    fn log_long_sync(&self, took: Duration, events: u64, bytes: usize) {
        let mut due = self.shared.long_syncs.lock().unwrap_or_else(PoisonError::into_inner);
        if due.take_every(Duration::from_mins(1), Instant::now()) {
            tracing::warn!(
                shard = self.number,
                milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                events,
                bytes,
                "an fdatasync took more than 1 s, and responses waited for it: check the disk and its other users"
            );
        }
    }

    /// Back-pressure: waits while the disk writes a block and the open one has no room for `bytes` of records. So on a slow disk
    /// batches wait unchanged, and no block grows to all that is in flight.
    async fn wait_for_capacity(&self, bytes: usize) {
        poll_fn(|context| {
            let mut head = self.head();
            let open = head.appender.open_block();
            let has_room = open.is_empty() || open.padded_bytes() + bytes <= self.shared.budgets.commit_group_bytes;
            match &mut head.offloaded {
                Some(group) if !has_room => {
                    group.wait(context.waker());
                    Poll::Pending
                }
                _ => Poll::Ready(()),
            }
        })
        .await
    }

    /// Waits until everything that is appended now is durable, or never will be.
    pub async fn flush(&self) {
        let last = self.head().appender.open_block().end() - 1;
        let is_flushed = || {
            let head = self.head();
            let durable = self.durable();
            let none_is_left = head.appender.open_block().end() - 1 <= durable;
            (durable >= last || none_is_left || head.failed).then_some(())
        };
        self.committed.tail_cache().until(is_flushed).await;
    }

    /// Commits the open block and writes the seal. Nothing can be appended afterwards.
    ///
    /// # Errors
    /// The commit's error; events that were acknowledged are durable anyway.
    pub fn close(&self) -> Result<(), CommitError> {
        let mut head = self.head();
        while head.offloaded.is_some() {
            head = self.committer_returned.wait(head).unwrap_or_else(PoisonError::into_inner);
        }
        let finished = if head.open.records > 0 { self.commit_inline(&mut head) } else { None };
        head.failed = true;
        head.thread = None;
        let next = head.appender.open_block().first();
        let committer = head.committer.take();
        drop(head);
        if let Some(group) = finished {
            group.wake();
        }
        committer.map_or(Ok(()), |committer| committer.seal(next, unix_microseconds()))
    }
}

/// How long a commit took.
#[derive(Clone, Copy)]
struct CommitTimes {
    whole: Duration,
    /// Its last fdatasync.
    sync: Duration,
}

fn timed_commit(committer: &mut Committer, block: OpenBlock) -> (Result<Block, CommitError>, CommitTimes) {
    let start = Instant::now();
    let result = committer.commit(block, unix_microseconds());
    (result, CommitTimes { whole: start.elapsed(), sync: committer.sync_time() })
}
