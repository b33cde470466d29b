//! Turns that the commit thread has committed, on their way back to the shard's thread.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use crate::turn::{Fate, Turn};

/// Where the commit thread leaves turns, and the shard's thread fetches them.
#[derive(Debug, Default)]
pub(crate) struct Returned(Mutex<Inbox>);

#[derive(Debug, Default)]
struct Inbox {
    turns: Vec<(Turn, Fate)>,
    /// The task that fetches them; without one they are settled where they are.
    fetcher: Option<Waker>,
}

impl Returned {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a turn for the shard's thread: one wake-up, however many requests it has.
    pub(crate) fn hand_back(&self, turn: Turn, fate: Fate) {
        let mut inbox = self.inbox();
        let Some(fetcher) = inbox.fetcher.clone() else {
            drop(inbox);
            return turn.settle(fate);
        };
        inbox.turns.push((turn, fate));
        drop(inbox);
        fetcher.wake();
    }

    /// Fetches and settles turns for ever. When it is dropped, turns are settled on the commit thread again.
    pub(crate) async fn settle(&self) {
        let _end = EndOfFetching(self);
        poll_fn(|context| {
            let turns = {
                let mut inbox = self.inbox();
                inbox.fetcher = Some(context.waker().clone());
                std::mem::take(&mut inbox.turns)
            };
            turns.into_iter().for_each(|(turn, fate)| turn.settle(fate));
            Poll::Pending
        })
        .await
    }
}

struct EndOfFetching<'a>(&'a Returned);

impl Drop for EndOfFetching<'_> {
    fn drop(&mut self) {
        let Inbox { turns, .. } = std::mem::take(&mut *self.0.inbox());
        turns.into_iter().for_each(|(turn, fate)| turn.settle(fate));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn turns_are_settled_by_the_fetcher_and_without_one_at_once() {
        let returned = Arc::new(Returned::default());
        let turn = Turn::default();
        let fate = turn.fate();
        returned.hand_back(turn, Fate::Durable);
        assert_eq!(fate.get(), Fate::Durable);

        let fetching = returned.clone();
        let fetcher = tokio::spawn(async move { fetching.settle().await });
        tokio::task::yield_now().await;
        let turn = Turn::default();
        let fate = turn.fate();
        returned.hand_back(turn, Fate::NoSpace);
        assert_eq!(fate.get(), Fate::Pending);
        tokio::task::yield_now().await;
        assert_eq!(fate.get(), Fate::NoSpace);

        let turn = Turn::default();
        let last = turn.fate();
        returned.hand_back(turn, Fate::Durable);
        fetcher.abort();
        assert!(fetcher.await.is_err());
        assert_eq!(last.get(), Fate::Durable);
        assert!(returned.inbox().fetcher.is_none());
    }
}
