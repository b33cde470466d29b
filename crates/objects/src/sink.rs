//! The handle of a store of objects: delivery writes to it by manifests, and every other caller by batches.

use std::any::Any;
use std::sync::Arc;

use ::sink::{
    Batch, Capabilities, Examination, Mark, Reason, RejectedRecord, Sink, SinkError, Store, StoreBinding, WriteOutcome,
    make_visible,
};
use async_trait::async_trait;
use http_body_util::BodyExt;
use limits::memory::Budgets;

use crate::parts::OnePart;
use crate::portions;
use crate::read::{ObjectCache, ObjectPlace, ObjectReads, ReadRules};
use crate::verified_body::VerifiedBody;
use crate::{Manifest, ObjectDownload, ObjectFormat, ObjectQuery, ObjectStore, ObjectUpload, Parts};

/// A sink of whole objects. It is the only way to call an [`ObjectStore`]. Cheap to clone.
#[derive(Clone)]
pub struct ObjectSink {
    store: Arc<dyn ObjectStore>,
}

impl ObjectSink {
    /// A sink that isn't connected yet.
    #[must_use]
    pub fn new(store: impl ObjectStore) -> Self {
        Self { store: Arc::new(store) }
    }

    /// The sink of objects in this handle, if it is one.
    #[must_use]
    pub fn of(sink: &Sink) -> Option<&Self> {
        sink.downcast_ref()
    }

    /// The rules of its objects.
    #[must_use]
    pub fn rules(&self) -> ObjectFormat {
        self.store.rules().clone()
    }

    /// Whether its objects are files of this machine.
    #[must_use]
    pub fn is_on_this_disk(&self) -> bool {
        self.store.is_on_this_disk()
    }

    /// Why an event with this payload can't be stored; `None` if it can. Such an event must not be in a manifest.
    #[must_use]
    pub fn refusal(&self, payload: &[u8]) -> Option<Reason> {
        self.store.refusal(payload).map(visible)
    }

    /// Limits the memory to the budgets. Call it before the first write.
    pub fn shrink_to(&self, memory: &Budgets) {
        if let Some(budget) = self.store.memory_budget() {
            budget.shrink_to(memory);
        }
    }

    /// Stores the object of `manifest`, whose events `parts` returns, and returns `parts` when the object is durable under its name. If an
    /// object exists there, it is compared with what would be written.
    ///
    /// If the future is dropped before it ends, the object exists completely or not at all.
    ///
    /// # Errors
    /// [`SinkError`] if the object may not be there: the same manifest with the same events must be sent again.
    ///
    /// # Panics
    /// If the store returns other parts than it received.
    pub async fn put<P: Parts>(&self, manifest: &Manifest, parts: P) -> Result<P, SinkError> {
        let parts = self.store.put(manifest, Box::new(parts)).await.map_err(SinkError::visible)?;
        let parts: Box<dyn Any> = parts;
        Ok(*parts.downcast().expect("BUG: a store returns the parts that it received"))
    }

    /// The objects of the sink named `sink`, to be read through `cache`. Nothing is requested before the first read.
    #[must_use]
    pub fn reads(&self, sink: Arc<str>, rules: ReadRules, cache: ObjectCache) -> ObjectReads {
        ObjectReads::new(sink, self.store.rules(), self.store.reader(), (rules, cache))
    }

    /// The lane and position in an object's name; `None` if it isn't an object's name. Such a name must not be used: it could address
    /// something else.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<ObjectPlace> {
        ObjectPlace::of(name, !self.store.is_on_this_disk())
    }

    /// Stores an object that a gateway has created. It is durable under its name when this returns. Its bytes must have the announced length and
    /// both digests, whichever of them the store checks.
    ///
    /// # Errors
    /// [`SinkError`] if it may not be stored: the gateway then sends the same bytes again.
    pub async fn accept(&self, mut upload: ObjectUpload) -> Result<(), SinkError> {
        let digests = (upload.md5, upload.sha256);
        upload.body = BodyExt::boxed_unsync(VerifiedBody::new(upload.body, upload.bytes, digests));
        self.store.accept(upload).await.map_err(SinkError::visible)
    }

    /// Returns an object, or a part of it.
    ///
    /// # Errors
    /// [`SinkError`] if the store doesn't answer, or if the object of a requested part has changed.
    pub async fn fetch(&self, name: &str, query: &ObjectQuery) -> Result<ObjectDownload, SinkError> {
        self.store.fetch(name, query).await.map_err(SinkError::visible)
    }
}

#[async_trait]
impl Store for ObjectSink {
    fn capabilities(&self) -> Capabilities {
        // A service of objects answers when most copies of an object are on disks: there is no standby that takes over.
        Capabilities { on_this_disk: self.store.is_on_this_disk(), ..Capabilities::default() }
    }

    async fn connect(&self) -> Result<(), SinkError> {
        self.store.connect().await
    }

    async fn examine(&self, may_write: bool) -> Result<Examination, SinkError> {
        self.store.examine(may_write).await
    }

    async fn mark(&self) -> Result<Option<Mark>, SinkError> {
        self.store.mark().await.map(Some)
    }

    /// A batch without a manifest becomes one object, or one for each of its types and periods, named by its lane and
    /// first position.
    async fn write(&self, batch: &Batch) -> Result<WriteOutcome, SinkError> {
        if let Some(rejected) = batch.misnamed() {
            return Ok(rejected);
        }
        let refusals = batch.records().enumerate();
        let refusals = refusals.filter_map(|(index, record)| Some((index, self.refusal(record.payload)?)));
        let refused: Vec<RejectedRecord> = refusals.map(|(index, reason)| RejectedRecord { index, reason }).collect();
        if !refused.is_empty() {
            return Ok(WriteOutcome::Rejected { refused });
        }
        if batch.mark().is_some() {
            let mark = self.store.mark().await?;
            if !mark.is_expected(batch.mark()) {
                return Err(SinkError::OtherStore(mark));
            }
        }
        let (rules, run) = (self.rules(), batch.first()..=batch.last());
        for part in portions::of(batch, &rules) {
            let Some(first) = part.get(0) else { continue };
            let (lane, portion) = (batch.lane().clone(), portions::shown(&first, &rules));
            let manifest = Manifest::new(lane, run.clone(), portion, &rules, None, None);
            self.put(&manifest, OnePart::new(part.clone())).await?;
        }
        Ok(WriteOutcome::Committed)
    }

    fn warning(&self) -> Option<Reason> {
        self.store.warning()
    }

    fn binding(&self) -> Option<&dyn StoreBinding> {
        self.store.binding()
    }
}

fn visible(mut reason: Reason) -> Reason {
    make_visible(&mut reason);
    reason
}
