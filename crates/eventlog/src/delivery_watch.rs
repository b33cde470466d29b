//! Subscriptions to the completion of delivery, for clients that want the response when their events are stored.
//!
//! Delivery is the [`DeliveryStatusSource`]. A request waits in the queue of one lane, at the sequence that the lane must advance past, and is
//! woken by that. So it asks the source again only if there is something new. Without subscriptions a lane reads one counter.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::task::{Context, Poll, Waker};

use event::{EventId, Position, TypeName};

/// A range of a shard's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceRange {
    /// Their shard.
    pub shard: u16,
    /// The first sequence.
    pub first: u64,
    /// The last sequence.
    pub last: u64,
    /// If set, only events with these ids count. The exact sequence of an event is unknown if it was sent with others.
    pub only: Option<BTreeSet<EventId>>,
}

/// The events that a request waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchRequest {
    /// Their ranges.
    pub spans: Vec<SequenceRange>,
    /// Their types.
    pub types: Vec<TypeName>,
}

/// About how much memory an id in `only` takes.
const ID_BYTES: usize = 32;

impl WatchRequest {
    /// About how many bytes the ids in it take: there may be as many as a batch has events.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.spans.iter().filter_map(|span| span.only.as_ref()).map(|only| only.len() * ID_BYTES).sum()
    }
}

/// A lane that hasn't finished all of the events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingLane {
    /// Its sink.
    pub sink: Arc<str>,
    /// Its shard.
    pub shard: u16,
    /// The sequence that it must advance past. `None` if waiting is of no use: the route was removed from the
    /// configuration and holds the events, or the events can no longer be read.
    pub until: Option<u64>,
}

/// An event that a sink has rejected permanently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedEvent {
    /// The sink.
    pub sink: Arc<str>,
    /// The event's id, by which its dead letter is found.
    pub id: EventId,
    /// Its position.
    pub position: Position,
    /// Why, without any text of the store: clients read it.
    pub reason: DeadLetterReason,
}

/// Why an event is a dead letter, as clients see it. The store's error message names tables and rows, so only the log and the dead letter have
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadLetterReason {
    /// The store rejected the record.
    RejectedByStore,
    /// The store didn't accept the record in time, but did accept its neighbours.
    NotStoredInTime,
    /// The condition of the route can't be evaluated on the event.
    ConditionFailed,
    /// The event was deferred, and its sink now has a store of another kind.
    SinkChanged,
    /// The operator dropped the dead letter, and its reason with it.
    Dropped,
}

impl DeadLetterReason {
    /// All codes.
    pub const ALL: [Self; 5] =
        [Self::RejectedByStore, Self::NotStoredInTime, Self::ConditionFailed, Self::SinkChanged, Self::Dropped];

    /// The code in responses. Clients compare it, so it never changes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RejectedByStore => "rejected_by_store",
            Self::NotStoredInTime => "not_stored_in_time",
            Self::ConditionFailed => "condition_failed",
            Self::SinkChanged => "sink_changed",
            Self::Dropped => "dropped",
        }
    }
}

/// The events that sinks have rejected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejections {
    /// Those that the request waits for, up to the limit.
    pub listed: Vec<RejectedEvent>,
    /// How many there are.
    pub count: u64,
    /// The sinks whose dead letters couldn't be read.
    pub unknown: Vec<Arc<str>>,
}

/// The source of delivery status.
pub trait DeliveryStatusSource: Send + Sync {
    /// The lanes that haven't finished all of the events.
    fn pending(&self, request: &WatchRequest) -> Vec<PendingLane>;

    /// Whether any event was ever rejected: if none was, the disk needn't be read.
    fn may_have_rejected(&self) -> bool;

    /// The events that were rejected permanently; at most `limit` of each sink are listed. Reads the disk: call it from
    /// a thread that may block.
    fn rejected(&self, request: &WatchRequest, limit: usize) -> Rejections;
}

/// The subscriptions of a process.
#[derive(Default)]
pub struct DeliveryWatch {
    source: RwLock<Option<Weak<dyn DeliveryStatusSource>>>,
    queues: Mutex<Queues>,
    /// How many requests wait in the queues.
    waiting: AtomicUsize,
}

/// The queue of a lane.
#[derive(Default)]
struct Queue {
    /// The requests that wait for the lane, by the sequence that it must advance past and a ticket.
    requests: BTreeMap<(u64, u64), Waker>,
    /// The lane, while it gathers events and no request waits for it.
    gathering: Option<Waker>,
}

#[derive(Default)]
struct Queues {
    lanes: BTreeMap<Arc<str>, BTreeMap<u16, Queue>>,
    tickets: u64,
}

impl Queues {
    fn lane(&mut self, sink: &Arc<str>, shard: u16) -> &mut Queue {
        self.lanes.entry(sink.clone()).or_default().entry(shard).or_default()
    }
}

impl fmt::Debug for DeliveryWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeliveryWatch").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

impl DeliveryWatch {
    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses this source from now on, for as long as it lives.
    pub fn set_source(&self, source: &Arc<dyn DeliveryStatusSource>) {
        *self.source.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::downgrade(source));
        self.notify_all();
    }

    /// The source, if there is one.
    #[must_use]
    pub fn status_source(&self) -> Option<Arc<dyn DeliveryStatusSource>> {
        self.source.read().unwrap_or_else(PoisonError::into_inner).as_ref()?.upgrade()
    }

    /// A lane has advanced to `cursor`, and the source says so.
    pub fn advance(&self, sink: &str, shard: u16, cursor: u64) {
        if self.waiting() == 0 {
            return;
        }
        let mut queues = self.queues();
        let Some(queue) = queues.lanes.get_mut(sink).and_then(|shards| shards.get_mut(&shard)) else { return };
        let later = queue.requests.split_off(&(cursor.saturating_add(1), 0));
        let passed = std::mem::replace(&mut queue.requests, later);
        self.waiting.fetch_sub(passed.len(), Ordering::SeqCst);
        drop(queues);
        passed.into_values().for_each(Waker::wake);
    }

    /// Wakes all requests, to ask again: the routes have changed.
    pub fn notify_all(&self) {
        let mut queues = self.queues();
        let queued = queues.lanes.values_mut().flat_map(BTreeMap::values_mut);
        let requests: Vec<_> = queued.map(|queue| std::mem::take(&mut queue.requests)).collect();
        self.waiting.store(0, Ordering::SeqCst);
        drop(queues);
        requests.into_iter().flat_map(BTreeMap::into_values).for_each(Waker::wake);
    }

    /// Waits until a request waits for the lane: its client would wait as long as the lane gathers events. One task may wait for a lane.
    pub async fn asked(&self, sink: &Arc<str>, shard: u16) {
        poll_fn(|context| {
            let mut queues = self.queues();
            let queue = queues.lane(sink, shard);
            if !queue.requests.is_empty() {
                return Poll::Ready(());
            }
            queue.gathering = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// How many wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Waits until all of the events are finished, or waiting is of no use for the rest. Without a source it waits
    /// forever.
    #[must_use]
    pub const fn wait<'a>(&'a self, request: &'a WatchRequest) -> DeliveryWait<'a> {
        DeliveryWait { watch: self, request, queued: None }
    }

    fn enter(&self, lane: &PendingLane, until: u64, waker: &Waker) -> QueuePosition {
        let mut queues = self.queues();
        queues.tickets += 1;
        let key = (until, queues.tickets);
        let queue = queues.lane(&lane.sink, lane.shard);
        queue.requests.insert(key, waker.clone());
        let gathering = queue.gathering.take();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        drop(queues);
        gathering.into_iter().for_each(Waker::wake);
        QueuePosition { sink: lane.sink.clone(), shard: lane.shard, key }
    }

    /// A request that was woken is no longer in the queue.
    fn leave(&self, queued: &QueuePosition) {
        let mut queues = self.queues();
        let queue = queues.lanes.get_mut(&queued.sink).and_then(|shards| shards.get_mut(&queued.shard));
        if queue.and_then(|queue| queue.requests.remove(&queued.key)).is_some() {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// A position in the queue of a lane.
struct QueuePosition {
    sink: Arc<str>,
    shard: u16,
    key: (u64, u64),
}

/// Waits for the delivery of events: see [`DeliveryWatch::wait`].
pub struct DeliveryWait<'a> {
    watch: &'a DeliveryWatch,
    request: &'a WatchRequest,
    queued: Option<QueuePosition>,
}

impl DeliveryWait<'_> {
    fn leave(&mut self) {
        if let Some(queued) = self.queued.take() {
            self.watch.leave(&queued);
        }
    }
}

impl Future for DeliveryWait<'_> {
    type Output = ();

    /// It is in one queue at a time, and asks once more after it entered: so it misses no advance in between.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.leave();
        let Some(source) = self.watch.status_source() else { return Poll::Pending };
        let first =
            |pending: Vec<PendingLane>| pending.into_iter().find_map(|lane| lane.until.map(|until| (lane, until)));
        let mut next = first(source.pending(self.request));
        loop {
            let Some((lane, until)) = &next else { return Poll::Ready(()) };
            self.queued = Some(self.watch.enter(lane, *until, context.waker()));
            let again = first(source.pending(self.request));
            if again == next {
                return Poll::Pending;
            }
            self.leave();
            next = again;
        }
    }
}

impl Drop for DeliveryWait<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests;
