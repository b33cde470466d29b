//! A subscription, as its owner has it.

use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::timeout;

use super::queue::Queue;
use super::shared::Shared;
use crate::message::Message;

/// How long a server may take to send the last messages of a subscription.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// A subscription: its messages wait in a queue of up to 4,096 messages and 16 MiB. Dropping it unsubscribes.
pub struct Subscription {
    queue: Rc<Queue>,
    shared: Rc<Shared>,
}

impl Subscription {
    pub(super) fn new(queue: Rc<Queue>, shared: Rc<Shared>) -> Self {
        Self { queue, shared }
    }

    /// The next message; `None` if the bus is closed.
    pub async fn next(&mut self) -> Option<Message> {
        poll_fn(|cx| self.queue.poll_next(cx)).await
    }

    /// Unsubscribes, and waits up to two seconds until the server has sent what it had for this subscription. Then
    /// [`Self::next`] returns the messages that wait, and `None`.
    pub async fn drain(&mut self) {
        let links = self.shared.leave(&self.queue);
        let all = async {
            for link in links {
                link.until(|link| link.pings.get() == 0 || link.has_ended()).await;
            }
        };
        let _ = timeout(DRAIN_TIMEOUT, all).await;
        self.queue.close();
    }

    /// A message that was received before.
    pub fn try_next(&mut self) -> Option<Message> {
        self.queue.pop()
    }

    /// The number of messages that were dropped because the queue was full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.queue.dropped()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.shared.unsubscribe(&self.queue);
    }
}
