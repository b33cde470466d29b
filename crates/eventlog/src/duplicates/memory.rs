//! What is remembered of ids, kept over restarts: the window, the files, and how far they have come.
//!
//! Files are written from the log itself, a stretch at a time: nothing waits in memory for it, and what couldn't be
//! written is read again. A segment is freed once the files have its ids.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use event::limits::DUPLICATE_WINDOW_BYTES;
use event::{EventId, Position};
use journal::{DataDirectory, Finding, Reader};

use super::file::{Frame, IdFiles, Remembered};
use super::given::given_in;
use super::recall::Recalled;
use super::trust::Trust;
use super::window::{Place, Window};
use crate::shard::Shard;
use clock::unix_microseconds;

const DIRECTORY: &str = "duplicates";
/// What the files hold costs an fdatasync: it is written so often, unless segments wait to be freed.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);
/// Of stretches without ids the files are told this seldom, or when so many bytes have come: else they would grow for as
/// long as the server runs. A start reads the log from there on, which takes no time worth speaking of.
const EMPTY_INTERVAL: Duration = Duration::from_mins(1);
const EMPTY_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Ids that are read and written at once: 2 MiB.
pub(super) const FRAME_IDS_MAX: usize = 65_536;
/// Ids that the files hold at least: about as many as the window.
const IDS_KEPT: usize = DUPLICATE_WINDOW_BYTES / 64;

/// The memory of ids, of all shards.
pub(crate) struct Memory {
    window: Window,
    /// Times that ids of what was never written were forgotten.
    forgets: AtomicU64,
    joined: OnceLock<Joined>,
}

/// What it has once the shards are there.
struct Joined {
    shards: Vec<Weak<Shard>>,
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
    /// What the files say, and since when: what stands between the two has no ids.
    written: u64,
    written_at: Instant,
}

impl Progress {
    fn new(written: u64) -> Self {
        Self { up_to: written, written, written_at: Instant::now() }
    }

    fn is_far_behind(&self, shard: &Shard) -> bool {
        self.written_at.elapsed() >= EMPTY_INTERVAL
            || shard.segments().bytes_behind(self.written, shard.durable()) >= EMPTY_BYTES_MAX
    }
}

impl Memory {
    /// An empty one: it recognises what comes twice from now on.
    pub(crate) fn new(window_bytes: usize) -> io::Result<Self> {
        let window = Window::new(getrandom::u64()?, window_bytes);
        Ok(Self { window, forgets: AtomicU64::new(0), joined: OnceLock::new() })
    }

    /// Learns what the files in the data directory know, as far as it holds, and leaves no more than that in them. What it
    /// mustn't believe it forgets for good, so it is to be asked before a start makes anything of the logs final.
    pub(crate) fn recall(&self, directory: &DataDirectory, trust: Trust) -> io::Result<(IdFiles, Recalled<'_>)> {
        let mut recalled = Recalled::new(&self.window, trust);
        let mut files = open_files(directory, |frame| recalled.take(frame))?;
        recalled.mend(&mut files)?;
        Ok((files, recalled))
    }

    /// Learns of the shards: what only their logs say.
    pub(crate) fn join(&self, (files, recalled): (IdFiles, Recalled<'_>), shards: &[Arc<Shard>]) -> io::Result<()> {
        let progress = recalled.read_logs(shards)?.into_iter().map(Progress::new).collect();
        let saved = Mutex::new(Saved { files, progress, at: None });
        // Once, by whoever opened the shards.
        let _ = self.joined.set(Joined { shards: shards.iter().map(Arc::downgrade).collect(), saved });
        Ok(())
    }

    pub(crate) const fn window(&self) -> &Window {
        &self.window
    }

    /// Whether there is an event at this position, and it is durable.
    pub(crate) fn has(&self, position: Position) -> bool {
        self.shard(position).is_some_and(|shard| position.sequence > 0 && shard.durable() >= position.sequence)
    }

    fn shard(&self, position: Position) -> Option<Arc<Shard>> {
        self.joined.get()?.shards.get(usize::from(position.shard))?.upgrade()
    }

    /// The shard that hasn't made a place durable yet; `None` where it has, or the place is of an earlier process.
    pub(super) fn behind(&self, place: Place) -> Option<Arc<Shard>> {
        let position = place.position();
        self.shard(position).filter(|shard| shard.durable() < position.sequence)
    }

    /// Forgets ids whose events were never written.
    pub(crate) fn forget(&self, ids: &[(EventId, Place)]) {
        if ids.is_empty() {
            return;
        }
        // Before the first of them goes: whoever finds one gone, and then the same number as when it was there, knows that it had to make
        // way for others.
        self.forgets.fetch_add(1, Ordering::SeqCst);
        ids.iter().for_each(|(id, place)| self.window.forget(*id, *place));
    }

    /// How often that was begun.
    pub(super) fn forgets(&self) -> u64 {
        self.forgets.load(Ordering::SeqCst)
    }

    /// Writes what is new, if it is time or a shard `needs` it to free a segment; returns up to where each shard's ids
    /// are safe.
    pub(crate) fn save(&self, needs: impl Fn(&Shard) -> bool) -> io::Result<Vec<u64>> {
        self.window.tick();
        let Some(Joined { shards, saved }) = self.joined.get() else { return Ok(Vec::new()) };
        let mut saved = saved.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = saved.at.is_none_or(|at| at.elapsed() >= SAVE_INTERVAL);
        let shards: Vec<_> = shards.iter().filter_map(Weak::upgrade).collect();
        if is_due || shards.iter().any(|shard| needs(shard)) {
            saved.at = Some(Instant::now());
            shards.iter().try_for_each(|shard| saved.catch_up(shard))?;
        }
        Ok(saved.progress.iter().map(|progress| progress.up_to).collect())
    }
}

impl Saved {
    fn catch_up(&mut self, shard: &Arc<Shard>) -> io::Result<()> {
        let Self { files, progress, .. } = self;
        let progress = &mut progress[usize::from(shard.number())];
        let durable = shard.durable();
        while progress.up_to < durable {
            let frame = read(shard, progress.up_to)?;
            let up_to = frame.up_to;
            if !frame.ids.is_empty() || progress.is_far_behind(shard) {
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

/// The files of ids that are damaged. Changes nothing.
///
/// # Errors
/// What the file system says.
pub fn damaged_id_files(directory: &DataDirectory) -> io::Result<Vec<PathBuf>> {
    IdFiles::damaged(directory.disk(), &directory.path().join(DIRECTORY))
}

/// Forgets the ids of events that are lost, before `findings`, those of each shard by number, are made final by others than a start.
/// What is there behind a damaged place the next start reads from the log.
///
/// # Errors
/// What the file system says: then the files may still have such ids.
pub fn forget_lost_ids(directory: &DataDirectory, findings: &[Vec<Finding>]) -> io::Result<()> {
    let trust = Trust::new(findings.iter().map(|found| (u64::MAX, found.as_slice())));
    Memory::new(DUPLICATE_WINDOW_BYTES)?.recall(directory, trust).map(drop)
}

/// The ids of what is durable behind `after`, up to [`FRAME_IDS_MAX`] and the rest of a block.
pub(super) fn read(shard: &Arc<Shard>, after: u64) -> io::Result<Frame> {
    let durable = shard.durable();
    let mut frame =
        Frame { shard: shard.number(), after, up_to: after, written_at: unix_microseconds(), ids: Vec::new() };
    if shard.has_given_behind(after) {
        let mut reader = Reader::new(shard.segments().clone(), after + 1);
        while frame.ids.len() < FRAME_IDS_MAX {
            let Some(stretch) = reader.read(durable)? else { break };
            let is_new = |known: &Remembered| known.sequence > after && known.sequence <= durable;
            frame.ids.extend(given_in(&stretch).into_iter().filter(is_new));
            frame.up_to = frame.up_to.max(stretch.end() - 1).min(durable);
        }
    }
    if frame.ids.len() < FRAME_IDS_MAX {
        frame.up_to = durable;
    }
    Ok(frame)
}
