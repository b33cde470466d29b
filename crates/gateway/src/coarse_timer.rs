//! How long requests wait for their events to be stored. The shard's tick looks at the clock for all of them, so none needs a
//! timer; at a stop each connection is told to finish, which wakes its request too.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::shard::ShardContext;

/// The requests of a shard that wait, by the time at which they don't any more and a ticket.
#[derive(Debug, Default)]
pub(crate) struct CoarseTimer {
    waiting: RefCell<BTreeMap<(Duration, u64), Waker>>,
    tickets: Cell<u64>,
}

impl CoarseTimer {
    /// Wakes those whose time is over.
    pub(crate) fn tick(&self, now: Duration) {
        let later = self.waiting.borrow_mut().split_off(&(now, u64::MAX));
        let over = self.waiting.replace(later);
        over.into_values().for_each(Waker::wake);
    }

    fn ticket(&self) -> u64 {
        self.tickets.set(self.tickets.get() + 1);
        self.tickets.get()
    }
}

/// A place among those that wait; given up when it is dropped.
struct Waiter<'a> {
    patience: &'a CoarseTimer,
    key: (Duration, u64),
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.patience.waiting.borrow_mut().remove(&self.key);
    }
}

/// Waits for something until the shard's clock says `deadline`, or the server stops.
pub(crate) async fn wait(worker: &ShardContext, deadline: Duration, something: impl Future<Output = ()>) {
    let patience = worker.patience();
    let place = Waiter { patience, key: (deadline, patience.ticket()) };
    let mut something = pin!(something);
    poll_fn(|context| {
        if something.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        if worker.is_finishing() || worker.clock().elapsed() >= deadline {
            return Poll::Ready(());
        }
        patience.waiting.borrow_mut().insert(place.key, context.waker().clone());
        Poll::Pending
    })
    .await;
}
