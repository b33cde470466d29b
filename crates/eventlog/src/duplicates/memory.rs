//! What is remembered of ids, kept over restarts: the window, the files, and how far they have come.
//!
//! Files are written from the log itself, a stretch at a time: nothing waits in memory for it, and what couldn't be
//! written is read again. A segment is freed once the files have its ids.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use event::limits::DUPLICATE_WINDOW_BYTES;
use event::{EventId, Position};
use journal::{DataDirectory, Finding, Given, LOG_ENDS_EARLY, Reader, SEGMENT_HEADER_DAMAGED, SEGMENT_TRUNCATED};

use super::file::{Frame, IdFiles, Remembered};
use super::window::{Entry, Place, Seen, Window};
use crate::shard::Shard;

const DIRECTORY: &str = "duplicates";
/// What the files hold costs an fdatasync: it is written so often, unless segments wait to be freed.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);
/// Ids that are read and written at once: 2 MiB.
const FRAME_IDS_MAX: usize = 65_536;
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
    /// What the files said at the start, until the shards are there.
    loaded: Vec<Frame>,
    /// For each shard, up to where the files have its ids.
    up_to: Vec<u64>,
    at: Option<Instant>,
}

impl Memory {
    /// Reads the files of a data directory.
    pub(crate) fn open(directory: &DataDirectory, shards: u16) -> io::Result<Self> {
        let path = directory.path().join(DIRECTORY);
        let (files, loaded) = IdFiles::open(directory.disk().clone(), &path, IDS_KEPT)?;
        let saved = Saved { files, loaded, up_to: vec![0; usize::from(shards)], at: None };
        Ok(Self { window: Window::new(getrandom::u64()?), shards: OnceLock::new(), files: Mutex::new(saved) })
    }

    fn saved(&self) -> MutexGuard<'_, Saved> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns of the shards: what the files know of them, and what only their logs say. An event that recovery has
    /// found lost isn't stored, whatever a file says: it may come again.
    pub(crate) fn join(&self, shards: &[Arc<Shard>], findings: &[(u16, Finding)]) -> io::Result<()> {
        let mut saved = self.saved();
        let now = unix_microseconds();
        for mut frame in std::mem::take(&mut saved.loaded) {
            let shard = usize::from(frame.shard);
            let durable = shards.get(shard).map_or(0, |shard| shard.durable());
            let found = findings.iter().filter(|(number, _)| *number == frame.shard).map(|(_, finding)| finding);
            let is_lost = |sequence| sequence > durable || found.clone().any(|finding| loses(finding, sequence));
            frame.ids.retain(|known| !is_lost(known.sequence));
            remember(&self.window, &frame, now);
            // Where a frame is missing, what stands behind it is read from the log again, as far as it is there.
            if let Some(known) = saved.up_to.get_mut(shard)
                && (frame.after <= *known || *known == 0)
            {
                *known = frame.up_to.max(*known).min(durable);
            }
        }
        for shard in shards {
            let mut after = saved.up_to[usize::from(shard.number())];
            while after < shard.durable() {
                let frame = read(shard, after)?;
                remember(&self.window, &frame, now);
                after = frame.up_to;
            }
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

    /// Writes what is new, if it is time or a shard `needs` it to free a segment; returns up to where each shard's ids
    /// are safe.
    pub(crate) fn save(&self, needs: impl Fn(&Shard) -> bool) -> io::Result<Vec<u64>> {
        self.window.tick();
        let mut saved = self.saved();
        let is_due = saved.at.is_none_or(|at| at.elapsed() >= SAVE_INTERVAL);
        let shards: Vec<_> = self.shards.get().into_iter().flatten().filter_map(Weak::upgrade).collect();
        if is_due || shards.iter().any(|shard| needs(shard)) {
            saved.at = Some(Instant::now());
            shards.iter().try_for_each(|shard| saved.catch_up(shard))?;
        }
        Ok(saved.up_to.clone())
    }
}

impl Saved {
    fn catch_up(&mut self, shard: &Arc<Shard>) -> io::Result<()> {
        let known = usize::from(shard.number());
        let durable = shard.durable();
        while self.up_to[known] < durable {
            let frame = read(shard, self.up_to[known])?;
            let up_to = frame.up_to;
            self.files.append(&[frame])?;
            self.up_to[known] = up_to;
        }
        Ok(())
    }
}

/// Whether a finding means that this event is lost. Where files are missing nobody knows which are.
fn loses(finding: &Finding, sequence: u64) -> bool {
    matches!(finding.letter, SEGMENT_HEADER_DAMAGED | SEGMENT_TRUNCATED | LOG_ENDS_EARLY)
        || finding.lost.iter().any(|lost| lost.contains(&sequence))
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

/// The ids of what is durable behind `after`, up to [`FRAME_IDS_MAX`] and the rest of a block.
fn read(shard: &Arc<Shard>, after: u64) -> io::Result<Frame> {
    let durable = shard.durable();
    let mut frame =
        Frame { shard: shard.number(), after, up_to: after, written_at: unix_microseconds(), ids: Vec::new() };
    if shard.has_given_behind(after) {
        let mut reader = Reader::new(shard.segments().clone(), after + 1);
        while frame.ids.len() < FRAME_IDS_MAX {
            let Some(stretch) = reader.read(durable)? else { break };
            stretch.for_each_record(|sequence, record| {
                if sequence > after && sequence <= durable {
                    let own = record.content.map(|content| Given { id: record.id, content });
                    let given = own.into_iter().chain(record.batch);
                    frame.ids.extend(given.map(|Given { id, content }| Remembered { id, content, sequence }));
                }
            });
            frame.up_to = frame.up_to.max(stretch.end() - 1).min(durable);
        }
    }
    if frame.ids.len() < FRAME_IDS_MAX {
        frame.up_to = durable;
    }
    Ok(frame)
}

fn unix_microseconds() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
