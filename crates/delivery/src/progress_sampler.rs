//! Samples the cursors of all lanes and shards twice a second, so the console can say when an event was stored.
//!
//! A thread writes the samples, one at a time: delivery never waits for a disk that hangs, and a stop waits for at most 1 s.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use aggregation::Clock;
use eventlog::EventLog;
use progress::{LaneReporter, ProgressBoard};
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::time::{Instant, timeout};

use crate::status::LaneBoard;

/// The time between two samples.
const SAMPLE_EVERY: Duration = Duration::from_millis(500);
/// How long the end of the process waits for the last sample.
const LAST_MAX: Duration = Duration::from_secs(1);
/// The thread keeps its pages on the heap.
const STACK_BYTES: usize = 256 * 1024;

/// Writes the progress of lanes and shards. A write that fails or takes long changes nothing in the delivery.
pub(crate) struct ProgressSampler {
    progress: ProgressBoard,
    log: Arc<EventLog>,
    lanes: LaneBoard,
    clock: Clock,
    has_thread: bool,
    /// The thread, if it has been started.
    writer: Option<Writer>,
    /// The end of the last write.
    writing: Option<oneshot::Receiver<()>>,
    due: Instant,
}

/// The cursors at one time.
struct Sample {
    /// Microseconds since 1970, UTC.
    now: i64,
    /// The last durable sequence of each shard.
    shards: Vec<(u16, u64)>,
    /// `None` for a lane whose cursor isn't known yet.
    lanes: Vec<(LaneReporter, Option<u64>)>,
}

impl Sample {
    fn write(&self, progress: &ProgressBoard) {
        for (shard, durable) in &self.shards {
            progress.sample_shard(*shard, self.now, *durable);
        }
        for (lane, cursor) in &self.lanes {
            match cursor {
                Some(cursor) => progress.sample_lane(lane, self.now, *cursor),
                None => progress.save_failures(lane, self.now),
            }
        }
    }
}

/// The thread that writes samples. It ends when this is dropped, after the sample that it is writing.
struct Writer(mpsc::Sender<(Sample, oneshot::Sender<()>)>);

impl Writer {
    fn start(progress: ProgressBoard) -> io::Result<Self> {
        let (samples, received) = mpsc::channel::<(Sample, oneshot::Sender<()>)>();
        let run = move || {
            for (sample, done) in received {
                sample.write(&progress);
                // The sampler may have ended.
                let _ = done.send(());
            }
        };
        thread::Builder::new().name("progress".into()).stack_size(STACK_BYTES).spawn(run)?;
        Ok(Self(samples))
    }
}

impl ProgressSampler {
    /// Without a thread, the sampler writes on the caller's thread.
    pub(crate) fn new(
        progress: ProgressBoard,
        log: Arc<EventLog>,
        lanes: LaneBoard,
        clock: Clock,
        has_thread: bool,
    ) -> Self {
        Self { progress, log, lanes, clock, has_thread, writer: None, writing: None, due: Instant::now() }
    }

    pub(crate) const fn board(&self) -> &ProgressBoard {
        &self.progress
    }

    /// When the next sample is due.
    pub(crate) const fn due(&self) -> Instant {
        self.due
    }

    /// Samples all lanes and shards. While the last sample is still being written, it skips this one, and the
    /// bounds of times are wider.
    pub(crate) fn sample(&mut self) {
        self.due = Instant::now() + SAMPLE_EVERY;
        if self.check_writing() {
            return;
        }
        let sample = self.take();
        if self.has_thread {
            self.writing = self.hand_over(sample);
        } else {
            sample.write(&self.progress);
        }
    }

    /// Takes the last sample, and waits for its end for at most 1 s.
    pub(crate) async fn finish(&mut self) {
        let last = async {
            self.written().await;
            self.sample();
            self.written().await;
        };
        // After a timeout, the bounds are wider after the next start.
        let _ = timeout(LAST_MAX, last).await;
    }

    /// Whether the last sample is still being written.
    fn check_writing(&mut self) -> bool {
        let is_writing = self.writing.as_mut().is_some_and(|done| done.try_recv() == Err(TryRecvError::Empty));
        if !is_writing {
            self.writing = None;
        }
        is_writing
    }

    async fn written(&mut self) {
        if let Some(done) = self.writing.take() {
            // An error is the end of the thread.
            let _ = done.await;
        }
    }

    /// Passes a sample to the thread. If the thread can't be started, the sample is dropped, and the next one tries again.
    fn hand_over(&mut self, sample: Sample) -> Option<oneshot::Receiver<()>> {
        if self.writer.is_none() {
            self.writer = Writer::start(self.progress.clone()).ok();
        }
        let (done, writing) = oneshot::channel();
        let sent = self.writer.as_ref()?.0.send((sample, done));
        if sent.is_err() {
            self.writer = None;
        }
        Some(writing)
    }

    fn take(&self) -> Sample {
        let lanes = self.lanes.lanes();
        // All are read before any is written, which may take its time.
        let shards = self.log.shards().iter().map(|shard| (shard.number(), shard.durable())).collect();
        let lanes = lanes
            .iter()
            .map(|status| (status.progress.clone(), status.has_begun().then(|| status.settled())))
            .collect();
        Sample { now: (self.clock)(), shards, lanes }
    }
}
