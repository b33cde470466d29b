//! The load of the window at startup: from the id files, and from the logs after the end of the files.

use std::io;
use std::sync::Arc;

use super::entry::{Entry, PackedPosition};
use super::id_file::{Frame, IdFiles, StoredId};
use super::keyed_ids::{FRAME_IDS_MAX, read_frame};
use super::validity::Validity;
use super::window::DedupWindow;
use crate::committed_log::CommittedLog;
use clock::unix_microseconds;

/// The content to load into the window.
pub(crate) struct RestoredIds<'a> {
    window: &'a DedupWindow,
    validity: Validity,
    now: i64,
    /// For each shard, up to where the files have its ids.
    up_to: Vec<u64>,
    /// Whether the files have invalid entries.
    has_invalid: bool,
    /// The next batch of entries: inserting many together is quicker than one by one.
    entries: Vec<Entry>,
}

impl<'a> RestoredIds<'a> {
    pub(super) fn new(window: &'a DedupWindow, validity: Validity) -> Self {
        let up_to = vec![0; validity.shards()];
        Self { window, validity, now: unix_microseconds(), up_to, has_invalid: false, entries: Vec::new() }
    }

    /// Adds a frame of a file.
    pub(super) fn add(&mut self, frame: Frame) {
        let saved_up_to = frame.up_to;
        let Some(frame) = self.validity.valid_part(frame) else {
            self.has_invalid = true;
            return;
        };
        self.has_invalid |= frame.up_to < saved_up_to;
        self.collect(&frame);
        // If a frame is missing, the log is read again from there on, if it still exists.
        if let Some(known) = self.up_to.get_mut(usize::from(frame.shard))
            && (frame.after <= *known || *known == 0)
        {
            *known = frame.up_to.max(*known);
        }
    }

    /// Removes invalid entries from the files.
    pub(super) fn repair(&mut self, files: &mut IdFiles) -> io::Result<()> {
        if self.has_invalid && !files.keep_only(|frame| self.validity.valid_part(frame))? {
            // The files are empty: their ids are written again if the logs have them.
            self.up_to.fill(0);
        }
        Ok(())
    }

    /// Reads the part that only the logs have; returns for each shard up to where the files have its ids.
    pub(super) fn read_logs(mut self, logs: &[Arc<CommittedLog>]) -> io::Result<Vec<u64>> {
        for log in logs {
            let mut after = self.up_to[usize::from(log.number())];
            while after < log.durable() {
                let frame = read_frame(log, after)?;
                self.collect(&frame);
                after = frame.up_to;
            }
        }
        self.insert();
        Ok(self.up_to)
    }

    fn collect(&mut self, frame: &Frame) {
        let seconds = (frame.written_at - self.now).min(0) / 1_000_000;
        let at = i32::try_from(seconds).unwrap_or(i32::MIN);
        self.entries.extend(frame.ids.iter().map(|StoredId { id, content, sequence }| {
            let position = PackedPosition::new(frame.shard, *sequence);
            Entry { id: *id, content: *content, position, at }
        }));
        if self.entries.len() >= FRAME_IDS_MAX {
            self.insert();
        }
    }

    fn insert(&mut self) {
        self.window.insert_all(&self.entries);
        self.entries.clear();
    }
}
