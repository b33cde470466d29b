//! One call for several requests, and how they get its answer.

use std::time::Duration;

use event::EventId;
use event::read::{Found, Lookup, ReadError, StoreReader, StoredEvent};
use limits::EVENT_BYTES_MAX;
use tokio::sync::oneshot;

use super::{Answer, LookupError};
use crate::admission::{ClientBucket, ReadPermit};

/// Bytes that an event of full size may take, with its envelope.
pub(crate) const EVENT_ROOM: usize = EVENT_BYTES_MAX + 1024;
/// The answer to a batch has room for so many events of full size. What has no room is looked up again.
const FULL_EVENTS_MAX: usize = 2;

/// A request that waits.
pub(super) struct Waiter {
    pub(super) id: EventId,
    pub(super) client: ClientBucket,
    /// When it arrived.
    pub(super) asked: Duration,
    pub(super) reply: oneshot::Sender<Answer>,
}

impl Waiter {
    pub(super) fn answer(self, answer: Answer) {
        // Its client may have gone.
        drop(self.reply.send(answer));
    }

    pub(super) fn is_gone(&self) -> bool {
        self.reply.is_closed()
    }
}

/// A batch.
pub(super) struct Batch {
    /// In the order of their ids.
    waiters: Vec<Waiter>,
    permit: ReadPermit,
}

impl Batch {
    /// Bytes of the answer for so many requests.
    pub(super) fn bytes_max(waiters: usize) -> usize {
        EVENT_ROOM * waiters.clamp(1, FULL_EVENTS_MAX)
    }

    pub(super) fn new(mut waiters: Vec<Waiter>, permit: ReadPermit) -> Self {
        waiters.sort_by_key(|waiter| waiter.id);
        Self { waiters, permit }
    }

    /// Asks the store, and answers the requests. Returns those that are to be looked up again.
    pub(super) async fn look_up(self, reader: &dyn StoreReader) -> Vec<Waiter> {
        let Self { waiters, permit } = self;
        let mut ids: Vec<EventId> = waiters.iter().map(|waiter| waiter.id).collect();
        ids.dedup();
        let count = ids.len();
        let found = reader.get(Lookup { ids, bytes_max: permit.bytes(), only_type: None }).await;
        match found {
            // A store that looks up nothing would be asked without end.
            Ok(Found { left, .. }) if left.len() >= count => refuse(waiters, &ReadError::Busy),
            Ok(found) => return distribute(waiters, found, permit),
            Err(error) => refuse(waiters, &error),
        }
        Vec::new()
    }
}

fn refuse(waiters: Vec<Waiter>, error: &ReadError) {
    waiters.into_iter().for_each(|waiter| waiter.answer(Err(LookupError::Store(error.clone()))));
}

/// Gives each request its event, with the memory for it. Requests for one event each get a copy, if there is memory for it.
fn distribute(waiters: Vec<Waiter>, found: Found, mut permit: ReadPermit) -> Vec<Waiter> {
    let Found { mut events, left } = found;
    events.sort_by_key(|event| event.id);
    let (mut events, mut waiters) = (events.into_iter().peekable(), waiters.into_iter().peekable());
    let (mut again, mut is_first) = (Vec::new(), true);
    while let Some(waiter) = waiters.next() {
        while events.next_if(|event| event.id < waiter.id).is_some() {}
        match events.peek().filter(|event| event.id == waiter.id).map(StoredEvent::bytes) {
            None if left.contains(&waiter.id) => again.push(waiter),
            None => waiter.answer(Ok(None)),
            // Even an event that is larger than all memory of the batch gets its answer.
            Some(bytes) if bytes <= permit.bytes() || is_first => {
                is_first = false;
                let is_last = waiters.peek().is_none_or(|next| next.id != waiter.id);
                let event = if is_last { events.next() } else { events.peek().cloned() };
                let permit = permit.split(bytes, waiter.client);
                waiter.answer(Ok(event.map(|event| (event, permit))));
            }
            Some(_) => again.push(waiter),
        }
    }
    again
}
