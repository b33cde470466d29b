//! Commit groups that the commit thread has finished, until the shard's thread wakes their requests.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use crate::commit_group::CommitGroup;

/// The queue between the commit thread and the shard's thread.
#[derive(Debug, Default)]
pub(crate) struct CompletionQueue(Mutex<Inbox>);

#[derive(Debug, Default)]
struct Inbox {
    groups: Vec<CommitGroup>,
    /// The task that takes them; without one the commit thread wakes their requests.
    waiter: Option<Waker>,
}

impl CompletionQueue {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a group for the shard's thread: one wake-up, however many requests it has.
    pub(crate) fn push(&self, group: CommitGroup) {
        let mut inbox = self.inbox();
        let Some(waiter) = inbox.waiter.clone() else {
            drop(inbox);
            return group.wake();
        };
        inbox.groups.push(group);
        drop(inbox);
        waiter.wake();
    }

    /// Wakes the requests of queued groups, forever. After it is dropped, the commit thread wakes them.
    pub(crate) async fn wake(&self) {
        let _end = EndOfWaking(self);
        poll_fn(|context| {
            let groups = {
                let mut inbox = self.inbox();
                inbox.waiter = Some(context.waker().clone());
                std::mem::take(&mut inbox.groups)
            };
            groups.into_iter().for_each(CommitGroup::wake);
            Poll::Pending
        })
        .await
    }
}

struct EndOfWaking<'a>(&'a CompletionQueue);

impl Drop for EndOfWaking<'_> {
    fn drop(&mut self) {
        let Inbox { groups, .. } = std::mem::take(&mut *self.0.inbox());
        groups.into_iter().for_each(CommitGroup::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Wake;

    use super::*;
    use crate::commit_group::CommitStatus;

    /// A finished group whose request waits on `waker`.
    fn group(waker: &Waker) -> CommitGroup {
        let mut group = CommitGroup::default();
        group.wait(waker);
        group.finish(CommitStatus::Durable);
        group
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
    async fn requests_are_woken_immediately_without_a_waiter() {
        let queue = Arc::new(CompletionQueue::default());
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        queue.push(group(&waker));
        assert!(woken.take());

        let waiting = queue.clone();
        let waiter = tokio::spawn(async move { waiting.wake().await });
        tokio::task::yield_now().await;
        queue.push(group(&waker));
        assert!(!woken.take());
        tokio::task::yield_now().await;
        assert!(woken.take());

        queue.push(group(&waker));
        waiter.abort();
        assert!(waiter.await.is_err());
        assert!(woken.take() && queue.inbox().waiter.is_none());
    }
}
