//! The window as it was before the process started: from the files of ids, and from the logs where the files end.

use std::io;
use std::sync::Arc;

use journal::{Finding, LOG_ENDS_EARLY, SEGMENT_HEADER_DAMAGED, SEGMENT_TRUNCATED};

use super::file::{Frame, Remembered};
use super::memory::{FRAME_IDS_MAX, read};
use super::window::{Entry, Place, Window};
use crate::shard::Shard;
use crate::wall_clock::unix_microseconds;

/// What the window is being told.
pub(super) struct Recalled<'a> {
    window: &'a Window,
    shards: &'a [Arc<Shard>],
    findings: &'a [(u16, Finding)],
    now: i64,
    /// For each shard, up to where the files have its ids.
    up_to: Vec<u64>,
    /// What the window gets next: many ids at once are quicker than one by one.
    entries: Vec<Entry>,
}

impl<'a> Recalled<'a> {
    pub(super) fn new(window: &'a Window, shards: &'a [Arc<Shard>], findings: &'a [(u16, Finding)]) -> Self {
        Self { window, shards, findings, now: unix_microseconds(), up_to: vec![0; shards.len()], entries: Vec::new() }
    }

    /// Takes what a file says. An event that recovery has found lost isn't stored, whatever a file says: it may come again.
    pub(super) fn take(&mut self, mut frame: Frame) {
        let shard = usize::from(frame.shard);
        let durable = self.shards.get(shard).map_or(0, |shard| shard.durable());
        let found = self.findings.iter().filter(|(number, _)| *number == frame.shard).map(|(_, finding)| finding);
        let is_lost = |sequence| sequence > durable || found.clone().any(|finding| loses(finding, sequence));
        frame.ids.retain(|known| !is_lost(known.sequence));
        self.remember(&frame);
        // Where a frame is missing, what stands behind it is read from the log again, as far as it is there.
        if let Some(known) = self.up_to.get_mut(shard)
            && (frame.after <= *known || *known == 0)
        {
            *known = frame.up_to.max(*known).min(durable);
        }
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

/// Whether a finding means that this event is lost. Where files are missing nobody knows which are.
fn loses(finding: &Finding, sequence: u64) -> bool {
    matches!(finding.letter, SEGMENT_HEADER_DAMAGED | SEGMENT_TRUNCATED | LOG_ENDS_EARLY)
        || finding.lost.iter().any(|lost| lost.contains(&sequence))
}
