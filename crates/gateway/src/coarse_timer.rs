//! Deadlines of requests that wait, for an event to be stored or for room. The tick of the shard compares all of them with its clock, so
//! none needs a timer of the runtime. At a stop each connection gets an order, which wakes its request too.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::cached_clock::CachedClock;

/// The requests of a shard that wait, by deadline and a ticket.
#[derive(Debug)]
pub(crate) struct CoarseTimer {
    clock: Arc<CachedClock>,
    /// Whether the shard ends.
    is_ending: Rc<Cell<bool>>,
    waiting: RefCell<BTreeMap<(Duration, u64), Waker>>,
    tickets: Cell<u64>,
}

impl CoarseTimer {
    pub(crate) fn new(clock: Arc<CachedClock>, is_ending: Rc<Cell<bool>>) -> Self {
        Self { clock, is_ending, waiting: RefCell::default(), tickets: Cell::default() }
    }

    /// Wakes the requests whose deadline has passed.
    pub(crate) fn tick(&self) {
        let later = self.waiting.borrow_mut().split_off(&(self.clock.elapsed(), u64::MAX));
        let over = self.waiting.replace(later);
        over.into_values().for_each(Waker::wake);
    }

    fn ticket(&self) -> u64 {
        self.tickets.set(self.tickets.get() + 1);
        self.tickets.get()
    }

    /// Waits for a future, for at most so long, or until the shard ends.
    pub(crate) async fn wait(&self, longest: Duration, something: impl Future<Output = ()>) {
        let deadline = self.clock.elapsed().saturating_add(longest);
        let waiter = Waiter { timer: self, key: (deadline, self.ticket()) };
        let mut something = pin!(something);
        poll_fn(|context| {
            if something.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            if self.is_ending.get() || self.clock.elapsed() >= deadline {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().insert(waiter.key, context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// A request that waits, until this is dropped.
struct Waiter<'a> {
    timer: &'a CoarseTimer,
    key: (Duration, u64),
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.timer.waiting.borrow_mut().remove(&self.key);
    }
}
