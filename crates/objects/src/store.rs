//! What a store of whole objects implements.

use ::sink::{Examination, Mark, Reason, SinkError, StoreBinding};
use async_trait::async_trait;

use crate::memory_budget::MemoryBudget;
use crate::read::ObjectStoreReader;
use crate::{Manifest, ObjectDownload, ObjectFormat, ObjectQuery, ObjectUpload, Parts};

/// A store of whole objects, as its crate implements it. All others call it through an
/// [`ObjectSink`](crate::ObjectSink), which escapes control characters in a store's messages.
#[async_trait]
pub trait ObjectStore: Send + Sync + 'static {
    /// The rules of its objects.
    fn rules(&self) -> &ObjectFormat;

    /// The memory that its objects use while they are written, if it keeps their bytes.
    fn memory_budget(&self) -> Option<&MemoryBudget> {
        None
    }

    /// Why an event with this payload can't be stored; `None` if it can.
    fn refusal(&self, payload: &[u8]) -> Option<Reason> {
        let _ = payload;
        None
    }

    /// Whether its objects are files of this machine.
    fn is_on_this_disk(&self) -> bool {
        false
    }

    /// Connects to the store, creates what is missing in it and checks what exists.
    async fn connect(&self) -> Result<(), SinkError>;

    /// See [`Sink::examine`](::sink::Sink::examine).
    async fn examine(&self, _may_write: bool) -> Result<Examination, SinkError> {
        Ok(Examination::default())
    }

    /// The store id of the container or directory. It is created if there is none.
    async fn mark(&self) -> Result<Mark, SinkError>;

    /// See [`ObjectSink::put`](crate::ObjectSink::put). Returns the same `parts`.
    async fn put(&self, manifest: &Manifest, parts: Box<dyn Parts>) -> Result<Box<dyn Parts>, SinkError>;

    /// The same store for readers, with separate connections: no read waits for a write.
    fn reader(&self) -> Box<dyn ObjectStoreReader>;

    /// See [`ObjectSink::accept`](crate::ObjectSink::accept).
    async fn accept(&self, upload: ObjectUpload) -> Result<(), SinkError>;

    /// See [`ObjectSink::fetch`](crate::ObjectSink::fetch).
    async fn fetch(&self, name: &str, query: &ObjectQuery) -> Result<ObjectDownload, SinkError>;

    /// See [`Store::warning`](::sink::Store::warning).
    fn warning(&self) -> Option<Reason> {
        None
    }

    /// See [`Store::binding`](::sink::Store::binding).
    fn binding(&self) -> Option<&dyn StoreBinding> {
        None
    }
}
