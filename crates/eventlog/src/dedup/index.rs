//! The persistent dedup index: the window in memory, the id files, and how far the files are written.
//!
//! The files are written from the log itself, one chunk at a time: nothing is buffered for them, and chunks that
//! couldn't be written are read again. A segment is freed once the files have its ids.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use event::{EventId, Position};
use journal::{DataDirectory, Finding};
use limits::DUPLICATE_WINDOW_BYTES;

use super::entry::PackedPosition;
use super::id_file::{Frame, IdFiles};
use super::keyed_ids::read_frame;
use super::restore::RestoredIds;
use super::validity::Validity;
use super::window::DedupWindow;
use crate::committed_log::CommittedLog;

const DIRECTORY: &str = "duplicates";
/// Each write of the files costs an fdatasync: so they are written this often, unless segments wait to be freed.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);
/// A chunk without ids is only recorded in the files after this time, or after this many bytes: else the files would
/// grow for as long as the server runs. A start reads the log from there on, which takes little time.
const EMPTY_INTERVAL: Duration = Duration::from_mins(1);
const EMPTY_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Ids that the files hold at least: about as many as the window.
const IDS_KEPT: usize = DUPLICATE_WINDOW_BYTES / 64;

/// The dedup index of all shards.
pub(crate) struct DedupIndex {
    window: DedupWindow,
    /// How often ids of events that were never written were removed.
    removals: AtomicU64,
    attached: OnceLock<Attached>,
}

/// The logs of the shards, once they are open.
struct Attached {
    logs: Vec<Arc<CommittedLog>>,
    saved: Mutex<Saved>,
}

struct Saved {
    files: IdFiles,
    /// By shard.
    progress: Vec<Progress>,
    at: Option<Instant>,
}

/// How far a shard's ids are saved.
struct Progress {
    /// No id up to here is missing in the files.
    up_to: u64,
    /// The last sequence that the files cover, and since when: the log has no ids between the two.
    written: u64,
    written_at: Instant,
}

impl Progress {
    fn new(written: u64) -> Self {
        Self { up_to: written, written, written_at: Instant::now() }
    }

    fn is_far_behind(&self, log: &CommittedLog) -> bool {
        self.written_at.elapsed() >= EMPTY_INTERVAL
            || log.segments().bytes_after(self.written, log.durable()) >= EMPTY_BYTES_MAX
    }
}

impl DedupIndex {
    /// An empty index: it recognises duplicates of later appends.
    pub(crate) fn new(window_bytes: usize) -> io::Result<Self> {
        let window = DedupWindow::new(getrandom::u64()?, window_bytes);
        Ok(Self { window, removals: AtomicU64::new(0), attached: OnceLock::new() })
    }

    /// Loads the valid part of the data directory's id files, and removes the rest from the files permanently. Call it
    /// before a start makes any of recovery's results final.
    pub(crate) fn restore(
        &self,
        directory: &DataDirectory,
        validity: Validity,
    ) -> io::Result<(IdFiles, RestoredIds<'_>)> {
        let mut restored = RestoredIds::new(&self.window, validity);
        let mut files = open_files(directory, |frame| restored.add(frame))?;
        restored.repair(&mut files)?;
        Ok((files, restored))
    }

    /// Loads what only the logs of the shards have, and uses these logs from now on.
    pub(crate) fn attach(
        &self,
        files: IdFiles,
        restored: RestoredIds<'_>,
        logs: Vec<Arc<CommittedLog>>,
    ) -> io::Result<()> {
        let progress = restored.read_logs(&logs)?.into_iter().map(Progress::new).collect();
        let saved = Mutex::new(Saved { files, progress, at: None });
        // Once, when the log is opened.
        let _ = self.attached.set(Attached { logs, saved });
        Ok(())
    }

    pub(crate) const fn window(&self) -> &DedupWindow {
        &self.window
    }

    /// Whether there is an event at this position, and it is durable.
    pub(crate) fn has(&self, position: Position) -> bool {
        self.log(position).is_some_and(|log| position.sequence > 0 && log.durable() >= position.sequence)
    }

    fn log(&self, position: Position) -> Option<&Arc<CommittedLog>> {
        self.attached.get()?.logs.get(usize::from(position.shard))
    }

    /// The log that must still make a position durable; `None` if the position is durable, or is of an earlier process.
    pub(super) fn undurable_log(&self, position: PackedPosition) -> Option<&CommittedLog> {
        let position = position.position();
        self.log(position).filter(|log| log.durable() < position.sequence).map(|log| &**log)
    }

    /// Removes ids whose events were never written.
    pub(crate) fn remove(&self, ids: &[(EventId, PackedPosition)]) {
        if ids.is_empty() {
            return;
        }
        // Before the first removal: if a reader finds an entry gone and the count unchanged, newer entries have
        // replaced the entry.
        self.removals.fetch_add(1, Ordering::SeqCst);
        ids.iter().for_each(|(id, position)| self.window.remove(*id, *position));
    }

    /// How many removals were begun.
    pub(super) fn removals(&self) -> u64 {
        self.removals.load(Ordering::SeqCst)
    }

    /// Writes new ids to the files, if it is time or if `is_urgent` says that a segment of a shard can be freed then. Returns up to where
    /// each shard's ids are saved.
    pub(crate) fn save(&self, is_urgent: impl Fn(&CommittedLog) -> bool) -> io::Result<Vec<u64>> {
        self.window.tick();
        let Some(Attached { logs, saved }) = self.attached.get() else { return Ok(Vec::new()) };
        let mut saved = saved.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = saved.at.is_none_or(|at| at.elapsed() >= SAVE_INTERVAL);
        if is_due || logs.iter().any(|log| is_urgent(log)) {
            saved.at = Some(Instant::now());
            logs.iter().try_for_each(|log| saved.catch_up(log))?;
        }
        Ok(saved.progress.iter().map(|progress| progress.up_to).collect())
    }
}

impl Saved {
    fn catch_up(&mut self, log: &CommittedLog) -> io::Result<()> {
        let Self { files, progress, .. } = self;
        let progress = &mut progress[usize::from(log.number())];
        let durable = log.durable();
        while progress.up_to < durable {
            let frame = read_frame(log, progress.up_to)?;
            let up_to = frame.up_to;
            if !frame.ids.is_empty() || progress.is_far_behind(log) {
                files.append(&Frame { after: progress.written, ..frame })?;
                *progress = Progress::new(up_to);
            }
            progress.up_to = up_to;
        }
        Ok(())
    }
}

fn open_files(directory: &DataDirectory, take: impl FnMut(Frame)) -> io::Result<IdFiles> {
    IdFiles::open(directory.disk().clone(), &directory.path().join(DIRECTORY), IDS_KEPT, take)
}

/// The id files that are damaged. Changes nothing.
///
/// The file system's error.
/// The file system's error.
pub fn damaged_id_files(directory: &DataDirectory) -> io::Result<Vec<PathBuf>> {
    IdFiles::damaged(directory.disk(), &directory.path().join(DIRECTORY))
}

/// Removes the ids of lost events from the files. Call it before a tool makes `findings`, those of each shard by
/// number, final. The next start reads the ids after a damaged range from the log.
///
/// # Errors
/// The file system's error: then the files may still have such ids.
pub fn forget_lost_ids(directory: &DataDirectory, findings: &[Vec<Finding>]) -> io::Result<()> {
    let validity = Validity::new(findings.iter().map(|found| (u64::MAX, found.as_slice())));
    DedupIndex::new(DUPLICATE_WINDOW_BYTES)?.restore(directory, validity).map(drop)
}
