//! The board: lanes and shards report to it, samples are written from it, and queries are answered by it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use journal::DataDirectory;
use journal::disk::DiskFile;

use crate::failure::{FAILURES_MAX, Failure};
use crate::files::{FileKind, Files};
use crate::object_record::{OBJECTS_MAX, WrittenObject};
use crate::page::ProgressSample;
use crate::records::RecordFile;
use crate::search::{Passed, newest, oldest_time, passed, range_at};
use crate::track::Track;
use crate::writer_record::{WRITERS_MAX, WriterRecord};

/// The progress of all lanes and shards. Cheap to clone. Queries read files: call them from a thread that may block.
#[derive(Clone)]
pub struct ProgressBoard(Arc<Board>);

/// What has been reported of each lane; of a shard, which has no sink, too.
type Tracks = BTreeMap<(Option<Arc<str>>, u16), Arc<Track>>;

struct Board {
    files: Files,
    tracks: Mutex<Tracks>,
    /// Whether a failed write was reported.
    is_failing: AtomicBool,
}

/// A lane's handle on the board. Cheap to clone; its methods neither use the disk nor wait for it.
#[derive(Clone)]
pub struct LaneReporter(Arc<Track>);

impl LaneReporter {
    /// An attempt of the lane has failed at `now`, in microseconds since 1970, UTC; `server` is the writer that it
    /// asked.
    pub fn failed(&self, now: i64, reason: &str, server: Option<&Arc<str>>) {
        self.0.failed(now, reason, server);
    }

    /// The lane delivers: an outage ends.
    pub fn delivers(&self, now: i64) {
        self.0.delivers(now);
    }

    /// The start of the current outage. Microseconds since 1970, UTC.
    #[must_use]
    pub fn fails_since(&self) -> Option<i64> {
        self.0.fails_since()
    }

    /// The lane has written an object.
    pub fn wrote_object(&self, object: &WrittenObject) {
        self.0.wrote_object(object);
    }

    /// This writer has stored events of a batch whose first position is `first`. `None`: the sink wrote to the store without one.
    pub fn stored_by(&self, writer: Option<Arc<str>>, first: u64) {
        self.0.stored_by(writer, first);
    }
}

impl ProgressBoard {
    /// The progress that a data directory keeps. Reads nothing yet.
    #[must_use]
    pub fn new(directory: &DataDirectory) -> Self {
        let (files, tracks) = (Files::of(directory), Mutex::default());
        Self(Arc::new(Board { files, tracks, is_failing: AtomicBool::new(false) }))
    }

    fn tracks(&self) -> MutexGuard<'_, Tracks> {
        self.0.tracks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn track(&self, shard: u16, sink: Option<&Arc<str>>) -> Arc<Track> {
        let new = || Arc::new(Track::new(shard, sink.cloned()));
        self.tracks().entry((sink.cloned(), shard)).or_insert_with(new).clone()
    }

    /// The handle of a lane.
    #[must_use]
    pub fn lane(&self, shard: u16, sink: &Arc<str>) -> LaneReporter {
        LaneReporter(self.track(shard, Some(sink)))
    }

    /// Removes the files of sinks that are not kept.
    pub fn keep(&self, is_kept: impl Fn(&str) -> bool) {
        self.0.files.remove_others(is_kept);
    }

    /// Samples the cursor of a lane, as of `now`. Call it about twice a second with the cursors of all lanes, which were
    /// read together. It reads and writes files, as the other samples do: call them from a thread that may block. No
    /// report of a lane waits for them.
    pub fn sample_lane(&self, lane: &LaneReporter, now: i64, cursor: u64) {
        let sampled = lane.0.sample(&self.0.files, ProgressSample { time: now, cursor });
        self.report(sampled.and(lane.0.save_reports(&self.0.files, now, true)));
    }

    /// Writes failures of a lane whose cursor isn't known yet.
    pub fn save_failures(&self, lane: &LaneReporter, now: i64) {
        self.report(lane.0.save_reports(&self.0.files, now, false));
    }

    /// Samples the last durable sequence of a shard, as of `now`.
    pub fn sample_shard(&self, shard: u16, now: i64, durable: u64) {
        let track = self.track(shard, None);
        self.report(track.sample(&self.0.files, ProgressSample { time: now, cursor: durable }));
    }

    fn report(&self, written: std::io::Result<()>) {
        let Err(error) = written else { return };
        if !self.0.is_failing.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                reason = %error,
                "can't write the progress of lanes: the console shows times of events less exactly. Check the \
                 free space and the folder `progress` of the data directory"
            );
        }
    }

    fn ask<T>(
        &self,
        shard: u16,
        sink: Option<&str>,
        query: impl FnOnce(&dyn DiskFile) -> std::io::Result<Option<T>>,
    ) -> Option<T> {
        let file = self.0.files.look(&self.0.files.path(shard, sink, FileKind::Ring))?;
        query(&*file).ok().flatten()
    }

    /// When a lane passed a position. `None` if it has not, or if that is too long ago.
    #[must_use]
    pub fn passed(&self, shard: u16, sink: &str, position: u64) -> Option<Passed> {
        self.ask(shard, Some(sink), |file| passed(file, position))
    }

    /// When a position of a shard was durable. `None` if it is not, or if that is too long ago.
    #[must_use]
    pub fn durable(&self, shard: u16, position: u64) -> Option<Passed> {
        self.ask(shard, None, |file| passed(file, position))
    }

    /// The last sample of a lane: a position after it that the lane has passed was passed after this time.
    #[must_use]
    pub fn last_sample(&self, shard: u16, sink: &str) -> Option<ProgressSample> {
        let key = (Some(sink.into()), shard);
        let track = self.tracks().get(&key).cloned();
        track.and_then(|track| track.seen())
    }

    /// The last sequence of a shard that was durable at a time, as the least and the greatest that it may be. `None` if
    /// that is too long ago. For a time after the last sample, the greatest is `u64::MAX`.
    #[must_use]
    pub fn cursor_range_at(&self, shard: u16, time: i64) -> Option<(u64, u64)> {
        let seen = self.tracks().get(&(None, shard)).and_then(|track| track.seen());
        if let Some(range) = self.ask(shard, None, |file| range_at(file, time)) {
            return Some(range);
        }
        let least = self.ask(shard, None, newest);
        let least =
            least.into_iter().chain(seen).filter(|sample| sample.time <= time).map(|sample| sample.cursor).max()?;
        let greatest = seen.filter(|seen| seen.time >= time).map_or(u64::MAX, |seen| seen.cursor);
        Some((least, greatest))
    }

    /// The failures of a lane that were going on at some time from `from` to `to`, the oldest first. `to` is now if
    /// it is `None`.
    #[must_use]
    pub fn failures(&self, shard: u16, sink: &str, from: i64, to: Option<i64>) -> Vec<Failure> {
        self.all_failures(shard, sink).filter(|failure| failure.overlaps(from, to)).collect()
    }

    fn all_failures(&self, shard: u16, sink: &str) -> impl Iterator<Item = Failure> + use<> {
        let path = self.0.files.path(shard, Some(sink), FileKind::Failures);
        let records = RecordFile { files: &self.0.files, path: &path, slots: FAILURES_MAX }.read();
        records.into_iter().filter_map(|(_, bytes)| Failure::decode(&bytes))
    }

    /// The last failures of all lanes of a sink, the newest first, at most 64 of each lane.
    #[must_use]
    pub fn recent_failures(&self, sink: &str) -> Vec<Failure> {
        let shards: Vec<u16> =
            self.tracks().keys().filter(|(of, _)| of.as_deref() == Some(sink)).map(|key| key.1).collect();
        let mut failures: Vec<_> = shards.into_iter().flat_map(|shard| self.all_failures(shard, sink)).collect();
        failures.sort_by_key(|failure| std::cmp::Reverse(failure.from));
        failures
    }

    /// The name of the object that holds an event of a lane. `None` if it is unknown, too long ago, or if several
    /// objects may hold it.
    #[must_use]
    pub fn object_of(&self, shard: u16, sink: &str, position: u64, type_name: &str) -> Option<String> {
        let path = self.0.files.path(shard, Some(sink), FileKind::Objects);
        let records = RecordFile { files: &self.0.files, path: &path, slots: OBJECTS_MAX }.read();
        let objects = records.into_iter().filter_map(|(_, bytes)| WrittenObject::decode(&bytes));
        let mut holding = objects.filter(|object| object.may_hold(position, type_name));
        holding.next().filter(|_| holding.next().is_none()).map(|object| object.name)
    }

    /// The writer through which a lane stored a position that it has passed. `None` if it has none, or if that is too long
    /// ago.
    #[must_use]
    pub fn writer_of(&self, shard: u16, sink: &str, position: u64) -> Option<String> {
        let path = self.0.files.path(shard, Some(sink), FileKind::Writers);
        let records = RecordFile { files: &self.0.files, path: &path, slots: WRITERS_MAX }.read();
        // If a lane has resumed at an earlier position, the newer record counts for all positions after it.
        let mut newest_first = records.into_iter().rev().filter_map(|(_, bytes)| WriterRecord::decode(&bytes));
        newest_first.find(|record| record.first <= position)?.writer
    }

    /// The time of the oldest sample of a lane: what it passed before is unknown. Microseconds since 1970, UTC.
    #[must_use]
    pub fn reaches_back_to(&self, shard: u16, sink: &str) -> Option<i64> {
        self.ask(shard, Some(sink), oldest_time)
    }
}
