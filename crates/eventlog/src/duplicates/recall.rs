//! The window as it was before the process started: from the files of ids, and from the logs where the files end.

use std::io;
use std::sync::Arc;

use journal::{Finding, LOG_ENDS_EARLY, SEGMENT_HEADER_DAMAGED, SEGMENT_TRUNCATED};

use super::file::{Frame, Remembered};
use super::memory::{FRAME_IDS_MAX, read};
use super::window::{Entry, Place, Window};
use crate::shard::Shard;
use crate::wall_clock::unix_microseconds;

/// Findings that lose events of which nobody knows the sequences.
const LOST_UNCOUNTED: [char; 3] = [SEGMENT_HEADER_DAMAGED, SEGMENT_TRUNCATED, LOG_ENDS_EARLY];

/// What the window is being told.
pub(super) struct Recalled<'a> {
    window: &'a Window,
    shards: &'a [Arc<Shard>],
    findings: &'a [(u16, Finding)],
    now: i64,
    /// For each shard, up to where the files have its ids.
    up_to: Vec<u64>,
    /// Whether the files have ids of events that are lost.
    has_lost: bool,
    /// What the window gets next: many ids at once are quicker than one by one.
    entries: Vec<Entry>,
}

impl<'a> Recalled<'a> {
    pub(super) fn new(window: &'a Window, shards: &'a [Arc<Shard>], findings: &'a [(u16, Finding)]) -> Self {
        let up_to = vec![0; shards.len()];
        Self { window, shards, findings, now: unix_microseconds(), up_to, has_lost: false, entries: Vec::new() }
    }

    /// Takes what a file says.
    pub(super) fn take(&mut self, frame: Frame) {
        let (shard, ids) = (frame.shard, frame.ids.len());
        let Some(frame) = self.that_is_there(frame) else {
            self.has_lost = true;
            return;
        };
        self.has_lost |= frame.ids.len() < ids;
        self.remember(&frame);
        // Where a frame is missing, what stands behind it is read from the log again, as far as it is there.
        let durable = self.durable(shard);
        if let Some(known) = self.up_to.get_mut(usize::from(shard))
            && (frame.after <= *known || *known == 0)
        {
            *known = frame.up_to.max(*known).min(durable);
        }
    }

    fn durable(&self, shard: u16) -> u64 {
        self.shards.get(usize::from(shard)).map_or(0, |shard| shard.durable())
    }

    /// Whether the files must be written anew, with what [`Recalled::that_is_there`] leaves of them: the next start won't
    /// find what this one has found.
    pub(super) const fn has_lost(&self) -> bool {
        self.has_lost
    }

    /// What the files had is written again, as far as the logs have it.
    pub(super) fn files_are_gone(&mut self) {
        self.up_to.fill(0);
    }

    /// What of a frame holds. An event that recovery has found lost isn't stored, whatever a file says: it may come again.
    /// Where nobody knows which events are lost, only the log says which are there, and `None` of the frame holds.
    pub(super) fn that_is_there(&self, mut frame: Frame) -> Option<Frame> {
        let durable = self.durable(frame.shard);
        let found = self.findings.iter().filter(|(number, _)| *number == frame.shard).map(|(_, finding)| finding);
        if found.clone().any(|finding| LOST_UNCOUNTED.contains(&finding.letter)) {
            return None;
        }
        let is_lost = |sequence| found.clone().flat_map(|finding| &finding.lost).any(|lost| lost.contains(&sequence));
        frame.ids.retain(|known| known.sequence <= durable && !is_lost(known.sequence));
        Some(frame)
    }

    /// Reads what only the logs say; returns for each shard up to where the files have its ids.
    pub(super) fn read_logs(mut self) -> io::Result<Vec<u64>> {
        for shard in self.shards {
            let mut after = self.up_to[usize::from(shard.number())];
            while after < shard.durable() {
                let frame = read(shard, after)?;
                self.remember(&frame);
                after = frame.up_to;
            }
        }
        self.tell();
        Ok(self.up_to)
    }

    fn remember(&mut self, frame: &Frame) {
        let seconds = (frame.written_at - self.now).min(0) / 1_000_000;
        let at = i32::try_from(seconds).unwrap_or(i32::MIN);
        self.entries.extend(frame.ids.iter().map(|Remembered { id, content, sequence }| {
            let place = Place::new(frame.shard, *sequence);
            Entry { id: *id, content: *content, place, at }
        }));
        if self.entries.len() >= FRAME_IDS_MAX {
            self.tell();
        }
    }

    fn tell(&mut self) {
        self.window.insert_all(&self.entries);
        self.entries.clear();
    }
}
