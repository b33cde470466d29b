//! Rejected events that a task of the shard stores as events of another type. To add one never waits.

use std::cell::RefCell;
use std::collections::VecDeque;

use limits::REFUSED_BYTES_WAITING_MAX;
use tokio::sync::Notify;

use crate::ingest::Envelope;
use crate::refusals::RefusedEvent;

/// The events that wait.
#[derive(Debug, Default)]
pub(crate) struct RefusalQueue {
    waiting: RefCell<Waiting>,
    has_more: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<(RefusedEvent, Envelope)>,
    bytes: usize,
}

impl RefusalQueue {
    /// Adds an event, which was in a request with this envelope; returns whether there is room for it.
    pub(crate) fn add(&self, event: RefusedEvent, envelope: &Envelope) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.bytes + event.bytes() > REFUSED_BYTES_WAITING_MAX {
            return false;
        }
        waiting.bytes += event.bytes();
        waiting.events.push_back((event, envelope.clone()));
        drop(waiting);
        self.has_more.notify_one();
        true
    }

    /// The next event, if one waits.
    pub(crate) fn take(&self) -> Option<(RefusedEvent, Envelope)> {
        let mut waiting = self.waiting.borrow_mut();
        let next = waiting.events.pop_front()?;
        waiting.bytes -= next.0.bytes();
        Some(next)
    }

    /// Waits for the next event.
    pub(crate) async fn next(&self) -> (RefusedEvent, Envelope) {
        loop {
            match self.take() {
                Some(next) => return next,
                None => self.has_more.notified().await,
            }
        }
    }
}
