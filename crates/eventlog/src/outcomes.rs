//! What became of events, for whoever waits to hear it: a client that wants its answer when its events are stored.
//!
//! Delivery knows, and is asked ([`Witness`]). Nobody asks again before there is something new: who waits stands in the queue of
//! one lane, at the sequence that it must pass, and is woken when it has. While nobody waits, a lane pays one look at a number.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::task::{Context, Poll, Waker};

use event::{EventId, Position, TypeName};

/// Where events stand in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Their shard.
    pub shard: u16,
    /// The first sequence.
    pub first: u64,
    /// The last sequence.
    pub last: u64,
    /// Of what stands there only events with these ids are meant; all without. Where an event with a given id stands
    /// isn't known to the sequence if it came with others.
    pub only: Option<BTreeSet<EventId>>,
}

/// The events of which somebody wants to know what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Where they stand.
    pub spans: Vec<Span>,
    /// Their types.
    pub types: Vec<TypeName>,
}

/// Memory that one of the ids takes which alone are meant, about.
const ID_BYTES: usize = 32;

impl Asked {
    /// Bytes that the ids in it take, about: there may be as many as a batch has events.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.spans.iter().filter_map(|span| span.only.as_ref()).map(|only| only.len() * ID_BYTES).sum()
    }
}

/// A lane that hasn't brought all of the events to an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The sink that it leads to.
    pub sink: Arc<str>,
    /// Its shard.
    pub shard: u16,
    /// The sequence that it must pass. `None` where it isn't of use to wait: the route was taken out of the configuration and
    /// holds the events, or they can't be read any more.
    pub until: Option<u64>,
}

/// An event that a sink has refused for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The sink.
    pub sink: Arc<str>,
    /// The event's id, by which its dead letter is found.
    pub id: EventId,
    /// Where it stands.
    pub position: Position,
    /// Why.
    pub reason: String,
}

/// The events that were refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Those that were asked for.
    pub listed: Vec<Refused>,
    /// How many there are.
    pub count: u64,
    /// The sinks that couldn't say.
    pub unknown: Vec<Arc<str>>,
}

/// Who knows what became of events.
pub trait Witness: Send + Sync {
    /// The lanes that haven't brought all of the events to an end.
    fn pending(&self, asked: &Asked) -> Vec<Pending>;

    /// Whether any event was ever refused: if none was, nobody needs to read the disk for it.
    fn may_have_refused(&self) -> bool;

    /// Which of the events were refused for good; at most `limit` of each sink are listed. Reads the disk: call it where
    /// that may block.
    fn refused(&self, asked: &Asked, limit: usize) -> Refusals;
}

/// Where those who wait meet delivery.
#[derive(Default)]
pub struct Outcomes {
    witness: RwLock<Option<Weak<dyn Witness>>>,
    queues: Mutex<Queues>,
    /// How many stand in the queues.
    waiting: AtomicUsize,
}

/// Who waits for a lane, by the sequence that it must pass and a ticket.
type Queue = BTreeMap<(u64, u64), Waker>;

#[derive(Default)]
struct Queues {
    lanes: BTreeMap<Arc<str>, BTreeMap<u16, Queue>>,
    tickets: u64,
}

impl fmt::Debug for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcomes").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

impl Outcomes {
    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on this one is asked, for as long as it lives.
    pub fn call(&self, witness: &Arc<dyn Witness>) {
        *self.witness.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::downgrade(witness));
        self.changed();
    }

    /// Who knows, if anybody does.
    #[must_use]
    pub fn witness(&self) -> Option<Arc<dyn Witness>> {
        self.witness.read().unwrap_or_else(PoisonError::into_inner).as_ref()?.upgrade()
    }

    /// A lane has passed `cursor`, and says so when it is asked.
    pub fn passed(&self, sink: &str, shard: u16, cursor: u64) {
        if self.waiting() == 0 {
            return;
        }
        let mut queues = self.queues();
        let Some(queue) = queues.lanes.get_mut(sink).and_then(|shards| shards.get_mut(&shard)) else { return };
        let later = queue.split_off(&(cursor.saturating_add(1), 0));
        let passed = std::mem::replace(queue, later);
        self.waiting.fetch_sub(passed.len(), Ordering::SeqCst);
        drop(queues);
        passed.into_values().for_each(Waker::wake);
    }

    /// Everybody is to ask again: routes have come or gone.
    pub fn changed(&self) {
        let mut queues = self.queues();
        let lanes = std::mem::take(&mut queues.lanes);
        self.waiting.store(0, Ordering::SeqCst);
        drop(queues);
        lanes.into_values().flat_map(BTreeMap::into_values).flat_map(BTreeMap::into_values).for_each(Waker::wake);
    }

    /// How many wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Waits until all of the events have come to an end, or waiting is of no use for those that haven't. While nobody can
    /// be asked it waits for ever.
    #[must_use]
    pub const fn wait<'a>(&'a self, asked: &'a Asked) -> Wait<'a> {
        Wait { outcomes: self, asked, place: None }
    }

    fn enter(&self, lane: &Pending, until: u64, waker: &Waker) -> Place {
        let mut queues = self.queues();
        queues.tickets += 1;
        let key = (until, queues.tickets);
        queues.lanes.entry(lane.sink.clone()).or_default().entry(lane.shard).or_default().insert(key, waker.clone());
        self.waiting.fetch_add(1, Ordering::SeqCst);
        Place { sink: lane.sink.clone(), shard: lane.shard, key }
    }

    /// Who was woken isn't there any more.
    fn leave(&self, place: &Place) {
        let mut queues = self.queues();
        let queue = queues.lanes.get_mut(&place.sink).and_then(|shards| shards.get_mut(&place.shard));
        if queue.and_then(|queue| queue.remove(&place.key)).is_some() {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// A place in the queue of a lane.
struct Place {
    sink: Arc<str>,
    shard: u16,
    key: (u64, u64),
}

/// Waits for the end of events: see [`Outcomes::wait`].
pub struct Wait<'a> {
    outcomes: &'a Outcomes,
    asked: &'a Asked,
    place: Option<Place>,
}

impl Wait<'_> {
    fn leave(&mut self) {
        if let Some(place) = self.place.take() {
            self.outcomes.leave(&place);
        }
    }
}

impl Future for Wait<'_> {
    type Output = ();

    /// It stands in one queue at a time, and asks once more when it stands there: what came between isn't missed.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.leave();
        let Some(witness) = self.outcomes.witness() else { return Poll::Pending };
        let first = |pending: Vec<Pending>| pending.into_iter().find_map(|lane| lane.until.map(|until| (lane, until)));
        let mut next = first(witness.pending(self.asked));
        loop {
            let Some((lane, until)) = &next else { return Poll::Ready(()) };
            self.place = Some(self.outcomes.enter(lane, *until, context.waker()));
            let again = first(witness.pending(self.asked));
            if again == next {
                return Poll::Pending;
            }
            self.leave();
            next = again;
        }
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests;
