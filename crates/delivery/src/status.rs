//! The status of delivery, for metrics and for the operator.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dead_letters::ContactLog;
use event::Lane;
use eventlog::{Shard, unix_microseconds};
use metrics::{Counter, Histogram, SizeHistogram};
use progress::LaneReporter;

/// What a lane is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneState {
    /// It connects to its store.
    Connecting,
    /// It delivers, or waits for events.
    Delivering,
    /// It waits for its next attempt; the text is the store's error message.
    Waiting(String),
    /// It does not continue automatically: it needs an operator.
    Stopped(String),
}

impl LaneState {
    /// A word for it, as in metrics.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Delivering => "delivering",
            Self::Waiting(_) => "waiting",
            Self::Stopped(_) => "stopped",
        }
    }
}

/// The status of one lane.
pub struct LaneStatus {
    lane: Lane,
    shard: Arc<Shard>,
    /// Its state, and since when.
    state: Mutex<(LaneState, i64)>,
    cursor: AtomicU64,
    settled: AtomicU64,
    oldest: AtomicI64,
    /// The highest position that was ever sent to the sink, also by an earlier lane of it or an earlier process.
    sent_up_to: AtomicU64,
    /// Whether the cursor is the one that the store confirmed, or that delivery keeps for it.
    has_begun: AtomicBool,
    pub(crate) progress: LaneReporter,
    pub(crate) contacts: ContactLog,
    /// Batches that were written, empty ones too.
    pub batches: Counter,
    /// Records of a batch.
    pub batch_records: SizeHistogram,
    /// How long the sink took for a batch, failed attempts too.
    pub write_time: Histogram,
    /// Attempts that failed.
    pub retries: Counter,
    /// Events that can't be read any longer since the start of the process. The next start counts them as lost in the
    /// ledger.
    pub lost: Counter,
}

impl LaneStatus {
    pub(crate) fn new(lane: Lane, shard: Arc<Shard>, cursor: u64, progress: LaneReporter) -> Self {
        // It is unknown how far an earlier lane of the sink got, but it was not beyond this position.
        let sent_up_to = AtomicU64::new(shard.durable());
        Self {
            lane,
            shard,
            state: Mutex::new((LaneState::Connecting, unix_microseconds())),
            cursor: AtomicU64::new(cursor),
            settled: AtomicU64::new(cursor),
            oldest: AtomicI64::new(0),
            sent_up_to,
            has_begun: AtomicBool::new(false),
            progress,
            contacts: ContactLog::default(),
            batches: Counter::new(),
            batch_records: SizeHistogram::new(1),
            write_time: Histogram::new(),
            retries: Counter::new(),
            lost: Counter::new(),
        }
    }

    /// The lane.
    #[must_use]
    pub const fn lane(&self) -> &Lane {
        &self.lane
    }

    /// Its state.
    #[must_use]
    pub fn state(&self) -> LaneState {
        self.state_and_since().0
    }

    /// Its state, and since when it connects, delivers, waits or has stopped, regardless of changes of the reason:
    /// microseconds since 1970, UTC. An outage may have begun before a reload or a restart created this lane.
    #[must_use]
    pub fn state_and_since(&self) -> (LaneState, i64) {
        let (state, since) = self.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match state {
            LaneState::Waiting(_) => (state, self.progress.fails_since().map_or(since, |began| began.min(since))),
            _ => (state, since),
        }
    }

    /// Events of the shard, of all types, that are after the lane's cursor.
    #[must_use]
    pub fn backlog(&self) -> u64 {
        self.shard.durable().saturating_sub(self.cursor.load(Ordering::Relaxed))
    }

    /// The position up to which everything has its outcome: what is stored up to here is in the store.
    #[must_use]
    pub fn cursor(&self) -> u64 {
        self.cursor.load(Ordering::Acquire)
    }

    /// The same, or a later position if all events in between are none of this lane's: an event that is not in the store
    /// by now does not get there.
    #[must_use]
    pub fn settled(&self) -> u64 {
        self.settled.load(Ordering::Acquire)
    }

    /// When the oldest event of the batch that is being written was received: microseconds since 1970, UTC. `None` if
    /// the lane has nothing to write.
    #[must_use]
    pub fn oldest_pending_at(&self) -> Option<i64> {
        Some(self.oldest.load(Ordering::Relaxed)).filter(|at| *at != 0)
    }

    /// Whether the lane has ever delivered. Before that its cursor may be lower than the store's.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// The lane delivers at `now`: an outage has ended.
    pub(crate) fn delivers(&self, now: i64) {
        self.has_begun.store(true, Ordering::Relaxed);
        self.progress.delivers(now);
    }

    /// Sets the state and returns the previous one.
    pub(crate) fn set(&self, state: LaneState) -> LaneState {
        let mut held = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = std::mem::discriminant(&held.0) == std::mem::discriminant(&state);
        let since = if is_same { held.1 } else { unix_microseconds() };
        std::mem::replace(&mut *held, (state, since)).0
    }

    /// Positions up to `last` are being sent to the sink. Returns the highest position that was sent before.
    pub(crate) fn advance_sent_watermark(&self, last: u64) -> u64 {
        self.sent_up_to.fetch_max(last, Ordering::Relaxed)
    }

    pub(crate) fn set_cursor(&self, cursor: u64) {
        self.cursor.store(cursor, Ordering::Release);
        self.set_settled(cursor);
    }

    pub(crate) fn set_settled(&self, position: u64) {
        self.settled.store(position, Ordering::Release);
    }

    pub(crate) fn set_oldest(&self, received_at: Option<i64>) {
        self.oldest.store(received_at.unwrap_or(0), Ordering::Relaxed);
    }
}

/// The present lanes, by sink and shard; they change with the configuration. Cheap to clone.
#[derive(Clone, Default)]
pub struct LaneBoard(Arc<Mutex<Vec<Arc<LaneStatus>>>>);

impl LaneBoard {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<LaneStatus>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them.
    #[must_use]
    pub fn lanes(&self) -> Vec<Arc<LaneStatus>> {
        self.lock().clone()
    }

    /// Replaces the lanes, and returns the previous ones.
    pub(crate) fn exchange(&self, lanes: Vec<Arc<LaneStatus>>) -> Vec<Arc<LaneStatus>> {
        std::mem::replace(&mut *self.lock(), lanes)
    }
}

/// Counts of the checkpointer.
#[derive(Debug, Default)]
pub struct CheckpointCounters {
    /// Saves of the ledger.
    pub saves: Counter,
    /// Saves of the ledger that failed.
    pub failed_saves: Counter,
    /// Segments that were freed.
    pub freed_segments: Counter,
    /// Segments that couldn't be freed.
    pub failed_frees: Counter,
}
