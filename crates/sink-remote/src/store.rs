//! The store that writers write to: each call is a request to one of them.

use std::num::NonZeroUsize;
use std::sync::Arc;

use async_trait::async_trait;
use event::Lane;
use event::read::{Found, Lookup, Page, Query, ReadError};
use http::Method;
use limits::READ_BYTES_MAX;

use crate::caller::{Caller, LastSearch, SILENCE_MAX, odd};
use crate::config::RemoteConfig;
use crate::exchange::{Call, Content};
use sink::read_pool::{PooledReader, ReadPool};
use sink::{
    Batch, Capabilities, Claim, Examination, Held, Reason, SinkError, Store, StoreBinding, Takeover, WriteOutcome,
};
use writer_protocol::frame;
use writer_protocol::read::{PageJson, QueryJson};
use writer_protocol::{ClaimQuery, HeldAnswer, Outcome, wire};

/// Requests that read at the same time, each over its own connection.
const READERS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(7);
/// The largest page, in bytes: each byte of a payload may be escaped.
const READ_ANSWER_BYTES_MAX: usize = 2 * READ_BYTES_MAX + 4 * 1024 * 1024;

/// The sink's handle. Cheap to clone.
#[derive(Clone)]
pub struct Remote {
    shared: Arc<Shared>,
}

struct Shared {
    caller: Arc<Caller>,
    reads: ReadPool,
}

impl Remote {
    /// A store that isn't connected yet.
    #[must_use]
    pub fn new(config: RemoteConfig) -> Self {
        let caller = Arc::new(Caller::new(config));
        let (to_read, search) = (Arc::clone(&caller), LastSearch::default());
        let reads =
            ReadPool::new("writer-read", READERS, move || Reader(to_read.to_read(SILENCE_MAX, Arc::clone(&search))));
        Self { shared: Arc::new(Shared { caller, reads }) }
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.shared.caller
    }

    /// What the store holds of a lane, if that fits the kind of store.
    fn fitting(&self, answer: HeldAnswer) -> Result<Option<Held>, SinkError> {
        let held = answer.into_held().ok_or_else(|| odd("a response with an invalid claim"))?;
        if held.is_some() == self.shared.caller.config().capabilities().fenced {
            return Ok(held);
        }
        Err(odd("the cursor of another kind of store"))
    }
}

#[async_trait]
impl Store for Remote {
    fn capabilities(&self) -> Capabilities {
        self.shared.caller.config().capabilities()
    }

    async fn connect(&self) -> Result<(), SinkError> {
        self.shared.caller.connect(|_| Ok(())).await
    }

    /// The writers ask their own stores, as at a start of the gateway.
    async fn examine(&self, _: bool) -> Result<Examination, SinkError> {
        let mut found = Examination::default();
        self.connect().await?;
        found.see("the writers answer, and have the same store");
        found.warn_of_loss(self.warning().map(|warning| warning.to_string()));
        Ok(found)
    }

    async fn held(&self, lane: &Lane) -> Result<Option<Held>, SinkError> {
        let call = Call { lane: Some(lane), ..Call::new(Method::GET, "/cursor") };
        self.fitting(self.shared.caller.call(&call).await??)
    }

    async fn claim(&self, lane: &Lane, claim: Claim, takeover: &Takeover) -> Result<Option<Held>, SinkError> {
        let query = serde_json::to_vec(&ClaimQuery::new(claim, takeover)).unwrap_or_default();
        let content = Content::Whole(query.into());
        let call = Call { lane: Some(lane), content, ..Call::new(Method::POST, "/claim") };
        self.fitting(self.shared.caller.call(&call).await??)
    }

    async fn write(&self, batch: &Batch) -> Result<WriteOutcome, SinkError> {
        let call = Call {
            lane: Some(batch.lane()),
            batch: Some(batch),
            content: Content::Whole(frame::encode(batch)),
            answer_max: wire::ANSWER_BYTES_MAX,
            ..Call::new(Method::POST, "")
        };
        match self.shared.caller.call::<Outcome>(&call).await? {
            Ok(outcome) => outcome.into_write_outcome(batch.len()),
            Err(error) => Err(error),
        }
    }

    fn can_read(&self) -> bool {
        self.shared.caller.config().reads
    }

    async fn read(&self, query: Query) -> Result<Page, ReadError> {
        self.shared.reads.read(query).await
    }

    async fn get(&self, lookup: Lookup) -> Result<Found, ReadError> {
        self.shared.reads.get(lookup).await
    }

    /// Ends the calls in flight and closes idle connections.
    async fn close(&self) -> Result<(), SinkError> {
        self.shared.caller.close();
        self.shared.reads.close().await;
        Ok(())
    }

    fn warning(&self) -> Option<Reason> {
        self.caller().binding().warning()
    }

    fn binding(&self) -> Option<&dyn StoreBinding> {
        Some(&*self.shared.caller)
    }
}

/// Reads through the writers, with separate connections.
struct Reader(Caller);

impl Reader {
    async fn ask(&self, query: &QueryJson) -> Result<PageJson, ReadError> {
        let unavailable = |error: SinkError| ReadError::Unavailable(error.to_string().into());
        let json = serde_json::to_vec(query).unwrap_or_default();
        let content = Content::Whole(json.into());
        let call = Call { content, answer_max: READ_ANSWER_BYTES_MAX, ..Call::new(Method::POST, "/read") };
        self.0.call(&call).await.map_err(unavailable)?.map_err(unavailable)
    }
}

#[async_trait(?Send)]
impl PooledReader for Reader {
    async fn read(&mut self, query: &Query) -> Result<Page, ReadError> {
        self.ask(&QueryJson::from(query)).await?.into_page(&query.wanted)
    }

    async fn get(&mut self, lookup: &Lookup) -> Result<Found, ReadError> {
        self.ask(&QueryJson::from(lookup)).await?.into_found(lookup)
    }

    async fn hang_up(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests;
