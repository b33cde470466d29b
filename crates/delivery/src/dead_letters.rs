//! The dead letters of one sink: a journal of their own, durable before any cursor passes them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use event::limits::RESERVE_BYTES;
use eventlog::{
    Appender, CommitError, Committer, DataDirectory, Dead, Finding, OpenError, OpenShard, Reader, Record, Reserve,
    ShardOptions, open_shard,
};

use crate::options::Reporter;

const DIRECTORY: &str = "dead";
/// Small, so that the first dead letter and each start cost little.
const FIRST_SEGMENT_BYTES: u64 = 256 * 1024;
/// A further segment fits the space that is kept back, unless one event alone needs a longer one.
const SEGMENT_BYTES_MAX: u64 = 512 * 1024;
/// Blocks are closed here, so that they fit such a segment.
const BLOCK_BYTES: usize = 256 * 1024;

const _: () = assert!(2 * BLOCK_BYTES as u64 <= SEGMENT_BYTES_MAX && SEGMENT_BYTES_MAX <= RESERVE_BYTES);

/// Why dead letters aren't durable.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BuryError {
    /// It may go well later: there is no space, or the directory can't be used now.
    #[error("{0}")]
    Later(String),
    /// The journal of dead letters has failed: only a new start can tell what the disk holds.
    #[error("{0}")]
    Failed(String),
}

impl From<OpenError> for BuryError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Io { .. } | OpenError::Commit(CommitError::NoSpace { .. }) => Self::Later(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// A dead letter to be written.
pub(crate) struct Letter<'a> {
    pub(crate) sequence: u64,
    pub(crate) record: Record<'a>,
    pub(crate) reason: &'a str,
}

/// The journal of a sink's dead letters. It is opened when it is needed, or when it is there.
pub(crate) struct DeadLetters {
    options: ShardOptions,
    data: PathBuf,
    journal: Mutex<Option<Journal>>,
    reserve: Arc<Reserve>,
    reporter: Arc<dyn Reporter>,
    sink: String,
    #[cfg(test)]
    pub(crate) forgetful: std::sync::atomic::AtomicBool,
}

struct Journal {
    appender: Appender,
    committer: Option<Committer>,
    /// Letters in the open block: shard and sequence.
    open: Vec<(u16, u64)>,
    durable: Index,
}

/// By shard the sequences of the events that are durable dead letters.
type Index = BTreeMap<u16, BTreeSet<u64>>;

impl DeadLetters {
    pub(crate) fn new(directory: &DataDirectory, sink: &str, reporter: Arc<dyn Reporter>) -> Self {
        let path = directory.path().join(DIRECTORY).join(sink);
        let options = ShardOptions {
            first_segment_bytes: FIRST_SEGMENT_BYTES,
            segment_bytes_max: SEGMENT_BYTES_MAX,
            segments_ahead: false,
            ..ShardOptions::new(directory.disk().clone(), path, directory.origin(), 0)
        };
        Self {
            options,
            data: directory.path().into(),
            journal: Mutex::new(None),
            reserve: directory.reserve().clone(),
            reporter,
            sink: sink.to_owned(),
            #[cfg(test)]
            forgetful: false.into(),
        }
    }

    fn journal(&self) -> MutexGuard<'_, Option<Journal>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes letters from one shard durable. Where it fails none is, or a prefix of them is; those that are durable
    /// already aren't written again.
    pub(crate) fn write(&self, shard: u16, letters: &[Letter<'_>]) -> Result<(), BuryError> {
        match self.try_write(shard, letters) {
            // It may be for want of space: the reserve has some, and is filled again before long.
            Err(BuryError::Later(_)) if self.reserve.release() => self.try_write(shard, letters),
            written => written,
        }
    }

    fn try_write(&self, shard: u16, letters: &[Letter<'_>]) -> Result<(), BuryError> {
        let mut slot = self.journal();
        let journal = match &mut *slot {
            Some(journal) => journal,
            empty => empty.insert(self.open()?),
        };
        for letter in letters {
            if journal.durable.get(&shard).is_some_and(|sequences| sequences.contains(&letter.sequence)) {
                continue;
            }
            let dead = Some(Dead { shard, sequence: letter.sequence, reason: letter.reason });
            journal.appender.push(&Record { dead, ..letter.record });
            journal.open.push((shard, letter.sequence));
            if journal.appender.open_block().padded_bytes() >= BLOCK_BYTES {
                journal.commit()?;
            }
        }
        #[cfg(test)]
        if self.forgetful.load(std::sync::atomic::Ordering::Relaxed) {
            return Ok(());
        }
        journal.commit()
    }

    /// The sequences of the events from `shard` behind `cursor` that are dead letters.
    pub(crate) fn beyond(&self, shard: u16, cursor: u64) -> Result<BTreeSet<u64>, BuryError> {
        let mut slot = self.journal();
        if slot.is_none() && !self.exists()? {
            return Ok(BTreeSet::new());
        }
        let journal = match &mut *slot {
            Some(journal) => journal,
            empty => empty.insert(self.open()?),
        };
        let behind = journal.durable.get(&shard).map(|sequences| sequences.range(cursor.saturating_add(1)..).copied());
        Ok(behind.into_iter().flatten().collect())
    }

    fn exists(&self) -> Result<bool, BuryError> {
        match self.options.disk.list(&self.options.directory) {
            Ok(names) => Ok(!names.is_empty()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(later(error)),
        }
    }

    /// The journal makes its own directory durable within the one above, but not that one.
    fn open(&self) -> Result<Journal, BuryError> {
        let disk = &self.options.disk;
        disk.create_directory(&self.data.join(DIRECTORY)).map_err(later)?;
        disk.sync_directory(&self.data).map_err(later)?;
        let OpenShard { appender, committer, segments, durable, mut findings } = open_shard(&self.options)?;
        let durable = read_index(Reader::new(segments, 1), durable, &mut findings).map_err(later)?;
        for finding in findings {
            self.reporter.report(&format!("dead letters of sink {}: {finding}", self.sink));
        }
        Ok(Journal { appender, committer: Some(committer), open: Vec::new(), durable })
    }

    /// Ends the journal in an orderly way. Nothing can be written afterwards.
    pub(crate) fn close(&self) -> Result<(), CommitError> {
        let Some(mut journal) = self.journal().take() else { return Ok(()) };
        let next = journal.appender.open_block().first();
        journal.committer.take().map_or(Ok(()), |committer| committer.seal(next, unix_microseconds()))
    }
}

impl Journal {
    fn commit(&mut self) -> Result<(), BuryError> {
        let Some(committer) = &mut self.committer else { return Ok(()) };
        let block = self.appender.take();
        if block.is_empty() {
            return Ok(());
        }
        let first = block.first();
        match committer.commit(block, unix_microseconds()) {
            Ok(_) => {
                for (shard, sequence) in self.open.drain(..) {
                    self.durable.entry(shard).or_default().insert(sequence);
                }
                Ok(())
            }
            Err(error @ CommitError::NoSpace { .. }) => {
                self.appender.rewind(first);
                self.open.clear();
                Err(BuryError::Later(error.to_string()))
            }
            Err(error) => Err(BuryError::Failed(error.to_string())),
        }
    }
}

/// Reads all letters once. Damage in older segments is added to what recovery found in the newest.
fn read_index(mut reader: Reader, last: u64, findings: &mut Vec<Finding>) -> io::Result<Index> {
    let mut index = Index::new();
    let mut note = |record: &Record<'_>| {
        if let Some(dead) = record.dead {
            index.entry(dead.shard).or_default().insert(dead.sequence);
        }
    };
    while let Some(stretch) = reader.read(last)? {
        stretch.for_each_record(|_, record| note(record));
        let known =
            |new: &Finding| findings.iter().any(|old| (old.generation, old.offset) == (new.generation, new.offset));
        if let Some(new) = stretch.finding().filter(|new| !known(new)) {
            findings.push(new.clone());
        }
    }
    Ok(index)
}

fn later(error: io::Error) -> BuryError {
    BuryError::Later(format!("can't use the journal of dead letters: {error}"))
}

/// The wall clock in microseconds since 1970; for people only.
fn unix_microseconds() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
