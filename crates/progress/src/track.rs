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
use crate::waiting::{RecordAppender, WaitingRecords};
use crate::writer_record::{WRITERS_MAX, WriterRecord};

/// A lane or a shard.
pub(crate) struct Track {
    pub(crate) shard: u16,
    /// The sink of a lane.
    pub(crate) sink: Option<Arc<str>>,
    /// What its lane reports. No file is used while this lock is held.
    state: Mutex<State>,
    /// The places at which its files continue. A sample locks them while it writes, and before `state`.
    places: Mutex<Places>,
}

#[derive(Default)]
struct State {
    /// The cursor at the last sample, and the time of that sample.
    seen: Option<ProgressSample>,
    outages: Outages,
    objects: WaitingRecords,
    /// The writer of the last batch, if there was a batch, and its changes.
    writer: Option<Option<Arc<str>>>,
    writers: WaitingRecords,
}

#[derive(Default)]
struct Places {
    /// Whether the ring has a pair with the time and cursor of the last sample.
    is_written: bool,
    ring: RingWriter,
    objects: RecordAppender,
    writers: RecordAppender,
}

impl Track {
    pub(crate) fn new(shard: u16, sink: Option<Arc<str>>) -> Self {
        Self { shard, sink, state: Mutex::default(), places: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
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
            state.writer = Some(writer);
        }
    }

    /// Notes the cursor, and writes pairs if it has moved: the last time at which it was still the previous one, and now.
    ///
    /// # Errors
    /// The file system's error. The next sample that finds the cursor moved writes wider bounds.
    pub(crate) fn sample(&self, files: &Files, now: ProgressSample) -> io::Result<()> {
        let mut places = self.places();
        let Some(before) = self.seen() else {
            self.state().seen = Some(now);
            return Ok(());
        };
        if before.cursor == now.cursor {
            // After a clock that was set back, the earlier time is still one at which the cursor was this one.
            places.is_written = places.is_written && before == now;
            self.state().seen = Some(now);
            return Ok(());
        }
        let pairs = [before, now];
        let pairs = if places.is_written { &pairs[1..] } else { &pairs[..] };
        places.ring.append(files, &self.path(files, FileKind::Ring), pairs)?;
        places.is_written = true;
        self.state().seen = Some(now);
        Ok(())
    }

    /// Writes what the lane has reported of failures, objects and writers since the last call. If the lane `has_begun` to
    /// deliver, an outage of an earlier process is over.
    ///
    /// # Errors
    /// The file system's error. The next call tries again.
    pub(crate) fn save_reports(&self, files: &Files, now: i64, has_begun: bool) -> io::Result<()> {
        let mut places = self.places();
        let failure = self.save_failure(files, now, has_begun);
        let objects = self.save_objects(files, &mut places.objects);
        let writers = self.save_writers(files, &mut places.writers);
        failure.and(objects).and(writers)
    }

    fn save_objects(&self, files: &Files, appender: &mut RecordAppender) -> io::Result<()> {
        let mut records = self.state().objects.take();
        let path = self.path(files, FileKind::Objects);
        let saved = appender.append(RecordFile { files, path: &path, slots: OBJECTS_MAX }, &mut records);
        self.state().objects.restore(records);
        saved
    }

    fn save_writers(&self, files: &Files, appender: &mut RecordAppender) -> io::Result<()> {
        let mut records = self.state().writers.take();
        if records.is_empty() {
            return Ok(());
        }
        let path = self.path(files, FileKind::Writers);
        let file = RecordFile { files, path: &path, slots: WRITERS_MAX };
        let named = |record: &Vec<u8>| WriterRecord::decode(record)?.writer;
        // A lane that never had writers needs no file for them.
        if !records.iter().any(|record| named(record).is_some()) && file.read().is_empty() {
            return Ok(());
        }
        let saved = appender.append(file, &mut records);
        self.state().writers.restore(records);
        saved
    }

    fn save_failure(&self, files: &Files, now: i64, has_begun: bool) -> io::Result<()> {
        let known = {
            let outages = &self.state().outages;
            if outages.unsaved().is_none() && (outages.has_resumed || !has_begun) {
                return Ok(());
            }
            outages.number
        };
        let path = self.path(files, FileKind::Failures);
        let file = RecordFile { files, path: &path, slots: FAILURES_MAX };
        let newest = if known.is_some() { None } else { file.read().pop() };
        let next = newest.as_ref().map_or(0, |(number, _)| number + 1);
        let (number, failure) = {
            let outages = &mut self.state().outages;
            if !outages.has_resumed {
                outages.resume(newest.and_then(|(number, bytes)| Some((number, Failure::decode(&bytes)?))), now);
            }
            let Some(failure) = outages.unsaved().cloned() else { return Ok(()) };
            (outages.number.unwrap_or(next), failure)
        };
        file.write(number, &failure.encode())?;
        self.state().outages.saved(number, &failure);
        Ok(())
    }
}
