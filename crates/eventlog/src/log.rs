//! All shards of a process, opened together.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use event::{Origin, TypeName};
use journal::{
    CommitError, DataDirectory, Finding, FoundShard, OpenError, OpenShard, Reader, Segments, ShardOptions, find_shard,
    open_shard,
};
use limits::memory::Budgets;
use limits::{SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN};
use tokio::sync::watch;

use crate::accepted_counts::{Accepted, AcceptedCounts, FilterStep, TypeCounts};
use crate::committed_log::CommittedLog;
use crate::dedup::{ContentHash, DedupIndex, Validity};
use crate::delivery_watch::DeliveryWatch;
use crate::disk_watermark::DiskGuard;
use crate::journal_failure::JournalFailure;
use crate::losses::{Losses, LostFrom};
use crate::shard::{Shard, SharedState};
use crate::type_registry::Types;

/// The options of an event log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// How many shards to open. To miss none, at least as many as the directory has
    /// ([`DataDirectory::shards_on_disk`]).
    pub shards: u16,
    /// Events accepted earlier, by type, as last saved.
    pub accepted: Vec<(TypeName, u64)>,
    /// For each shard the last sequence that `accepted` counts.
    pub counted_up_to: Vec<u64>,
    /// Events that steps removed earlier, as last saved.
    pub filtered: Vec<(FilterStep, u64)>,
    /// For each shard the greatest cursor that any sink has reported: new events get later positions.
    pub cursors: Vec<u64>,
    /// Bytes of a shard's first segment; tests use small ones.
    pub first_segment_bytes: u64,
    /// Whether a thread creates segments ahead of need; see [`ShardOptions::segments_ahead`].
    pub segments_ahead: bool,
    /// Bytes of the disk that are kept free; see [`DiskGuard`].
    pub keep_free: Option<u64>,
    /// How much of the process's memory the log may use.
    pub memory: Budgets,
    /// Commits that take longer than this, on average, are handed to a thread.
    pub inline_commit_max: Duration,
    /// Called for each defect that recovery finds, with the shard, before recovery changes the disk. The next start may
    /// not find it again, even if this one fails later.
    pub report: fn(u16, &Finding),
}

/// A disk has space for at least this many segments of the greatest length.
const SEGMENTS_ON_DISK_MIN: u64 = 32;
/// Up to this time it is quicker to wait for an fdatasync than to wake another thread and be woken by it.
const INLINE_COMMIT_MAX: Duration = Duration::from_millis(1);

impl Default for LogOptions {
    fn default() -> Self {
        let none = Vec::new;
        Self {
            shards: 1,
            accepted: Vec::new(),
            filtered: Vec::new(),
            counted_up_to: none(),
            cursors: none(),
            first_segment_bytes: SEGMENT_BYTES_MIN,
            segments_ahead: true,
            keep_free: None,
            memory: Budgets::FULL,
            inline_commit_max: INLINE_COMMIT_MAX,
            report: |_, _| {},
        }
    }
}

/// Why an event log can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenLogError {
    /// A shard's journal can't be opened.
    #[error(transparent)]
    Journal(#[from] OpenError),
    /// Events that were accepted since the counts were saved can't be read.
    #[error(
        "cannot count the events of shard {shard} since the last save: {source}. Check the disk and permissions of \
         the data directory, then start Forebay again"
    )]
    Count {
        /// The shard.
        shard: u16,
        /// The file system's error.
        source: io::Error,
    },
    /// The segments that wait for stores can't be measured.
    #[error(
        "cannot measure the journal: {0}. Check the disk and permissions of the data directory, then start Forebay \
         again"
    )]
    Space(io::Error),
    /// Losses that were found can't be read or recorded.
    #[error(
        "cannot record the loss in losses.0 and losses.1: {0}. Check the disk and permissions of the data directory, \
         then start Forebay again"
    )]
    Losses(io::Error),
    /// The ids for deduplication can't be read.
    #[error(
        "cannot read the ids for deduplication: {0}. Check the disk and permissions of the data directory, then start \
         Forebay again"
    )]
    Ids(io::Error),
}

/// The event log of a process.
pub struct EventLog {
    shards: Vec<Arc<Shard>>,
    types: Arc<Types>,
    accepted: Arc<Accepted>,
    dedup: Arc<DedupIndex>,
    disk_guard: Arc<DiskGuard>,
    delivery_watch: Arc<DeliveryWatch>,
    origin: Origin,
    findings: Vec<(u16, Finding)>,
    losses: Arc<Losses>,
    failure: watch::Sender<Option<String>>,
}

impl EventLog {
    /// Opens the journals of all shards, and counts the events that were accepted since the counts were saved.
    ///
    /// # Errors
    /// [`OpenLogError`]: nothing can be accepted.
    pub fn open(directory: &DataDirectory, options: &LogOptions) -> Result<Self, OpenLogError> {
        let types = Arc::new(Types::default());
        let block_numbers = Arc::new(AtomicU64::new(1));
        let failure = watch::Sender::new(None);
        let disk_guard = disk_guard(directory, options).map_err(OpenLogError::Space)?;
        let shard_options: Vec<_> = (0..options.shards)
            .map(|shard| shard_options(directory, options, shard, &block_numbers, &disk_guard))
            .collect();
        let found = find_shards(&shard_options, options.report)?;
        let losses = find_losses(directory, options, &found).map_err(OpenLogError::Losses)?;
        let dedup = Arc::new(DedupIndex::new(options.memory.duplicate_window_bytes).map_err(OpenLogError::Ids)?);
        let validity = Validity::new(found.iter().map(|shard| (shard.durable(), shard.findings())));
        let (id_files, restored) = dedup.restore(directory, validity).map_err(OpenLogError::Ids)?;
        // Only now: opening changes the journal, and the next start doesn't find what this one has found.
        let Opened { shards: opened, counts, findings } = open_shards(directory, options, found, &types)?;
        let accepted = Arc::new(Accepted::new(counts));
        let inline = options.inline_commit_max;
        let delivery_watch = Arc::<DeliveryWatch>::default();
        let shared = SharedState {
            accepted: accepted.clone(),
            dedup: dedup.clone(),
            disk_guard: disk_guard.clone(),
            budgets: options.memory,
            long_syncs: Arc::default(),
        };
        let new =
            |(shard, journal)| Shard::new(shard, journal, inline, shared.clone(), JournalFailure(failure.clone()));
        let shards: Vec<_> = (0..).zip(opened).map(new).collect();
        let logs = shards.iter().map(|shard: &Arc<Shard>| shard.committed().clone()).collect();
        dedup.attach(id_files, restored, logs).map_err(OpenLogError::Ids)?;
        Ok(Self {
            shards,
            types,
            accepted,
            dedup,
            disk_guard,
            delivery_watch,
            origin: directory.origin(),
            findings,
            losses,
            failure,
        })
    }

    /// The shards, by number.
    #[must_use]
    pub fn shards(&self) -> &[Arc<Shard>] {
        &self.shards
    }

    /// The types that have been seen.
    #[must_use]
    pub const fn types(&self) -> &Arc<Types> {
        &self.types
    }

    /// How many events were accepted.
    #[must_use]
    pub const fn accepted(&self) -> &Arc<Accepted> {
        &self.accepted
    }

    /// Whether the disk has room for more events.
    #[must_use]
    pub const fn disk_guard(&self) -> &Arc<DiskGuard> {
        &self.disk_guard
    }

    /// The subscriptions of requests that wait for delivery.
    #[must_use]
    pub const fn delivery_watch(&self) -> &Arc<DeliveryWatch> {
        &self.delivery_watch
    }

    /// A hash for the bytes that come with an id.
    #[must_use]
    pub fn content_hash(&self) -> ContentHash {
        ContentHash::new(self.origin)
    }

    /// Writes the ids that clients gave to separate files: from time to time, and immediately if a segment up to
    /// `limits`, one for each shard, waits to be freed. Returns up to where segments may be freed without forgetting
    /// ids.
    ///
    /// # Errors
    /// The file system's error; the next call tries again.
    pub fn save_ids(&self, limits: &[u64]) -> io::Result<Vec<u64>> {
        let limit = |log: &CommittedLog| limits.get(usize::from(log.number())).copied().unwrap_or_default();
        self.dedup.save(|log| log.segments().can_free_up_to(limit(log)))
    }

    /// How far back duplicates are recognised: the age of the oldest id in the window.
    #[must_use]
    pub fn ids_age(&self) -> Duration {
        self.dedup.window().age()
    }

    /// How many ids are remembered.
    #[must_use]
    pub fn ids_remembered(&self) -> usize {
        self.dedup.window().len()
    }

    /// Bytes of memory that these ids take.
    #[must_use]
    pub fn ids_bytes(&self) -> usize {
        self.dedup.window().bytes()
    }

    /// The defects that recovery found, with the shard.
    #[must_use]
    pub fn findings(&self) -> &[(u16, Finding)] {
        &self.findings
    }

    /// Acknowledged events that this start and earlier ones have found lost.
    #[must_use]
    pub const fn losses(&self) -> &Arc<Losses> {
        &self.losses
    }

    /// Resolves to the reason when a journal has failed.
    pub async fn failed(&self) -> String {
        let mut failure = self.failure.subscribe();
        match failure.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            // The sender lives in `self`.
            Err(_) => std::future::pending().await,
        }
    }
}

/// On a nearly full disk the segments of the last process keep their reserve, so starts in quick succession don't use
/// space that stores will need.
fn disk_guard(directory: &DataDirectory, options: &LogOptions) -> io::Result<Arc<DiskGuard>> {
    let guard = DiskGuard::new(directory.disk().clone(), directory.path().into(), options.keep_free);
    guard.reserve(directory.segment_bytes()?, 0, 1, guard.bytes_begun());
    Ok(Arc::new(guard))
}

/// Examines the journals of all shards, and reports each shard's findings as soon as it is read.
fn find_shards(options: &[ShardOptions], report: fn(u16, &Finding)) -> Result<Vec<FoundShard<'_>>, OpenError> {
    let find = |options| {
        let found = find_shard(options)?;
        found.findings().iter().for_each(|finding| report(options.shard, finding));
        Ok(found)
    };
    options.iter().map(find).collect()
}

/// Makes losses durable before the journals are opened: the next start doesn't find them again.
fn find_losses(directory: &DataDirectory, options: &LogOptions, found: &[FoundShard<'_>]) -> io::Result<Arc<Losses>> {
    let losses = Losses::open(directory)?;
    for (shard, found) in (0..).zip(found) {
        let counted = options.counted_up_to.get(usize::from(shard)).copied().unwrap_or_default();
        directory.reserve().help(|| losses.add(&LostFrom::Shard(shard), found.findings(), counted))?;
    }
    Ok(Arc::new(losses))
}

struct Opened {
    shards: Vec<OpenShard>,
    counts: AcceptedCounts,
    findings: Vec<(u16, Finding)>,
}

fn open_shards(
    directory: &DataDirectory,
    options: &LogOptions,
    found: Vec<FoundShard<'_>>,
    types: &Types,
) -> Result<Opened, OpenLogError> {
    let mut opened = Opened { shards: Vec::new(), counts: saved_counts(types, options), findings: Vec::new() };
    for (shard, found) in (0..).zip(found) {
        let mut journal = open_with_reserve(directory, found)?;
        let findings = std::mem::take(&mut journal.findings);
        opened.findings.extend(findings.into_iter().map(|finding| (shard, finding)));
        let counted_up_to = &mut opened.counts.counted_up_to[usize::from(shard)];
        let count = count_types(types, &journal.segments, *counted_up_to, journal.durable)
            .map_err(|source| OpenLogError::Count { shard, source })?;
        *counted_up_to = journal.durable;
        count.add_to(&mut opened.counts.by_type);
        opened.shards.push(journal);
    }
    Ok(opened)
}

/// On a full disk the reserve makes room for the segment that a start needs: without it nothing could be delivered.
fn open_with_reserve(directory: &DataDirectory, found: FoundShard<'_>) -> Result<OpenShard, OpenError> {
    let options = found.options();
    match found.open() {
        // Nothing has changed on disk.
        Err(OpenError::Commit(CommitError::NoSpace { .. })) if directory.reserve().release() => open_shard(options),
        opened => opened,
    }
}

fn saved_counts(types: &Types, options: &LogOptions) -> AcceptedCounts {
    let filtered = options.filtered.iter().cloned().collect();
    let mut counts = AcceptedCounts { by_type: Vec::new(), counted_up_to: options.counted_up_to.clone(), filtered };
    counts.counted_up_to.resize(usize::from(options.shards), 0);
    let mut saved = TypeCounts::default();
    for (name, events) in &options.accepted {
        saved.count(types.intern(name), *events);
    }
    saved.add_to(&mut counts.by_type);
    counts
}

fn shard_options(
    directory: &DataDirectory,
    options: &LogOptions,
    shard: u16,
    block_numbers: &Arc<AtomicU64>,
    disk_guard: &DiskGuard,
) -> ShardOptions {
    let index = usize::from(shard);
    let seen = |sequences: &[u64]| sequences.get(index).copied().unwrap_or_default();
    ShardOptions {
        quota: Some(disk_guard.quota().clone()),
        block_numbers: block_numbers.clone(),
        next_at_least: 1 + seen(&options.cursors).max(seen(&options.counted_up_to)),
        first_segment_bytes: options.first_segment_bytes,
        segments_ahead: options.segments_ahead,
        segment_bytes_max: segment_bytes_max(directory),
        ..ShardOptions::new(directory.disk().clone(), directory.shard(shard), directory.origin(), shard)
    }
}

/// On a small disk segments stay small, so the newest and its successor leave enough space to free the others.
fn segment_bytes_max(directory: &DataDirectory) -> u64 {
    let bytes_all = directory.disk().space(directory.path()).map_or(u64::MAX, |space| space.bytes_all);
    (bytes_all / SEGMENTS_ON_DISK_MIN).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX)
}

fn count_types(types: &Types, segments: &Segments, after: u64, durable: u64) -> io::Result<TypeCounts> {
    let mut counts = TypeCounts::default();
    let mut reader = Reader::new(segments.clone(), after + 1);
    while let Some(chunk) = reader.read(durable)? {
        chunk.for_each_record(|sequence, record| {
            if sequence > after
                && let Some(id) = types.intern_text(record.type_name)
            {
                counts.count(id, 1);
            }
        });
    }
    Ok(counts)
}
