//! Pages that gateways read. A writer limits their size and the memory of all of them, regardless of the gateway's query.

use std::sync::Arc;

use bytes::Bytes;
use event::read::{Query, ReadError};
use limits::READ_EVENTS_MAX;
use limits::memory::WriterBudgets;
use sink::Sink;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use writer_protocol::read::PageJson;

use crate::UNIT;
use crate::answer::{self, Work};
use crate::request_parts::ROOM_WAIT_MAX;

/// The memory for pages.
#[derive(Clone, Debug)]
pub(super) struct ReadRoom {
    free: Arc<Semaphore>,
    page_bytes: usize,
}

impl ReadRoom {
    pub(super) fn new(budgets: &WriterBudgets) -> Self {
        Self { free: Arc::new(Semaphore::new(budgets.reads_bytes.div_ceil(UNIT))), page_bytes: budgets.page_bytes() }
    }

    /// The largest page that a gateway gets for this query.
    pub(super) fn bounded(&self, query: Query) -> Query {
        let (limit, bytes_max) = (query.limit.min(READ_EVENTS_MAX), query.bytes_max.min(self.page_bytes));
        Query { limit, bytes_max, ..query }
    }

    /// Reads a page. The answer holds its memory until the gateway has it.
    pub(super) fn read(self, sink: Sink, query: Query) -> Work {
        let query = self.bounded(query);
        Box::pin(async move {
            let wanted = query.wanted.clone();
            let units = WriterBudgets::page_memory_bytes(query.bytes_max).div_ceil(UNIT);
            let units = u32::try_from(units).unwrap_or(u32::MAX);
            let Ok(Ok(permit)) = timeout(ROOM_WAIT_MAX, self.free.acquire_many_owned(units)).await else {
                return answer::json(&PageJson::new(&wanted, Err(ReadError::Busy)));
            };
            let text = answer::json(&PageJson::new(&wanted, sink.read(query).await));
            Bytes::from_owner(Held { text, _permit: permit })
        })
    }
}

/// The text of a page with its memory.
struct Held {
    text: Bytes,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}
