//! A running aggregate: it reads, folds, saves and emits, until it is stopped.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aggregate::{Fold, LeftOut, WindowResult};
use clock::Throttle;
use event::{Position, TypeName};
use eventlog::{Append, AppendError, EventLog, JournalRecord, RecordBuffer, Shard, TypeId};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::checkpoint::CheckpointFile;
use crate::halt::Halt;
use crate::late_events;
use crate::options::AggregationOptions;
use crate::replay_filter::ReplayFilter;
use crate::retention::AggregateRetention;
use crate::setup::AggregateSetup;
use crate::shard_merge::{EventReader, Read};
use crate::status::{AggregateFigures, AggregateStatus};
use crate::watermark_tick;

/// A state is saved this long after a change, or after this many bytes of events: that bounds what a restart reads
/// again.
const SAVE_EVERY: Duration = Duration::from_secs(10);
const SAVE_BYTES: u64 = 64 * 1024 * 1024;
/// How often windows of idle types are checked.
const TICK_EVERY: Duration = Duration::from_secs(1);
/// The shortest time between two emissions of results, since the state is saved before. If that takes long, emissions
/// take at most this part of the time.
const EMIT_EVERY: Duration = Duration::from_millis(100);
const EMIT_PART: u32 = 10;
/// Results that are created together, and bytes of them that are journaled together.
const RESULTS_MAX: usize = 1_000;
const RESULT_BYTES_MAX: usize = 1024 * 1024;
/// The pause after a failure.
const RETRY: Duration = Duration::from_secs(1);

/// It was stopped, or the journal failed, during an emission: the state in memory must not be saved any longer.
struct Ended;

/// An aggregate and its dependencies.
pub(crate) struct Worker {
    pub(crate) setup: AggregateSetup,
    pub(crate) log: Arc<EventLog>,
    pub(crate) fold: Fold,
    pub(crate) file: CheckpointFile,
    pub(crate) pins: Arc<AggregateRetention>,
    pub(crate) status: Arc<AggregateStatus>,
    pub(crate) options: Arc<AggregationOptions>,
    pub(crate) halt: watch::Receiver<Halt>,
    pub(crate) type_id: TypeId,
    /// Where the fold was restored: later results were emitted from the same state.
    pub(crate) mark: Option<u64>,
    pub(crate) times: Times,
}

/// The times of the next steps.
pub(crate) struct Times {
    save_at: Instant,
    unsaved_bytes: u64,
    emit_at: Instant,
    tick_at: Instant,
    failing: bool,
    left_out: Throttle,
}

impl Times {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            save_at: now + SAVE_EVERY,
            unsaved_bytes: 0,
            emit_at: now,
            tick_at: now,
            failing: false,
            left_out: Throttle::default(),
        }
    }
}

impl Worker {
    fn name(&self) -> &TypeName {
        self.setup.name()
    }

    /// Works until it is stopped, and catches up before if it has to.
    pub(crate) async fn run(mut self) {
        // It ends like after a crash, or has saved everything.
        let _ = self.work().await;
    }

    async fn work(&mut self) -> Result<(), Ended> {
        self.times = Times::new();
        if let Some(mark) = self.mark.take() {
            // If it was stopped during an emission, results may still be in flight to the journal.
            self.first_shard().flush().await;
            let journaled = Some(ReplayFilter::new(self.first_shard(), self.name(), mark));
            self.emit(journaled).await?;
        }
        let mut reading = self.reading();
        loop {
            let halt = *self.halt.borrow_and_update();
            if halt == Halt::Now {
                return Ok(());
            }
            let caught_up = self.read(&mut reading).await;
            self.report_left_out();
            if self.fold.has_results() && (Instant::now() >= self.times.emit_at || halt != Halt::No) {
                self.save_and_emit().await?;
            } else if self.check_save_due() {
                self.save();
            }
            if !caught_up {
                tokio::task::yield_now().await;
            } else if halt == Halt::WhenDone || (halt == Halt::WhenDrained && self.try_close().await?) {
                return self.finish().await;
            } else if halt == Halt::No {
                self.tick().await?;
                self.idle(&reading).await;
            }
        }
    }

    fn first_shard(&self) -> &Arc<Shard> {
        &self.log.shards()[0]
    }

    fn reading(&self) -> EventReader {
        let after = |shard: &Arc<Shard>| {
            let position = self.fold.positions().find(|position| position.shard == shard.number());
            position.map_or(0, |position| position.sequence)
        };
        EventReader::new(self.log.shards(), &self.log.shards().iter().map(after).collect::<Vec<_>>())
    }

    /// Adds a chunk of the journal. Returns whether there was none.
    async fn read(&mut self, reading: &mut EventReader) -> bool {
        match reading.next() {
            Ok(Some((shard, read))) => {
                self.take(shard, &read);
                false
            }
            Ok(None) => true,
            Err(error) => {
                self.report_failure(
                    "aggregate can't read the journal, and retries: check the disk of the data directory",
                    &error,
                );
                self.pause().await;
                false
            }
        }
    }

    fn take(&mut self, shard: usize, read: &Read) {
        let shard = self.log.shards()[shard].number();
        let (fold, setup, mut bytes) = (&mut self.fold, &self.setup, 0);
        read.chunk.for_each_record(|sequence, record| {
            let position = Position { shard, sequence };
            if record.type_name == setup.of.as_str() {
                bytes += record.payload.len() as u64;
                take_event(fold, position, record);
            } else if let Some(time) = watermark_tick::time_of(record, setup.name()) {
                fold.tick(position, time);
            }
        });
        // The rest of the chunk does not matter.
        fold.pass(Position { shard, sequence: read.chunk.end() - 1 });
        self.times.unsaved_bytes += bytes;
        if read.lost > 0 {
            self.status.lost.add(read.lost);
            let (lost, position) = (read.lost, read.chunk.end() - 1);
            tracing::warn!(
                aggregate = %self.name(), shard, lost, position,
                "results of the aggregate lack events up to this position, because the journal is damaged: stop \
                 Forebay, and run {}",
                text::OperatorCommand::JournalVerify
            );
        }
        if !self.fold.has_results() {
            // Lets it forget windows that are over.
            let none = self.fold.results(1);
            debug_assert!(none.is_empty(), "it had none");
        }
        self.status.show(AggregateFigures::of(&self.fold));
    }

    /// Whether the state has to be saved now. If the file has it already, the next save is due later.
    fn check_save_due(&mut self) -> bool {
        if self.file.covers(&self.fold) {
            self.times.save_at = Instant::now() + SAVE_EVERY;
            return false;
        }
        Instant::now() >= self.times.save_at || self.times.unsaved_bytes >= SAVE_BYTES
    }

    /// Saves the state. No result may be in flight.
    fn save(&mut self) -> bool {
        let mark = self.first_shard().durable();
        self.times.save_at = Instant::now() + SAVE_EVERY;
        self.times.unsaved_bytes = 0;
        match self.file.write(&self.fold, mark) {
            Ok(()) => {
                self.status.saves.add(1);
                self.times.failing = false;
                self.pin();
                true
            }
            Err(error) => {
                self.status.failed_saves.add(1);
                self.report_failure(
                    "aggregate can't save its state, and emits no results until it can: check the disk and \
                     permissions of the data directory",
                    &error,
                );
                false
            }
        }
    }

    /// Keeps the segments that a restart would read.
    pub(crate) fn pin(&self) {
        self.pins.set(self.name(), self.file.passed());
    }

    /// Emits only what is in the saved state, so a restart emits the same.
    async fn save_and_emit(&mut self) -> Result<(), Ended> {
        let begun = Instant::now();
        if !self.save() {
            self.pause().await;
            return Ok(());
        }
        self.emit(None).await?;
        self.times.emit_at = Instant::now() + EMIT_EVERY.max(begun.elapsed() * EMIT_PART);
        Ok(())
    }

    /// Journals all results that are due, except those that are in the journal already.
    async fn emit(&mut self, mut journaled: Option<ReplayFilter>) -> Result<(), Ended> {
        loop {
            let results = self.fold.results(RESULTS_MAX);
            if results.is_empty() {
                break;
            }
            let mut bundle = Bundle::default();
            for result in &results {
                if self.is_journaled(result, &mut journaled) {
                    continue;
                }
                bundle.add(self.name(), result, (self.options.clock)());
                if bundle.records.bytes() >= RESULT_BYTES_MAX {
                    self.journal(std::mem::take(&mut bundle)).await?;
                }
            }
            self.journal(bundle).await?;
        }
        self.status.show(AggregateFigures::of(&self.fold));
        Ok(())
    }

    fn is_journaled(&self, result: &WindowResult, journaled: &mut Option<ReplayFilter>) -> bool {
        let Some(found) = journaled else { return false };
        match found.take(result.id, result.revision) {
            Ok(true) => true,
            Ok(false) => {
                *journaled = None;
                false
            }
            Err(error) => {
                // It is then journaled again, with the same id and revision: stores keep one.
                tracing::warn!(
                    aggregate = %self.name(), reason = %error,
                    "aggregate can't read an earlier result in the journal, and appends the result again: check the \
                     disk of the data directory"
                );
                *journaled = None;
                false
            }
        }
    }

    async fn journal(&mut self, bundle: Bundle) -> Result<(), Ended> {
        if bundle.records.is_empty() {
            return Ok(());
        }
        let Bundle { mut records, count } = bundle;
        records.end_request();
        let shard = self.first_shard().clone();
        self.append(&shard, &records, &[(self.type_id, count)]).await
    }

    /// Appends until it is durable.
    async fn append(
        &mut self,
        shard: &Arc<Shard>,
        records: &RecordBuffer,
        types: &[(TypeId, u64)],
    ) -> Result<(), Ended> {
        loop {
            let appended = match shard.append_derived(records, types) {
                Ok(append) => committed(shard, append).await,
                Err(error) => Err(error),
            };
            match appended {
                Ok(()) => return Ok(()),
                // The process is about to end.
                Err(AppendError::Failed) => return Err(Ended),
                Err(AppendError::Busy) => shard.flush().await,
                Err(error @ AppendError::NoSpace) => {
                    self.report_failure(
                        "aggregate can't append its results to the journal, and retries: free space on the disk of \
                         the data directory",
                        &error,
                    );
                    self.pause().await;
                }
            }
            if *self.halt.borrow() == Halt::Now {
                return Err(Ended);
            }
        }
    }

    /// Writes ticks if the clock would end windows.
    async fn tick(&mut self) -> Result<(), Ended> {
        if Instant::now() < self.times.tick_at || self.fold.windows() == 0 {
            return Ok(());
        }
        self.times.tick_at = Instant::now() + TICK_EVERY;
        let now = (self.options.clock)();
        self.write_ticks(self.fold.ticks(now), now).await
    }

    /// Writes ticks that close open windows. Returns whether none is open and no result waits. The ticks are in the journal, so a crash does not
    /// change the results of the windows.
    async fn try_close(&mut self) -> Result<bool, Ended> {
        let ticks = self.fold.closing_ticks();
        if ticks.is_empty() {
            return Ok(!self.fold.has_results());
        }
        self.write_ticks(ticks, (self.options.clock)()).await?;
        Ok(false)
    }

    async fn write_ticks(&mut self, ticks: Vec<(u16, i64)>, now: i64) -> Result<(), Ended> {
        for (shard, time) in ticks {
            let Some(shard) = self.log.shards().get(usize::from(shard)).cloned() else { continue };
            let records = watermark_tick::records(self.name(), time, now);
            self.append(&shard, &records, &[]).await?;
        }
        Ok(())
    }

    /// Waits for something to do.
    async fn idle(&mut self, reading: &EventReader) {
        let has_results = self.fold.has_results();
        let until = [
            has_results.then_some(self.times.emit_at),
            (!self.file.covers(&self.fold)).then_some(self.times.save_at),
            (self.fold.windows() > 0).then_some(self.times.tick_at),
            (self.fold.left_out() != LeftOut::default())
                .then(|| self.times.left_out.next())
                .flatten()
                .map(Instant::from_std),
        ];
        let until = until.into_iter().flatten().min();
        let linger = self.options.linger;
        let more = async {
            reading.ready().await;
            sleep(linger).await;
        };
        tokio::select! {
            biased;
            () = more => {}
            () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {}
            Ok(()) = self.halt.changed() => {}
        }
    }

    /// Saves twice, so both generations agree and all that was read can be freed.
    async fn finish(&mut self) -> Result<(), Ended> {
        if self.fold.has_results() {
            self.save_and_emit().await?;
        }
        if !self.file.covers(&self.fold) && self.save() {
            self.save();
        }
        Ok(())
    }

    /// Reports events that are in no result, if there are some and it is time to.
    fn report_left_out(&mut self) {
        if self.fold.left_out() != LeftOut::default() && self.times.left_out.take(Instant::now().into_std()) {
            let left_out = self.fold.take_left_out();
            late_events::log(&self.setup.of, self.setup.name(), left_out);
        }
    }

    fn report_failure(&mut self, message: &str, reason: &dyn fmt::Display) {
        if !std::mem::replace(&mut self.times.failing, true) {
            tracing::warn!(aggregate = %self.name(), %reason, "{message}");
        }
    }

    async fn pause(&mut self) {
        tokio::select! {
            biased;
            () = sleep(RETRY) => {}
            Ok(()) = self.halt.changed() => {}
        }
    }
}

async fn committed(shard: &Arc<Shard>, append: Append<'_>) -> Result<(), AppendError> {
    shard.commit_pending();
    append.await
}

fn take_event(fold: &mut Fold, position: Position, record: &JournalRecord<'_>) {
    // Payloads were checked before they were journaled, and the journal has checksums.
    let Ok(payload) = std::str::from_utf8(record.payload) else { return };
    let time = record.event_time.or_else(|| fold.rules().time_of(payload));
    fold.take(position, time, record.received_at, payload);
}

/// Results that are journaled together.
#[derive(Default)]
struct Bundle {
    records: RecordBuffer,
    count: u64,
}

impl Bundle {
    fn add(&mut self, name: &TypeName, result: &WindowResult, now: i64) {
        self.records.push(&JournalRecord {
            event_time: Some(result.time),
            request_start: self.count == 0,
            request_end: false,
            revision: Some(result.revision),
            ..JournalRecord::new(result.id, now, name.as_str(), result.payload.as_bytes())
        });
        self.count += 1;
    }
}
