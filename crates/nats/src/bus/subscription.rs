//! A subscription, and the queue of its messages.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use super::shared::Shared;
use crate::message::Message;
use crate::subject::Subject;

/// Messages that wait for a subscription's owner. The sender of a further one gets no response in time.
const MESSAGES_MAX: usize = 4096;
/// Bytes of these messages.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// A subscription: its messages wait in a queue of up to 4,096 messages and 16 MiB. Dropping it unsubscribes.
pub struct Subscription {
    queue: Rc<Queue>,
    shared: Rc<Shared>,
}

/// The queue of a subscription.
pub(super) struct Queue {
    pub(super) id: u64,
    pub(super) subject: Subject,
    pub(super) group: Option<String>,
    state: RefCell<QueueState>,
}

#[derive(Default)]
struct QueueState {
    messages: VecDeque<Message>,
    bytes: usize,
    dropped: u64,
    is_closed: bool,
    waker: Option<Waker>,
}

impl Subscription {
    pub(super) fn new(queue: Rc<Queue>, shared: Rc<Shared>) -> Self {
        Self { queue, shared }
    }

    /// The next message; `None` if the bus is closed.
    pub async fn next(&mut self) -> Option<Message> {
        poll_fn(|cx| {
            let mut state = self.queue.state.borrow_mut();
            if let Some(message) = state.pop() {
                return Poll::Ready(Some(message));
            }
            if state.is_closed {
                return Poll::Ready(None);
            }
            state.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// A message that was received before.
    pub fn try_next(&mut self) -> Option<Message> {
        self.queue.state.borrow_mut().pop()
    }

    /// The number of messages that were dropped because the queue was full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.queue.state.borrow().dropped
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.shared.unsubscribe(&self.queue);
    }
}

impl Queue {
    pub(super) fn new(id: u64, subject: &Subject, group: Option<&str>) -> Self {
        Self { id, subject: subject.clone(), group: group.map(str::to_owned), state: RefCell::default() }
    }

    pub(super) fn push(&self, message: Message) {
        let mut state = self.state.borrow_mut();
        let size = message.size();
        if state.messages.len() >= MESSAGES_MAX || (state.bytes > 0 && state.bytes + size > BYTES_MAX) {
            state.dropped += 1;
            return;
        }
        state.bytes += size;
        state.messages.push_back(message);
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    pub(super) fn close(&self) {
        let mut state = self.state.borrow_mut();
        state.is_closed = true;
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl QueueState {
    fn pop(&mut self) -> Option<Message> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.size();
        Some(message)
    }
}
