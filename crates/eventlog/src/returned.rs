//! Turns that the commit thread has committed, on their way back to the shard's thread.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use crate::turn::Turn;

/// Where the commit thread leaves turns, and the shard's thread fetches them.
#[derive(Debug, Default)]
pub(crate) struct Returned(Mutex<Inbox>);

#[derive(Debug, Default)]
struct Inbox {
    turns: Vec<Turn>,
    /// The task that fetches them; without one they are woken where they are.
    fetcher: Option<Waker>,
}

impl Returned {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a turn for the shard's thread: one wake-up, however many requests it has.
    pub(crate) fn hand_back(&self, turn: Turn) {
        let mut inbox = self.inbox();
        let Some(fetcher) = inbox.fetcher.clone() else {
            drop(inbox);
            return turn.wake();
        };
        inbox.turns.push(turn);
        drop(inbox);
        fetcher.wake();
    }

    /// Fetches turns and wakes their requests, for ever. When it is dropped, the commit thread does so again.
    pub(crate) async fn wake(&self) {
        let _end = EndOfFetching(self);
        poll_fn(|context| {
            let turns = {
                let mut inbox = self.inbox();
                inbox.fetcher = Some(context.waker().clone());
                std::mem::take(&mut inbox.turns)
            };
            turns.into_iter().for_each(Turn::wake);
            Poll::Pending
        })
        .await
    }
}

struct EndOfFetching<'a>(&'a Returned);

impl Drop for EndOfFetching<'_> {
    fn drop(&mut self) {
        let Inbox { turns, .. } = std::mem::take(&mut *self.0.inbox());
        turns.into_iter().for_each(Turn::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Wake;

    use super::*;
    use crate::turn::Fate;

    /// A decided turn whose request waits on `waker`.
    fn turn(waker: &Waker) -> Turn {
        let mut turn = Turn::default();
        turn.wait(waker);
        turn.decide(Fate::Durable);
        turn
    }

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    impl Woken {
        fn take(&self) -> bool {
            self.0.swap(false, Ordering::Relaxed)
        }
    }

    #[tokio::test]
    async fn requests_are_woken_by_the_fetcher_and_without_one_at_once() {
        let returned = Arc::new(Returned::default());
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        returned.hand_back(turn(&waker));
        assert!(woken.take());

        let fetching = returned.clone();
        let fetcher = tokio::spawn(async move { fetching.wake().await });
        tokio::task::yield_now().await;
        returned.hand_back(turn(&waker));
        assert!(!woken.take());
        tokio::task::yield_now().await;
        assert!(woken.take());

        returned.hand_back(turn(&waker));
        fetcher.abort();
        assert!(fetcher.await.is_err());
        assert!(woken.take() && returned.inbox().fetcher.is_none());
    }
}
