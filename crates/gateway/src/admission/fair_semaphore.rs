//! A semaphore that is fair to clients. Waiting requests get permits in rounds, one request of each client: a client with much work waits
//! for itself, and delays others by one piece of it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::client_quota::ClientBucket;

/// If so many requests of a client wait, those are removed whose connections are gone.
const PRUNE_AT_MIN: usize = 64;

/// The semaphore. Cheap to clone.
#[derive(Clone)]
pub(crate) struct FairSemaphore(Arc<Mutex<Queue>>);

struct Queue {
    free: usize,
    /// Clients that wait, the next one first: none is empty, and none waits while a permit is free.
    clients: VecDeque<(ClientBucket, Waiting)>,
}

/// The waiting requests of one client.
struct Waiting {
    requests: VecDeque<oneshot::Sender<FairPermit>>,
    /// At this length those are removed whose connections are gone.
    prune_at: usize,
}

/// A permit, until it is dropped, on any thread.
pub(crate) struct FairPermit(Option<FairSemaphore>);

impl FairSemaphore {
    /// A semaphore with so many permits.
    pub(crate) fn new(permits: usize) -> Self {
        Self(Arc::new(Mutex::new(Queue { free: permits, clients: VecDeque::new() })))
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a permit.
    pub(crate) async fn acquire(&self, client: ClientBucket) -> FairPermit {
        let waiting = {
            let mut queue = self.queue();
            if queue.free > 0 {
                queue.free -= 1;
                return FairPermit(Some(self.clone()));
            }
            queue.wait(client)
        };
        // A queue with requests in it is never dropped: each request holds it.
        waiting.await.unwrap_or(FairPermit(None))
    }

    /// A permit is released: it goes to the next request whose connection is open.
    fn pass_on(self) {
        let mut permit = FairPermit(Some(self.clone()));
        loop {
            let Some(next) = self.queue().next() else { break };
            match next.send(permit) {
                Ok(()) => return,
                Err(refused) => permit = refused,
            }
        }
        permit.0 = None;
    }
}

impl Queue {
    fn wait(&mut self, client: ClientBucket) -> oneshot::Receiver<FairPermit> {
        let at = self.clients.iter().position(|(waiting, _)| *waiting == client).unwrap_or_else(|| {
            self.clients.push_back((client, Waiting { requests: VecDeque::new(), prune_at: PRUNE_AT_MIN }));
            self.clients.len() - 1
        });
        let (request, permit) = oneshot::channel();
        self.clients[at].1.push(request);
        permit
    }

    /// The next request, of the next client; without one there is a free permit more.
    fn next(&mut self) -> Option<oneshot::Sender<FairPermit>> {
        let Some((client, mut waiting)) = self.clients.pop_front() else {
            self.free += 1;
            return None;
        };
        let next = waiting.requests.pop_front();
        if !waiting.requests.is_empty() {
            self.clients.push_back((client, waiting));
        }
        next
    }
}

impl Waiting {
    fn push(&mut self, request: oneshot::Sender<FairPermit>) {
        if self.requests.len() >= self.prune_at {
            self.requests.retain(|request| !request.is_closed());
            self.prune_at = (2 * self.requests.len()).max(PRUNE_AT_MIN);
        }
        self.requests.push_back(request);
    }
}

impl Drop for FairPermit {
    fn drop(&mut self) {
        if let Some(semaphore) = self.0.take() {
            semaphore.pass_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::admission::client_quota::tests::two_clients;

    type Waits<'a> = Pin<Box<dyn Future<Output = FairPermit> + 'a>>;

    fn poll(waits: &mut Waits<'_>) -> Option<FairPermit> {
        match waits.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(permit) => Some(permit),
            Poll::Pending => None,
        }
    }

    fn waits(semaphore: &FairSemaphore, client: ClientBucket) -> Waits<'_> {
        let mut waits: Waits<'_> = Box::pin(semaphore.acquire(client));
        assert!(poll(&mut waits).is_none());
        waits
    }

    #[test]
    fn busy_client_delays_others_by_one_request() {
        let (semaphore, [busy, other]) = (FairSemaphore::new(1), two_clients());
        let now = poll(&mut (Box::pin(semaphore.acquire(busy)) as Waits<'_>)).unwrap();
        let mut those: Vec<_> = (0..50).map(|_| waits(&semaphore, busy)).collect();
        let mut others: Vec<_> = (0..2).map(|_| waits(&semaphore, other)).collect();
        drop(now);
        drop(poll(&mut those[0]).expect("it has waited longest"));
        drop(poll(&mut others[0]).expect("then the other client gets its permit"));
        drop(poll(&mut those[1]).expect("in the order in which they came"));
        drop(poll(&mut others[1]).unwrap());
        for waits in &mut those[2..] {
            drop(poll(waits).expect("none is forgotten"));
        }
        assert_eq!(semaphore.queue().free, 1);
    }

    #[test]
    fn permit_skips_waiters_that_left() {
        let (semaphore, [client, other]) = (FairSemaphore::new(1), two_clients());
        let now = poll(&mut (Box::pin(semaphore.acquire(client)) as Waits<'_>)).unwrap();
        let mut stays = waits(&semaphore, other);
        let leave: Vec<_> = (0..100_000).map(|_| waits(&semaphore, client)).collect();
        let leaves_with_a_permit = waits(&semaphore, other);
        drop(leave);
        drop(now);
        drop(poll(&mut stays).unwrap());
        drop(leaves_with_a_permit);
        assert!(semaphore.queue().clients.is_empty());
        assert_eq!(semaphore.queue().free, 1);
    }

    #[test]
    fn waiters_that_left_are_removed() {
        let (semaphore, [client, _]) = (FairSemaphore::new(1), two_clients());
        let _now = poll(&mut (Box::pin(semaphore.acquire(client)) as Waits<'_>)).unwrap();
        (0..10_000).for_each(|_| drop(waits(&semaphore, client)));
        let kept = semaphore.queue().clients[0].1.requests.len();
        assert!(kept <= PRUNE_AT_MIN, "{kept}");
    }

    #[test]
    fn concurrent_permits_are_bounded() {
        let (semaphore, [one, other]) = (FairSemaphore::new(2), two_clients());
        let first = poll(&mut (Box::pin(semaphore.acquire(one)) as Waits<'_>)).unwrap();
        let _second = poll(&mut (Box::pin(semaphore.acquire(other)) as Waits<'_>)).unwrap();
        let mut third = waits(&semaphore, one);
        drop(first);
        assert!(poll(&mut third).is_some());
    }
}
