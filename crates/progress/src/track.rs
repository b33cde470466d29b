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
use crate::waiting::WaitingRecords;
use crate::writer_record::{WRITERS_MAX, WriterRecord};

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
    objects: WaitingRecords,
    /// The writer of the last batch, if there was a batch, and its changes.
    writer: Option<Option<Arc<str>>>,
    writers: WaitingRecords,
    /// Whether the lane has or had writers: else it needs no file for them.
    has_writers: bool,
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

    pub(crate) fn fails_since(&self) -> Option<i64> {
        self.state().outages.open_since()
    }

    pub(crate) fn delivers(&self, now: i64) {
        self.state().outages.ended(now);
    }

    /// An object whose name is too long is left out.
    pub(crate) fn wrote_object(&self, object: &WrittenObject) {
        if let Some(record) = object.encode() {
            self.state().objects.push(record);
        }
    }

    pub(crate) fn stored_by(&self, writer: Option<Arc<str>>, first: u64) {
        let mut state = self.state();
        if state.writer.as_ref() != Some(&writer) {
            state.writers.push(WriterRecord { first, writer: writer.as_deref().map(str::to_owned) }.encode());
            state.has_writers |= writer.is_some();
            state.writer = Some(writer);
        }
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

    /// Writes what the lane has reported of failures, objects and writers since the last call. If the lane `has_begun` to
    /// deliver, an outage of an earlier process is over.
    ///
    /// # Errors
    /// The file system's error. The next call tries again.
    pub(crate) fn save_reports(&self, files: &Files, now: i64, has_begun: bool) -> io::Result<()> {
        let mut state = self.state();
        let failure = self.save_failure(files, &mut state.outages, now, has_begun);
        let objects = state.objects.save(files, &self.path(files, FileKind::Objects), OBJECTS_MAX);
        let writers = self.save_writers(files, &mut state);
        failure.and(objects).and(writers)
    }

    fn save_writers(&self, files: &Files, state: &mut State) -> io::Result<()> {
        let path = self.path(files, FileKind::Writers);
        if !state.has_writers && !state.writers.is_empty() {
            state.has_writers = !RecordFile { files, path: &path, slots: WRITERS_MAX }.read().is_empty();
        }
        if !state.has_writers {
            state.writers = WaitingRecords::default();
        }
        state.writers.save(files, &path, WRITERS_MAX)
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
}
