//! The window as it was before the process started: from the files of ids, and from the logs where the files end.

use std::io;
use std::sync::Arc;

use super::file::{Frame, IdFiles, Remembered};
use super::memory::{FRAME_IDS_MAX, read};
use super::trust::Trust;
use super::window::{Entry, Place, Window};
use crate::shard::Shard;
use clock::unix_microseconds;

/// What the window is being told.
pub(crate) struct Recalled<'a> {
    window: &'a Window,
    trust: Trust,
    now: i64,
    /// For each shard, up to where the files have its ids.
    up_to: Vec<u64>,
    /// Whether the files say what doesn't hold.
    has_wrong: bool,
    /// What the window gets next: many ids at once are quicker than one by one.
    entries: Vec<Entry>,
}

impl<'a> Recalled<'a> {
    pub(super) fn new(window: &'a Window, trust: Trust) -> Self {
        let up_to = vec![0; trust.shards()];
        Self { window, trust, now: unix_microseconds(), up_to, has_wrong: false, entries: Vec::new() }
    }

    /// Takes what a file says.
    pub(super) fn take(&mut self, frame: Frame) {
        let said_up_to = frame.up_to;
        let Some(frame) = self.trust.what_holds(frame) else {
            self.has_wrong = true;
            return;
        };
        self.has_wrong |= frame.up_to < said_up_to;
        self.remember(&frame);
        // Where a frame is missing, what stands behind it is read from the log again, as far as it is there.
        if let Some(known) = self.up_to.get_mut(usize::from(frame.shard))
            && (frame.after <= *known || *known == 0)
        {
            *known = frame.up_to.max(*known);
        }
    }

    /// Leaves in the files no more than holds.
    pub(super) fn mend(&mut self, files: &mut IdFiles) -> io::Result<()> {
        if self.has_wrong && !files.keep_only(|frame| self.trust.what_holds(frame))? {
            // What they had is written again, as far as the logs have it.
            self.up_to.fill(0);
        }
        Ok(())
    }

    /// Reads what only the logs say; returns for each shard up to where the files have its ids.
    pub(super) fn read_logs(mut self, shards: &[Arc<Shard>]) -> io::Result<Vec<u64>> {
        for shard in shards {
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
