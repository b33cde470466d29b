//! Lookups of single events. Requests of a shard that wait for the same store are put together into batches: one call, and one wake of
//! another thread, for all of them. No request joins a call that has begun: it finds what was stored before it arrived.

mod batch;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use event::EventId;
use event::read::{ReadError, StoreReader};
use limits::LOOKUP_IDS_MAX;
use tokio::sync::{Notify, oneshot};

use crate::admission::{ClientBucket, ReadBudget, ReadPermit, wait_queue};
use crate::cached_clock::CachedClock;
use crate::coarse_timer::CoarseTimer;
use crate::problem::Refused;
pub(crate) use batch::EVENT_ROOM;
use batch::{Batch, Waiter};

/// Batches of a shard that one store may be asked for at a time: while one is under way, the next one gathers.
const BATCHES_MAX: usize = 2;
/// Requests of a shard that may wait for one store.
const WAITING_MAX: usize = 4_096;
/// If the first request has waited this long, further ones are rejected: waiting would only add delay.
const REJECT_AFTER: Duration = Duration::from_secs(1);
/// A request that has waited this long, and up to a tick longer, is rejected.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Why an event can't be looked up.
#[derive(Debug)]
pub(crate) enum LookupError {
    /// The store can't be read.
    Store(ReadError),
    /// There was no memory for the answer, for this reason.
    NoMemory(String),
}

/// An event with the memory that it takes, or `None` if the store doesn't have it.
pub(crate) type Answer = Result<Option<(event::read::StoredEvent, ReadPermit)>, LookupError>;

/// The lookups of a shard.
pub(crate) struct Lookups {
    turn: Rc<Turn>,
    /// One for each store that was asked lately.
    queues: RefCell<Vec<Rc<Queue>>>,
}

/// What a batch needs of its shard.
struct Turn {
    budget: Arc<ReadBudget>,
    timer: Rc<CoarseTimer>,
    clock: Arc<CachedClock>,
}

/// The requests that wait for a store.
struct Queue {
    reader: Arc<dyn StoreReader>,
    waiting: RefCell<VecDeque<Waiter>>,
    batches: Cell<usize>,
    /// Whether a batch is yet to take the requests that wait.
    is_gathering: Cell<bool>,
    /// A request arrived for which there may be memory, unlike for those before it.
    arrived: Notify,
}

impl Lookups {
    pub(crate) fn new(budget: Arc<ReadBudget>, timer: Rc<CoarseTimer>, clock: Arc<CachedClock>) -> Self {
        Self { turn: Rc::new(Turn { budget, timer, clock }), queues: RefCell::default() }
    }

    /// Looks up an event for a client, in a batch that begins later.
    pub(crate) fn ask(
        &self,
        reader: &Arc<dyn StoreReader>,
        id: EventId,
        client: ClientBucket,
    ) -> oneshot::Receiver<Answer> {
        let (reply, answer) = oneshot::channel();
        let (queue, asked) = (self.queue_of(reader), self.turn.clock.elapsed());
        let waiter = Waiter { id, client, asked, reply };
        if queue.is_late(asked) {
            waiter.answer(Err(LookupError::Store(ReadError::Busy)));
        } else {
            queue.waiting.borrow_mut().push_back(waiter);
            begin(&self.turn, &queue);
            if queue.is_gathering.get() && self.turn.budget.quotas(EVENT_ROOM).admit(client) {
                // Only a batch that waits for memory hears it.
                queue.arrived.notify_waiters();
            }
        }
        answer
    }

    fn queue_of(&self, reader: &Arc<dyn StoreReader>) -> Rc<Queue> {
        let mut queues = self.queues.borrow_mut();
        // The readers of changed rules are others.
        if let Some(queue) = queues.iter().find(|queue| Arc::ptr_eq(&queue.reader, reader)) {
            return queue.clone();
        }
        let queue = Rc::new(Queue {
            reader: reader.clone(),
            waiting: RefCell::default(),
            batches: Cell::new(0),
            is_gathering: Cell::new(false),
            arrived: Notify::new(),
        });
        queues.push(queue.clone());
        queue
    }

    /// Rejects requests that have waited for too long, and forgets stores without requests.
    pub(crate) fn tick(&self) {
        let now = self.turn.clock.elapsed();
        self.queues.borrow_mut().retain(|queue| {
            while queue.oldest().is_some_and(|asked| now.saturating_sub(asked) >= WAIT_MAX) {
                let late = queue.waiting.borrow_mut().pop_front();
                late.into_iter().for_each(|late| late.answer(Err(LookupError::Store(ReadError::Busy))));
            }
            queue.batches.get() > 0
        });
    }
}

/// Begins a batch, unless one gathers already or enough are under way. It takes what waits after the tasks that are ready now.
fn begin(turn: &Rc<Turn>, queue: &Rc<Queue>) {
    if !queue.is_gathering.get() && queue.batches.get() < BATCHES_MAX {
        queue.is_gathering.set(true);
        queue.batches.set(queue.batches.get() + 1);
        tokio::task::spawn_local(run(turn.clone(), queue.clone()));
    }
}

/// Looks up batch after batch while requests wait.
async fn run(turn: Rc<Turn>, queue: Rc<Queue>) {
    while let Some(batch) = queue.gather(&turn).await {
        if !queue.waiting.borrow().is_empty() {
            begin(&turn, &queue);
        }
        let again = batch.look_up(&*queue.reader).await;
        again.into_iter().rev().for_each(|waiter| queue.waiting.borrow_mut().push_front(waiter));
        if queue.is_gathering.replace(true) {
            break;
        }
    }
    queue.batches.set(queue.batches.get() - 1);
}

impl Queue {
    fn oldest(&self) -> Option<Duration> {
        self.waiting.borrow().front().map(|waiter| waiter.asked)
    }

    fn is_late(&self, now: Duration) -> bool {
        let late = |asked| now.saturating_sub(asked) > REJECT_AFTER;
        self.oldest().is_some_and(late) || self.waiting.borrow().len() >= WAITING_MAX
    }

    /// The next batch, when there is memory for it; `None` if no request waits.
    async fn gather(&self, turn: &Turn) -> Option<Batch> {
        let mut began = turn.clock.elapsed();
        loop {
            let Some(first) = self.waiting.borrow().front().map(|waiter| waiter.client) else { break };
            let take = || self.take(&turn.budget);
            let mut batch = pin!(wait_queue::wait(turn.budget.waiting(), first, &turn.timer, take));
            let mut arrived = pin!(self.arrived.notified());
            let batch = poll_fn(|context| match batch.as_mut().poll(context) {
                Poll::Ready(batch) => Poll::Ready(Some(batch)),
                Poll::Pending => arrived.as_mut().poll(context).map(|()| None),
            });
            match batch.await {
                None => {}
                Some(Ok(None)) => break,
                Some(Ok(batch)) => {
                    self.is_gathering.set(false);
                    return batch;
                }
                Some(Err(refused)) => {
                    self.refuse_until(began, &refused);
                    began = turn.clock.elapsed();
                }
            }
        }
        self.is_gathering.set(false);
        None
    }

    /// Takes what waits for a batch, with memory for its answer. Requests of clients with more than their share of the memory stay.
    ///
    /// # Errors
    /// There is no memory for any.
    fn take(&self, budget: &Arc<ReadBudget>) -> Result<Option<Batch>, Refused> {
        let mut waiting = self.waiting.borrow_mut();
        waiting.retain(|waiter| !waiter.is_gone());
        let quotas = budget.quotas(Batch::bytes_max(waiting.len()));
        let mut admitted = waiting.iter().filter(|waiter| quotas.admit(waiter.client));
        let Some(payer) = admitted.next().or(waiting.front()).map(|waiter| waiter.client) else { return Ok(None) };
        // The last memory goes in small pieces: a client that was just below its share would take all of it.
        let bytes = if quotas.are_tight() { EVENT_ROOM } else { Batch::bytes_max(1 + admitted.count()) };
        let permit = budget.take(bytes, payer)?;
        let mut batch = Vec::with_capacity(waiting.len().min(LOOKUP_IDS_MAX));
        let mut stay = VecDeque::new();
        for waiter in waiting.drain(..) {
            if batch.len() < LOOKUP_IDS_MAX && quotas.admit(waiter.client) {
                batch.push(waiter);
            } else {
                stay.push_back(waiter);
            }
        }
        *waiting = stay;
        Ok(Some(Batch::new(batch, permit)))
    }

    /// Rejects the requests that already waited at a time.
    fn refuse_until(&self, time: Duration, refused: &Refused) {
        while self.oldest().is_some_and(|asked| asked <= time) {
            let first = self.waiting.borrow_mut().pop_front();
            first.into_iter().for_each(|first| first.answer(Err(LookupError::NoMemory(refused.detail.to_string()))));
        }
    }
}

#[cfg(test)]
mod tests;
