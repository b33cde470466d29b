//! What is known of a lane or shard in memory, until the next sample writes it.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::failure::{FAILURES_MAX, Failure, Outages};
use crate::files::{FileKind, Files};
use crate::object_record::{OBJECTS_MAX, WrittenObject};
use crate::page::ProgressSample;
use crate::records::RecordFile;
use crate::ring::RingWriter;

/// Objects that may wait for the next sample. The oldest are left out.
const WAITING_OBJECTS_MAX: usize = 64;

/// A lane or a shard.
pub(crate) struct Track {
    pub(crate) shard: u16,
    /// The sink of a lane.
    pub(crate) sink: Option<Arc<str>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The cursor at the last sample, and the time of that sample.
    seen: Option<ProgressSample>,
    /// Whether the ring has a pair with this time and cursor.
    is_written: bool,
    ring: RingWriter,
    outages: Outages,
    objects: Vec<WrittenObject>,
    /// The number of the next object in the file, if it is known.
    next_object: Option<u64>,
}

impl Track {
    pub(crate) fn new(shard: u16, sink: Option<Arc<str>>) -> Self {
        Self { shard, sink, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn path(&self, files: &Files, kind: FileKind) -> PathBuf {
        files.path(self.shard, self.sink.as_deref(), kind)
    }

    /// The last sample.
    pub(crate) fn seen(&self) -> Option<ProgressSample> {
        self.state().seen
    }

    pub(crate) fn failed(&self, now: i64, reason: &str, server: Option<&Arc<str>>) {
        self.state().outages.failed(now, reason, server);
    }

    pub(crate) fn delivers(&self, now: i64) {
        self.state().outages.ended(now);
    }

    pub(crate) fn wrote_object(&self, object: WrittenObject) {
        let objects = &mut self.state().objects;
        if objects.len() >= WAITING_OBJECTS_MAX {
            objects.remove(0);
        }
        objects.push(object);
    }

    /// Notes the cursor, and writes pairs if it has moved: the last time at which it was still the previous one, and now.
    ///
    /// # Errors
    /// The file system's error. The next sample that finds the cursor moved writes wider bounds.
    pub(crate) fn sample(&self, files: &Files, now: ProgressSample) -> io::Result<()> {
        let mut state = self.state();
        let Some(before) = state.seen else {
            state.seen = Some(now);
            return Ok(());
        };
        if before.cursor == now.cursor {
            // After a clock that was set back, the earlier time is still one at which the cursor was this one.
            (state.seen, state.is_written) = (Some(now), state.is_written && before == now);
            return Ok(());
        }
        let pairs = [before, now];
        let pairs = if state.is_written { &pairs[1..] } else { &pairs[..] };
        state.ring.append(files, &self.path(files, FileKind::Ring), pairs)?;
        (state.seen, state.is_written) = (Some(now), true);
        Ok(())
    }

    /// Writes what the lane has reported of failures and objects since the last call. If the lane `has_begun` to deliver, an
    /// outage of an earlier process is over.
    ///
    /// # Errors
    /// The file system's error. The next call tries again.
    pub(crate) fn save_reports(&self, files: &Files, now: i64, has_begun: bool) -> io::Result<()> {
        let mut state = self.state();
        let saved = self.save_failure(files, &mut state.outages, now, has_begun);
        let State { objects, next_object, .. } = &mut *state;
        self.save_objects(files, objects, next_object).and(saved)
    }

    fn save_failure(&self, files: &Files, outages: &mut Outages, now: i64, has_begun: bool) -> io::Result<()> {
        if outages.unsaved().is_none() && (outages.has_resumed || !has_begun) {
            return Ok(());
        }
        let path = self.path(files, FileKind::Failures);
        let file = RecordFile { files, path: &path, slots: FAILURES_MAX };
        let newest = if outages.number.is_some() { None } else { file.read().pop() };
        let number = outages.number.or_else(|| newest.as_ref().map(|(number, _)| number + 1)).unwrap_or(0);
        if !outages.has_resumed {
            outages.resume(newest.and_then(|(number, bytes)| Some((number, Failure::decode(&bytes)?))), now);
        }
        let Some(failure) = outages.unsaved().map(Failure::encode) else { return Ok(()) };
        let number = outages.number.unwrap_or(number);
        file.write(number, &failure)?;
        outages.saved(number);
        Ok(())
    }

    fn save_objects(&self, files: &Files, objects: &mut Vec<WrittenObject>, next: &mut Option<u64>) -> io::Result<()> {
        if objects.is_empty() {
            return Ok(());
        }
        let path = self.path(files, FileKind::Objects);
        let file = RecordFile { files, path: &path, slots: OBJECTS_MAX };
        let mut number = next.unwrap_or_else(|| file.read().last().map_or(0, |(number, _)| number + 1));
        while let Some(object) = objects.first() {
            if let Some(record) = object.encode() {
                file.write(number, &record)?;
                number += 1;
                *next = Some(number);
            }
            objects.remove(0);
        }
        *objects = Vec::new();
        Ok(())
    }
}
