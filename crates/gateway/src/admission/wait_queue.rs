//! A batch or a read that finds no room waits for some, about as long as a client would wait before it retries.
//!
//! A rejection isn't cheap: the client connects again, sends its body again and is rejected again. At ten times overload half of the
//! machine went into that, and less was accepted than without the overload. What waits here has sent a head; its body is in the
//! kernel's buffers, or not sent yet.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::client_quota::{BucketUsage, ClientBucket};
use crate::coarse_timer::CoarseTimer;
use crate::problem::Refused;

/// How long a batch or a read waits for room, and up to a tick of the shard's clock longer.
pub(crate) const WAIT: Duration = Duration::from_secs(1);
/// Batches that wait at a time. Each uses the memory of a request whose body is unread. A client has at most as many of these places as
/// are left for others.
const WAITING_MAX: usize = 1_000;
/// If the batch that waits longest finds no room, because it is large or its client has much already, so many others are woken.
const ASKED_MAX: usize = 16;

/// The batches of all shards that wait for room.
#[derive(Debug)]
pub(crate) struct WaitQueue {
    wait: Duration,
    count: AtomicUsize,
    shares: BucketUsage,
    /// How many more are woken to try whether the room suffices for them.
    asked: AtomicUsize,
    first: Notify,
}

impl WaitQueue {
    pub(crate) fn new(wait: Duration) -> Self {
        Self {
            wait,
            count: AtomicUsize::new(0),
            shares: BucketUsage::default(),
            asked: AtomicUsize::new(0),
            first: Notify::new(),
        }
    }

    /// Lets the batch that waits longest look for room.
    pub(crate) fn wake_first(&self) {
        let waiting = self.count.load(Ordering::SeqCst);
        if waiting > 0 {
            self.asked.store(waiting.min(ASKED_MAX) - 1, Ordering::SeqCst);
            self.first.notify_one();
        }
    }

    /// The one that was woken found no room: the next one may.
    fn wake_next(&self) {
        let left = |asked: usize| asked.checked_sub(1);
        if self.asked.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok() {
            self.first.notify_one();
        }
    }

    fn place(&self, client: ClientBucket) -> Option<QueuedBatch<'_>> {
        let before = self.count.fetch_add(1, Ordering::SeqCst);
        let own = self.shares.of(client);
        self.shares.add(client, 1);
        let place = QueuedBatch { waiting: self, client };
        (before + own < WAITING_MAX).then_some(place)
    }
}

/// A waiting batch.
struct QueuedBatch<'a> {
    waiting: &'a WaitQueue,
    client: ClientBucket,
}

impl Drop for QueuedBatch<'_> {
    fn drop(&mut self) {
        self.waiting.shares.take(self.client, 1);
        let before = self.waiting.count.fetch_sub(1, Ordering::SeqCst);
        debug_assert!(before > 0, "a place is left once");
    }
}

/// Waits for a permit, until others release their bytes. `try_admit` asks for one.
///
/// # Errors
/// There was no room in time.
pub(crate) async fn wait<T>(
    queue: &WaitQueue,
    client: ClientBucket,
    timer: &CoarseTimer,
    try_admit: impl Fn() -> Result<T, Refused>,
) -> Result<T, Refused> {
    let mut permit = try_admit();
    if permit.is_ok() {
        return permit;
    }
    let Some(place) = queue.place(client) else { return permit };
    let mut is_woken = false;
    let room = async {
        loop {
            permit = try_admit();
            if permit.is_ok() {
                return;
            }
            if std::mem::take(&mut is_woken) {
                queue.wake_next();
            }
            queue.first.notified().await;
            is_woken = true;
        }
    };
    timer.wait(queue.wait, room).await;
    drop(place);
    if permit.is_err() {
        // Room that was reserved for announced batches is released by the clock, which wakes nothing.
        permit = try_admit();
    }
    // There may be room for more than this one. If this one gave up just when it was woken, the next gets the room.
    queue.wake_first();
    permit
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    use limits::memory::Budgets;

    use super::*;
    use crate::admission::client_quota::tests::two_clients;
    use crate::admission::{Admission, AnswerSize, ReadBudget};

    fn is_woken(waiting: &WaitQueue) -> bool {
        pin!(waiting.first.notified()).poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    #[test]
    fn releasing_bytes_wakes_exactly_one_waiter() {
        let admission = Admission::new(1, 100, 100, Duration::ZERO);
        let waiting = admission.waiting();
        let client = admission.bucket("", IpAddr::V4(Ipv4Addr::LOCALHOST));
        let mut event = admission.permit(0, client, 1);
        assert!(event.admit(90).is_ok());
        let place = waiting.place(client);
        assert!(admission.batch_permit(0, client, Some(20), 1).is_err());
        assert!(!is_woken(waiting), "else they would wake each other for ever");
        event.shrink(10);
        assert!(is_woken(waiting));
        drop(admission.batch_permit(0, client, Some(20), 1).unwrap());
        assert!(is_woken(waiting), "its reservation had been counted");
        drop(place);
        drop(event);
        assert!(!is_woken(waiting), "no batch waits");
    }

    #[test]
    fn answer_that_is_not_expected_wakes_none() {
        let budget = Arc::new(ReadBudget::new(&Budgets::FULL));
        let [busy, other] = two_clients();
        let all = budget.take(Budgets::FULL.reads_bytes, busy).unwrap();
        let _place = budget.waiting().place(other);
        assert!(budget.expect(AnswerSize::Usual(1), other).is_err());
        assert!(!is_woken(budget.waiting()), "else they would wake each other for ever");
        drop(all);
        assert!(is_woken(budget.waiting()));
        let expected = budget.expect(AnswerSize::Usual(1), other).unwrap();
        assert!(!is_woken(budget.waiting()));
        drop(expected);
        assert!(is_woken(budget.waiting()));
    }

    #[test]
    fn waiter_without_room_wakes_few_others() {
        let waiting = WaitQueue::new(Duration::ZERO);
        let places = [1, 2, 3].map(|_| waiting.place(two_clients()[0]));
        waiting.wake_first();
        for number in 0..places.len() {
            assert!(is_woken(&waiting), "{number}");
            waiting.wake_next();
        }
        assert!(!is_woken(&waiting), "each was asked");
    }

    #[test]
    fn wait_places_are_bounded_and_shared_by_clients() {
        let (waiting, [busy, other]) = (WaitQueue::new(Duration::ZERO), two_clients());
        let take = |client| std::iter::from_fn(|| waiting.place(client)).collect::<Vec<_>>();
        let places = take(busy);
        assert_eq!(places.len(), WAITING_MAX / 2);
        let others = take(other);
        assert_eq!(others.len(), WAITING_MAX / 4);
        assert!(waiting.place(busy).is_none() && waiting.place(other).is_none());
        drop(places);
        assert!(waiting.place(other).is_some());
        drop(others);
        assert_eq!((waiting.count.load(Ordering::SeqCst), take(busy).len()), (0, WAITING_MAX / 2));
    }
}
