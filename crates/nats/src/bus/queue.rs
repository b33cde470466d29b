//! The messages that wait for a subscription's owner.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use crate::message::Message;
use crate::subject::Subject;

/// Messages that wait for a subscription's owner. The sender of a further one gets no response in time.
pub(super) const MESSAGES_MAX: usize = 4096;
/// Bytes of these messages.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// The queue of a subscription.
pub(super) struct Queue {
    pub(super) id: u64,
    pub(super) subject: Subject,
    pub(super) group: Option<String>,
    /// Whether it isn't renewed at a reconnection.
    pub(super) is_draining: Cell<bool>,
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

impl Queue {
    pub(super) fn new(id: u64, subject: &Subject, group: Option<&str>) -> Self {
        let (subject, group) = (subject.clone(), group.map(str::to_owned));
        Self { id, subject, group, is_draining: Cell::new(false), state: RefCell::default() }
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

    pub(super) fn poll_next(&self, cx: &Context<'_>) -> Poll<Option<Message>> {
        let mut state = self.state.borrow_mut();
        if let Some(message) = state.pop() {
            return Poll::Ready(Some(message));
        }
        if state.is_closed {
            return Poll::Ready(None);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// A message that was received before.
    pub(super) fn pop(&self) -> Option<Message> {
        self.state.borrow_mut().pop()
    }

    /// The number of messages that were dropped because the queue was full.
    pub(super) fn dropped(&self) -> u64 {
        self.state.borrow().dropped
    }

    /// Ends the queue after the messages that wait.
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
