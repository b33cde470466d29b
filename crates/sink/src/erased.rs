//! The object-safe form of [`Store`]: a call allocates its future, once for each batch.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

use event::Lane;
use event::read::{Page, Query, ReadError};

use crate::store::{Store, StoreBinding};
use crate::{Batch, Capabilities, Claim, Held, Mark, Reason, SinkError, Takeover, WriteOutcome};

/// The future of one call.
pub(crate) type Call<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The methods of [`Store`], with boxed futures.
pub(crate) trait ErasedStore: Any + fmt::Debug + Send + Sync {
    fn capabilities(&self) -> Capabilities;
    fn connect(&self) -> Call<'_, Result<(), SinkError>>;
    fn held<'a>(&'a self, lane: &'a Lane) -> Call<'a, Result<Option<Held>, SinkError>>;
    fn claim<'a>(
        &'a self,
        lane: &'a Lane,
        claim: Claim,
        takeover: &'a Takeover,
    ) -> Call<'a, Result<Option<Held>, SinkError>>;
    fn mark(&self) -> Call<'_, Result<Option<Mark>, SinkError>>;
    fn write<'a>(&'a self, batch: &'a Batch) -> Call<'a, Result<WriteOutcome, SinkError>>;
    fn can_read(&self) -> bool;
    fn read(&self, query: Query) -> Call<'_, Result<Page, ReadError>>;
    fn close(&self) -> Call<'_, Result<(), SinkError>>;
    fn warning(&self) -> Option<Reason>;
    fn binding(&self) -> Option<&dyn StoreBinding>;
}

impl<S: Store> ErasedStore for S {
    fn capabilities(&self) -> Capabilities {
        Store::capabilities(self)
    }

    fn connect(&self) -> Call<'_, Result<(), SinkError>> {
        Box::pin(Store::connect(self))
    }

    fn held<'a>(&'a self, lane: &'a Lane) -> Call<'a, Result<Option<Held>, SinkError>> {
        Box::pin(Store::held(self, lane))
    }

    fn claim<'a>(
        &'a self,
        lane: &'a Lane,
        claim: Claim,
        takeover: &'a Takeover,
    ) -> Call<'a, Result<Option<Held>, SinkError>> {
        Box::pin(Store::claim(self, lane, claim, takeover))
    }

    fn mark(&self) -> Call<'_, Result<Option<Mark>, SinkError>> {
        Box::pin(Store::mark(self))
    }

    fn write<'a>(&'a self, batch: &'a Batch) -> Call<'a, Result<WriteOutcome, SinkError>> {
        Box::pin(Store::write(self, batch))
    }

    fn can_read(&self) -> bool {
        Store::can_read(self)
    }

    fn read(&self, query: Query) -> Call<'_, Result<Page, ReadError>> {
        Box::pin(Store::read(self, query))
    }

    fn close(&self) -> Call<'_, Result<(), SinkError>> {
        Box::pin(Store::close(self))
    }

    fn warning(&self) -> Option<Reason> {
        Store::warning(self)
    }

    fn binding(&self) -> Option<&dyn StoreBinding> {
        Store::binding(self)
    }
}
