//! The overview of the process, with rates over the last seconds: one for a request, or one each second for all clients that watch. Nothing is
//! computed while none does, but for a point of the history each 5 s.

mod history;
mod rates;
mod sample;
mod server;
mod writer;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use admin_api::history::HistoryJson;
use admin_api::overview::OverviewJson;
use bytes::Bytes;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use crate::lines::beat;
use history::History;
pub(crate) use history::{HISTORY_BYTES_MAX, KEPT_MAX};
use sample::RateSample;
pub(crate) use server::ServerOverview;
pub(crate) use writer::WriterOverview;

/// The time between two lines of a stream, and the shortest time over which a rate is measured.
const INTERVAL: Duration = Duration::from_secs(1);
/// Rates are measured over so long, if a client watched that long ago.
const WINDOW: Duration = Duration::from_secs(10);
/// A sample that is older says nothing about now.
const STALE: Duration = Duration::from_secs(15);
/// Lines between two beats.
const BEAT_EVERY: u64 = 10;
/// Streams at a time.
pub(crate) const STREAMS_MAX: usize = 32;
/// Lines that wait for a client that reads slowly. Further ones are left out.
const WAITING_MAX: usize = 4;

/// The sources of the overview of a role.
pub(crate) trait OverviewSource: Send + Sync {
    /// The counters of this moment.
    fn sample(&self) -> RateSample;

    /// Adds what isn't a rate.
    fn complete(&self, overview: &mut OverviewJson);
}

/// The overviews of the process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Overviews(Arc<Inner>);

struct Inner {
    source: Box<dyn OverviewSource>,
    /// The number of the last one.
    number: AtomicU64,
    /// The oldest first.
    samples: Mutex<VecDeque<RateSample>>,
    history: Mutex<History>,
    places: Arc<Semaphore>,
    watchers: Mutex<Watchers>,
}

#[derive(Default)]
struct Watchers {
    all: Vec<Watcher>,
    /// Whether the task runs that writes their lines.
    are_served: bool,
    /// The process stops, and accepts no further ones.
    have_ended: bool,
}

struct Watcher {
    lines: Sender<Bytes>,
    _place: OwnedSemaphorePermit,
}

impl Overviews {
    pub(crate) fn new(source: impl OverviewSource + 'static) -> Self {
        Self(Arc::new(Inner {
            source: Box::new(source),
            number: AtomicU64::default(),
            samples: Mutex::default(),
            history: Mutex::default(),
            places: Arc::new(Semaphore::new(STREAMS_MAX)),
            watchers: Mutex::default(),
        }))
    }

    /// The overview of this moment. If no client has asked in the last seconds, it takes [`INTERVAL`] to measure rates.
    pub(crate) async fn now(&self) -> OverviewJson {
        if let Some(first) = self.begin() {
            sleep_until(first + INTERVAL).await;
        }
        self.next()
    }

    /// Adds points to the history until the future is dropped.
    pub(crate) async fn record(self) {
        let mut ticks = interval_at(Instant::now(), history::STEP);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let sample = self.0.source.sample();
            self.held_history().add(&sample, clock::unix_microseconds());
        }
    }

    /// The figures of the last minutes, at most of [`KEPT_MAX`].
    pub(crate) fn history(&self, time: Duration) -> HistoryJson {
        self.held_history().shown(time)
    }

    /// The memory of the history.
    pub(crate) fn history_bytes(&self) -> usize {
        self.held_history().bytes()
    }

    /// A stream of lines. `None` if there are too many streams, or the process stops.
    pub(crate) fn watch(&self) -> Option<Receiver<Bytes>> {
        let place = self.0.places.clone().try_acquire_owned().ok()?;
        let (lines, received) = mpsc::channel(WAITING_MAX);
        let mut watchers = self.watchers();
        if watchers.have_ended {
            return None;
        }
        watchers.all.push(Watcher { lines, _place: place });
        if !std::mem::replace(&mut watchers.are_served, true) {
            tokio::spawn(self.clone().serve());
        }
        Some(received)
    }

    /// Ends all streams, and says whether there are any.
    pub(crate) fn end(&self) -> bool {
        let mut watchers = self.watchers();
        watchers.have_ended = true;
        let are_there = !watchers.all.is_empty();
        watchers.all.clear();
        are_there
    }

    /// Sends a line each second to all who watch, until there are none.
    async fn serve(self) {
        let first = self.begin().unwrap_or_else(Instant::now);
        let mut ticks = interval_at(first + INTERVAL, INTERVAL);
        // After a pause of the process, one line will do.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for line in 1_u64.. {
            ticks.tick().await;
            if self.watchers().forget_gone() {
                return;
            }
            let overview = serde_json::to_vec(&self.next()).unwrap_or_default();
            let mut lines = vec![Bytes::from([overview, b"\n".to_vec()].concat())];
            if line % BEAT_EVERY == 0 {
                lines.push(beat());
            }
            self.watchers().send(&lines);
        }
    }

    /// Takes the first sample if none is fresh, and returns when.
    fn begin(&self) -> Option<Instant> {
        let mut samples = self.samples();
        samples.retain(|sample| sample.at.elapsed() < STALE);
        if samples.front().is_some_and(|oldest| oldest.at.elapsed() >= INTERVAL) {
            return None;
        }
        if samples.is_empty() {
            samples.push_back(self.0.source.sample());
        }
        samples.front().map(|first| first.at)
    }

    /// Takes a sample, and compares it with the one of [`WINDOW`] ago.
    fn next(&self) -> OverviewJson {
        let now = self.0.source.sample();
        let mut samples = self.samples();
        while samples.len() > 1 && samples.get(1).is_some_and(|second| now.at - second.at >= WINDOW) {
            samples.pop_front();
        }
        let mut overview = rates::overview(samples.front().unwrap_or(&now), &now);
        overview.n = self.0.number.fetch_add(1, Ordering::Relaxed) + 1;
        // Requests between two lines add none: the ring would grow.
        if samples.back().is_none_or(|newest| now.at - newest.at >= INTERVAL / 2) {
            samples.push_back(now);
        }
        drop(samples);
        self.0.source.complete(&mut overview);
        overview
    }

    fn samples(&self) -> MutexGuard<'_, VecDeque<RateSample>> {
        self.0.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held_history(&self) -> MutexGuard<'_, History> {
        self.0.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watchers(&self) -> MutexGuard<'_, Watchers> {
        self.0.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watchers {
    /// Forgets clients that are gone. Whether none is left: the task that writes lines then ends.
    fn forget_gone(&mut self) -> bool {
        self.all.retain(|watcher| !watcher.lines.is_closed());
        self.are_served = !self.all.is_empty();
        !self.are_served
    }

    /// A client that doesn't read misses lines.
    fn send(&mut self, lines: &[Bytes]) {
        self.all.retain(|watcher| {
            lines.iter().all(|line| !matches!(watcher.lines.try_send(line.clone()), Err(TrySendError::Closed(_))))
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// A process that accepts 50 events between two samples.
    #[derive(Clone, Default)]
    struct Counting(Arc<AtomicUsize>);

    impl OverviewSource for Counting {
        fn sample(&self) -> RateSample {
            let taken = self.0.fetch_add(1, Ordering::Relaxed) as u64;
            RateSample { accepted: 50 * taken, ..RateSample::of_process() }
        }

        fn complete(&self, overview: &mut OverviewJson) {
            overview.ready = true;
        }
    }

    fn read(line: Option<Bytes>) -> OverviewJson {
        serde_json::from_slice(&line.unwrap()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn all_watchers_share_a_line_each_second() {
        let source = Counting::default();
        let overviews = Overviews::new(source.clone());
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(source.0.load(Ordering::Relaxed), 0, "nothing is computed without clients");
        let mut streams = [overviews.watch().unwrap(), overviews.watch().unwrap()];
        for n in 1..=3 {
            for lines in &mut streams {
                let overview = read(lines.recv().await);
                assert_eq!((overview.n, overview.totals.accepted_per_s, overview.ready), (n, 50.0, true));
            }
        }
        assert_eq!(source.0.load(Ordering::Relaxed), 4);
        drop(streams);
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(source.0.load(Ordering::Relaxed), 4);
        assert_eq!(read(overviews.watch().unwrap().recv().await).n, 4, "later ones are served");
    }

    #[tokio::test(start_paused = true)]
    async fn slow_reader_misses_lines_and_keeps_no_memory() {
        let overviews = Overviews::new(Counting::default());
        let (mut slow, mut quick) = (overviews.watch().unwrap(), overviews.watch().unwrap());
        for _ in 0..20 {
            quick.recv().await.unwrap();
        }
        assert_eq!(slow.len(), WAITING_MAX);
        let read_late = [slow.recv().await, slow.recv().await].map(|line| read(line).n);
        assert_eq!(read_late, [1, 2]);
        overviews.end();
        while slow.recv().await.is_some() {}
        assert!(overviews.watch().is_none(), "the process stops");
    }

    #[tokio::test(start_paused = true)]
    async fn streams_are_limited_and_places_return() {
        let overviews = Overviews::new(Counting::default());
        let mut streams: Vec<_> = (0..STREAMS_MAX).map(|_| overviews.watch().unwrap()).collect();
        assert!(overviews.watch().is_none());
        streams.truncate(1);
        streams[0].recv().await.unwrap();
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(overviews.watch().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn single_request_waits_only_for_the_first_rate() {
        let overviews = Overviews::new(Counting::default());
        let begun = Instant::now();
        assert_eq!(overviews.now().await.totals.accepted_per_s, 50.0);
        assert_eq!(begun.elapsed(), INTERVAL);
        assert_eq!(overviews.now().await.n, 2);
        tokio::time::sleep(Duration::from_secs(4)).await;
        overviews.now().await;
        assert_eq!(begun.elapsed(), Duration::from_secs(5), "a poller gets its answer immediately");
        tokio::time::sleep(STALE).await;
        overviews.now().await;
        assert_eq!(begun.elapsed(), Duration::from_secs(5) + STALE + INTERVAL, "old samples aren't used");
    }
}
