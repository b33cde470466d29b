//! What a store's crate implements.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use event::Lane;
use event::read::{Found, Lookup, Page, Query, ReadError, StoredEvent};

use crate::{
    Batch, Capabilities, Claim, Examination, Held, Mark, Reason, Retention, SinkError, Takeover, WriteOutcome,
};

/// One store, as its crate implements it. Everyone else calls it through a [`Sink`](crate::Sink).
///
/// The calls of all lanes are concurrent. A caller waits without blocking its thread. If a future is dropped before it ends, its call may
/// take effect or not: the same batch sent again is harmless.
///
/// A store never retries, never batches and never decides what is dropped: delivery does. It may return a server's
/// message in errors and reasons: [`Sink`](crate::Sink) escapes control characters in it.
#[async_trait]
pub trait Store: Any + Send + Sync {
    /// The capabilities that delivery needs before the first call.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// See [`Sink::connect`](crate::Sink::connect).
    async fn connect(&self) -> Result<(), SinkError> {
        Ok(())
    }

    /// See [`Sink::examine`](crate::Sink::examine).
    async fn examine(&self, _may_write: bool) -> Result<Examination, SinkError> {
        Ok(Examination::default())
    }

    /// See [`Sink::held`](crate::Sink::held). A transactional store implements this and [`Self::claim`].
    async fn held(&self, _lane: &Lane) -> Result<Option<Held>, SinkError> {
        Ok(None)
    }

    /// See [`Sink::claim`](crate::Sink::claim).
    async fn claim(&self, _lane: &Lane, _claim: Claim, _takeover: &Takeover) -> Result<Option<Held>, SinkError> {
        Ok(None)
    }

    /// See [`Sink::mark`](crate::Sink::mark).
    async fn mark(&self) -> Result<Option<Mark>, SinkError> {
        Ok(None)
    }

    /// See [`Sink::write`](crate::Sink::write).
    async fn write(&self, batch: &Batch) -> Result<WriteOutcome, SinkError>;

    /// Whether [`Self::read`] returns events.
    fn can_read(&self) -> bool {
        false
    }

    /// See [`Sink::read`](crate::Sink::read).
    async fn read(&self, _query: Query) -> Result<Page, ReadError> {
        Err(ReadError::Unavailable("sinks of this kind can't be read: name another one in `routes` and `read`".into()))
    }

    /// See [`Sink::get`](crate::Sink::get). A store that finds many ids with one query implements this.
    async fn get(&self, lookup: Lookup) -> Result<Found, ReadError> {
        let Lookup { mut ids, bytes_max, only_type } = lookup;
        let (mut events, mut bytes) = (Vec::new(), 0);
        while bytes < bytes_max
            && let Some(id) = ids.pop()
        {
            let page = self.read(Query::of_event(id, bytes_max - bytes, only_type.clone())).await?;
            bytes += page.events.iter().map(StoredEvent::bytes).sum::<usize>();
            events.extend(page.events);
        }
        Ok(Found { events, left: ids })
    }

    /// See [`Sink::close`](crate::Sink::close).
    async fn close(&self) -> Result<(), SinkError> {
        Ok(())
    }

    /// See [`Sink::warning`](crate::Sink::warning).
    fn warning(&self) -> Option<Reason> {
        None
    }

    /// The deletions of a store that deletes old events.
    fn retention(&self) -> Option<&Retention> {
        None
    }

    /// The binding to a writer's store, if this is a sink of a gateway.
    fn binding(&self) -> Option<&dyn StoreBinding> {
        None
    }
}

/// The store that a gateway's sink is bound to. Its writers may be configured differently: the binding decides which of
/// them are right.
pub trait StoreBinding {
    /// The mark of the bound store. `None` while the sink isn't bound.
    fn mark(&self) -> Option<Mark>;

    /// Whether a writer with another store than the bound one was found.
    fn has_other_store(&self) -> bool;

    /// Binds the sink to the store with this mark, or with `None` to the next store that is found.
    fn bind(&self, mark: Option<Mark>);

    /// The writer that got the lane's last batch.
    fn server_of(&self, lane: &Lane) -> Option<Arc<str>>;

    /// The longest pause before the next attempt, if the last failure calls for a shorter one than usual.
    fn retry_max(&self) -> Option<Duration>;
}
