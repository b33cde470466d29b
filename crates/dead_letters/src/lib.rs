//! The dead letters of one sink: a separate journal, durable before any cursor passes them.
//!
//! It only grows at its end: a dead letter, the same one with a newer reason, or its end. For each event the last
//! record counts (`index.rs`). Segments are freed from the front when all their dead letters have ended.

mod blocked;
mod chosen_ids;
mod contact_log;
mod counters;
mod cursor;
mod dead_record;
mod deferred;
mod delivery_files;
mod entries;
mod filter;
mod groups;
mod index;
mod listing;
mod lookup;
mod low_watermark;
mod notify;
mod offline;
mod opening;
mod page;
mod reader;
mod reason_group;
mod reasons;
mod repeatable;
mod replay;
mod selection;
mod sent_record;
mod service;
mod state;
mod trace;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use event::TypeName;
use eventlog::{Appender, CommitError, Committer, JournalRecord, Segments, list_directory, unix_microseconds};
use ledger::{Ledger, Recount, SinkName};
use limits::RESERVE_BYTES;
use limits::memory::Budgets;
use text::OperatorCommand;

pub use blocked::Blocked;
pub use chosen_ids::{ChosenIds, InvalidChoice};
pub use contact_log::{ContactLog, ContactTime};
pub use counters::DeadCounters;
pub use cursor::DeadCursor;
pub use deferred::{DeferredEnd, Resent};
pub use delivery_files::DeliveryFiles;
pub use filter::{DeadFilter, DeadLetter, DeadList};
pub use groups::{DeadGroup, DeadGroups};
pub use listing::{DeadOrder, PageRequest};
pub use notify::LastDead;
pub use offline::{
    damaged_dead_letters, deferred_events, each_dead_letter, read_dead_letters, sinks_with_dead_letters,
};
pub use reasons::{SINK_CHANGED, not_stored_in_time};
pub use repeatable::Repeatable;
pub use replay::{DeadAction, DeadOutcome, DeadProgress, ReplaySink, Replayer, SinkHandle, SinkQueue, replayer};
pub use selection::{PlannedSink, Selection};
pub use sent_record::as_sent;
pub use service::{DeadError, DeadLetterService};
pub use trace::{DeadTrace, TracedOutcome};

use dead_record::{DeadRecord, RecordKind};
use deferred::Deferred;
use index::Index;
use low_watermark::LowWatermark;
use notify::Notices;

const DIRECTORY: &str = "dead";
/// Small: the first dead letter and each start cost little.
const FIRST_SEGMENT_BYTES: u64 = 256 * 1024;
/// A further segment fits the reserved space, unless one event alone needs a longer one.
const SEGMENT_BYTES_MAX: u64 = 512 * 1024;
/// Blocks are closed at this size: they fit such a segment.
const BLOCK_BYTES: usize = 256 * 1024;

const _: () = assert!(2 * BLOCK_BYTES as u64 <= SEGMENT_BYTES_MAX && SEGMENT_BYTES_MAX <= RESERVE_BYTES);

/// A dead letter to be written.
pub struct NewDeadLetter<'a> {
    /// The event's position in its shard.
    pub sequence: u64,
    /// Its record there.
    pub record: JournalRecord<'a>,
    /// The store's error message.
    pub reason: &'a str,
}

impl<'a> NewDeadLetter<'a> {
    const fn in_shard(&self, shard: u16, kind: RecordKind) -> DeadRecord<'a> {
        DeadRecord {
            event: self.record,
            shard,
            sequence: self.sequence,
            kind,
            reason: self.reason,
            first_written_at: None,
        }
    }
}

/// The journal of a sink's dead letters. It is opened if it exists, or when it is first needed.
pub struct DeadLetters {
    sink: SinkName,
    files: DeliveryFiles,
    journal: Mutex<Slot>,
    ledger: Arc<Ledger>,
    memory: Budgets,
    /// The limit of held dead letters: at this number no further ones are written.
    held_max: AtomicU64,
    pub(crate) counters: Arc<DeadCounters>,
    pending_notices: Mutex<Notices>,
    /// Locked after the journal.
    deferred: Mutex<Deferred>,
    /// How many events are deferred.
    deferred_count: AtomicUsize,
    /// The same for deferred events.
    pending_deferred_notices: Mutex<Notices>,
    /// The journal exists: an event was rejected at least once.
    was_used: AtomicBool,
}

enum Slot {
    Unopened,
    Open(Box<Journal>),
    /// Sealed: nothing more can be written.
    Closed,
}

struct Journal {
    appender: Appender,
    committer: Committer,
    segments: Segments,
    index: Index,
    low_watermark: LowWatermark,
    durable: u64,
    /// While there are readers, no segment is freed.
    readers: usize,
    /// Dead letters from this position on may be needed again although they have ended: their store may have lost them.
    kept_from: Option<u64>,
    /// The state at the last search for segments to free. The same state yields nothing further.
    freed_at: Option<(u64, u64, Vec<u64>, Option<u64>)>,
}

impl DeadLetters {
    /// The dead letters of a sink; the journal is opened when it is needed.
    pub fn new(files: &DeliveryFiles, sink: SinkName, ledger: Arc<Ledger>, memory: Budgets) -> Self {
        Self {
            sink,
            files: files.clone(),
            journal: Mutex::new(Slot::Unopened),
            ledger,
            memory,
            held_max: AtomicU64::new(memory.dead_letters as u64),
            counters: Arc::default(),
            pending_notices: Mutex::default(),
            deferred: Mutex::default(),
            deferred_count: AtomicUsize::new(0),
            pending_deferred_notices: Mutex::default(),
            was_used: AtomicBool::new(false),
        }
    }

    /// The sink.
    pub const fn sink(&self) -> &SinkName {
        &self.sink
    }

    /// The budgets of the process.
    pub(crate) const fn memory(&self) -> &Budgets {
        &self.memory
    }

    /// Sets the limit of held dead letters; without one, the memory budget decides.
    pub fn set_limit(&self, held_max: Option<u64>) {
        self.held_max.store(held_max.unwrap_or(self.memory.dead_letters as u64), Ordering::Relaxed);
    }

    /// Whether new dead letters may be written. A batch that begins below the limit is written as a whole.
    fn check_limit(&self, index: &Index, new: bool) -> Result<(), Blocked> {
        let (held, held_max) = (index.held_count(), self.held_max.load(Ordering::Relaxed));
        if !new || held < held_max {
            return Ok(());
        }
        Err(Blocked::Retry(format!(
            "the sink has {} and max_dead_letters is {held_max}, so its lanes pause: {} lists them, {} resends them, and {} discards all of \
             them",
            text::counted(held, "dead letter"),
            OperatorCommand::DeadList(&self.sink, None),
            OperatorCommand::DeadReplay(&self.sink, None),
            OperatorCommand::DeadDrop(&self.sink)
        )))
    }

    /// The directory of this journal exists.
    pub fn mark_used(&self) {
        self.was_used.store(true, Ordering::Relaxed);
    }

    /// Whether an event was ever rejected.
    pub fn was_used(&self) -> bool {
        self.was_used.load(Ordering::Relaxed)
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn directory(&self) -> PathBuf {
        self.files.data.join(DIRECTORY).join(&*self.sink)
    }

    /// Writes dead letters of one shard durably. If it fails, none or a prefix of them is durable. It does not write
    /// those again that are durable already.
    pub fn write(&self, shard: u16, events: &[NewDeadLetter<'_>]) -> Result<(), Blocked> {
        let records: Vec<DeadRecord<'_>> =
            events.iter().map(|event| event.in_shard(shard, RecordKind::DeadLetter)).collect();
        self.append(&records, Index::is_dead)?;
        let mut notices = self.pending_notices();
        events.iter().for_each(|event| notices.add(event.record.type_name, event.reason));
        drop(notices);
        self.log_new();
        Ok(())
    }

    fn pending_notices(&self) -> MutexGuard<'_, Notices> {
        self.pending_notices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pending_deferred_notices(&self) -> MutexGuard<'_, Notices> {
        self.pending_deferred_notices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs which types have new dead letters and new deferred events, at most once in ten seconds for each type.
    pub fn log_new(&self) {
        let due = self.pending_deferred_notices().take_due();
        for (type_name, count) in due {
            let (ids, events) = (self.deferred_ids(&type_name), text::counted(count, "event"));
            tracing::warn!(
                sink = &*self.sink,
                "type" = &*type_name,
                "{events} deferred, because the store rejects them for now and accepts others: {ids}. They are resent, and become \
                 dead letters after an hour; {} shows why",
                OperatorCommand::RouteList
            );
        }
        let due = self.pending_notices().take_due();
        for (type_name, count) in due {
            let new = text::counted(count, "new dead letter");
            tracing::warn!(
                sink = &*self.sink,
                "type" = &*type_name,
                "{new}, because the store rejected the event or the condition of its route was undecided: {} shows \
                 why. Fix the cause, then run {}",
                OperatorCommand::DeadList(&self.sink, Some(&type_name)),
                OperatorCommand::DeadReplay(&self.sink, Some(&type_name))
            );
        }
    }

    /// The newest dead letter of a type since the start of the process.
    pub(crate) fn last(&self, type_name: &TypeName) -> Option<LastDead> {
        self.pending_notices().last(type_name.as_str())
    }

    /// Writes held dead letters again, with newer reasons or payloads.
    pub(crate) fn amend(&self, dead_letters: &[DeadRecord<'_>]) -> Result<(), Blocked> {
        self.append(dead_letters, |index, dead| !index.is_held(dead))
    }

    /// Ends held dead letters. The ledger recounts them in the same step, as soon as that is durable.
    pub(crate) fn end_held(&self, dead_letters: &[DeadRecord<'_>], kind: RecordKind) -> Result<(), Blocked> {
        let records: Vec<DeadRecord<'_>> = dead_letters.iter().map(|record| record.end(kind)).collect();
        self.append(&records, |index, dead| !index.is_held(dead))
    }

    /// Reopens dead letters whose events the store has lost after a replay. The ledger recounts them.
    pub(crate) fn reopen(&self, dead_letters: &[DeadRecord<'_>]) -> Result<(), Blocked> {
        self.append(dead_letters, |index, dead| !index.is_replayed(dead))
    }

    /// Frees no segment from this position on; with `None` it may free all.
    pub(crate) fn keep_from(&self, position: Option<u64>) {
        if let Slot::Open(journal) = &mut *self.slot() {
            journal.kept_from = position;
        }
    }

    fn append(&self, records: &[DeadRecord<'_>], is_known: fn(&Index, &DeadRecord<'_>) -> bool) -> Result<(), Blocked> {
        match self.try_append(records, is_known) {
            // The disk may be full: the reserve has some space, and is filled again soon.
            Err(Blocked::Retry(_)) if self.files.reserve.release() => self.try_append(records, is_known),
            written => written,
        }
    }

    fn try_append(
        &self,
        records: &[DeadRecord<'_>],
        is_known: fn(&Index, &DeadRecord<'_>) -> bool,
    ) -> Result<(), Blocked> {
        let mut slot = self.slot();
        let journal = self.opened(&mut slot)?;
        let is_new = |record: &DeadRecord<'_>| record.kind == RecordKind::DeadLetter && !journal.index.is_known(record);
        self.check_limit(&journal.index, records.iter().any(is_new))?;
        for record in records {
            if is_known(&journal.index, record) {
                continue;
            }
            record.append_to(&mut journal.appender);
            if journal.appender.open_block().padded_bytes() >= BLOCK_BYTES {
                self.commit(journal)?;
            }
        }
        self.commit(journal)
    }

    fn commit(&self, journal: &mut Journal) -> Result<(), Blocked> {
        let recounts = journal.commit(&self.deferred)?;
        self.deferred_count.store(self.deferred().count(), Ordering::Relaxed);
        self.ledger.count_dead(&self.sink, journal.durable, &recounts);
        Ok(())
    }

    /// The sequences of the events from `shard` after `cursor` that are dead letters, or were dropped.
    pub fn beyond(&self, shard: u16, cursor: u64) -> Result<BTreeSet<u64>, Blocked> {
        let found = self.with_existing(|journal| journal.index.beyond(shard, cursor))?;
        Ok(found.unwrap_or_default())
    }

    /// The sequences of the events from `shard` after `cursor` that were dead letters and are stored.
    pub fn replayed_beyond(&self, shard: u16, cursor: u64) -> Result<BTreeSet<u64>, Blocked> {
        let found = self.with_existing(|journal| journal.index.replayed_beyond(shard, cursor))?;
        Ok(found.unwrap_or_default())
    }

    /// How many dead letters of a type are held; 0 while the journal is not open.
    pub(crate) fn held(&self, type_name: &TypeName) -> u64 {
        match &*self.slot() {
            Slot::Open(journal) => journal.index.held().get(type_name.as_str()).copied().unwrap_or(0),
            Slot::Unopened | Slot::Closed => 0,
        }
    }

    /// How many events of a type became dead letters since the start of the process. A replay doesn't lower it.
    pub(crate) fn written(&self, type_name: &TypeName) -> u64 {
        match &*self.slot() {
            Slot::Open(journal) => journal.index.written().get(type_name.as_str()).copied().unwrap_or(0),
            Slot::Unopened | Slot::Closed => 0,
        }
    }

    /// Calls `work` with the journal, which it opens for it. `None` if there is no journal.
    fn with_existing<T>(&self, work: impl FnOnce(&mut Journal) -> T) -> Result<Option<T>, Blocked> {
        let mut slot = self.slot();
        if matches!(*slot, Slot::Unopened) && !self.exists()? {
            return Ok(None);
        }
        Ok(Some(work(self.opened(&mut slot)?)))
    }

    fn exists(&self) -> Result<bool, Blocked> {
        // A journal that the ledger has counted must be there.
        let names = list_directory(&*self.files.disk, &self.directory()).map_err(later)?;
        Ok(!names.is_empty() || self.ledger.dead_up_to(&self.sink) > 0)
    }

    fn opened<'a>(&self, slot: &'a mut Slot) -> Result<&'a mut Journal, Blocked> {
        if matches!(slot, Slot::Unopened) {
            // Set before the first dead letter: a search after a cursor finds that there may be some.
            self.mark_used();
            *slot = Slot::Open(Box::new(self.open()?));
        }
        match slot {
            Slot::Open(journal) => Ok(journal),
            Slot::Unopened | Slot::Closed => Err(Blocked::Retry("Forebay is stopping".into())),
        }
    }

    /// Frees segments that contain nothing that is needed: no held dead letter, and no end of one whose event a lane
    /// may read again. `oldest` is the first retained sequence by shard. Records after `counted` stay: both generations
    /// of the saved ledger have counted the journal only up to there.
    pub fn free(&self, counted: u64, oldest: &[u64]) -> io::Result<usize> {
        let mut slot = self.slot();
        let Slot::Open(journal) = &mut *slot else { return Ok(0) };
        if journal.readers > 0 || journal.segments.count() < 2 {
            return Ok(0);
        }
        let now = (journal.durable, counted, oldest.to_vec(), journal.kept_from);
        if journal.freed_at.as_ref() == Some(&now) {
            return Ok(0);
        }
        if journal.index.any_settled() {
            journal.index.forget_settled(oldest, journal.kept_from);
        }
        let firsts = [journal.index.first_needed(), self.deferred().first_needed(counted), journal.kept_from];
        let needed = firsts.into_iter().flatten().min().unwrap_or(u64::MAX);
        let limit = needed.saturating_sub(1).min(counted).min(journal.durable);
        let freed = if journal.segments.can_free_up_to(limit) {
            journal.low_watermark.note(limit + 1)?;
            journal.segments.free_up_to(limit)?
        } else {
            0
        };
        journal.freed_at = Some(now);
        Ok(freed)
    }

    /// Seals the journal. Nothing can be written afterwards.
    pub fn close(&self) -> Result<(), CommitError> {
        let Slot::Open(journal) = std::mem::replace(&mut *self.slot(), Slot::Closed) else { return Ok(()) };
        let next = journal.appender.open_block().first();
        let Journal { committer, .. } = *journal;
        committer.seal(next, unix_microseconds())
    }
}

impl Journal {
    /// Makes the open block durable, and returns what the ledger has to count.
    fn commit(&mut self, deferred: &Mutex<Deferred>) -> Result<Vec<Recount>, Blocked> {
        let block = self.appender.take();
        if block.is_empty() {
            return Ok(Vec::new());
        }
        let first = block.first();
        match self.committer.commit(block, unix_microseconds()) {
            Ok(block) => {
                self.durable = block.header().end() - 1;
                let mut deferred = deferred.lock().unwrap_or_else(PoisonError::into_inner);
                let note = |(at, record): (u64, JournalRecord<'_>)| {
                    let record = DeadRecord::of(record)?;
                    let ended = deferred.note(at, &record);
                    self.index.note(at, &record).or(ended)
                };
                Ok(block.records().filter_map(note).collect())
            }
            Err(error @ CommitError::NoSpace { .. }) => {
                self.appender.rewind(first);
                Err(Blocked::Retry(error.to_string()))
            }
            Err(error) => Err(Blocked::Stop(error.to_string())),
        }
    }
}

fn later(error: io::Error) -> Blocked {
    Blocked::Retry(format!(
        "can't use the journal of dead letters: {error}. Check the disk and permissions of the data directory"
    ))
}
