//! The dead letters of one sink: a journal of their own, durable before any cursor passes them.
//!
//! It only grows at its end: a letter, the letter once more with a newer reason, or its end. For each event the last
//! counts (`index.rs`). What is settled is freed from the front, a segment at a time.

mod entries;
mod fate;
mod filter;
mod front;
mod index;
mod lookup;
mod notify;
mod offline;
mod opening;
mod page;
mod reader;
mod replay;
mod service;
mod set_aside;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use event::limits::RESERVE_BYTES;
use event::memory::Budgets;
use event::{OperatorCommand, TypeName};
use eventlog::{
    Appender, CommitError, Committer, Dead, JournalRecord, Segments, Settled, list_directory, unix_microseconds,
};
use ledger::{Ledger, Recount, SinkName};

pub use filter::{DeadFilter, DeadLetter, DeadList};
pub use notify::LastDead;
pub use offline::{damaged_dead_letters, each_dead_letter, read_dead_letters};
pub(crate) use offline::{set_aside_events, sinks_with_letters};
pub use replay::{DeadAction, DeadOutcome};
pub(crate) use replay::{DeadCommand, Replayer, SinkHandle, replayer};
pub(crate) use service::SinkQueue;
pub use service::{DeadError, DeadLetterService};
pub(crate) use set_aside::Resent;

use crate::blocked::Blocked;
use crate::home::Home;
use crate::options::Options;
use crate::status::DeadCounters;
use front::Front;
use index::Index;
use notify::Notices;
use set_aside::SetAside;

const DIRECTORY: &str = "dead";
/// Small, so that the first dead letter and each start cost little.
const FIRST_SEGMENT_BYTES: u64 = 256 * 1024;
/// A further segment fits the space that is kept back, unless one event alone needs a longer one.
const SEGMENT_BYTES_MAX: u64 = 512 * 1024;
/// Blocks are closed here, so that they fit such a segment.
const BLOCK_BYTES: usize = 256 * 1024;

const _: () = assert!(2 * BLOCK_BYTES as u64 <= SEGMENT_BYTES_MAX && SEGMENT_BYTES_MAX <= RESERVE_BYTES);

/// A dead letter to be written.
pub(crate) struct Letter<'a> {
    pub(crate) sequence: u64,
    pub(crate) record: JournalRecord<'a>,
    pub(crate) reason: &'a str,
}

impl<'a> Letter<'a> {
    fn in_shard(&self, shard: u16, settled: Option<Settled>) -> JournalRecord<'a> {
        let dead = Dead { shard, sequence: self.sequence, reason: self.reason, settled };
        JournalRecord { dead: Some(dead), ..self.record }
    }
}

/// What ends a letter in the journal.
fn end_of<'a>(letter: &JournalRecord<'a>, settled: Settled) -> JournalRecord<'a> {
    let dead = letter.dead.map(|dead| Dead { reason: "", settled: Some(settled), ..dead });
    JournalRecord { dead, payload: &[], ..*letter }
}

/// The journal of a sink's dead letters. It is opened when it is needed, or when it is there.
pub(crate) struct DeadLetters {
    sink: SinkName,
    home: Home,
    journal: Mutex<Slot>,
    ledger: Arc<Ledger>,
    memory: Budgets,
    /// Letters that are held before no more are written.
    held_max: AtomicU64,
    pub(crate) counters: Arc<DeadCounters>,
    news: Mutex<Notices>,
    /// Locked after the journal.
    aside: Mutex<SetAside>,
    /// How many events are set aside.
    aside_count: AtomicUsize,
    /// The same of events that are set aside.
    aside_news: Mutex<Notices>,
    /// There is a journal: an event was refused once.
    was_used: AtomicBool,
    #[cfg(test)]
    pub(crate) forgetful: AtomicBool,
}

enum Slot {
    Unopened,
    Open(Box<Journal>),
    /// Sealed: nothing is written any more.
    Closed,
}

struct Journal {
    appender: Appender,
    committer: Committer,
    segments: Segments,
    index: Index,
    front: Front,
    durable: u64,
    /// While somebody reads, no segment is freed.
    readers: usize,
    /// Letters from here on may be needed again, though they have come to their end: their store may have lost them.
    kept_from: Option<u64>,
    /// What the last look for segments to free began with: the same finds nothing more.
    freed_at: Option<(u64, u64, Vec<u64>, Option<u64>)>,
}

impl DeadLetters {
    pub(crate) fn new(home: &Home, sink: SinkName, ledger: Arc<Ledger>, options: &Options) -> Self {
        Self {
            sink,
            home: home.clone(),
            journal: Mutex::new(Slot::Unopened),
            ledger,
            memory: options.memory,
            held_max: AtomicU64::new(options.memory.dead_letters as u64),
            counters: Arc::default(),
            news: Mutex::default(),
            aside: Mutex::default(),
            aside_count: AtomicUsize::new(0),
            aside_news: Mutex::default(),
            was_used: AtomicBool::new(false),
            #[cfg(test)]
            forgetful: false.into(),
        }
    }

    pub(crate) const fn sink(&self) -> &SinkName {
        &self.sink
    }

    /// The budgets of the process.
    pub(crate) const fn memory(&self) -> &Budgets {
        &self.memory
    }

    /// From now on at most so many letters are held, or as many as there is memory for.
    pub(crate) fn set_limit(&self, held_max: Option<u64>) {
        self.held_max.store(held_max.unwrap_or(self.memory.dead_letters as u64), Ordering::Relaxed);
    }

    /// Whether new letters may be written. A batch that begins below the limit is written as a whole.
    fn check_limit(&self, index: &Index, new: bool) -> Result<(), Blocked> {
        let (held, held_max) = (index.held_count(), self.held_max.load(Ordering::Relaxed));
        if !new || held < held_max {
            return Ok(());
        }
        Err(Blocked::Retry(format!(
            "the sink has {} and max_dead_letters is {held_max}, so its lanes pause: {} lists them, {} resends them, and {} discards all of \
             them",
            event::counted(held, "dead letter"),
            OperatorCommand::DeadList(&self.sink, None),
            OperatorCommand::DeadReplay(&self.sink, None),
            OperatorCommand::DeadDrop(&self.sink)
        )))
    }

    /// Somebody has seen its directory.
    pub(crate) fn mark_used(&self) {
        self.was_used.store(true, Ordering::Relaxed);
    }

    /// Whether an event was ever refused.
    pub(crate) fn was_used(&self) -> bool {
        self.was_used.load(Ordering::Relaxed)
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn directory(&self) -> PathBuf {
        self.home.data.join(DIRECTORY).join(&*self.sink)
    }

    /// Makes letters from one shard durable. Where it fails none is, or a prefix of them is; those that are durable
    /// already aren't written again.
    pub(crate) fn write(&self, shard: u16, letters: &[Letter<'_>]) -> Result<(), Blocked> {
        let records: Vec<JournalRecord<'_>> = letters.iter().map(|letter| letter.in_shard(shard, None)).collect();
        self.append(&records, Index::is_dead)?;
        let mut news = self.news();
        letters.iter().for_each(|letter| news.add(letter.record.type_name, letter.reason));
        drop(news);
        self.tell();
        Ok(())
    }

    fn news(&self) -> MutexGuard<'_, Notices> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn aside_news(&self) -> MutexGuard<'_, Notices> {
        self.aside_news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says which types have new letters, and new events that are set aside, if it is time to.
    pub(crate) fn tell(&self) {
        let told = self.aside_news().tell();
        for (type_name, count) in told {
            let (ids, events) = (self.aside_ids(&type_name), event::counted(count, "event"));
            tracing::warn!(
                sink = &*self.sink,
                "type" = &*type_name,
                "{events} set aside, because the store rejects them for now and accepts others: {ids}. They are resent, and become \
                 dead letters after an hour; {} shows why",
                OperatorCommand::RouteList
            );
        }
        let told = self.news().tell();
        for (type_name, count) in told {
            let letters = event::counted(count, "new dead letter");
            tracing::warn!(
                sink = &*self.sink,
                "type" = &*type_name,
                "{letters}, rejected by the store or with an undecided condition: {} shows why. When that is fixed, {} resends them",
                OperatorCommand::DeadList(&self.sink, Some(&type_name)),
                OperatorCommand::DeadReplay(&self.sink, Some(&type_name))
            );
        }
    }

    /// The newest letter of a type since the start of the process.
    pub(crate) fn last(&self, type_name: &TypeName) -> Option<LastDead> {
        self.news().last(type_name.as_str())
    }

    /// Writes letters that are held once more, with newer reasons.
    pub(crate) fn amend(&self, letters: &[JournalRecord<'_>]) -> Result<(), Blocked> {
        self.append(letters, |index, dead| !index.is_held(dead))
    }

    /// Ends letters that are held. The ledger counts them anew when that is durable, in the same breath.
    pub(crate) fn end_letters(&self, letters: &[JournalRecord<'_>], settled: Settled) -> Result<(), Blocked> {
        let records: Vec<JournalRecord<'_>> = letters.iter().map(|letter| end_of(letter, settled)).collect();
        self.append(&records, |index, dead| !index.is_held(dead))
    }

    /// Makes letters of events again whose store has lost them behind a replay. The ledger counts them anew.
    pub(crate) fn reopen(&self, letters: &[JournalRecord<'_>]) -> Result<(), Blocked> {
        self.append(letters, |index, dead| !index.is_replayed(dead))
    }

    /// No segment from this position on is freed; all may be without one.
    pub(crate) fn keep_from(&self, position: Option<u64>) {
        if let Slot::Open(journal) = &mut *self.slot() {
            journal.kept_from = position;
        }
    }

    fn append(&self, records: &[JournalRecord<'_>], is_known: fn(&Index, &Dead<'_>) -> bool) -> Result<(), Blocked> {
        match self.try_append(records, is_known) {
            // It may be for want of space: the reserve has some, and is filled again before long.
            Err(Blocked::Retry(_)) if self.home.reserve.release() => self.try_append(records, is_known),
            written => written,
        }
    }

    fn try_append(
        &self,
        records: &[JournalRecord<'_>],
        is_known: fn(&Index, &Dead<'_>) -> bool,
    ) -> Result<(), Blocked> {
        let mut slot = self.slot();
        let journal = self.opened(&mut slot)?;
        // What is set aside, and the ends of letters, are no new letters.
        let is_letter = |dead: &Dead<'_>| dead.settled.is_none() && !journal.index.is_known(dead);
        let is_new = |record: &JournalRecord<'_>| record.dead.is_some_and(|dead| is_letter(&dead));
        self.check_limit(&journal.index, records.iter().any(is_new))?;
        for record in records {
            if record.dead.is_none_or(|dead| is_known(&journal.index, &dead)) {
                continue;
            }
            journal.appender.push(record);
            if journal.appender.open_block().padded_bytes() >= BLOCK_BYTES {
                self.commit(journal)?;
            }
        }
        #[cfg(test)]
        if self.forgetful.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.commit(journal)
    }

    fn commit(&self, journal: &mut Journal) -> Result<(), Blocked> {
        let recounts = journal.commit(&self.aside)?;
        self.aside_count.store(self.aside().count(), Ordering::Relaxed);
        self.ledger.count_dead(&self.sink, journal.durable, &recounts);
        Ok(())
    }

    /// The sequences of the events from `shard` behind `cursor` that are dead letters, or were dropped.
    pub(crate) fn beyond(&self, shard: u16, cursor: u64) -> Result<BTreeSet<u64>, Blocked> {
        let found = self.with_existing(|journal| journal.index.beyond(shard, cursor))?;
        Ok(found.unwrap_or_default())
    }

    /// The sequences of the events from `shard` behind `cursor` that were dead letters and are stored.
    pub(crate) fn replayed_beyond(&self, shard: u16, cursor: u64) -> Result<BTreeSet<u64>, Blocked> {
        let found = self.with_existing(|journal| journal.index.replayed_beyond(shard, cursor))?;
        Ok(found.unwrap_or_default())
    }

    /// How many letters of a type are held. 0 while nobody knows.
    pub(crate) fn held(&self, type_name: &TypeName) -> u64 {
        match &*self.slot() {
            Slot::Open(journal) => journal.index.held().get(type_name.as_str()).copied().unwrap_or(0),
            Slot::Unopened | Slot::Closed => 0,
        }
    }

    /// The last position of the journal, if it is open.
    #[cfg(test)]
    pub(crate) fn position(&self) -> u64 {
        if let Slot::Open(journal) = &*self.slot() { journal.durable } else { 0 }
    }

    /// Does `work` with the journal, which is opened for it. `None` where there is none.
    fn with_existing<T>(&self, work: impl FnOnce(&mut Journal) -> T) -> Result<Option<T>, Blocked> {
        let mut slot = self.slot();
        if matches!(*slot, Slot::Unopened) && !self.exists()? {
            return Ok(None);
        }
        Ok(Some(work(self.opened(&mut slot)?)))
    }

    fn exists(&self) -> Result<bool, Blocked> {
        // One that the ledger has counted should be there.
        let names = list_directory(&*self.home.disk, &self.directory()).map_err(later)?;
        Ok(!names.is_empty() || self.ledger.dead_up_to(&self.sink) > 0)
    }

    fn opened<'a>(&self, slot: &'a mut Slot) -> Result<&'a mut Journal, Blocked> {
        if matches!(slot, Slot::Unopened) {
            // Before its first letter: whoever looks behind a cursor finds that there may be some.
            self.mark_used();
            *slot = Slot::Open(Box::new(self.open()?));
        }
        match slot {
            Slot::Open(journal) => Ok(journal),
            Slot::Unopened | Slot::Closed => Err(Blocked::Retry("Forebay is stopping".into())),
        }
    }

    /// Frees segments in which nothing is needed: no letter that is held, no end of a letter whose event a lane may
    /// read again (`oldest` by shard is the first that is retained), and nothing beyond `counted`, which is where
    /// both generations of the saved ledger have counted the journal up to.
    pub(crate) fn free(&self, counted: u64, oldest: &[u64]) -> io::Result<usize> {
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
        let firsts = [journal.index.first_needed(), self.aside().first_needed(counted), journal.kept_from];
        let needed = firsts.into_iter().flatten().min().unwrap_or(u64::MAX);
        let limit = needed.saturating_sub(1).min(counted).min(journal.durable);
        let freed = if journal.segments.can_free_up_to(limit) {
            journal.front.note(limit + 1)?;
            journal.segments.free_up_to(limit)?
        } else {
            0
        };
        journal.freed_at = Some(now);
        Ok(freed)
    }

    /// Ends the journal in an orderly way. Nothing can be written afterwards.
    pub(crate) fn close(&self) -> Result<(), CommitError> {
        let Slot::Open(journal) = std::mem::replace(&mut *self.slot(), Slot::Closed) else { return Ok(()) };
        let next = journal.appender.open_block().first();
        let Journal { committer, .. } = *journal;
        committer.seal(next, unix_microseconds())
    }
}

impl Journal {
    /// Makes the open block durable, and says what the ledger should know of it.
    fn commit(&mut self, aside: &Mutex<SetAside>) -> Result<Vec<Recount>, Blocked> {
        let block = self.appender.take();
        if block.is_empty() {
            return Ok(Vec::new());
        }
        let first = block.first();
        match self.committer.commit(block, unix_microseconds()) {
            Ok(block) => {
                self.durable = block.header().end() - 1;
                let mut aside = aside.lock().unwrap_or_else(PoisonError::into_inner);
                let note = |(at, record): (u64, JournalRecord<'_>)| {
                    let ended = aside.note(at, &record);
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
    Blocked::Retry(format!("can't use the journal of dead letters: {error}"))
}
