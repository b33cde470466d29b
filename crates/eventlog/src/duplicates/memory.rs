//! What is remembered of ids, kept over restarts: the window, the files, and how far they have come.
//!
//! Files are written from the log itself, a stretch at a time: nothing waits in memory for it, and what couldn't be
//! written is read again. A segment is freed once the files have its ids.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use event::limits::DUPLICATE_WINDOW_BYTES;
use event::{EventId, Position};
use journal::{DataDirectory, Given, Reader};

use super::file::{Frame, IdFiles, Remembered};
use super::window::{Entry, Place, Seen, Window};
use crate::shard::Shard;

const DIRECTORY: &str = "duplicates";
/// What the files hold costs an fdatasync: it is written so often, unless segments wait to be freed.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);
/// Ids that the files hold at least: about as many as the window.
const IDS_KEPT: usize = DUPLICATE_WINDOW_BYTES / 64;

/// The memory of ids, of all shards.
pub(crate) struct Memory {
    window: Window,
    shards: OnceLock<Vec<Weak<Shard>>>,
    files: Mutex<Saved>,
}

struct Saved {
    files: IdFiles,
    /// For each shard, up to where the files have its ids.
    up_to: Vec<u64>,
    at: Option<Instant>,
}

impl Memory {
    /// Reads the files of a data directory.
    pub(crate) fn open(directory: &DataDirectory, shards: u16) -> io::Result<Self> {
        let path = directory.path().join(DIRECTORY);
        let (files, frames) = IdFiles::open(directory.disk().clone(), &path, IDS_KEPT)?;
        let window = Window::new(getrandom::u64()?);
        let mut up_to = vec![0; usize::from(shards)];
        let now = unix_microseconds();
        for frame in frames {
            remember(&window, &frame, now);
            // Where a frame is missing, what stands behind it is read from the log again, as far as it is there.
            if let Some(known) = up_to.get_mut(usize::from(frame.shard))
                && (frame.after <= *known || *known == 0)
            {
                *known = frame.up_to.max(*known);
            }
        }
        let files = Mutex::new(Saved { files, up_to, at: None });
        Ok(Self { window, shards: OnceLock::new(), files })
    }

    fn saved(&self) -> MutexGuard<'_, Saved> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns of the shards, and what their logs say of ids that the files don't have.
    pub(crate) fn join(&self, shards: &[Arc<Shard>]) -> io::Result<()> {
        let mut saved = self.saved();
        for shard in shards {
            let known = &mut saved.up_to[usize::from(shard.number())];
            // Files that are ahead of the log are of another one.
            *known = (*known).min(shard.durable());
            let frame = read(shard, *known)?;
            remember(&self.window, &frame, unix_microseconds());
        }
        // Once, by whoever opened the shards.
        let _ = self.shards.set(shards.iter().map(Arc::downgrade).collect());
        Ok(())
    }

    pub(crate) const fn window(&self) -> &Window {
        &self.window
    }

    fn shard(&self, position: Position) -> Option<Arc<Shard>> {
        self.shards.get()?.get(usize::from(position.shard))?.upgrade()
    }

    /// The shard that hasn't made a place durable yet; `None` where it has, or the place is of an earlier process.
    pub(super) fn behind(&self, place: Place) -> Option<Arc<Shard>> {
        let position = place.position();
        self.shard(position).filter(|shard| shard.durable() < position.sequence)
    }

    /// Forgets ids whose events were never written.
    pub(crate) fn forget(&self, ids: &[(EventId, Place)]) {
        ids.iter().for_each(|(id, place)| self.window.forget(*id, *place));
    }

    /// Writes what is new, if it is time or `needed` up to there; returns up to where each shard's ids are safe.
    pub(crate) fn save(&self, needed: &[u64]) -> io::Result<Vec<u64>> {
        self.window.tick();
        let mut saved = self.saved();
        let is_due = saved.at.is_none_or(|at| at.elapsed() >= SAVE_INTERVAL);
        let is_needed = saved.up_to.iter().zip(needed).any(|(up_to, needed)| up_to < needed);
        if is_due || is_needed {
            saved.at = Some(Instant::now());
            let shards = self.shards.get().into_iter().flatten().filter_map(Weak::upgrade);
            let moved = shards.filter(|shard| shard.durable() > saved.up_to[usize::from(shard.number())]);
            let frames: Vec<_> =
                moved.map(|shard| read(&shard, saved.up_to[usize::from(shard.number())])).collect::<io::Result<_>>()?;
            if !frames.is_empty() {
                saved.files.append(&frames)?;
                frames.iter().for_each(|frame| saved.up_to[usize::from(frame.shard)] = frame.up_to);
            }
        }
        Ok(saved.up_to.clone())
    }
}

fn remember(window: &Window, frame: &Frame, now: i64) {
    let seconds = (frame.written_at - now).min(0) / 1_000_000;
    let at = i32::try_from(seconds).unwrap_or(i32::MIN);
    for Remembered { id, content, sequence } in &frame.ids {
        let place = Place::new(frame.shard, *sequence);
        // One that is known already stands in two frames.
        let _: Seen = window.insert(Entry { id: *id, content: *content, place, at });
    }
}

/// The ids of all that is durable behind `after`.
fn read(shard: &Arc<Shard>, after: u64) -> io::Result<Frame> {
    let up_to = shard.durable();
    let mut ids = Vec::new();
    if shard.has_given_behind(after) {
        let mut reader = Reader::new(shard.segments().clone(), after + 1);
        while let Some(stretch) = reader.read(up_to)? {
            stretch.for_each_record(|sequence, record| {
                if sequence > after && sequence <= up_to {
                    let own = record.content.map(|content| Given { id: record.id, content });
                    let given = own.into_iter().chain(record.batch);
                    ids.extend(given.map(|Given { id, content }| Remembered { id, content, sequence }));
                }
            });
        }
    }
    Ok(Frame { shard: shard.number(), after, up_to, written_at: unix_microseconds(), ids })
}

fn unix_microseconds() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
