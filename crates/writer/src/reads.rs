//! Events that gateways read. A writer limits the size of an answer and the memory of all of them, regardless of the
//! gateway's request.

use std::sync::Arc;

use bytes::Bytes;
use event::EventId;
use event::read::{Found, Lookup, Query, ReadError};
use limits::memory::WriterBudgets;
use limits::{EVENT_BYTES_MAX, LOOKUP_IDS_MAX, READ_EVENTS_MAX};
use sink::Sink;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use writer_protocol::read::{PageJson, ReadRequest};

use crate::UNIT;
use crate::answer::{self, Work};
use crate::request_parts::ROOM_WAIT_MAX;

/// The bytes of a lookup's events. They leave memory for other lookups: most events are small. If some are left, the
/// gateway asks again.
const LOOKUP_BYTES_MAX: usize = 2 * EVENT_BYTES_MAX;

/// The memory for answers.
#[derive(Clone, Debug)]
pub(super) struct ReadRoom {
    free: Arc<Semaphore>,
    page_bytes: usize,
}

impl ReadRoom {
    pub(super) fn new(budgets: &WriterBudgets) -> Self {
        Self { free: Arc::new(Semaphore::new(budgets.reads_bytes.div_ceil(UNIT))), page_bytes: budgets.page_bytes() }
    }

    /// Its free units.
    pub(super) fn free(&self) -> &Semaphore {
        &self.free
    }

    /// The largest page that a gateway gets for this query.
    pub(super) fn bounded(&self, query: Query) -> Query {
        let (limit, bytes_max) = (query.limit.min(READ_EVENTS_MAX), query.bytes_max.min(self.page_bytes));
        Query { limit, bytes_max, ..query }
    }

    /// Reads events. The answer holds its memory until the gateway has it.
    pub(super) fn read(self, sink: Sink, request: ReadRequest) -> Work {
        match request {
            ReadRequest::Page(query) => {
                let query = self.bounded(query);
                let wanted = query.wanted.clone();
                self.answer(query.bytes_max, async move { PageJson::new(&wanted, sink.read(query).await) })
            }
            ReadRequest::Lookup(mut lookup) => {
                let more = lookup.ids.split_off(lookup.ids.len().min(LOOKUP_IDS_MAX));
                lookup.bytes_max = lookup.bytes_max.min(LOOKUP_BYTES_MAX).min(self.page_bytes);
                self.answer(lookup.bytes_max, async move { PageJson::found(looked_up(&sink, lookup, more).await) })
            }
        }
    }

    fn answer(self, bytes_max: usize, read: impl Future<Output = PageJson> + Send + 'static) -> Work {
        let units = WriterBudgets::page_memory_bytes(bytes_max).div_ceil(UNIT);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        Box::pin(async move {
            let Ok(Ok(permit)) = timeout(ROOM_WAIT_MAX, self.free.acquire_many_owned(units)).await else {
                return answer::json(&PageJson::from(ReadError::Busy));
            };
            let text = answer::json(&read.await);
            Bytes::from_owner(Held { text, _permit: permit })
        })
    }
}

/// Looks up the events; `more` are left.
async fn looked_up(sink: &Sink, lookup: Lookup, mut more: Vec<EventId>) -> Result<Found, ReadError> {
    let Found { events, left } = sink.get(lookup).await?;
    more.extend(left);
    Ok(Found { events, left: more })
}

/// The text of an answer with its memory.
struct Held {
    text: Bytes,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}
